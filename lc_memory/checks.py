"""What a Memory is given, checked where it is given: a wrong value must not wait for the first turn."""

from __future__ import annotations

import os
from typing import Any

from lc_memory.errors import MemoryInputError


def place(where: Any) -> str:
    """``where`` of Memory.open as text, with ``~`` as the home folder."""
    if not isinstance(where, (str, os.PathLike)) or not os.fspath(where):
        raise MemoryInputError(
            f"Memory.open({where!r}): expected a folder, sqlite:///file, postgresql://… or ':memory:'"
        )
    return os.path.expanduser(os.fspath(where))


def whole_place(where: str) -> str:
    """``where`` for a process that may stand in another folder."""
    if where.startswith("sqlite:///") and where.removeprefix("sqlite:///") not in ("", ":memory:"):
        return "sqlite:///" + os.path.abspath(where.removeprefix("sqlite:///"))
    return where if "://" in where or where == ":memory:" else os.path.abspath(where)


def whole(name: str, value: Any, why: str, *, least: int = 1) -> None:
    """``value`` is a whole number, at least ``least``; ``why`` there is a least one."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise MemoryInputError(f"{name}={value!r:.40}: expected a whole number from {least} up; {why}")


def seconds(name: str, value: Any) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value >= 0:
        raise MemoryInputError(f"{name}={value!r:.40}: expected a number of seconds")


def keys(question_key: Any, history_key: Any) -> None:
    """Two texts, and not the same: the history would take the question's place in the prompt."""
    for name, key in (("question_key", question_key), ("history_key", history_key)):
        if not isinstance(key, str) or not key:
            raise MemoryInputError(f"{name}={key!r:.40}: expected the name of a key of the chain's input")
    if question_key == history_key:
        raise MemoryInputError(
            f"question_key and history_key are both {question_key!r}: the history would replace the question"
        )
