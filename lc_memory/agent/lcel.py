"""The tool loop as a plain Runnable, on langchain-core alone::

    chain = memory.load_mem | prompt | tool_loop(model, tools) | StrOutputParser()
    bot = with_memory(chain, memory)

It does what ``agent()`` does about arguments, failures, time and the number of rounds; the memory stays
where LCEL has it, at the head and around the chain. ``tool_records(messages)`` reads the calls of a turn
from the memory afterwards.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, cast

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    BaseMessageChunk,
    SystemMessage,
    ToolMessage,
    message_chunk_to_message,
)
from langchain_core.prompt_values import PromptValue
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langchain_core.runnables.config import get_config_list, get_executor_for_config
from langchain_core.tools import BaseTool, ToolException

from lc_memory.chains import TurnRecorder, merged
from lc_memory.errors import MemoryInputError
from lc_memory.messages import messages_to_lc

from .calls import (
    RETRIES,
    ROUNDS,
    SECONDS,
    checked,
    failed,
    noted,
    settled,
    transient,
    unreadable,
    with_tools,
)
from .last_word import asks, last_round, told_at_last
from .limits import awithin, within
from .registry import as_tools
from .repair import ALIASES


def tool_loop(
    model: Any,
    tools: Sequence[Any],
    *,
    max_rounds: int = ROUNDS,
    tool_seconds: float = SECONDS,
    retries: int = RETRIES,
    aliases: Mapping[str, str] = ALIASES,
) -> ToolLoop:
    """A Runnable from a prompt (or a list of messages) to the model's answer, an AIMessage.

    ``tools`` and the others as for
    :func:`~lc_memory.agent.agent`. Streamed, words come as the model says them, before a call too.
    """
    if max_rounds < 0:
        raise MemoryInputError(f"max_rounds={max_rounds}: 0 or more rounds of tool calls")
    built = as_tools(tools)
    if any(not isinstance(one, BaseTool) for one in built):
        raise MemoryInputError("tool_loop runs tools itself: a service's built-in ones (dicts) need agent()")
    return ToolLoop(model, built, max_rounds, tool_seconds, retries, aliases)


class ToolLoop(Runnable[LanguageModelInput, AIMessage]):
    """What :func:`tool_loop` returns."""

    name = "tool_loop"

    def __init__(
        self,
        model: Any,
        tools: Sequence[BaseTool],
        max_rounds: int,
        seconds: float,
        retries: int,
        aliases: Mapping[str, str],
    ) -> None:
        self.tools = {tool.name: tool for tool in tools}
        self._plain = model
        self._bound = with_tools(model).bind_tools(list(tools)) if tools else model
        self._max_rounds = max_rounds
        self._tried = {tool.name: _tried(tool, seconds, retries) for tool in tools}
        self._aliases = aliases

    # ------------------------------------------------------------ the loop, in four ways

    def invoke(
        self,
        input: LanguageModelInput,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        return self._call_with_config(cast(Any, self._run), input, config)

    def _run(self, given: LanguageModelInput, config: RunnableConfig) -> AIMessage:
        turn = _Turn(given, self._max_rounds)
        while True:
            answer = turn.heard(self._model(turn).invoke(turn.prompt(), config))
            if answer is not None:
                return answer
            turn.answered(self._results(turn.calls, config))

    async def ainvoke(
        self,
        input: LanguageModelInput,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AIMessage:
        return await self._acall_with_config(cast(Any, self._arun), input, config)

    async def _arun(self, given: LanguageModelInput, config: RunnableConfig) -> AIMessage:
        turn = _Turn(given, self._max_rounds)
        while True:
            answer = turn.heard(await self._model(turn).ainvoke(turn.prompt(), config))
            if answer is not None:
                return answer
            turn.answered(await self._aresults(turn.calls, config))

    def stream(
        self,
        input: LanguageModelInput,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[AIMessage]:
        yield from self.transform(iter([input]), config)

    def transform(
        self,
        input: Iterator[LanguageModelInput],  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> Iterator[AIMessage]:
        yield from self._transform_stream_with_config(input, cast(Any, self._stream), config)

    def _stream(self, given: Iterator[LanguageModelInput], config: RunnableConfig) -> Iterator[AIMessage]:
        turn = _Turn(merged(list(given)), self._max_rounds)
        while True:
            message: Any = None
            for chunk in self._model(turn).stream(turn.prompt(), config):
                message = chunk if message is None else message + chunk
                yield from _words(chunk)
            answer = turn.heard(message)
            if answer is not None:
                yield from _rest(answer, message)
                return
            yield _aside(message, config)
            turn.answered(self._results(turn.calls, config))

    async def astream(
        self,
        input: LanguageModelInput,  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[AIMessage]:
        async def one() -> AsyncIterator[LanguageModelInput]:
            yield input

        async for chunk in self.atransform(one(), config):
            yield chunk

    async def atransform(
        self,
        input: AsyncIterator[LanguageModelInput],  # noqa: A002
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> AsyncIterator[AIMessage]:
        async for chunk in self._atransform_stream_with_config(input, cast(Any, self._astream), config):
            yield chunk

    async def _astream(
        self, given: AsyncIterator[LanguageModelInput], config: RunnableConfig
    ) -> AsyncIterator[AIMessage]:
        turn = _Turn(merged([part async for part in given]), self._max_rounds)
        while True:
            message: Any = None
            async for chunk in self._model(turn).astream(turn.prompt(), config):
                message = chunk if message is None else message + chunk
                for words in _words(chunk):
                    yield words
            answer = turn.heard(message)
            if answer is not None:
                for rest in _rest(answer, message):
                    yield rest
                return
            yield _aside(message, config)
            turn.answered(await self._aresults(turn.calls, config))

    def _model(self, turn: _Turn) -> Any:
        return self._plain if turn.last else self._bound

    # ------------------------------------------------------------ one round of calls

    def _results(self, calls: Sequence[Any], config: RunnableConfig) -> list[ToolMessage]:
        configs = get_config_list(config, len(calls))
        with get_executor_for_config(config) as executor:
            return list(executor.map(self._result, calls, configs))

    async def _aresults(self, calls: Sequence[Any], config: RunnableConfig) -> list[ToolMessage]:
        configs = get_config_list(config, len(calls))
        return list(await asyncio.gather(*map(self._aresult, calls, configs)))

    def _result(self, call: Any, config: RunnableConfig) -> ToolMessage:
        started = time.perf_counter()
        try:
            tried, args = self._ready(call)
            result = tried.invoke({**call, "args": args}, config)
        except Exception as error:
            return noted(failed(call, error), started, None)
        return _noted(result, call, args, started)

    async def _aresult(self, call: Any, config: RunnableConfig) -> ToolMessage:
        started = time.perf_counter()
        try:
            tried, args = self._ready(call)
            result = await tried.ainvoke({**call, "args": args}, config)
        except Exception as error:
            return noted(failed(call, error), started, None)
        return _noted(result, call, args, started)

    def _ready(self, call: Any) -> tuple[Runnable[Any, Any], dict[str, Any]]:
        """What to run, and with which arguments."""
        tool = self.tools.get(call["name"])
        if tool is None:
            raise ToolException(f"there is no such tool; there are: {', '.join(self.tools) or 'none'}")
        return self._tried[tool.name], checked(tool, call["args"], self._aliases)


class _Turn:
    """One question on its way: what the model is shown, and how many rounds are left."""

    def __init__(self, given: LanguageModelInput, max_rounds: int) -> None:
        self._messages = _messages(given)
        self._max_rounds = max_rounds
        self._rounds = 0
        self.calls: list[Any] = []

    @property
    def last(self) -> bool:
        return self._rounds >= self._max_rounds

    def prompt(self) -> list[BaseMessage]:
        if not self.last or not self._rounds:
            return self._messages
        first = self._messages[0]
        system = first if isinstance(first, SystemMessage) else None
        rest = self._messages if system is None else self._messages[1:]
        return [last_round(system, self._messages), *rest]

    def heard(self, message: BaseMessage | None) -> AIMessage | None:
        """The answer, or None: then ``calls`` are to be run."""
        if isinstance(message, BaseMessageChunk):
            message = message_chunk_to_message(message)
        if not isinstance(message, AIMessage):
            raise MemoryInputError(f"tool_loop: the model gave {type(message).__name__}, not an AIMessage")
        message = settled(message)
        if not asks(message):
            return message
        if self.last:
            return told_at_last(message, self._messages, self._max_rounds)
        self._rounds += 1
        self.calls = list(message.tool_calls)
        self._messages = [*self._messages, message, *map(unreadable, message.invalid_tool_calls)]
        return None

    def answered(self, results: Sequence[ToolMessage]) -> None:
        self._messages = [*self._messages, *results]


def _messages(given: LanguageModelInput) -> list[BaseMessage]:
    if isinstance(given, PromptValue):
        return given.to_messages()
    return messages_to_lc([given] if isinstance(given, str) else given)


def _tried(tool: BaseTool, seconds: float, retries: int) -> Runnable[Any, Any]:
    """A call of ``tool``, so many seconds a try, tried again after a failure that may pass."""

    def once(call: Any, config: RunnableConfig) -> Any:
        return within(seconds, lambda: tool.invoke(call, config), tool.name)

    async def aonce(call: Any, config: RunnableConfig) -> Any:
        return await awithin(seconds, tool.ainvoke(call, config), tool.name, tool)

    return RunnableLambda(once, aonce, name=tool.name).with_retry(
        retry_if_exception_type=transient(),
        stop_after_attempt=retries + 1,
    )


def _noted(result: Any, call: Any, args: dict[str, Any], started: float) -> ToolMessage:
    if not isinstance(result, ToolMessage):  # a Command, say: there is no graph to give it to
        result = failed(call, f"it gave {type(result).__name__}, which a plain loop cannot use")
    return noted(result, started, None if args == call["args"] else args)


def _words(chunk: BaseMessage) -> Iterator[AIMessage]:
    words = str(chunk.text)
    if words:
        yield AIMessageChunk(content=words)


class _Anew(AIMessageChunk):
    """The answer begins here: added to what was streamed before it, only what comes from here on is left. So
    the stream of a loop adds up to what invoke gives."""

    def __radd__(self, other: Any) -> AIMessageChunk:
        return AIMessageChunk(content="")

    def __add__(self, other: Any) -> Any:
        return AIMessageChunk(content="") + other


def _aside(message: BaseMessage, config: RunnableConfig) -> AIMessage:
    """What was streamed so far stood beside a call."""
    callbacks: Any = config.get("callbacks")
    for handler in getattr(callbacks, "handlers", ()):
        if isinstance(handler, TurnRecorder):
            handler.aside(str(message.text))
    return _Anew(content="")


def _rest(answer: AIMessage, streamed: BaseMessage) -> Iterator[AIMessage]:
    """What of the answer has not been streamed yet: all but its words, or those too where they are ours."""
    said = "" if str(streamed.text) == str(answer.text) else str(answer.text)
    yield AIMessageChunk(
        content=said,
        usage_metadata=answer.usage_metadata,
        additional_kwargs=answer.additional_kwargs,
        response_metadata=answer.response_metadata,
    )
