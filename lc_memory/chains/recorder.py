"""with_memory: the Runnable around a chain that saves each finished turn, exactly once.

It is a wrapper on ``_call_with_config`` and ``_transform_stream_with_config``, because of all hooks a chain
offers only that one sees the question, passes each chunk on as it comes, knows an abandoned stream from a
finished one, and can still raise when the save fails.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, closing
from typing import Any, Literal, cast

from langchain_core.callbacks import BaseCallbackManager
from langchain_core.messages import BaseMessage
from langchain_core.runnables import ConfigurableFieldSpec, Runnable, RunnableConfig
from langchain_core.runnables.config import get_config_list, get_executor_for_config, patch_config
from langchain_core.runnables.graph import Graph
from langchain_core.runnables.utils import gather_with_concurrency, get_unique_config_specs

from lc_memory.errors import LCMemoryError, MemoryInputError, StoreError
from lc_memory.messages import Message
from lc_memory.sessions import SPECS, Conversation, identified, session_key
from lc_memory.store import SessionKey, finished

from .graphs import GraphRecorder, InnerGraph, Resumed, is_command, pauses, resumed, unfinished
from .load_mem import ChainMemory, knowing_its_signature
from .moving import copied, movable
from .queue import Place
from .reaching import out_of_reach, takes_questions
from .turn import TurnRecorder, merged, turn_messages

log = logging.getLogger("lc_memory")

OnSaveError = Literal["raise", "warn"]


def with_memory(
    chain: Runnable[Any, Any], memory: ChainMemory, *, on_save_error: OnSaveError = "raise"
) -> WithMemory:
    """``chain``, which has ``memory.load_mem`` at its head, with each finished turn saved.

    Exactly one save for each turn that finished; none for one that raised, was cancelled, or whose stream
    was closed early. Turns of one session run one after another. ``on_save_error``: a failed save raises
    a StoreError, because a user who is told nothing loses data; "warn" hands the answer out all the same,
    with a RuntimeWarning. What is returned takes what the chain takes; where ``load_mem`` stands first, which
    takes a dict with the memory's question key, also the question itself: text, a message, a conversation.

    Around a LangGraph graph a run that pauses (``interrupt()``) is handed out as it is and not saved; called
    with ``Command(resume=…)``, here or in another process, the turn is saved once, when it is whole.

    A RuntimeWarning says so where the chain can be seen to remember nothing: it has no ``load_mem`` of this
    memory, or its prompt no place for the history.
    """
    if not isinstance(memory, ChainMemory):
        raise MemoryInputError(
            f"with_memory(chain, memory): memory is a {type(memory).__name__}, not a Memory"
        )
    if not isinstance(chain, Runnable):
        raise MemoryInputError(
            f"with_memory(chain, memory): chain is a {type(chain).__name__}, not a Runnable"
        )
    if on_save_error not in ("raise", "warn"):
        raise MemoryInputError(f'on_save_error is "raise" or "warn", not {on_save_error!r}')
    missing = out_of_reach(chain, memory)
    if missing is not None:
        warnings.warn(f"with_memory: {missing}", RuntimeWarning, stacklevel=2)
    return WithMemory(chain, memory, on_save_error)


class _Turn:
    """One turn on its way: who asked what, and what has been heard of the run so far."""

    def __init__(
        self,
        key: SessionKey,
        conversation: Conversation,
        human: Message,
        recorder: TurnRecorder,
        config: RunnableConfig,
        id: str | None,
    ) -> None:
        self.key = key
        self.conversation = conversation
        self.human = human
        self.recorder = recorder
        self.id = id  # of a resumed turn: the same in every process
        self.place = Place()
        callbacks = _callbacks(config).copy()
        callbacks.add_handler(recorder, inherit=True)
        self.config = patch_config(config, callbacks=callbacks)


def _callbacks(config: RunnableConfig) -> BaseCallbackManager:
    # The config of a run under way, as _call_with_config hands it in, always holds a manager.
    return cast(BaseCallbackManager, config["callbacks"])


class WithMemory(Runnable[Any, Any]):
    """What :func:`with_memory` returns."""

    def __init__(self, bound: Runnable[Any, Any], memory: ChainMemory, on_save_error: OnSaveError) -> None:
        self.bound = bound
        self.memory = memory
        self.on_save_error = on_save_error
        self.name = bound.get_name()
        self._graph = InnerGraph.of(bound)
        self._takes_questions = takes_questions(bound, memory)
        self._turn_run = knowing_its_signature(self._run)
        self._turn_arun = knowing_its_signature(self._arun)
        self._turn_astream = knowing_its_signature(self._astream)

    # ------------------------------------------------------------ one turn

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return self._call_with_config(self._turn_run, self._given(input), config, **kwargs)

    def _run(self, given: Any, config: RunnableConfig, **kwargs: Any) -> Any:
        turn = self._begin(given, config, kwargs, self._resumed(given, config))
        if turn is None:
            return self.bound.invoke(given, config, **kwargs)
        with turn.place, self.memory.turns.hold(turn.key, turn.place):
            try:
                output = self.bound.invoke(given, turn.config, **kwargs)
                if not self._pauses(turn, output):
                    self._save(turn, output)
                return output
            finally:
                turn.recorder.open = False

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return await self._acall_with_config(self._turn_arun, self._given(input), config, **kwargs)

    async def _arun(self, given: Any, config: RunnableConfig, **kwargs: Any) -> Any:
        turn = self._begin(given, config, kwargs, await self._aresumed(given, config))
        if turn is None:
            return await self.bound.ainvoke(given, config, **kwargs)
        with turn.place:
            async with self.memory.turns.ahold(turn.key, turn.place):
                try:
                    output = await self.bound.ainvoke(given, turn.config, **kwargs)
                    if not await self._apauses(turn, output):
                        await self._asave(turn, output)
                    return output
                finally:
                    turn.recorder.open = False

    # ------------------------------------------------------------ one turn, streamed

    def stream(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Iterator[Any]:
        yield from self.transform(iter([input]), config, **kwargs)

    def transform(
        self,
        input: Iterator[Any],
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[Any]:
        begun: list[Iterator[Any]] = []

        def turn(given: Iterator[Any], config: RunnableConfig, **kwargs: Any) -> Iterator[Any]:
            begun.append(self._stream(given, config, **kwargs))
            return begun[-1]

        try:
            yield from self._transform_stream_with_config(input, cast(Any, turn), config, **kwargs)
        finally:
            # Interrupted between two chunks, LangChain would leave it as it is, with its session held.
            for stream in begun:
                cast(Any, stream).close()

    def _stream(self, given: Iterator[Any], config: RunnableConfig, **kwargs: Any) -> Iterator[Any]:
        whole = self._given(merged(list(given)))
        turn = self._begin(whole, config, kwargs, self._resumed(whole, config))
        if turn is None:
            yield from self.bound.stream(whole, config, **kwargs)
            return
        with turn.place, self.memory.turns.hold(turn.key, turn.place):
            chunks = turn.recorder.chunks
            try:
                with closing(cast(Any, self.bound.stream(whole, turn.config, **kwargs))) as stream:
                    for chunk in stream:
                        chunks.append(chunk)
                        yield chunk
                output = turn.recorder.told()
                if not self._pauses(turn, output):
                    self._save(turn, output)
            finally:
                turn.recorder.open = False

    async def astream(
        self,
        input: Any,
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        async def one() -> AsyncIterator[Any]:
            yield input

        async with aclosing(cast(Any, self.atransform(one(), config, **kwargs))) as stream:
            async for chunk in stream:
                yield chunk

    async def atransform(
        self,
        input: AsyncIterator[Any],
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[Any]:
        stream = self._atransform_stream_with_config(input, self._turn_astream, config, **kwargs)
        async with aclosing(cast(Any, stream)) as stream:
            async for chunk in stream:
                yield chunk

    async def _astream(
        self, given: AsyncIterator[Any], config: RunnableConfig, **kwargs: Any
    ) -> AsyncIterator[Any]:
        whole = self._given(merged([chunk async for chunk in given]))
        turn = self._begin(whole, config, kwargs, await self._aresumed(whole, config))
        if turn is None:
            async for chunk in self.bound.astream(whole, config, **kwargs):
                yield chunk
            return
        with turn.place:
            async with self.memory.turns.ahold(turn.key, turn.place):
                chunks = turn.recorder.chunks
                try:
                    stream = self.bound.astream(whole, turn.config, **kwargs)
                    async with aclosing(cast(Any, stream)) as stream:
                        async for chunk in stream:
                            chunks.append(chunk)
                            yield chunk
                    output = turn.recorder.told()
                    if not await self._apauses(turn, output):
                        await self._asave(turn, output)
                finally:
                    turn.recorder.open = False

    # ------------------------------------------------------------ many turns

    def batch(
        self,
        inputs: list[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[Any]:
        """Sessions side by side, the turns of one session in the order of ``inputs``."""
        if not inputs:
            return []
        configs = get_config_list(config, len(inputs))

        def one_session(indices: list[int]) -> list[tuple[int, Any]]:
            done: list[tuple[int, Any]] = []
            for i in indices:
                try:
                    done.append((i, self.invoke(inputs[i], configs[i], **kwargs)))
                except Exception as error:
                    if not return_exceptions:
                        raise
                    done.append((i, error))
            return done

        with get_executor_for_config(configs[0]) as executor:
            done = [
                pair for part in executor.map(one_session, self._by_session(configs, kwargs)) for pair in part
            ]
        return [output for _, output in sorted(done, key=lambda pair: pair[0])]

    async def abatch(
        self,
        inputs: list[Any],
        config: RunnableConfig | list[RunnableConfig] | None = None,
        *,
        return_exceptions: bool = False,
        **kwargs: Any,
    ) -> list[Any]:
        """Sessions side by side, the turns of one session in the order of ``inputs``."""
        if not inputs:
            return []
        configs = get_config_list(config, len(inputs))

        async def one_session(indices: list[int]) -> list[tuple[int, Any]]:
            done: list[tuple[int, Any]] = []
            for i in indices:
                try:
                    done.append((i, await self.ainvoke(inputs[i], configs[i], **kwargs)))
                except Exception as error:
                    if not return_exceptions:
                        raise
                    done.append((i, error))
            return done

        parts = await gather_with_concurrency(
            configs[0].get("max_concurrency"), *map(one_session, self._by_session(configs, kwargs))
        )
        return [output for _, output in sorted((p for part in parts for p in part), key=lambda pair: pair[0])]

    def _by_session(self, configs: Sequence[RunnableConfig], kwargs: Mapping[str, Any]) -> list[list[int]]:
        sessions: dict[SessionKey, list[int]] = {}
        for i, config in enumerate(configs):
            sessions.setdefault(self.memory._key(config, kwargs), []).append(i)
        return list(sessions.values())

    # ------------------------------------------------------------ begin and save

    def _given(self, given: Any) -> Any:
        """A question by itself, as the dict that load_mem takes."""
        bare = isinstance(given, (str, list, BaseMessage))
        return {self.memory.question_key: given} if bare and self._takes_questions else given

    def _begin(
        self, given: Any, config: RunnableConfig, kwargs: Mapping[str, Any], going_on: Resumed | None
    ) -> _Turn | None:
        """The turn to be saved, or None inside a turn of the same session: that one saves."""
        named = session_key(config, kwargs, given)
        key = self.memory._sessions.canonical(named)
        for handler in _callbacks(config).handlers:
            if isinstance(handler, TurnRecorder) and handler.open and handler.turn_of == (self.memory, key):
                return None
        if going_on is not None:
            question = going_on.question
        elif is_command(given) or (given is None and self._graph is not None):
            return None  # nothing was paused, so nothing is asked either
        else:
            question = given if isinstance(given, (str, list)) else _unwrap(given, self.memory)
        if kwargs.get("context") is not None:  # a chain hands it to its first step alone
            config = identified(config, named)
        of = (self.memory, key)
        recorder = TurnRecorder(of) if self._graph is None else GraphRecorder(of, self._graph)
        conversation = self.memory._conversation_of(named)
        human = self.memory._human(question)
        return _Turn(key, conversation, human, recorder, config, None if going_on is None else going_on.id)

    def _resumed(self, given: Any, config: RunnableConfig) -> Resumed | None:
        graph = self._goes_on(given, config)
        return None if graph is None else graph.read(resumed(config, self.memory.question_key))

    async def _aresumed(self, given: Any, config: RunnableConfig) -> Resumed | None:
        graph = self._goes_on(given, config)
        return None if graph is None else await graph.aread(resumed(config, self.memory.question_key))

    def _goes_on(self, given: Any, config: RunnableConfig) -> InnerGraph | None:
        """The graph that is told to go on where it paused, if it is."""
        if not is_command(given) and (given is not None or self._graph is None):
            return None
        if self._graph is None or not self._graph.kept(config):
            raise MemoryInputError(
                "with_memory is told to resume a run, and its chain has no graph that keeps one: compile "
                "the graph with a checkpointer, and put with_memory around it or a chain with it as a step"
            )
        return self._graph

    def _pauses(self, turn: _Turn, output: Any) -> bool:
        """Whether the run waits for somebody: there is no answer to be saved yet."""
        graph = self._to_be_asked(turn, output)
        return graph is not None and (graph is True or bool(graph.read(unfinished(turn.config))))

    async def _apauses(self, turn: _Turn, output: Any) -> bool:
        graph = self._to_be_asked(turn, output)
        return graph is not None and (graph is True or bool(await graph.aread(unfinished(turn.config))))

    def _to_be_asked(self, turn: _Turn, output: Any) -> InnerGraph | Literal[True] | None:
        """The graph whose state says whether the run has ended; True where it is known that it has not."""
        if pauses(output) or (isinstance(turn.recorder, GraphRecorder) and turn.recorder.paused):
            return True
        return self._graph if self._graph is not None and self._graph.kept(turn.config) else None

    def _save(self, turn: _Turn, output: Any) -> None:
        try:
            if self._graph is not None and self._graph.last and isinstance(turn.recorder, GraphRecorder):
                output = output if turn.recorder.state is None else turn.recorder.state
            turn.conversation.save(turn_messages(turn.human, output, turn.recorder), turn.id)
        except Exception as error:
            message = f"the answer was given, but the turn of {turn.key} was not saved: {error}"
            if self.on_save_error == "raise":
                if isinstance(error, LCMemoryError):
                    raise
                raise StoreError(message) from error
            warnings.warn(message, RuntimeWarning, stacklevel=2)
            return
        try:
            turn.conversation.compact()
        except Exception as error:
            log.warning("the summary of %s was not brought up to date: %s", turn.key, error)

    async def _asave(self, turn: _Turn, output: Any) -> None:
        await finished(lambda: self._save(turn, output))

    # ------------------------------------------------------------ what it looks like

    def __reduce__(self) -> tuple[Any, ...]:
        bound = movable(self.bound, "the chain")
        return WithMemory, (bound, self.memory, self.on_save_error)

    def __copy__(self) -> WithMemory:
        return WithMemory(self.bound, self.memory, self.on_save_error)

    def __deepcopy__(self, memo: dict[int, Any]) -> WithMemory:
        return WithMemory(copied(self.bound, memo), self.memory, self.on_save_error)

    @property
    def InputType(self) -> Any:
        return self.bound.InputType

    @property
    def OutputType(self) -> Any:
        return self.bound.OutputType

    def get_input_schema(self, config: RunnableConfig | None = None) -> Any:
        return self.bound.get_input_schema(config)

    def get_output_schema(self, config: RunnableConfig | None = None) -> Any:
        return self.bound.get_output_schema(config)

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        return get_unique_config_specs([*self.bound.config_specs, *SPECS])

    def get_graph(self, config: RunnableConfig | None = None) -> Graph:
        """The chain's own graph, with ``save_mem`` behind its last step."""
        graph = self.bound.get_graph(config)
        last = graph.last_node()
        if last is None:
            return graph
        save = graph.add_node(_SaveMem(self))
        incoming = [edge for edge in graph.edges if edge.target == last.id]
        for edge in incoming:
            graph.edges.remove(edge)
            graph.add_edge(graph.nodes[edge.source], save, edge.data, edge.conditional)
        graph.add_edge(save, last)
        return graph


class _SaveMem(Runnable[Any, Any]):
    """Stands in a graph for what WithMemory does behind the chain."""

    name = "save_mem"

    def __init__(self, of: WithMemory) -> None:
        self._of = of

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:
        return input


def _unwrap(given: Any, memory: ChainMemory) -> Any:
    return memory._question(given) if isinstance(given, dict) else given
