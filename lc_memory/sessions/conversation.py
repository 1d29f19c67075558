"""Which conversation answers for a session (whose that is, ``identity.py`` says).

A *conversation* is one session's memory behind a few calls (:class:`Conversation`). There are two: a manager
of the user's own (``managers.py``), and a session in the store (``stored.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from langchain_core.messages import BaseMessage
from langchain_core.runnables import ConfigurableFieldSpec

from lc_memory.messages import Message
from lc_memory.prompt import Explanation
from lc_memory.store import SessionKey

from .identity import DEFAULT_SESSION

SPECS = [
    ConfigurableFieldSpec(
        id="session_id",
        annotation=str,
        name="Session",
        description="Names the conversation. Without it `thread_id` does, and without both there is one.",
        default=DEFAULT_SESSION,
        is_shared=True,
    ),
    ConfigurableFieldSpec(
        id="user_id",
        annotation=str,
        name="User",
        description="Whose long-term facts these are. Without it they belong to the session alone.",
        default=None,
        is_shared=True,
    ),
]


class Conversation(Protocol):
    """One session's memory. Calls block; at most one turn of a session is under way at a time."""

    def history(self, question: Message, before: Sequence[Message] = ()) -> list[BaseMessage]:
        """What the next prompt gets before its ``question``, the human's message. ``before``: what the caller
        sent along of the conversation; what is not known of it comes last."""
        ...

    def explain(self, question: Message, before: Sequence[Message] = ()) -> Explanation:
        """Why each part of that prompt is in or out."""
        ...

    def save(self, turn: Sequence[Message], turn_id: str | None = None) -> None:
        """Keep one turn: the human's message, tool calls and results, the answer. Saved again under the
        same ``turn_id`` (a run that was resumed cannot know), it is there once."""
        ...

    def compact(self) -> None:
        """Bring the summary up to date, now or in the background. On failure nothing changes, and it is
        tried again later."""
        ...


class Sessions(Protocol):
    """Finds the conversation of a session."""

    def canonical(self, key: SessionKey) -> SessionKey:
        """The key under which the session's turns are queued."""
        ...

    def conversation(self, key: SessionKey) -> Conversation: ...

    def close(self) -> None: ...
