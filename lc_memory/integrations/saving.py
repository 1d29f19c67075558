"""What the doors to other frameworks have in common: a turn of LangChain messages, saved under an id."""

from __future__ import annotations

import logging
import uuid
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from typing_extensions import NotRequired, TypedDict

from lc_memory.chains import OnSaveError, TurnRecorder
from lc_memory.chains.turn import _kept
from lc_memory.errors import LCMemoryError, MemoryInputError, StoreError
from lc_memory.facts.privacy import private_in
from lc_memory.memory import Memory
from lc_memory.messages import Message, text_of, valid_groups
from lc_memory.store import SessionKey

log = logging.getLogger("lc_memory")


def config_of(session_id: str, user_id: str | None) -> RunnableConfig:
    return {"configurable": {"session_id": session_id, "user_id": user_id}}


def last_question(messages: Sequence[BaseMessage]) -> int:
    """Where the last message of the user stands. MemoryInputError: there is none to answer."""
    for i in range(len(messages) - 1, -1, -1):
        if isinstance(messages[i], HumanMessage):
            return i
    raise MemoryInputError('there is no message of the user: call it with {"messages": [HumanMessage("…")]}')


class Asked(TypedDict):
    """What a turn in a graph began with, as its state (and so a checkpoint) holds it. What the nodes between
    make of the messages does not change it."""

    id: str
    """Of the turn: it is saved once under it."""
    session_id: str
    user_id: str | None
    question: str | None
    """The id of the user's message."""
    words: NotRequired[Message]
    """The user's message as it came in."""
    before: NotRequired[list[str]]
    """The ids of the messages that were there before it."""


def asked(key: SessionKey, messages: Sequence[BaseMessage]) -> Asked:
    """The turn that begins with the last message of the user."""
    at = last_question(messages)
    return {
        "id": uuid.uuid4().hex,
        "session_id": key.session_id,
        "user_id": key.user_id,
        "question": messages[at].id,
        "words": _kept(messages[at]),
        "before": [m.id for m in messages[:at] if m.id is not None],
    }


def turn_of(messages: Sequence[BaseMessage], turn: Asked) -> list[Message]:
    """The turn as it is saved: the question as it came in, the tool calls with their results, the answer as
    it went out. ``messages``: what a graph's state holds at the end; whatever was added, replaced or removed
    on the way (a summary, a reminder, a draft) is neither the user's words nor the answer."""
    before = set(turn.get("before", ()))
    at = next((i for i, m in enumerate(messages) if m.id is not None and m.id == turn["question"]), None)
    if "words" not in turn:  # begun by an older version
        at = last_question(messages) if at is None else at
        return valid_groups([_kept(m) for m in messages[at:]])
    said = [
        m for m in messages[(at or 0) :] if m.id not in before and isinstance(m, (AIMessage, ToolMessage))
    ]
    between = [m for m in said[:-1] if isinstance(m, ToolMessage) or m.tool_calls or m.invalid_tool_calls]
    question = turn["words"] if at is None else _without_private(turn["words"], messages[at])
    return [question, *valid_groups([_kept(m) for m in (*between, *said[-1:])])]


def _without_private(words: Message, now: BaseMessage) -> Message:
    """The question as it came in; but where private data was taken out of it on the way (PIIMiddleware), that
    stays out."""
    text, edited = text_of(words.get("content")), str(now.text)
    if edited == text or len(private_in(edited)) >= len(private_in(text)):
        return words
    return _kept(now)


class SavedBy(TurnRecorder):
    """Says to all that runs inside a turn who saves it. It listens to nothing."""

    ignore_llm = ignore_chat_model = ignore_agent = True

    def __init__(self, turn_of: object, saver: object) -> None:
        super().__init__(turn_of)
        self.saver = saver


def saved_outside(
    memory: Memory, config: RunnableConfig | None, saver: object, key: SessionKey | None = None
) -> bool:
    """Whether this runs inside a turn of the same memory and session that somebody else than ``saver``
    saves: a with_memory, or an agent of which this is a tool."""
    callbacks: Any = (config or {}).get("callbacks") or []
    handlers: Iterable[Any] = getattr(callbacks, "handlers", callbacks)
    turn = (memory, memory._key(config) if key is None else key)
    around = [h for h in handlers if isinstance(h, TurnRecorder) and h.open and h.turn_of == turn]
    return any(not isinstance(h, SavedBy) or h.saver is not saver for h in around)


def save_turn(
    memory: Memory,
    config: RunnableConfig,
    turn: Sequence[Message],
    turn_id: str,
    on_save_error: OnSaveError = "raise",
) -> None:
    """Save ``turn``, from the user's question to the answer, once for each ``turn_id``. A turn that
    nobody has answered is none, and is not saved. Then the summary is brought up to date."""
    if not any(m["role"] in ("assistant", "tool") for m in turn):
        return
    conversation = memory._conversation(config)
    try:
        conversation.save(turn, turn_id)
    except Exception as error:
        message = f"the answer was given, but the turn of {memory._key(config)} was not saved: {error}"
        if on_save_error == "warn":
            warnings.warn(message, RuntimeWarning, stacklevel=2)
            return
        if isinstance(error, LCMemoryError):
            raise
        raise StoreError(message) from error
    try:
        conversation.compact()
    except Exception as error:
        log.warning("the summary of %s was not brought up to date: %s", memory._key(config), error)
