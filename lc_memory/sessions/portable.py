"""A memory as a file, and back: JSON Lines of everything, or a short list of what is known of one user.

JSON Lines: the first line names the format, each further one is a session, a turn of it, or a fact, history
included. ``export_lines`` and ``import_file`` are inverse: what was exported is there again, with its ids,
dates and counts. What is there already is left as it is, so an import that broke off can be made again.

``fan_memory.json``: a list of ``{"kind", "content", "noted_at"}``, one entry a kind, as programs keep it
that write such a file themselves. Only what is true now has a place in it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, BinaryIO

from lc_memory.errors import MemoryInputError
from lc_memory.facts.privacy import PrivacyMode, kinds_in_words, passed
from lc_memory.messages import messages_to_lc
from lc_memory.store import Fact, Message, SessionKey, Store, Turn, digest, dump_json, moment

FORMAT, VERSION = "lc-memory", 1

_OF_A_STORE = {"row", "indexed", "revision"}  # fields of a fact that mean nothing elsewhere
_FACT = {f.name for f in fields(Fact)} - _OF_A_STORE
_MANY = 1 << 40
LONGEST_LINE = 16 << 20
"""Bytes of a line that is read, 16 MiB: a turn that size is no conversation, and a line is read whole."""
_DEEP = 100  # levels of lists and objects in one line; what programs write has ten


@dataclass
class Imported:
    """What an import did."""

    sessions: int = 0
    turns: int = 0
    facts: int = 0
    known: int = 0
    """Turns and facts that were there already."""
    was: dict[str, int] = field(default_factory=dict)
    """How many sessions, turns and facts had another owner in the file, by that owner."""
    bad: list[str] = field(default_factory=list)
    """The lines that were skipped, each with its number and what is wrong with it; never with its words."""


# ---------------------------------------------------------------- out


def export_lines(store: Store, user_id: str | None = None) -> Iterator[str]:
    """The store, or what there is of one user, as lines of JSON without their line ends."""
    yield _line({"type": "header", "format": FORMAT, "version": VERSION})
    for info in sorted(store.sessions(user_id), key=lambda i: (i.created_at, i.key.session_id)):
        key = info.key
        who = {"session_id": key.session_id, "user_id": key.user_id}
        snapshot = store.load(key)
        unread = len(store.backlog().pending("notes", key=key, limit=_MANY))
        about = {"summary": snapshot.summary, "covers": snapshot.covers, "noted": max(info.turns - unread, 0)}
        yield _line({"type": "session", **who, **about})
        for turn in store.turns(key):
            yield _line({"type": "turn", **who, **_turn_fields(turn)})
    owner = None if user_id is None else SessionKey("", user_id).owner
    for fact in all_facts(store):
        if owner in (None, fact.owner):
            yield _line({"type": "fact", **{k: v for k, v in asdict(fact).items() if k in _FACT}})


def export_notes(store: Store, owner: str) -> list[dict[str, str]]:
    """What is true of an owner now, as ``fan_memory.json`` has it: facts that have a kind, private
    ones not."""
    return [
        {"kind": fact.kind, "content": fact.text, "noted_at": _day(fact.noted_at)}
        for fact in store.ledger().current(owner)
        if fact.kind is not None
    ]


def all_facts(store: Store) -> Iterator[Fact]:
    after = 0
    while page := store.ledger().iterate(after=after):
        yield from page
        after = page[-1].row


def _turn_fields(turn: Turn) -> dict[str, Any]:
    return {"turn_id": turn.turn_id, "created_at": turn.created_at, "messages": list(turn.messages)}


def _line(record: dict[str, Any]) -> str:
    line = json.dumps(record, ensure_ascii=False)
    try:
        line.encode()
    except UnicodeEncodeError:  # half a surrogate pair has no UTF-8
        line = json.dumps(record)
    return line


# ---------------------------------------------------------------- in


def import_file(
    store: Store,
    path: Path,
    *,
    owner: str | None = None,
    skip_bad: bool = False,
    privacy: PrivacyMode = "refuse",
) -> Imported:
    """Bring in a file of either kind: all of it, or nothing.

    ``owner``: whose it all becomes, whoever's it was in the file: sessions, turns and facts. None: it stays
    theirs; a ``fan_memory.json`` needs one. ``privacy``: what becomes of a fact that is not called private
    and holds private data, as for :meth:`Memory.remember`. A bad line is a MemoryInputError that names it,
    or skipped and named in the result with ``skip_bad``.
    """
    try:
        if path.exists() and not path.is_file():
            raise MemoryInputError(f"{path}: an import is read twice; give a file, or - for a pipe")
        with path.open("rb") as file:
            listed = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        if listed:
            return _import_notes(store, path, owner, skip_bad, privacy)
        done = Imported()
        given = None if owner is None else _Given(owner)
        for _ in _records(path, skip_bad, [], _Lines(privacy, given)):
            pass
        with store.transaction():
            _write(store, _records(path, skip_bad, done.bad, _Lines(privacy, given)), done, given is not None)
    except OSError as error:
        raise MemoryInputError(f"{path}: cannot be read ({error.strerror or error})") from error
    if given is not None:
        done.was = given.was
    return done


def _records(path: Path, skip_bad: bool, bad: list[str], lines: _Lines) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for number, line in enumerate(_lines(file), 1):
            try:
                if line is None:
                    raise ValueError(f"it is longer than {LONGEST_LINE >> 20} MiB")
                if line.strip():
                    yield lines.read(line, number)
            except ValueError as error:
                _bad(f"line {number}: {error}", path, skip_bad, bad)


def _lines(file: BinaryIO) -> Iterator[bytes | None]:
    """The lines of a file; None for one that is too long, which is never held whole."""
    while line := file.readline(LONGEST_LINE + 1):
        if len(line) <= LONGEST_LINE or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(LONGEST_LINE)
        yield None


def _bad(what: str, path: Path, skip_bad: bool, bad: list[str]) -> None:
    if not skip_bad:
        raise MemoryInputError(f"{path}, {what}. Nothing was imported; --skip-bad leaves such lines out")
    bad.append(what)


class _Lines:
    """The lines of one file, one after another. What cannot come in is a ValueError without its words."""

    def __init__(self, privacy: PrivacyMode, given: _Given | None) -> None:
        self._privacy = privacy
        self._given = given
        self._seen: dict[bytes, int] = {}

    def read(self, line: bytes, number: int) -> dict[str, Any]:
        record = _record(line, number == 1)
        if (name := _name(record)) is not None:
            first = self._seen.setdefault(digest(*name), number)
            if first != number:
                raise ValueError(f"this {record['type']} stands in line {first} already")
        if record["type"] == "fact":
            record = _let_in(record, self._privacy)
        return record if self._given is None else self._given.take(record)


def _record(line: bytes, first: bool) -> dict[str, Any]:
    try:
        record = json.loads(line.decode("utf-8-sig" if first else "utf-8"))
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON ({str(error).split(':')[0]})") from None
    if not isinstance(record, dict) or not isinstance(kind := record.get("type"), str) or kind not in _CHECKS:
        raise ValueError(f"its type is none of {', '.join(_CHECKS)}")
    if _is_deep(record):
        raise ValueError("it is nested too deeply")
    checks = _CHECKS[kind]
    for name, right in checks.items():
        if name not in record or not right(record[name]):
            raise ValueError(f"{kind}.{name} is missing or not as it should be")
    if unknown := record.keys() - checks.keys() - {"type"}:
        raise ValueError(f"a {kind} has no {min(unknown)[:40]!r}")
    if kind == "header" and (record["format"] != FORMAT or record["version"] > VERSION):
        raise ValueError("it was written by another program or a newer version; bring lc-memory up to date")
    return record


def _is_deep(record: Any) -> bool:
    level = [record]
    for _ in range(_DEEP):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def _name(record: dict[str, Any]) -> tuple[str | None, ...] | None:
    """What a file has once."""
    kind = record["type"]
    if kind == "fact":
        return kind, record["owner"], record["id"]
    if kind == "header":
        return None
    return kind, record["session_id"], record["user_id"], *([record["turn_id"]] if kind == "turn" else [])


def _let_in(fact: dict[str, Any], privacy: PrivacyMode) -> dict[str, Any]:
    """A fact as the privacy door lets it in, with the words it was made of."""
    if fact["private"]:
        return fact
    text, found = passed(fact["text"], privacy)
    said = fact["source"].get("quote")
    quote, quoted = passed(said, privacy) if isinstance(said, str) else (said, [])
    if text is None or (quoted and quote is None):
        raise ValueError(f"it holds {kinds_in_words(found or quoted)}, which is not kept")
    source = {**fact["source"], "quote": quote} if quoted else fact["source"]
    return {**fact, "text": text, "source": source}


# ---------------------------------------------------------------- what is a right value


def _is(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types) and (bool in types or not isinstance(value, bool))


def _whole(least: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and least <= value < 1 << 53


def _time(value: Any) -> bool:
    try:
        moment("", value)
    except MemoryInputError:
        return False
    return True


def _owner(value: Any) -> bool:
    return isinstance(value, str) and value.startswith((_USER, _OF_SESSION))


def _json(value: Any) -> bool:
    try:
        dump_json("", value)
    except MemoryInputError:  # NaN and the infinite are none
        return False
    return isinstance(value, dict)


def _messages(value: Any) -> bool:
    if not isinstance(value, list) or not value or not all(map(_message, value)):
        return False
    try:
        messages_to_lc(value)
    except MemoryInputError:
        return False
    return True


def _message(value: Any) -> bool:
    return _json(value) and isinstance(value.get("content"), (str, list, dict, type(None)))


_USER, _OF_SESSION = SessionKey("", "").owner, SessionKey("").owner
_TEXT, _MAYBE, _FLAG = _is(str), _is(str, type(None)), _is(bool)
_SESSION: dict[str, Callable[[Any], bool]] = {"session_id": _TEXT, "user_id": _MAYBE}
_CHECKS: dict[str, dict[str, Callable[[Any], bool]]] = {
    "header": {"format": _TEXT, "version": _whole(1)},
    "session": {**_SESSION, "summary": _MAYBE, "covers": _whole(0), "noted": _whole(0)},
    "turn": {**_SESSION, "turn_id": _TEXT, "created_at": _time, "messages": _messages},
    "fact": {
        "owner": _owner, "id": _TEXT, "text": lambda value: isinstance(value, str) and bool(value.strip()),
        "kind": _MAYBE, "subject": _MAYBE, "private": _FLAG, "core": _FLAG, "source": _json,
        "noted_at": _time, "expires_at": lambda value: value is None or _time(value),
        "superseded_by": _MAYBE, "superseded_at": lambda value: value is None or _time(value),
        "count": _whole(1),
    },
}  # fmt: skip


# ---------------------------------------------------------------- whose it becomes


class _Given:
    """All of a file becomes one user's. What two owners called alike stays two."""

    def __init__(self, owner: str) -> None:
        if not owner.startswith(_USER):
            raise MemoryInputError("an export can become a user's, not a session's")
        self.owner = owner
        self.was: dict[str, int] = {}
        self._user_id = owner.removeprefix(_USER)
        self._sessions: dict[tuple[str, str | None], str] = {}
        self._facts: dict[tuple[str, str], str] = {}
        self._taken: dict[str, bytes] = {}
        self._counted: set[tuple[str | None, ...]] = set()

    def take(self, record: dict[str, Any]) -> dict[str, Any]:
        """The record as the user's. Taken again, it becomes the same."""
        name = _name(record)
        if name is None:
            return record
        fact = record["type"] == "fact"
        was = record["owner"] if fact else SessionKey(record["session_id"], record["user_id"]).owner
        if name not in self._counted:
            self._counted.add(name)
            if was != self.owner:
                self.was[was] = self.was.get(was, 0) + 1
        if not fact:
            session = self._session(record["session_id"], record["user_id"])
            return {**record, "session_id": session, "user_id": self._user_id}
        user_id = was.removeprefix(_USER) if was.startswith(_USER) else None
        source = record["source"]
        if isinstance(session := source.get("session"), str):
            source = {**source, "session": self._session(session, user_id)}
        successor = record["superseded_by"]
        return {
            **record,
            "owner": self.owner,
            "id": self._fact(was, record),
            "source": source,
            "superseded_by": self._facts.get((was, successor or ""), successor),
        }

    def _session(self, session_id: str, user_id: str | None) -> str:
        known = self._sessions.get((session_id, user_id))
        if known is None:
            taken = set(self._sessions.values())
            known = next(n for n in _numbered(session_id) if n not in taken)
            self._sessions[session_id, user_id] = known
        return known

    def _fact(self, was: str, record: dict[str, Any]) -> str:
        known = self._facts.get((was, record["id"]))
        if known is None:
            known, words = record["id"], digest(record["text"], record["kind"], record["subject"])
            if self._taken.setdefault(known, words) != words:
                known = _another_id(record)
            self._facts[was, record["id"]] = known
        return known


def _numbered(name: str) -> Iterator[str]:
    yield name
    number = 2
    while True:
        yield f"{name} {number}"
        number += 1


def _another_id(fact: dict[str, Any]) -> str:
    """The id of a fact whose own is taken by another one; the same each time."""
    told = f"{fact['id']}\n{fact['kind']}\n{fact['text']}".encode("utf-8", "surrogatepass")
    return "f" + hashlib.md5(told, usedforsecurity=False).hexdigest()


# ---------------------------------------------------------------- into the store


def _write(store: Store, records: Iterable[dict[str, Any]], done: Imported, given: bool) -> None:
    session: _Session | None = None
    for record in records:
        if record["type"] == "fact":
            new = _restore(store, record, given)
            done.facts, done.known = done.facts + new, done.known + (not new)
        elif record["type"] in ("session", "turn"):
            key = SessionKey(record["session_id"], record["user_id"])
            if session is None or session.key != key:
                if session is not None:
                    session.end()
                session = _Session(store, key)
            if record["type"] == "session":
                session.about = record
                done.sessions += 1
            else:
                new = session.add(record)
                done.turns, done.known = done.turns + new, done.known + (not new)
    if session is not None:
        session.end()


def _restore(store: Store, record: dict[str, Any], given: bool) -> bool:
    ledger = store.ledger()
    fact = Fact(row=0, indexed=False, revision=1, **{name: record[name] for name in _FACT})
    if ledger.restore(fact):
        return True
    if given and ledger.get(fact.owner, [fact.id])[0].text != fact.text:  # the new owner's own, of that id
        return ledger.restore(replace(fact, id=_another_id(record)))
    return False


class _Session:
    """A session that is coming in."""

    def __init__(self, store: Store, key: SessionKey) -> None:
        self.key = key
        self.about: dict[str, Any] = {}
        self._store = store
        self._known = {turn.turn_id for turn in store.turns(key)}
        self._is_new = not self._known

    def add(self, record: dict[str, Any]) -> bool:
        if record["turn_id"] in self._known:
            return False
        turn_id, when = record["turn_id"], record["created_at"]
        self._store.append(self.key, record["messages"], turn_id=turn_id, created_at=when)
        return True

    def end(self) -> None:
        """The summary, which counts turns, fits only where the session is what it was. Turns that notes
        were made of are not read again."""
        if not self._is_new or not self.about:
            return
        if self.about["covers"]:
            now = self._store.load(self.key)
            covers, kept = self.about["covers"], list[Message]()
            for turn in self._store.turns(self.key, limit=covers):
                kept += [m for m in turn.messages if m.get("role") == "system" and m not in kept]
            self._store.commit_summary(self.key, self.about["summary"], covers, based_on=now, kept=kept)
        backlog = self._store.backlog()
        read = [
            stored
            for stored in backlog.pending("notes", key=self.key, limit=_MANY)
            if stored.turn.seq <= self.about["noted"]
        ]
        if read:
            backlog.advance("notes", read)


# ---------------------------------------------------------------- fan_memory.json


def _import_notes(
    store: Store, path: Path, owner: str | None, skip_bad: bool, privacy: PrivacyMode
) -> Imported:
    if owner is None:
        raise MemoryInputError(f"{path} is a list of notes of one user: say whose, with --user ID")
    done = Imported()
    try:
        entries = json.loads(path.read_text("utf-8-sig"))
    except RecursionError:
        raise MemoryInputError(f"{path}: it is nested too deeply") from None
    except ValueError as error:
        raise MemoryInputError(f"{path}: it is not JSON ({str(error).split(':')[0]})") from None
    good = []
    for number, entry in enumerate(entries, 1):
        try:
            good.append(_note(entry, privacy))
        except ValueError as error:
            _bad(f"entry {number}: {error}", path, skip_bad, done.bad)
    ledger = store.ledger()
    with store.transaction():
        for kind, text, noted_at in good:
            known = [fact for fact in ledger.current(owner, kinds=[kind]) if fact.text == text]
            done.facts, done.known = done.facts + (not known), done.known + bool(known)
            if not known:
                ledger.add(owner, text, kind=kind, core=True, noted_at=noted_at, supersede=True)
    return done


def _note(entry: Any, privacy: PrivacyMode) -> tuple[str, str, float]:
    if not isinstance(entry, dict):
        raise ValueError("it is no object")
    for name in ("kind", "content", "noted_at"):
        if not isinstance(entry.get(name), str) or not entry[name].strip():
            raise ValueError(f"{name} is missing or no text")
    text, found = passed(entry["content"], privacy)
    if text is None:
        raise ValueError(f"it holds {kinds_in_words(found)}, which is not kept")
    try:
        noted = datetime.fromisoformat(entry["noted_at"])
        if len(entry["noted_at"].strip()) <= 10:  # a day: its noon in UTC is that day nearly everywhere
            noted = noted.replace(tzinfo=timezone.utc) + timedelta(hours=12)
        when = moment("noted_at", noted.timestamp())
    except (ValueError, OverflowError, OSError):
        raise ValueError("noted_at is no date such as 2026-08-24") from None
    return entry["kind"].strip(), text, when


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).astimezone().date().isoformat()


__all__ = ["Imported", "export_lines", "export_notes", "import_file"]
