"""Conversations that were held elsewhere, in a file: JSON, or JSON Lines with a conversation or a message in
each line, in any form that ``histories.py`` knows.

A line (or an element of a list) that holds a conversation becomes a session of its own, named by its
``session_id`` where it has one; single messages together are one. Turns are known by their place and words,
so the same file a second time brings nothing twice.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lc_memory.errors import MemoryInputError
from lc_memory.facts.privacy import PrivacyMode
from lc_memory.messages import Message, is_conversation, is_message, read, turns
from lc_memory.store import SessionKey, Store, digest

from .portable import Imported
from .stored import add_turns

_OURS = frozenset({"header", "session", "turn", "fact"})
_LONGEST = 64 << 20
"""Bytes of a line. A longer one is no conversation."""
_ID = ("session_id", "conversation_id", "thread_id")


def holds_conversations(path: Path) -> bool:
    """Whether a file is neither an export of a memory nor a list of notes."""
    try:
        value, _ = next(_values(path), (None, ""))
    except MemoryInputError:
        return False  # whoever reads exports says what is wrong with it
    if isinstance(value, dict) and value.get("type") in _OURS and "role" not in value:
        return False
    if isinstance(value, list):
        first = value[0] if value else None
        return bool(value) and not (isinstance(first, dict) and "kind" in first and "role" not in first)
    return is_conversation(value) or is_message(value) or _session_of(value) is not None


def import_conversations(
    store: Store,
    path: Path,
    *,
    user_id: str | None = None,
    session_id: str | None = None,
    skip_bad: bool = False,
    privacy: PrivacyMode = "refuse",
) -> Imported:
    """Bring in the conversations of a file: all of them, or nothing.

    ``user_id``: whose they become. ``session_id``: the session of the one there is; of several, what their
    numbers follow. None: what the file says, else the file's name. A conversation that is not understood is
    a MemoryInputError that names its line, or left out and named in the result with ``skip_bad``.
    """
    done = Imported()
    found: dict[str, list[Message]] = {}
    singles: list[Any] = []
    unnamed: list[str] = []
    base = session_id or path.stem
    for value, where in _conversations(path, done.bad if skip_bad else None):
        named = _session_of(value) if session_id is None else None
        try:
            if named is None and not is_conversation(value):
                singles.append(value)
                read([value])
                continue
            messages = read(value if is_conversation(value) else [value])
        except MemoryInputError as error:
            singles = [one for one in singles if one is not value]
            if not skip_bad:
                raise MemoryInputError(
                    f"{path}, {where}: {error}. Nothing was imported; --skip-bad leaves such lines out"
                ) from error
            done.bad.append(f"{where}: {error}")
            continue
        if named is None:
            named = f"{base}-{len(unnamed) + 1}"
            unnamed.append(named)
        found.setdefault(named, []).extend(messages)
    if singles:
        found[base] = read(singles)
    elif len(unnamed) == 1 == len(found):
        found = {base: found.pop(unnamed[0])}
    with store.transaction():
        for name, messages in found.items():
            listed = turns(messages)
            ids = [_turn_id(i, turn) for i, turn in enumerate(listed)]
            new = add_turns(store, SessionKey(name, user_id), listed, privacy, ids) if listed else 0
            done.sessions += 1
            done.turns, done.known = done.turns + new, done.known + len(listed) - new
    return done


def _session_of(value: Any) -> str | None:
    if not isinstance(value, dict) or not (is_conversation(value) or is_message(value) or "message" in value):
        return None
    return next((value[key] for key in _ID if isinstance(value.get(key), str) and value[key]), None)


def _turn_id(place: int, turn: list[Message]) -> str:
    return digest(str(place), json.dumps(turn, sort_keys=True, ensure_ascii=True)).hex()[:32]


def _conversations(path: Path, bad: list[str] | None) -> Iterator[tuple[Any, str]]:
    for value, where in _values(path, bad):
        if (
            isinstance(value, list)
            and value
            and not all(map(is_message, value))
            and all(map(_is_whole, value))
        ):
            for i, one in enumerate(value, 1):
                yield one, f"entry {i}"
        else:
            yield value, where


def _is_whole(value: Any) -> bool:
    return is_conversation(value) or _session_of(value) is not None


def _values(path: Path, bad: list[str] | None = None) -> Iterator[tuple[Any, str]]:
    """The lines of a file as JSON, or the whole of it where its first line is none. ``bad`` takes what is
    wrong with a line; without it that is raised."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(_LONGEST + 1):
            number += 1
            if len(line) > _LONGEST:
                raise MemoryInputError(f"{path}, line {number}: it is longer than {_LONGEST >> 20} MB")
            if not line.strip():
                continue
            try:
                value = _json(line, number == 1)
            except ValueError as error:
                if number == 1 and line.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{"):
                    break
                if bad is None:
                    raise MemoryInputError(f"{path}, line {number}: {error}. Nothing was imported") from error
                bad.append(f"line {number}: {error}")
                continue
            yield value, f"line {number}"
        else:
            return
    try:
        yield _json(path.read_bytes(), True), "the file"
    except ValueError as error:
        raise MemoryInputError(f"{path}: {error}") from error


def _json(data: bytes, first: bool) -> Any:
    try:
        return json.loads(data.decode("utf-8-sig" if first else "utf-8"), parse_constant=_no_number)
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON ({error.msg})") from None


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number in JSON")


__all__ = ["holds_conversations", "import_conversations"]
