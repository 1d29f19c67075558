"""The memory for graphs of LangGraph: two nodes, ``load_mem`` and ``save_mem``, and a graph that uses them.

::

    graph = StateGraph(MemoryState)
    graph.add_node("load_mem", load_mem(memory))        # history: what is remembered for the question
    graph.add_node("model", …)                          # reads state["history"], answers into "messages"
    graph.add_node("save_mem", save_mem(memory))        # the turn is saved, once

``configurable.session_id`` (else ``thread_id``) and ``user_id`` say whose. With a checkpointer a run that was
killed between two nodes goes on where it stood, and its turn is saved once, wherever it was killed: the
turn's id is in the state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from typing_extensions import NotRequired

from lc_memory.chains import OnSaveError
from lc_memory.errors import MemoryInputError, MissingExtraError
from lc_memory.memory import Memory
from lc_memory.script import SYSTEM
from lc_memory.sessions import session_key
from lc_memory.store import finished

from .saving import Asked, asked, config_of, last_question, save_turn, saved_outside, turn_of

try:
    from langgraph.graph import END, START, MessagesState, StateGraph
except ImportError as error:
    raise MissingExtraError("lc_memory.integrations.langgraph", "agent") from error

Node = Callable[..., dict[str, Any]]
SavingNode = Runnable[Any, dict[str, Any]]


class MemoryState(MessagesState):
    """A graph's state: ``messages``, whose last one of the user is the question, and what the nodes add."""

    history: NotRequired[list[BaseMessage]]
    """What is remembered, between load_mem and save_mem. It stands in no checkpoint after that."""
    turn_id: NotRequired[str]
    lc_memory_turn: NotRequired[Asked | None]
    """Whose turn it is, and what was asked, as it came in."""


def load_mem(memory: Memory) -> Node:
    """A node that puts what is remembered for the question into ``history``. It writes nothing else.

    What a model gets is ``history`` and, behind it, ``messages`` from the question on. Those before it (a
    checkpointer keeps them) stand in ``history`` already.
    """

    def load_mem(state: MemoryState, config: RunnableConfig) -> dict[str, Any]:
        messages = state.get("messages") or []
        if messages and isinstance(messages[-1], AIMessage) and not messages[-1].tool_calls:
            raise MemoryInputError("the last message is the assistant's: there is no question to answer")
        key = session_key(config, given=state)
        # The question, and what a caller sent along before it: of that the memory has what it saved.
        said = memory._asked(messages[: last_question(messages) + 1])
        history = memory._conversation_of(key).history(said.question, said.before)
        turn = asked(key, messages)
        return {"history": history, "turn_id": turn["id"], "lc_memory_turn": turn}

    return load_mem


def save_mem(memory: Memory, *, on_save_error: OnSaveError = "raise") -> SavingNode:
    """A node that saves the turn: the question that ``load_mem`` saw, and what was answered. Inside a
    with_memory of the same session it leaves that to it."""

    def save_mem(state: MemoryState, config: RunnableConfig) -> dict[str, Any]:
        key = session_key(config, given=state)
        # Without load_mem before it, the user's last message is the question.
        turn = state.get("lc_memory_turn") or asked(key, state.get("messages") or [])
        if not saved_outside(memory, config, None):
            whose = config_of(key.session_id, key.user_id)
            save_turn(memory, whose, turn_of(state["messages"], turn), turn["id"], on_save_error)
        return {"history": [], "lc_memory_turn": None}

    async def asave_mem(state: MemoryState, config: RunnableConfig) -> dict[str, Any]:
        return await finished(lambda: save_mem(state, config))

    saving: SavingNode = _both(save_mem, asave_mem, "save_mem")
    return saving


def memory_graph(memory: Memory, model: Any, *, system: str = SYSTEM) -> StateGraph[Any, Any, Any, Any]:
    """load_mem, the model, save_mem: ``memory_graph(memory, model).compile(checkpointer=…)``, called with
    ``{"messages": [HumanMessage("…")]}``."""

    def prompt(state: MemoryState) -> list[BaseMessage]:
        turn = state["messages"][last_question(state["messages"]) :]
        return [SystemMessage(system), *state.get("history", ()), *turn]

    def ask(state: MemoryState, config: RunnableConfig) -> dict[str, Any]:
        return {"messages": [model.invoke(prompt(state), config)]}

    async def aask(state: MemoryState, config: RunnableConfig) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(prompt(state), config)]}

    graph: StateGraph[Any, Any, Any, Any] = StateGraph(MemoryState)
    graph.add_node("load_mem", load_mem(memory))
    graph.add_node("model", _both(ask, aask, "model"))
    graph.add_node("save_mem", save_mem(memory, on_save_error="raise"))
    graph.add_edge(START, "load_mem")
    graph.add_edge("load_mem", "model")
    graph.add_edge("model", "save_mem")
    graph.add_edge("save_mem", END)
    return graph


class _Both(RunnableLambda[Any, Any]):
    """A node in both forms. From the signature of ``__call__`` a graph learns which state the node reads: all
    of it, also where the graph's own is another."""

    def __call__(self, state: MemoryState, config: RunnableConfig) -> Any:
        return self.invoke(state, config)


def _both(sync: Any, asynchronous: Any, name: str) -> Any:
    return _Both(sync, asynchronous, name=name)


__all__ = ["MemoryState", "load_mem", "memory_graph", "save_mem"]
