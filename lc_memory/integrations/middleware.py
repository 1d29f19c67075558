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
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Annotated, Any, cast

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config, set_config_context
from typing_extensions import NotRequired

from lc_memory.chains import OnSaveError
from lc_memory.errors import MissingExtraError
from lc_memory.memory import Memory
from lc_memory.messages import Message, from_lc, messages_to_lc, valid_groups
from lc_memory.sessions import session_key
from lc_memory.store import finished

from .saving import Asked, asked, config_of, save_turn, saved_outside, turn_of

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


class MemoryState(AgentState[Any]):
    """The agent's state, with what this middleware has to know of it."""

    lc_memory_turn: NotRequired[Annotated[Asked | None, PrivateStateAttr]]
    lc_memory_saved: NotRequired[Annotated[str | None, PrivateStateAttr]]
    """The id of the last message that the memory has."""


class MemoryMiddleware(AgentMiddleware[MemoryState, Any, Any]):
    """Memory for an agent. ``configurable.session_id`` (else ``thread_id``) and ``user_id`` say whose, or the
    ``context=`` of the run. Put it first: the question is what came in, and the answer what went out,
    whatever the others do to the messages in between.

    ``on_save_error`` as for with_memory: a StoreError, or "warn" and the answer is given all the same.
    """

    state_schema = MemoryState

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(MemoryMiddleware, on_save_error=self._on_save_error), (self.memory,)

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
        key = session_key(config, {"context": runtime.context}, state)
        self.memory._sessions.canonical(key)  # refused before a model is asked
        return {"lc_memory_turn": asked(key, state["messages"])}

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
        before, current = _at_question(request.messages, turn)
        history = self._history(turn, turn.get("words") or from_lc(current[0]))
        unknown = _unknown(before, state.get("lc_memory_saved"), history)
        messages: list[Any] = [*history, *unknown, *current]
        return request.override(messages=messages)

    def _history(self, turn: Asked, question: Message) -> list[BaseMessage]:
        """Read once a turn: all its requests begin alike, and what the model was told stays true."""
        with self._guard:
            held = self._histories.get(turn["id"])
        if held is not None:
            return held
        whose = config_of(turn["session_id"], turn["user_id"])
        history = self.memory._conversation(whose).history(question)
        with self._guard:
            self._histories[turn["id"]] = history
            while len(self._histories) > _HELD:
                self._histories.popitem(last=False)
        return history

    # ------------------------------------------------------------ the answer

    def after_agent(
        self, state: MemoryState, runtime: Runtime[Any], config: RunnableConfig = _NOBODY
    ) -> dict[str, Any] | None:
        turn = state.get("lc_memory_turn")
        if turn is None:
            return None
        with self._guard:
            self._histories.pop(turn["id"], None)
        messages = state["messages"]
        # Asked now and not at the beginning: a resumed run may have another caller.
        if not saved_outside(self.memory, config or ensure_config(), self):
            whose = config_of(turn["session_id"], turn["user_id"])
            save_turn(self.memory, whose, turn_of(messages, turn), turn["id"], self._on_save_error)
        return {"lc_memory_turn": None, "lc_memory_saved": messages[-1].id if messages else None}

    async def aafter_agent(
        self, state: MemoryState, runtime: Runtime[Any], config: RunnableConfig = _NOBODY
    ) -> dict[str, Any] | None:
        with set_config_context(config or ensure_config()) as context:
            return await finished(lambda: context.run(self.after_agent, state, runtime))


def _at_question(
    messages: Sequence[BaseMessage], turn: Asked
) -> tuple[Sequence[BaseMessage], Sequence[BaseMessage]]:
    """What stands before the turn, and the turn. A middleware that shortens the state may have taken the
    question away; then the turn is what was not there before it."""
    at = next((i for i, m in enumerate(messages) if m.id is not None and m.id == turn["question"]), None)
    if at is not None:
        return messages[:at], messages[at:]
    before = set(turn.get("before", ()))
    return [m for m in messages if m.id in before], [m for m in messages if m.id not in before]


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
