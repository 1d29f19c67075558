"""The facts as a LangGraph store: ``create_agent(…, store=FactStore(memory))``.

A namespace is whose facts they are: ``("user", user_id)`` or ``("session", session_id)``, as
:func:`namespace_of` writes it; one that is written in another way is refused. A value is a dict; its
``text`` (or ``content``) is the fact, and where it has neither, the dict as JSON is. ``kind``, ``subject``,
``private`` and ``core`` in it mean what they mean in the memory, so what is put here gets into prompts like
any fact, and what was learnt elsewhere is found here.
"""

from __future__ import annotations

import asyncio
import json
import operator
import re
import time
import warnings
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

from lc_memory.errors import MemoryInputError, MissingExtraError
from lc_memory.facts.privacy import PrivateDataWarning, kinds_in_words, passed
from lc_memory.index import Source
from lc_memory.memory import Memory
from lc_memory.sessions import named
from lc_memory.store import Fact, Ledger, SessionKey, from_moment

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
    )
except ImportError as error:
    raise MissingExtraError("FactStore", "agent") from error

_MARK = "put"  # in a fact's source: the value as it was put
_ESCAPES = {"%": "%25", ".": "%2E", "\x00": "%00"}  # LangGraph takes no such characters in a namespace

_FACTS: tuple[Source, ...] = ("facts",)
_UNESCAPE = re.compile(r"%([0-9A-F]{2})")


def namespace_of(user_id: str | None = None, *, session_id: str = "default") -> tuple[str, str]:
    """The namespace of a user's facts; without a user, of a session's."""
    who = ("session", session_id) if user_id is None else ("user", user_id)
    if not isinstance(who[1], str):
        who = (who[0], named(who[1], None).session_id)  # 7 is "7", as in a chain
    return who[0], "".join(_ESCAPES.get(c, c) for c in who[1]) or "%"


class FactStore(BaseStore):
    """A LangGraph BaseStore over the facts of a Memory that was opened on a store.

    ``search`` with a query goes by meaning and words, as recall does, and gives nothing where nothing fits;
    without one it lists, first noted first. A filter means what it means to LangGraph's InMemoryStore; what
    is no number is neither above nor below one. Private facts are got by key, and listed by the filter
    ``{"private": True}`` alone; with ``private=False`` they are not there at all, which is right where a
    model chooses keys and filters. As in LangGraph's stores a batch reads before it writes, and writes all or
    nothing. ``ttl`` (minutes) sets when a fact expires; reading does not put it off.
    ``index=False`` keeps a fact private; a list of paths is not supported (NotImplementedError).
    A fact with a phone number or the like in it is kept as private, with a PrivateDataWarning, unless the
    memory was opened with ``privacy="off"``: a store gives back what was put, and no prompt gets to see it.
    """

    supports_ttl = True

    def __init__(self, memory: Memory, *, private: bool = True) -> None:
        self._memory = memory
        self._private = private

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        results: list[Result] = []
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        for op in ops:
            if isinstance(op, PutOp):
                puts[op.namespace, op.key] = op
                results.append(None)
            elif isinstance(op, GetOp):
                results.append(self._get(op))
            elif isinstance(op, SearchOp):
                results.append(self._search(op))
            elif isinstance(op, ListNamespacesOp):
                results.append(self._namespaces(op))
            else:
                raise MemoryInputError(f"unknown operation {type(op).__name__}")
        if puts:
            self._write(list(puts.values()))
        return results

    def _write(self, puts: list[PutOp]) -> None:
        with self._memory._stored("FactStore").store.transaction():
            erased = False
            for op in puts:
                erased |= self._put(op)
        if self._memory._longterm is not None:
            self._memory._longterm.noted()
        if erased:
            self._memory._wipe()

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await asyncio.to_thread(self.batch, list(ops))

    # ------------------------------------------------------------ one operation

    def _put(self, op: PutOp) -> bool:
        """Whether something was erased."""
        owner, ledger = _owner(op.namespace), self._ledger()
        before = self._seen(ledger.get(owner, [op.key]))
        if op.value is None:
            return before is not None and bool(ledger.remove(owner, [op.key]))
        if isinstance(op.index, list):
            raise NotImplementedError("index=[…]: a fact is found by its text; put what matters into 'text'")
        value = dict(op.value)
        now = time.time()
        text = _text(value)
        private = op.index is False or value.get("private") is True or self._holds_private(text)
        ledger.add(
            owner,
            text,
            kind=_word(value, "kind"),
            subject=_word(value, "subject"),
            private=private,
            core=value.get("core") is True,
            source={
                **(before.source if before else {}),
                _MARK: value,
                "created_at": now if before is None else before.source.get("created_at", before.noted_at),
            },
            noted_at=now,
            expires_at=None if op.ttl is None else now + 60 * op.ttl,
            fact_id=op.key,
            anew=True,  # a fact said again would keep its first source, and with it the old value
        )
        return False

    def _seen(self, facts: list[Fact]) -> Fact | None:
        """The fact, unless it is hidden from this store."""
        return next((fact for fact in facts if self._private or not fact.private), None)

    def _holds_private(self, text: str) -> bool:
        _, found = passed(text, self._memory._stored("FactStore").privacy)
        if found:
            warnings.warn(
                f"what was put holds {kinds_in_words(found)} and is kept as private: in no prompt, and in no "
                'search without the filter {"private": True}; Memory.open(privacy="off") lets it in',
                PrivateDataWarning,
                stacklevel=6,
            )
        return bool(found)

    def _get(self, op: GetOp) -> Item | None:
        fact = self._seen(self._ledger().get(_owner(op.namespace), [op.key]))
        if fact is None or fact.superseded_by is not None or _expired(fact):
            return None
        found = _item(fact, None)
        return Item(
            value=found.value, key=found.key, namespace=found.namespace,
            created_at=found.created_at, updated_at=found.updated_at,
        )  # fmt: skip

    def _search(self, op: SearchOp) -> list[SearchItem]:
        wanted = _checked(op.filter or {})
        private = self._private and wanted.get("private") is True
        end = op.offset + op.limit
        found: list[tuple[Fact, float | None]] = []
        for owner in self._owners(op.namespace_prefix):
            if op.query:
                found += self._recalled(owner, op.query, 10 * end if wanted else end, private)
            else:
                found += [(fact, None) for fact in self._ledger().current(owner, include_private=private)]
        if op.query:
            found.sort(key=lambda pair: -(pair[1] or 0.0))
        matching = [_item(fact, score) for fact, score in found if _matches(fact, wanted)]
        return matching[op.offset : end]

    def _recalled(self, owner: str, query: str, k: int, private: bool) -> list[tuple[Fact, float | None]]:
        found = self._memory._long("FactStore.search(query=…)").find(
            owner, query, k, sources=_FACTS, include_private=private
        )
        return [(one.memory, one.score) for one in found if isinstance(one.memory, Fact)]

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        found = {
            namespace[: op.max_depth]
            for namespace in map(_namespace, self._owners(()))
            if all(_fits(namespace, condition) for condition in conditions)
        }
        return sorted(found)[op.offset : op.offset + op.limit]

    def _owners(self, prefix: tuple[str, ...]) -> Iterable[str]:
        """The owners whose namespaces begin with ``prefix``. But for a whole one, all facts are walked."""
        if len(prefix) >= 2:
            return [_owner(prefix)]
        owners: dict[str, None] = {}
        after = 0
        while page := self._ledger().iterate(after=after):
            owners |= {
                fact.owner: None
                for fact in page
                if fact.superseded_by is None and not _expired(fact) and (self._private or not fact.private)
                and _namespace(fact.owner)[: len(prefix)] == prefix
            }  # fmt: skip
            after = page[-1].row
        return list(owners)

    def _ledger(self) -> Ledger:
        return self._memory._stored("FactStore").store.ledger()


# ---------------------------------------------------------------- whose


def _owner(namespace: tuple[str, ...]) -> str:
    if len(namespace) == 2 and namespace[0] in ("user", "session"):
        name = "" if namespace[1] == "%" else _UNESCAPE.sub(lambda m: chr(int(m[1], 16)), namespace[1])
        key = SessionKey("", name) if namespace[0] == "user" else SessionKey(name)
        if _namespace(key.owner) == namespace:  # else two namespaces would be one
            return key.owner
    raise MemoryInputError(
        f'the namespace of a user\'s facts is ("user", user_id), of a session\'s ("session", session_id): '
        f"namespace_of() makes it; got {namespace!r}"
    )


def _namespace(owner: str) -> tuple[str, ...]:
    kind, _, name = owner.partition(":")
    return namespace_of(name) if kind == "user" else namespace_of(session_id=name)


def _fits(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path = tuple(condition.path)
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :]
    return len(part) == len(path) and all(p in ("*", n) for n, p in zip(part, path, strict=True))


# ---------------------------------------------------------------- fact and value


def _text(value: Mapping[str, Any]) -> str:
    for key in ("text", "content"):
        if isinstance(value.get(key), str) and value[key].strip():
            return str(value[key])
    return json.dumps(value, ensure_ascii=False, default=str)


def _word(value: Mapping[str, Any], key: str) -> str | None:
    return value[key] if isinstance(value.get(key), str) and value[key] else None


def _item(fact: Fact, score: float | None) -> SearchItem:
    put = fact.source.get(_MARK)
    return SearchItem(
        namespace=_namespace(fact.owner),
        key=fact.id,
        value=dict(put) if isinstance(put, dict) else {"text": fact.text, **_facets(fact)},
        created_at=_moment(fact.source.get("created_at", fact.noted_at)),
        updated_at=_moment(fact.noted_at),
        score=score,
    )


def _facets(fact: Fact) -> dict[str, Any]:
    return {"kind": fact.kind, "subject": fact.subject, "private": fact.private, "core": fact.core}


def _expired(fact: Fact) -> bool:
    return fact.expires_at is not None and fact.expires_at <= time.time()


def _moment(seconds: Any) -> datetime:
    return datetime.fromtimestamp(from_moment(seconds), timezone.utc)


# ---------------------------------------------------------------- filters

_EQUAL: Mapping[str, Callable[[Any, Any], bool]] = {"$eq": operator.eq, "$ne": operator.ne}
_ORDER: Mapping[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def _checked(wanted: Any) -> Mapping[str, Any]:
    """A filter that can be understood. MemoryInputError where it cannot, whatever there is to be filtered."""
    if not isinstance(wanted, Mapping):
        raise MemoryInputError(f"a filter is a dict, not {type(wanted).__name__}")
    for condition in wanted.values():
        _check(condition)
    return wanted


def _check(condition: Any) -> None:
    if isinstance(condition, (list, tuple)):
        for one in condition:
            _check(one)
    if not isinstance(condition, Mapping):
        return
    operators = _is_operators(condition)
    for key, value in condition.items():
        if not operators:
            _check(value)
        elif key not in _EQUAL and key not in _ORDER:
            raise MemoryInputError(f"unknown operator in a filter: {key}; there are {[*_EQUAL, *_ORDER]}")
        elif key in _ORDER and _number(value) is None:
            raise MemoryInputError(f"{key} in a filter takes a number, not {value!r:.40}")


def _is_operators(condition: Mapping[Any, Any]) -> bool:
    return any(str(key).startswith("$") for key in condition)


def _matches(fact: Fact, wanted: Mapping[str, Any]) -> bool:
    value = _item(fact, None).value
    return all(
        (key == "private" and condition is True and fact.private) or _compares(value.get(key), condition)
        for key, condition in wanted.items()
    )


def _compares(have: Any, condition: Any) -> bool:
    """As LangGraph's InMemoryStore: a dict is matched in part, a list in order and whole."""
    if isinstance(condition, Mapping):
        if _is_operators(condition):
            return all(_applies(name, have, value) for name, value in condition.items())
        return isinstance(have, Mapping) and all(_compares(have.get(k), v) for k, v in condition.items())
    if isinstance(condition, (list, tuple)):
        return (
            isinstance(have, (list, tuple))
            and len(have) == len(condition)
            and all(_compares(h, c) for h, c in zip(have, condition, strict=True))
        )
    return bool(have == condition)


def _applies(name: str, have: Any, value: Any) -> bool:
    if name in _EQUAL:
        return bool(_EQUAL[name](have, value))
    one, other = _number(have), _number(value)
    return one is not None and other is not None and _ORDER[name](one, other)


def _number(value: Any) -> float | None:
    """What LangGraph's stores take for a number: texts of one, too."""
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


__all__ = ["FactStore", "namespace_of"]
