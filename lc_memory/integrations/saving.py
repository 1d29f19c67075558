"""What the doors to other frameworks have in common: a turn of LangChain messages, saved under an id."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig

from lc_memory.chains import OnSaveError, TurnRecorder
from lc_memory.chains.turn import _kept
from lc_memory.errors import LCMemoryError, MemoryInputError, StoreError
from lc_memory.memory import Memory
from lc_memory.messages import valid_groups

log = logging.getLogger("lc_memory")


def config_of(session_id: str, user_id: str | None) -> RunnableConfig:
    return {"configurable": {"session_id": session_id, "user_id": user_id}}


def last_question(messages: Sequence[BaseMessage]) -> int:
    """Where the last message of the user stands. MemoryInputError: there is none to answer."""
    for i in range(len(messages) - 1, -1, -1):
        if isinstance(messages[i], HumanMessage):
            return i
    raise MemoryInputError('there is no message of the user: call it with {"messages": [HumanMessage("…")]}')


class SavedBy(TurnRecorder):
    """Says to all that runs inside a turn who saves it. It listens to nothing."""

    ignore_llm = ignore_chat_model = ignore_agent = True

    def __init__(self, turn_of: object, saver: object) -> None:
        super().__init__(turn_of)
        self.saver = saver


def saved_outside(memory: Memory, config: RunnableConfig | None, saver: object) -> bool:
    """Whether this runs inside a turn of the same memory and session that somebody else than ``saver``
    saves: a with_memory, or an agent of which this is a tool."""
    callbacks: Any = (config or {}).get("callbacks") or []
    handlers: Iterable[Any] = getattr(callbacks, "handlers", callbacks)
    turn = (memory, memory._key(config))
    around = [h for h in handlers if isinstance(h, TurnRecorder) and h.open and h.turn_of == turn]
    return any(not isinstance(h, SavedBy) or h.saver is not saver for h in around)


def save_turn(
    memory: Memory,
    config: RunnableConfig,
    messages: Sequence[BaseMessage],
    turn_id: str,
    on_save_error: OnSaveError = "raise",
) -> None:
    """Save ``messages``, from the user's question to the answer, once for each ``turn_id``. A turn that
    nobody has answered is none, and is not saved. Then the summary is brought up to date."""
    turn = valid_groups([_kept(m) for m in messages])
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
