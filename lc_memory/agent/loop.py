"""The agent: LangChain's create_agent with a memory, a loop that ends, and tools that may fail.

::

    bot = agent(memory, model, [CalculatorTool(), WeatherTool()])
    bot.invoke({"question": "12*7 是多少？"}, {"configurable": {"session_id": "s1"}})
    # {"answer": "84", "tool_records": [{"tool": "calculator", "args": {"expr": "12*7"}, "result": "84", …}]}

What each part does is one middleware: the memory, the limit (:class:`EndsInAnswer`), the arguments, times and
errors of calls (:class:`ToolCalls`), LangChain's own ToolRetryMiddleware for failures that may pass, and the
time a tool gets (:class:`ToolTimeout`).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from lc_memory.chains import OnSaveError
from lc_memory.errors import MemoryInputError, MissingExtraError
from lc_memory.memory import Memory

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
from .prompts import TOOLS
from .registry import as_tools
from .repair import ALIASES
from .runnable import Agent

try:
    from langchain.agents import create_agent
    from langchain.agents.middleware import ToolRetryMiddleware, hook_config
    from langchain.agents.middleware.types import (
        AgentMiddleware,
        AgentState,
        ModelCallResult,
        ModelRequest,
        ModelResponse,
        ToolCallRequest,
    )
    from langgraph.errors import GraphBubbleUp
    from langgraph.runtime import Runtime
    from langgraph.types import Command
except ImportError as error:
    raise MissingExtraError("lc_memory.agent.agent()", "agent") from error

from lc_memory.integrations import MemoryMiddleware


def agent(
    memory: Memory,
    model: Any,
    tools: Sequence[Any],
    *,
    max_rounds: int = ROUNDS,
    system: str = TOOLS,
    tool_seconds: float = SECONDS,
    retries: int = RETRIES,
    aliases: Mapping[str, str] = ALIASES,
    middleware: Sequence[AgentMiddleware[Any, Any, Any]] = (),
    checkpointer: Any = None,
    context_schema: Any = None,
    on_save_error: OnSaveError = "raise",
) -> Agent:
    """A Runnable from a question (text, or a dict with the memory's question key) to its answer.

    ``tools``: LangChain tools, functions with a docstring, or objects with ``execute`` (see ``registry.py``).
    After ``max_rounds`` rounds of calls the model is asked without tools, so that it answers with what it
    has. A tool gets ``tool_seconds`` a try, and ``retries`` further tries after a failure that may pass.
    ``aliases``: see :mod:`lc_memory.agent.repair`. ``middleware``: further ones, inside the memory.
    ``checkpointer``: LangGraph's, with a ``thread_id``. ``context_schema``: of what is given as ``context=``.

    The output is ``{"answer": str, "tool_records": [ToolRecord, …], "messages": […]}``, the messages being
    those behind the question; streamed, it comes in parts (see :class:`~lc_memory.agent.runnable.Agent`).
    Errors of the model and of saving raise, and then nothing is saved; those of tools are told to the model
    and stand in the records.
    """
    if max_rounds < 0:
        raise MemoryInputError(f"max_rounds={max_rounds}: 0 or more rounds of tool calls")
    remembers = MemoryMiddleware(memory, on_save_error=on_save_error)
    parts: list[AgentMiddleware[Any, Any, Any]] = [
        remembers,
        EndsInAnswer(max_rounds),
        *middleware,
        ToolCalls(aliases),
        ToolRetryMiddleware(max_retries=retries, retry_on=transient(), on_failure="error", initial_delay=0.5),
        ToolTimeout(tool_seconds),
    ]
    graph = create_agent(
        with_tools(model) if tools else model,
        as_tools(tools),
        system_prompt=system,
        middleware=parts,
        checkpointer=checkpointer,
        context_schema=context_schema,
    )
    return Agent(memory, graph, remembers)


def _of_this_turn(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    at = next((i for i in range(len(messages) - 1, -1, -1) if isinstance(messages[i], HumanMessage)), -1)
    return messages[at + 1 :]


class EndsInAnswer(AgentMiddleware[AgentState[Any], Any, Any]):
    """After so many rounds of tool calls the model is asked without tools. Should it call one even then,
    the words it said beside the call are the answer, or a sentence that says there is none."""

    def __init__(self, max_rounds: int) -> None:
        super().__init__()
        self.tools = []
        self.max_rounds = max_rounds

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelCallResult[Any]:
        last = self._last(request)
        return handler(request) if last is None else self._answered(handler(last), request)

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelCallResult[Any]:
        last = self._last(request)
        return await handler(request) if last is None else self._answered(await handler(last), request)

    def _last(self, request: ModelRequest[Any]) -> ModelRequest[Any] | None:
        """The request without tools, when the rounds are used up."""
        rounds = sum(asks(m) for m in _of_this_turn(request.state["messages"]))
        if rounds < self.max_rounds or not request.tools:
            return None
        if not rounds:
            return request.override(tools=[])
        told = last_round(request.system_message, request.messages)
        return request.override(tools=[], system_message=told)

    def _answered(self, response: ModelResponse[Any], request: ModelRequest[Any]) -> ModelResponse[Any]:
        message = response.result[0]
        if not isinstance(message, AIMessage) or not asks(message):
            return response
        return ModelResponse(
            result=[told_at_last(message, request.messages, self.max_rounds)],
            structured_response=response.structured_response,
        )


class ToolCalls(AgentMiddleware[AgentState[Any], Any, Any]):
    """Repairs the arguments of calls, times them, and tells failures to the model: whatever a tool raises
    is the result of its call, as an error, and ends neither the turn nor the calls beside it."""

    def __init__(self, aliases: Mapping[str, str] = ALIASES) -> None:
        super().__init__()
        self.tools = []
        self._aliases = aliases

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelCallResult[Any]:
        return _settled(handler(request))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelCallResult[Any]:
        return _settled(await handler(request))

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Calls whose arguments are no JSON: create_agent would take them for an answer."""
        message = next((m for m in reversed(state["messages"]) if isinstance(m, AIMessage)), None)
        if message is None or not message.invalid_tool_calls:
            return None
        told: dict[str, Any] = {"messages": [unreadable(call) for call in message.invalid_tool_calls]}
        return told if message.tool_calls else {**told, "jump_to": "model"}

    @hook_config(can_jump_to=["model"])
    async def aafter_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        return self.after_model(state, runtime)

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        started = time.perf_counter()
        try:
            request, args = self._repaired(request)
            result = handler(request)
        except GraphBubbleUp:  # an interrupt is no failure
            raise
        except Exception as error:
            args, result = None, failed(request.tool_call, error)
        return noted(result, started, args) if isinstance(result, ToolMessage) else result

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        started = time.perf_counter()
        try:
            request, args = self._repaired(request)
            result = await handler(request)
        except GraphBubbleUp:
            raise
        except Exception as error:
            args, result = None, failed(request.tool_call, error)
        return noted(result, started, args) if isinstance(result, ToolMessage) else result

    def _repaired(self, request: ToolCallRequest) -> tuple[ToolCallRequest, Mapping[str, Any] | None]:
        """The request to run, and its arguments where they are not what the model wrote."""
        call, tool = request.tool_call, request.tool
        if tool is None:  # the ToolNode says which tools there are
            return request, None
        args = checked(tool, call["args"], self._aliases)
        if args == call["args"]:
            return request, None
        return request.override(tool_call={**call, "args": args}), args


def _settled(response: ModelResponse[Any]) -> ModelResponse[Any]:
    result = [settled(m) if isinstance(m, AIMessage) else m for m in response.result]
    return ModelResponse(result=result, structured_response=response.structured_response)


class ToolTimeout(AgentMiddleware[AgentState[Any], Any, Any]):
    """So many seconds for one try of a tool. A tool that is a plain function cannot be stopped: its thread
    goes on, and nobody waits for it; an async one is cancelled. See ``limits.py``."""

    def __init__(self, seconds: float) -> None:
        super().__init__()
        self.tools = []
        self.seconds = seconds

    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        return within(self.seconds, lambda: handler(request), request.tool_call["name"])

    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        run = cast(Coroutine[Any, Any, ToolMessage | Command[Any]], handler(request))
        return await awithin(self.seconds, run, request.tool_call["name"], request.tool)


__all__ = ["EndsInAnswer", "ToolCalls", "ToolTimeout", "agent"]
