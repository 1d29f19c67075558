"""Who is talking, and which conversation answers for them.

A *conversation* is one session's memory behind a few calls (:class:`Conversation`). There are two: a manager
of the user's own (``managers.py``), and a session in the store (``stored.py``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from langchain_core.messages import BaseMessage

from .errors import MemoryInputError
from .explain import Explanation
from .messages import Message
from .store import SessionKey

DEFAULT_SESSION = "default"
UNNAMED = SessionKey(DEFAULT_SESSION)


def session_key(config: Mapping[str, Any] | None) -> SessionKey:
    """The session a config names: ``configurable.session_id`` (else ``thread_id``, else "default") and
    ``configurable.user_id``. Numbers and UUIDs are taken as their text; empty text as not given."""
    if config is not None and not isinstance(config, Mapping):
        raise MemoryInputError(
            f'expected a config like {{"configurable": {{"session_id": …}}}}, got {type(config).__name__} '
            f"{config!r:.80}"
        )
    given = {
        **(config or {}),
        **((config or {}).get("configurable") or {}),
    }  # flat ones, too, as a chain does
    session = _id(given, "session_id") or _id(given, "thread_id") or DEFAULT_SESSION
    return SessionKey(session, _id(given, "user_id"))


def named(session_id: str, user_id: str | None) -> SessionKey:
    """The session that a chain means by these: empty text is no name there either."""
    return SessionKey(DEFAULT_SESSION if session_id == "" else session_id, None if user_id == "" else user_id)


def _id(given: Mapping[str, Any], key: str) -> str | None:
    value = given.get(key)
    if value is None or value == "":
        return None
    if isinstance(value, (dict, list, tuple, set, bytes, bool, float)):
        raise MemoryInputError(f"configurable[{key!r}]: expected text, got {type(value).__name__} {value!r}")
    return str(value)


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
