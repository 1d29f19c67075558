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

import uuid
from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from typing_extensions import NotRequired

from ..errors import MemoryInputError, MissingExtraError
from ..memory import Memory
from ..recorder import OnSaveError
from ..script import SYSTEM
from .saving import last_question, save_turn, saved_outside

try:
    from langgraph.graph import END, START, MessagesState, StateGraph
except ImportError as error:
    raise MissingExtraError("lc_memory.integrations.langgraph", "agent") from error

Node = Callable[..., dict[str, Any]]


class MemoryState(MessagesState):
    """A graph's state: ``messages``, whose last one of the user is the question, and what the nodes add."""

    history: NotRequired[list[BaseMessage]]
    """What is remembered, between load_mem and save_mem. It stands in no checkpoint after that."""
    turn_id: NotRequired[str]


def load_mem(memory: Memory) -> Node:
    """A node that puts what is remembered for the question into ``history``. It writes nothing else."""

    def load_mem(state: MemoryState, config: RunnableConfig) -> dict[str, Any]:
        messages = state["messages"]
        if isinstance(messages[-1], AIMessage) and not messages[-1].tool_calls:
            raise MemoryInputError("the last message is the assistant's: there is no question to answer")
        # The question, and what a caller sent along before it: of that the memory has what it saved.
        history = memory.history(messages[: last_question(messages) + 1], config)
        return {"history": history, "turn_id": uuid.uuid4().hex}

    return load_mem


def save_mem(memory: Memory, *, on_save_error: OnSaveError = "raise") -> Node:
    """A node that saves the turn: ``messages`` from the user's last one to the answer. Inside a with_memory
    of the same session it leaves that to it."""

    def save_mem(state: MemoryState, config: RunnableConfig) -> dict[str, Any]:
        turn = state["messages"][last_question(state["messages"]) :]
        if not saved_outside(memory, config, None):
            save_turn(memory, config, turn, state.get("turn_id") or uuid.uuid4().hex, on_save_error)
        return {"history": []}

    return save_mem


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
    graph.add_node("model", _both(ask, aask))
    graph.add_node("save_mem", save_mem(memory, on_save_error="raise"))
    graph.add_edge(START, "load_mem")
    graph.add_edge("load_mem", "model")
    graph.add_edge("model", "save_mem")
    graph.add_edge("save_mem", END)
    return graph


def _both(sync: Any, asynchronous: Any) -> Any:
    from langchain_core.runnables import RunnableLambda

    return RunnableLambda(sync, asynchronous, name="model")


__all__ = ["MemoryState", "load_mem", "memory_graph", "save_mem"]
