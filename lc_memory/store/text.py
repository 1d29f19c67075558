"""How strings, messages and times become columns, and come back exactly as they were.

Neither database stores every Python string: PostgreSQL has no NUL in text, and neither takes a lone
surrogate (half an emoji, as broken clients send them). Such a string is written escaped behind a mark;
any other is stored as it is, readable with the database's own tools. Strings are never compared or
indexed in the database: a digest of fixed length stands for them, so that an id may have any length.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import Any

from lc_memory.errors import MemoryInputError

from .rows import Message

_MARK = "\x1a"
_UNSTORABLE = re.compile("[\x00\x1a\ud800-\udfff]")
_ESCAPED = re.compile("\x1a([0-9a-f]{4})")


def to_column(text: str) -> str:
    """The form in which both databases can hold ``text``."""
    if "\0" not in text and not text.startswith(_MARK):
        try:
            text.encode()
            return text
        except UnicodeEncodeError:
            pass
    return _MARK + _UNSTORABLE.sub(lambda m: f"{_MARK}{ord(m[0]):04x}", text)


def from_column(column: str) -> str:
    """What :func:`to_column` was given."""
    if not column.startswith(_MARK):
        return column
    return _ESCAPED.sub(lambda m: chr(int(m[1], 16)), column[1:])


def digest(*parts: str | None) -> bytes:
    """20 bytes that stand for the parts; None differs from every string."""
    hashed = hashlib.blake2b(digest_size=20)
    for part in parts:
        if part is None:
            hashed.update(b"-")
        else:
            data = part.encode("utf-8", "surrogatepass")
            hashed.update(b"%d:" % len(data))
            hashed.update(data)
    return hashed.digest()


def check_text(name: str, value: object) -> None:
    """Raise :class:`MemoryInputError` unless ``value`` is a string."""
    if not isinstance(value, str):
        raise MemoryInputError(f"{name} must be a string, not {type(value).__name__}: {value!r:.80}")


LATEST = 253_370_764_800.0
"""The first second that is no moment any more: the year 9999 begins. Calendars end soon after it."""


def moment(name: str, value: Any) -> float:
    """``value``, Unix seconds of 1970 to 9998. Raises :class:`MemoryInputError` for anything else: a time
    that no calendar has would stop whoever reads it later."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < LATEST:
        return float(value)
    huge = isinstance(value, int) and value.bit_length() > 200  # Python refuses to write these out
    shown = "a number of that size" if huge else f"{value!r:.60}"
    raise MemoryInputError(
        f"{name}={shown}: expected Unix seconds, as time.time() gives them, before the year 9999"
    )


def from_moment(column: Any) -> float:
    """The nearest moment to what stands in a column: older versions took any number."""
    if isinstance(column, (int, float)):
        if 0 <= column < LATEST:
            return float(column)
        return LATEST - 1 if column >= LATEST else 0.0
    return 0.0


def dump_messages(messages: Sequence[Message]) -> tuple[str, tuple[Message, ...]]:
    """The column for the messages, and the messages as they will come back from it."""
    if isinstance(messages, (str, bytes, dict)) or not isinstance(messages, Sequence):
        raise MemoryInputError(f"a turn is a list of message dicts, not {type(messages).__name__}")
    if not messages:
        raise MemoryInputError("a turn needs at least one message")
    for index, message in enumerate(messages):
        if not isinstance(message, dict):
            raise MemoryInputError(f"messages[{index}] must be a dict, not {type(message).__name__}")
    column, back = dump_json("messages", list(messages))
    return column, tuple(back)


def load_messages(column: str) -> tuple[Message, ...]:
    """The messages in a column."""
    return tuple(json.loads(from_column(column)))


def dump_json(name: str, value: Any) -> tuple[str, Any]:
    """The column for a JSON value, and the value as it will come back from it."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        back = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        _name_offender(value, name, ())
        raise MemoryInputError(f"{name} cannot be written as JSON: {error}") from error
    if back != value:  # tuples have become lists; or keys that are no strings have become strings
        _name_offender(value, name, ())
    return to_column(text), back


def load_json(column: str) -> Any:
    """The value in a column."""
    return json.loads(from_column(column))


def _name_offender(value: Any, path: str, above: tuple[int, ...]) -> None:
    """Raise a :class:`MemoryInputError` that names the first part that JSON cannot hold."""
    if value is None or isinstance(value, (str, bool, int)):
        return
    if isinstance(value, float):
        if value != value or value in (float("inf"), float("-inf")):
            raise MemoryInputError(f"{path} is {value}, which JSON cannot hold; use None or a string")
        return
    if id(value) in above:
        raise MemoryInputError(f"{path} contains itself; messages must be plain JSON values")
    if len(above) > 200:
        raise MemoryInputError(f"{path[:200]}… is nested more than 200 levels deep")
    above = (*above, id(value))
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise MemoryInputError(f"{path} has the key {key!r}; keys must be strings")
            _name_offender(item, f"{path}[{key!r}]", above)
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            _name_offender(item, f"{path}[{index}]", above)
    else:
        raise MemoryInputError(
            f"{path} is a {type(value).__name__}, which JSON cannot hold; convert it to a string or a dict"
        )
