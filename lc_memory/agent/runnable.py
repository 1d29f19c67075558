"""The agent as a Runnable: a question in, the answer and the record of its tool calls out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, closing, contextmanager
from threading import Lock
from typing import Any, cast

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import ConfigurableFieldSpec, Runnable, RunnableConfig
from langchain_core.runnables.config import patch_config
from langchain_core.runnables.graph import Graph
from langchain_core.runnables.utils import AddableDict, get_unique_config_specs

from lc_memory.chains import Place, is_command, merged, stays
from lc_memory.integrations import SavedBy, saved_outside
from lc_memory.memory import Memory
from lc_memory.messages import _to_lc
from lc_memory.sessions import SPECS
from lc_memory.store import SessionKey

from .calls import tool_records

_MODES = ["messages", "updates"]
_STEPS = 10_000  # the loop ends by itself: LangChain's default of 25 steps would end it in an error
_SHOWN = {"MemoryMiddleware.before_agent": "load_mem", "MemoryMiddleware.after_agent": "save_mem"}


class Agent(Runnable[Any, AddableDict]):
    """What :func:`lc_memory.agent.agent` returns. ``graph`` is create_agent's compiled graph.

    Streamed, the parts are dicts that add up with ``+``: ``{"words": …}`` as the model says them, those it
    says before a call too; ``{"tool_calls": [{"tool", "args"}]}`` when it calls tools; ``{"tool_records":
    [ToolRecord]}`` when one has answered; and ``{"answer": …, "messages": […]}`` at the end. Turns of one
    session run one after another.

    A run that waits for somebody (``interrupt()``, HumanInTheLoopMiddleware) has ``__interrupt__`` in its
    output, LangGraph's list of Interrupts, and an empty answer. It goes on when the agent is called with
    ``Command(resume=…)`` on the same thread, and its turn is saved when it is whole. ``context=`` is handed
    to the graph, and may say whose the run is.
    """

    name = "agent"

    def __init__(self, memory: Memory, graph: Any, saver: object) -> None:
        self.memory = memory
        self.graph = graph
        self._saver = saver  # the middleware in the graph that saves

    @property
    def checkpointer(self) -> Any:
        return self.graph.checkpointer

    def get_state(self, config: RunnableConfig, **kwargs: Any) -> Any:
        """LangGraph's state of a thread: what is asked of whom, and what comes next."""
        return self.graph.get_state(config, **kwargs)

    async def aget_state(self, config: RunnableConfig, **kwargs: Any) -> Any:
        return await self.graph.aget_state(config, **kwargs)

    def __reduce__(self) -> tuple[Any, ...]:
        raise stays("an agent()")

    def __copy__(self) -> Agent:
        return Agent(self.memory, self.graph, self._saver)

    def __deepcopy__(self, memo: dict[int, Any]) -> Agent:
        return self.__copy__()

    def invoke(
        self,
        input: Any,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AddableDict:
        return self._call_with_config(cast(Any, self._run), input, config, **kwargs)

    async def ainvoke(
        self,
        input: Any,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AddableDict:
        return await self._acall_with_config(cast(Any, self._arun), input, config, **kwargs)

    def stream(
        self,
        input: Any,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[AddableDict]:
        yield from self._transform_stream_with_config(
            iter([input]), cast(Any, self._stream), config, **kwargs
        )

    async def astream(
        self,
        input: Any,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[AddableDict]:
        async def one() -> AsyncIterator[Any]:
            yield input

        stream = self._atransform_stream_with_config(one(), cast(Any, self._astream), config, **kwargs)
        async with aclosing(cast(Any, stream)) as parts:
            async for part in parts:
                yield part

    # ------------------------------------------------------------ one turn

    def _run(self, given: Any, config: RunnableConfig, **kwargs: Any) -> AddableDict:
        with (place := Place()), self._turn(config, kwargs, given, place) as inner:
            return _result(self.graph.invoke(self._question(given), inner, **_for_graph(kwargs)))

    async def _arun(self, given: Any, config: RunnableConfig, **kwargs: Any) -> AddableDict:
        with (place := Place()):
            async with self._aturn(config, kwargs, given, place) as inner:
                return _result(await self.graph.ainvoke(self._question(given), inner, **_for_graph(kwargs)))

    def _stream(self, given: Iterator[Any], config: RunnableConfig, **kwargs: Any) -> Iterator[AddableDict]:
        heard = _Heard()
        asked = merged(list(given))
        with (place := Place()), self._turn(config, kwargs, asked, place) as inner:
            stream = self.graph.stream(self._question(asked), inner, stream_mode=_MODES, **_for_graph(kwargs))
            with closing(cast(Any, stream)) as stream:
                for mode, chunk in stream:
                    yield from heard.parts(mode, chunk)
            yield heard.answer()

    async def _astream(
        self, given: AsyncIterator[Any], config: RunnableConfig, **kwargs: Any
    ) -> AsyncIterator[AddableDict]:
        heard = _Heard()
        asked = merged([part async for part in given])
        with (place := Place()):
            async with self._aturn(config, kwargs, asked, place) as inner:
                stream = self.graph.astream(
                    self._question(asked), inner, stream_mode=_MODES, **_for_graph(kwargs)
                )
                async with aclosing(cast(Any, stream)) as stream:
                    async for mode, chunk in stream:
                        for part in heard.parts(mode, chunk):
                            yield part
                yield heard.answer()

    @contextmanager
    def _turn(
        self, config: RunnableConfig, kwargs: Mapping[str, Any], given: Any, place: Lock
    ) -> Iterator[RunnableConfig]:
        """The session is ours meanwhile; inside a turn of it (a with_memory, an agent that has this one as
        a tool) it is already."""
        key = self.memory._key(config, kwargs, given)
        if saved_outside(self.memory, config, self._saver, key):
            yield _unlimited(config)
            return
        with self.memory.turns.hold(key, place), self._marked(key, config) as inner:
            yield inner

    @asynccontextmanager
    async def _aturn(
        self, config: RunnableConfig, kwargs: Mapping[str, Any], given: Any, place: Lock
    ) -> AsyncIterator[RunnableConfig]:
        key = self.memory._key(config, kwargs, given)
        if saved_outside(self.memory, config, self._saver, key):
            yield _unlimited(config)
            return
        async with self.memory.turns.ahold(key, place):
            with self._marked(key, config) as inner:
                yield inner

    @contextmanager
    def _marked(self, key: SessionKey, config: RunnableConfig) -> Iterator[RunnableConfig]:
        mark = SavedBy((self.memory, key), self._saver)
        # The config of a run under way, as _call_with_config hands it in, always holds a manager.
        callbacks = cast(BaseCallbackManager, config["callbacks"]).copy()
        callbacks.add_handler(mark, inherit=True)
        try:
            yield _unlimited(patch_config(config, callbacks=callbacks))
        finally:
            mark.open = False

    def _question(self, given: Any) -> Any:
        if given is None or is_command(given):  # the run of this thread goes on
            return given
        asked = self.memory._question(given) if isinstance(given, dict) else given
        return {"messages": [_to_lc(self.memory._human(asked))]}

    # ------------------------------------------------------------ what it looks like

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        return get_unique_config_specs([*self.graph.config_specs, *SPECS])

    def get_graph(self, config: RunnableConfig | None = None) -> Graph:
        """create_agent's graph, with what the memory does in it under the names it has in every chain."""
        drawn = cast(Graph, self.graph.get_graph(config))
        for node, name in _SHOWN.items():
            if node in drawn.nodes:
                drawn.nodes[node] = drawn.nodes[node].copy(name=name)
        return drawn


def _unlimited(config: RunnableConfig) -> RunnableConfig:
    return {**config, "recursion_limit": max(_STEPS, config.get("recursion_limit") or 0)}


def _for_graph(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in kwargs.items() if k in ("context", "durability")}


def _result(state: Mapping[str, Any]) -> AddableDict:
    messages: list[BaseMessage] = state.get("messages") or []
    at = next((i for i in range(len(messages) - 1, -1, -1) if isinstance(messages[i], HumanMessage)), -1)
    turn = messages[at + 1 :]
    waits = state.get("__interrupt__")
    result = AddableDict(
        answer="" if waits else _answer(turn), tool_records=tool_records(turn), messages=turn
    )
    return AddableDict(result, __interrupt__=list(waits)) if waits else result


def _answer(turn: Sequence[BaseMessage]) -> str:
    return next((str(m.text) for m in reversed(turn) if isinstance(m, AIMessage)), "")


class _Heard:
    """What has been heard of a streamed run so far."""

    def __init__(self) -> None:
        self._turn: list[BaseMessage] = []
        self._reported = 0
        self._waits: list[Any] = []

    def parts(self, mode: str, chunk: Any) -> Iterator[AddableDict]:
        if mode == "messages":
            message, metadata = chunk
            # Other models may be at work inside (a summariser, a judge): only the agent's own talks.
            if isinstance(message, AIMessageChunk) and metadata.get("langgraph_node") == "model":
                words = str(message.text)
                if words:
                    yield AddableDict(words=words)
            return
        if isinstance(chunk, Mapping) and "__interrupt__" in chunk:
            self._waits += chunk["__interrupt__"]
            return
        for message in _messages_in(chunk):
            self._turn.append(message)
            if isinstance(message, AIMessage) and (message.tool_calls or message.invalid_tool_calls):
                calls = [*message.tool_calls, *message.invalid_tool_calls]
                yield AddableDict(tool_calls=[{"tool": c["name"], "args": c["args"]} for c in calls])
            elif isinstance(message, ToolMessage):
                records = tool_records(self._turn)
                yield AddableDict(tool_records=records[self._reported :])
                self._reported = len(records)

    def answer(self) -> AddableDict:
        told = AddableDict(answer="" if self._waits else _answer(self._turn), messages=self._turn)
        if self._waits:
            told["__interrupt__"] = self._waits
        return told if self._reported else AddableDict(told, tool_records=[])


def _messages_in(update: Any) -> Iterator[BaseMessage]:
    """The messages that nodes have added: ``{node: {"messages": […]}}``."""
    if isinstance(update, Mapping):
        for change in update.values():
            messages = change.get("messages") if isinstance(change, Mapping) else None
            if isinstance(messages, list):
                yield from (m for m in messages if isinstance(m, BaseMessage))
