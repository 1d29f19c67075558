"""A memory as a file, and back: JSON Lines of everything, or a short list of what is known of one user.

JSON Lines: the first line names the format, each further one is a session, a turn of it, or a fact, history
included. ``export_lines`` and ``import_file`` are inverse: what was exported is there again, with its ids,
dates and counts. What is there already is left as it is, so an import that broke off can be made again.

``fan_memory.json``: a list of ``{"kind", "content", "noted_at"}``, one entry a kind, as programs keep it
that write such a file themselves. Only what is true now has a place in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, BinaryIO

from .errors import LCMemoryError, MemoryInputError
from .facts import Fact
from .facts.privacy import PrivacyMode, kinds_in_words, passed
from .store import SessionKey, Store, Turn

FORMAT, VERSION = "lc-memory", 1

_OF_A_STORE = {"row", "indexed", "revision"}  # fields of a fact that mean nothing elsewhere
_FACT = {f.name for f in fields(Fact)} - _OF_A_STORE
_MANY = 1 << 40
LONGEST_LINE = 16 << 20
"""Bytes of a line that is read, 16 MiB: a turn that size is no conversation, and a line is read whole."""


@dataclass
class Imported:
    """What an import did."""

    sessions: int = 0
    turns: int = 0
    facts: int = 0
    known: int = 0
    """Turns and facts that were there already."""
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
    """What is true of an owner now, as ``fan_memory.json`` has it: facts that have a kind, private "
    "ones not."""
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
    """Bring in a file of either kind. It is read through before anything is written.

    ``owner``: whose facts the entries of a ``fan_memory.json`` are; they are checked for private data as
    ``privacy`` says, since nobody has yet. A bad line is a MemoryInputError that names it, or skipped and
    named in the result with ``skip_bad``.
    """
    try:
        with path.open("rb") as file:
            listed = file.read(64).lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")
        if listed:
            return _import_notes(store, path, owner, skip_bad, privacy)
        done = Imported()
        for _ in _records(path, skip_bad, []):
            pass
        _write(store, _records(path, skip_bad, done.bad), done)
    except OSError as error:
        raise MemoryInputError(f"{path}: cannot be read ({error.strerror or error})") from error
    return done


def _records(path: Path, skip_bad: bool, bad: list[str]) -> Iterator[dict[str, Any]]:
    with path.open("rb") as file:
        for number, line in enumerate(_lines(file), 1):
            try:
                if line is None:
                    raise ValueError(f"it is longer than {LONGEST_LINE >> 20} MiB")
                if line.strip():
                    yield _record(line, number == 1)
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


def _record(line: bytes, first: bool) -> dict[str, Any]:
    try:
        record = json.loads(line.decode("utf-8-sig" if first else "utf-8"))
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except ValueError as error:
        raise ValueError(f"it is not JSON ({str(error).split(':')[0]})") from None
    if not isinstance(record, dict) or record.get("type") not in _CHECKS:
        raise ValueError(f"its type is none of {', '.join(_CHECKS)}")
    for name, right in _CHECKS[record["type"]].items():
        if name not in record or not right(record[name]):
            raise ValueError(f"{record['type']}.{name} is missing or not as it should be")
    if record["type"] == "header" and (record["format"] != FORMAT or record["version"] > VERSION):
        raise ValueError("it was written by another program or a newer version; bring lc-memory up to date")
    return record


def _is(*types: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, types) and (bool in types or not isinstance(value, bool))


_TEXT, _MAYBE, _NUMBER, _WHOLE, _FLAG = _is(str), _is(str, type(None)), _is(int, float), _is(int), _is(bool)
_MAYBE_NUMBER = _is(int, float, type(None))
_SESSION: dict[str, Callable[[Any], bool]] = {"session_id": _TEXT, "user_id": _MAYBE}
_CHECKS: dict[str, dict[str, Callable[[Any], bool]]] = {
    "header": {"format": _TEXT, "version": _WHOLE},
    "session": {**_SESSION, "summary": _MAYBE, "covers": _WHOLE, "noted": _WHOLE},
    "turn": {
        **_SESSION,
        "turn_id": _TEXT,
        "created_at": _NUMBER,
        "messages": lambda value: isinstance(value, list) and value != [] and all(map(_is(dict), value)),
    },
    "fact": {
        "owner": _TEXT, "id": _TEXT, "text": lambda value: isinstance(value, str) and bool(value.strip()),
        "kind": _MAYBE, "subject": _MAYBE, "private": _FLAG, "core": _FLAG, "source": _is(dict),
        "noted_at": _NUMBER, "expires_at": _MAYBE_NUMBER, "superseded_by": _MAYBE,
        "superseded_at": _MAYBE_NUMBER, "count": _WHOLE,
    },
}  # fmt: skip


def _write(store: Store, records: Iterable[dict[str, Any]], done: Imported) -> None:
    session: _Session | None = None
    for record in records:
        if record["type"] == "fact":
            fact = Fact(row=0, indexed=False, revision=1, **{name: record[name] for name in _FACT})
            new = store.ledger().restore(fact)
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
            self._store.commit_summary(self.key, self.about["summary"], self.about["covers"], based_on=now)
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
    except ValueError as error:
        raise MemoryInputError(f"{path}: it is not JSON ({str(error).split(':')[0]})") from None
    good = []
    for number, entry in enumerate(entries, 1):
        try:
            good.append(_note(entry, privacy))
        except ValueError as error:
            _bad(f"entry {number}: {error}", path, skip_bad, done.bad)
    ledger = store.ledger()
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
    except ValueError:
        raise ValueError("noted_at is no date such as 2026-08-24") from None
    if len(entry["noted_at"].strip()) <= 10:  # a day: its noon in UTC is that day nearly everywhere
        noted = noted.replace(tzinfo=timezone.utc) + timedelta(hours=12)
    return entry["kind"].strip(), text, noted.timestamp()


def _day(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).astimezone().date().isoformat()
    except (ValueError, OverflowError, OSError) as error:
        raise LCMemoryError(f"a fact has no date that can be written: {seconds}") from error


__all__ = ["Imported", "export_lines", "export_notes", "import_file"]
