"""The memory for create_agent: ``create_agent(model, tools, middleware=[MemoryMiddleware(memory)])``.

What is remembered is put into each request and never into the agent's state, so a checkpointer does not keep
it a second time, and forgetting erases it. The turn is saved when the agent has finished, once: not when it
raised or was stopped, and not again when a run is resumed.

With a checkpointer the state holds the thread's earlier messages as well. Those the memory has saved are
replaced by what it remembers of them (its window, its summary); others are sent as they are.
"""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from typing_extensions import NotRequired, TypedDict

from ..context import valid_groups
from ..errors import MissingExtraError
from ..memory import Memory
from ..messages import from_lc, messages_to_lc
from ..recorder import OnSaveError
from ..store.undisturbed import finished
from .saving import config_of, last_question, save_turn, saved_outside

try:
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ModelCallResult,
        ModelRequest,
        ModelResponse,
        PrivateStateAttr,
    )
    from langgraph.runtime import Runtime
except ImportError as error:
    raise MissingExtraError("MemoryMiddleware", "agent") from error

_NOBODY: RunnableConfig = {}
_HELD = 256  # histories of turns under way; more are read again


class AgentTurn(TypedDict):
    """The turn an agent is at, as its state (and so a checkpoint) holds it."""

    id: str
    session_id: str
    user_id: str | None
    question: str | None
    """The id of the user's message."""
    saves: bool
    """False inside a turn of the same session that is saved as a whole."""


class MemoryState(AgentState[Any]):
    """The agent's state, with what this middleware has to know of it."""

    lc_memory_turn: NotRequired[Annotated[AgentTurn | None, PrivateStateAttr]]
    lc_memory_saved: NotRequired[Annotated[str | None, PrivateStateAttr]]
    """The id of the last message that the memory has."""


class MemoryMiddleware(AgentMiddleware[MemoryState, Any, Any]):
    """Memory for an agent. ``configurable.session_id`` (else ``thread_id``) and ``user_id`` say whose.

    ``on_save_error`` as for with_memory: a StoreError, or "warn" and the answer is given all the same.
    """

    state_schema = MemoryState

    def __init__(self, memory: Memory, *, on_save_error: OnSaveError = "raise") -> None:
        super().__init__()
        self.memory = memory
        self.tools = []
        self._on_save_error = on_save_error
        self._histories: OrderedDict[str, list[BaseMessage]] = OrderedDict()
        self._guard = threading.Lock()

    # ------------------------------------------------------------ the question

    def before_agent(
        self, state: MemoryState, runtime: Runtime[Any], config: RunnableConfig = _NOBODY
    ) -> dict[str, Any]:
        key = self.memory._key(config)
        messages = state["messages"]
        turn: AgentTurn = {
            "id": uuid.uuid4().hex,
            "session_id": key.session_id,
            "user_id": key.user_id,
            "question": messages[last_question(messages)].id,
            "saves": not saved_outside(self.memory, config, self),
        }
        return {"lc_memory_turn": turn}

    async def abefore_agent(
        self, state: MemoryState, runtime: Runtime[Any], config: RunnableConfig = _NOBODY
    ) -> dict[str, Any]:
        return self.before_agent(state, runtime, config)

    # ------------------------------------------------------------ the request

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelCallResult[Any]:
        return handler(self._remembering(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelCallResult[Any]:
        # Recall reads a database and computes an embedding: not on the event loop.
        return await handler(await asyncio.to_thread(self._remembering, request))

    def _remembering(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        state = cast(MemoryState, request.state)
        turn = state.get("lc_memory_turn")
        if turn is None:
            return request
        before, current = _at_question(request.messages, turn["question"])
        history = self._history(turn, current[0])
        unknown = _unknown(before, state.get("lc_memory_saved"), history)
        messages: list[Any] = [*history, *unknown, *current]
        return request.override(messages=messages)

    def _history(self, turn: AgentTurn, question: BaseMessage) -> list[BaseMessage]:
        """Read once a turn: all its requests begin alike, and what the model was told stays true."""
        with self._guard:
            held = self._histories.get(turn["id"])
        if held is not None:
            return held
        history = self.memory.history(question, config_of(turn["session_id"], turn["user_id"]))
        with self._guard:
            self._histories[turn["id"]] = history
            while len(self._histories) > _HELD:
                self._histories.popitem(last=False)
        return history

    # ------------------------------------------------------------ the answer

    def after_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        turn = state.get("lc_memory_turn")
        if turn is None:
            return None
        with self._guard:
            self._histories.pop(turn["id"], None)
        _, current = _at_question(state["messages"], turn["question"])
        if turn["saves"]:
            config = config_of(turn["session_id"], turn["user_id"])
            save_turn(self.memory, config, current, turn["id"], self._on_save_error)
        return {"lc_memory_turn": None, "lc_memory_saved": current[-1].id}

    async def aafter_agent(self, state: MemoryState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        return await finished(lambda: self.after_agent(state, runtime))


def _at_question(
    messages: Sequence[BaseMessage], question: str | None
) -> tuple[Sequence[BaseMessage], Sequence[BaseMessage]]:
    """What stands before the turn, and the turn. A middleware that shortens the state may have taken the
    question away; the last one that there is takes its place."""
    at = next((i for i, m in enumerate(messages) if m.id is not None and m.id == question), None)
    at = last_question(messages) if at is None else at
    return messages[:at], messages[at:]


def _unknown(
    before: Sequence[BaseMessage], saved: str | None, history: Sequence[BaseMessage]
) -> list[BaseMessage]:
    """What of the messages before the turn the memory does not know: those behind the last one it saved,
    but for what the history says in the same words (a caller may send the whole conversation each time)."""
    at = next((i for i, m in enumerate(before) if m.id is not None and m.id == saved), -1)
    known = {_words(m) for m in history}
    rest = [m for m in before[at + 1 :] if _words(m) not in known]
    return messages_to_lc(valid_groups([from_lc(m) for m in rest])) if rest else []


def _words(message: BaseMessage) -> tuple[Any, ...]:
    calls = tuple(c["id"] for c in message.tool_calls) if isinstance(message, AIMessage) else ()
    answered = message.tool_call_id if isinstance(message, ToolMessage) else None
    return message.type, str(message.text), calls, answered


__all__ = ["MemoryMiddleware"]
