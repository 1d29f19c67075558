"""A session for those who want to look at it, or bring a conversation in from elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import BaseMessage

from lc_memory.errors import MemoryInputError
from lc_memory.messages import Message, _to_lc, from_lc, messages_to_lc
from lc_memory.store import Forgotten, SessionKey

from .stored import StoredSession


class Session:
    """One session of a Memory that was opened on a store. Got by ``memory.session(session_id, user_id)``."""

    def __init__(self, key: SessionKey, stored: Callable[[], StoredSession], erase: Callable[[], Forgotten]):
        self.session_id = key.session_id
        self.user_id = key.user_id
        self._key = key
        self._stored = stored
        self._erase = erase

    def add(self, messages: Any) -> None:
        """Save one turn: a list of OpenAI-style dicts or LangChain messages, or a single one of them.

        All of it is saved, or nothing. A conversation from elsewhere is imported turn by turn.
        """
        single = isinstance(messages, (dict, BaseMessage))
        turn = [_as_dict(m, i) for i, m in enumerate([messages] if single else _listed(messages))]
        if not turn:
            raise MemoryInputError("add([]): a turn holds at least one message")
        stored = self._stored()
        stored.save(turn)
        stored.compact()

    def messages(self, *, start: int = 1, limit: int | None = None) -> list[BaseMessage]:
        """What was said, from turn ``start`` (1 is the first), ``limit`` turns of it: the whole history,
        what the window has left behind included."""
        return messages_to_lc([m for turn in self._stored().turns(start, limit) for m in turn.messages])

    def context(self, question: str = "") -> list[BaseMessage]:
        """What the prompt of ``question`` would get before it."""
        return self._stored().context({"role": "user", "content": question})

    @property
    def summary(self) -> str | None:
        """What stands for the turns before the window, or None."""
        return self._stored().state().summary

    def clear(self) -> Forgotten:
        """Erase the turns and the summary. Facts that were learnt here stay; memory.forget() takes both."""
        return self._erase()

    def __repr__(self) -> str:
        return f"Session({self.session_id!r}, user_id={self.user_id!r})"


def _listed(messages: Any) -> Sequence[Any]:
    if isinstance(messages, (str, bytes)) or not isinstance(messages, Sequence):
        raise MemoryInputError(f"add(messages): expected messages, got {type(messages).__name__}")
    return messages


def _as_dict(message: Any, index: int) -> Message:
    if not isinstance(message, (dict, BaseMessage)):
        raise MemoryInputError(f"messages[{index}]: expected a dict or a LangChain message")
    # There and back: what a prompt could not show is refused before anything is written, and a role that is
    # missing, or told by LangChain's "type", is there.
    return from_lc(_to_lc(message, index) if isinstance(message, dict) else message)
