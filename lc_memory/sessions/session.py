"""A session for those who want to look at it, or bring a conversation in from elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from langchain_core.messages import BaseMessage

from lc_memory.errors import MemoryInputError
from lc_memory.messages import asked, messages_to_lc, read, turns
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

    def add(self, history: Any) -> None:
        """Bring in what was said elsewhere: one message, a turn, or a conversation of any length.

        ``history``: OpenAI-style dicts, LangChain messages, (role, text) pairs, or any other form that
        :mod:`lc_memory.messages.histories` names, as a list or as the object that holds it. It becomes
        turns, each
        from a message of the user to the next, as if they had been said here: the newest stand in the window,
        the others can be recalled. System messages in front stand in every prompt of the session. All of it
        is saved, or nothing. Added again, it is there again.

        Raises MemoryInputError for what is in no known form, naming the first place.
        """
        found = turns(read(history))
        if not found:
            raise MemoryInputError("add([]): there is no message in it")
        self._stored().save_all(found)

    async def aadd(self, history: Any) -> None:
        """As :meth:`add`, off the event loop."""
        await asyncio.to_thread(self.add, history)

    def messages(self, *, start: int = 1, limit: int | None = None) -> list[BaseMessage]:
        """What was said, from turn ``start`` (1 is the first), ``limit`` turns of it: the whole history,
        what the window has left behind included."""
        return messages_to_lc([m for turn in self._stored().turns(start, limit) for m in turn.messages])

    def context(self, question: Any = "") -> list[BaseMessage]:
        """What the prompt of ``question`` would get before it. ``question``: as for ``memory.history``."""
        found = asked(question)
        if found is None:
            raise MemoryInputError("context(question): expected text, or a conversation that ends with one")
        return self._stored().context(found.question, found.before)

    @property
    def summary(self) -> str | None:
        """What stands for the turns before the window, or None."""
        return self._stored().state().summary

    def clear(self) -> Forgotten:
        """Erase the turns and the summary. Facts that were learnt here stay; memory.forget() takes both."""
        return self._erase()

    def __repr__(self) -> str:
        return f"Session({self.session_id!r}, user_id={self.user_id!r})"
