"""Converting a window again and again: what was converted last time is not converted anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from langchain_core.messages import BaseMessage

from .convert import Message, one_to_lc


class Converter:
    """``messages_to_lc`` for a list that is asked for again and again, as a window is with every turn.

    A plain dict (role and content, text both) that was converted last time gives the same message object
    again; that is most of the cost of a window. Messages are values: nobody is expected to edit them.
    ``unchanging``: so does any dict, whatever it holds, because who asks never edits one.
    """

    def __init__(self, *, unchanging: bool = False) -> None:
        self._unchanging = unchanging
        self._last: dict[int, tuple[Message, Any, Any, BaseMessage]] = {}

    def __call__(self, messages: Iterable[Any]) -> list[BaseMessage]:
        last, seen, out = self._last, {}, []
        for i, m in enumerate(messages):
            known = last.get(id(m))
            if (
                known is not None
                and known[0] is m
                and (
                    self._unchanging
                    or (len(m) == 2 and m.get("content") is known[1] and m.get("role") is known[2])
                )
            ):
                seen[id(m)] = known
                out.append(known[3])
                continue
            message = one_to_lc(m, i)
            plain = type(m) is dict and len(m) == 2 and type(m.get("content")) is type(m.get("role")) is str
            if plain or (self._unchanging and type(m) is dict):
                seen[id(m)] = (m, m.get("content"), m.get("role"), message)
            out.append(message)
        self._last = seen  # only what is in the list now is kept: as long as the window, no longer
        return out
