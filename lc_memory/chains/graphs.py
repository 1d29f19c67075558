"""with_memory around a LangGraph graph: runs that pause for somebody, and are resumed.

A run that pauses (``interrupt()``, a breakpoint) has no answer yet, so nothing of it is saved. The one that
ends it is saved with the question that began it, which the graph's checkpoints know: in another process, too.
Nothing here imports langgraph; a graph is known by what it can do.
"""

from __future__ import annotations

import sys
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.runnables import RunnableConfig, RunnableSequence
from langchain_core.runnables.base import RunnableBindingBase

from lc_memory.errors import MemoryInputError

from .turn import TurnRecorder

Reading = Generator[RunnableConfig, Any, Any]
"""Asks for the state at a config, is sent it, and returns what it has found: the same for sync and async."""


def is_command(given: Any) -> bool:
    """Whether a run is given LangGraph's Command (``Command(resume=…)``) and not a question."""
    types = sys.modules.get("langgraph.types")
    return types is not None and isinstance(given, types.Command)


@dataclass(frozen=True)
class Resumed:
    """A paused run that goes on. ``question``: what it was asked, as its state holds it; ``id``: the same
    however often it is resumed."""

    question: Any
    id: str


class InnerGraph:
    """The graph in a chain. ``last``: its output is the chain's."""

    def __init__(self, graph: Any, last: bool) -> None:
        self.graph = graph
        self.last = last

    @classmethod
    def of(cls, chain: Any) -> InnerGraph | None:
        last = True
        while True:
            if isinstance(chain, RunnableBindingBase):
                chain = chain.bound
            elif isinstance(chain, RunnableSequence):
                found = next((s for s in reversed(chain.steps) if cls.of(s) is not None), None)
                last, chain = last and found is chain.steps[-1], found
            else:
                return (
                    cls(chain, last) if hasattr(chain, "get_state") and hasattr(chain, "aget_state") else None
                )

    def kept(self, config: RunnableConfig) -> bool:
        """Whether the state of this run can be read: it has a checkpointer, and is no part of another graph,
        which pauses and resumes as a whole."""
        nested = any(key.startswith("__pregel_") for key in config.get("configurable") or ())
        return bool(getattr(self.graph, "checkpointer", None)) and not nested

    # ------------------------------------------------------------ reading the state

    def read(self, reading: Reading) -> Any:
        try:
            config = next(reading)
            while True:
                config = reading.send(self.graph.get_state(config))
        except StopIteration as done:
            return done.value

    async def aread(self, reading: Reading) -> Any:
        try:
            config = next(reading)
            while True:
                config = reading.send(await self.graph.aget_state(config))
        except StopIteration as done:
            return done.value


def at(config: RunnableConfig) -> RunnableConfig:
    return {"configurable": config.get("configurable") or {}}


def unfinished(config: RunnableConfig) -> Reading:
    """Whether the run pauses at a node."""
    return bool((yield at(config)).next)


def resumed(config: RunnableConfig, key: str) -> Reading:
    """The paused :class:`Resumed` run of this thread, or None where nothing is paused. ``key``: under which a
    state holds the question; else its messages do.

    What was asked stands in the first checkpoint after the input; what the graph's nodes have made of it
    since is not what was asked.
    """
    now = yield at(config)
    if not now.next:
        return None
    first = now
    while first.parent_config:
        before = yield first.parent_config
        if before.metadata.get("step") != first.metadata.get("step", 0) - 1:
            break  # only the last checkpoint of a run is kept (durability="exit"): this is its first
        if before.metadata.get("source") == "input":
            break
        first = before
    values = first.values if isinstance(first.values, Mapping) else {}
    question = values.get(key) or values.get("messages")
    if not question:
        raise MemoryInputError(
            f"the state of the run to be resumed has neither {key!r} nor 'messages', so what was asked is "
            f"not known. Keep it in the graph's state, or name its key: Memory(…, question_key=…)"
        )
    return Resumed(question, str(first.config["configurable"].get("checkpoint_id")))


# ---------------------------------------------------------------- hearing it run


class GraphRecorder(TurnRecorder):
    """Hears beside the models how the graph itself ends: its whole state, in every form of streaming, and
    whether it pauses."""

    ignore_chain = False

    def __init__(self, turn_of: object, graph: InnerGraph) -> None:
        super().__init__(turn_of)
        self.paused = False
        self.state: Any = None
        self._name = graph.graph.get_name()
        self._run: UUID | None = None

    def on_chain_start(self, serialized: Any, inputs: Any, *, run_id: UUID, **about: Any) -> None:
        if self._run is None and about.get("name") == self._name:
            self._run = run_id

    def on_chain_end(self, outputs: Any, *, run_id: UUID, **_: Any) -> None:
        if run_id == self._run:
            self.state = outputs

    def on_chain_error(
        self, error: BaseException, *, run_id: UUID, parent_run_id: UUID | None = None, **_: Any
    ) -> None:
        if parent_run_id == self._run and type(error).__name__ == "GraphInterrupt":
            self.paused = True


def pauses(output: Any) -> bool:
    """Whether an output says that the run waits for somebody."""
    if isinstance(output, Mapping):
        return bool(output.get("__interrupt__"))
    return bool(getattr(output, "interrupts", None)) and hasattr(output, "value")  # LangGraph's GraphOutput
