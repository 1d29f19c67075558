"""One tool call: what it is run with, how long it took, and how its failure is told.

Shared by the two loops (``loop.py`` on create_agent, ``lcel.py`` on langchain-core alone). What happened is
written on the ToolMessage itself, in ``response_metadata``: it stays with the turn in the memory, and
:func:`tool_records` reads it from any list of messages, of yesterday as well.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.tools import BaseTool, ToolException
from langchain_core.utils.function_calling import convert_to_openai_tool
from typing_extensions import NotRequired, TypedDict

from lc_memory.errors import MemoryInputError
from lc_memory.messages import _to_lc, from_lc

from .repair import flaw, repair

ROUNDS = 3
"""Rounds of tool calls until a model has to answer."""
SECONDS = 30.0
"""How long one try of a tool may take."""
RETRIES = 2
"""Further tries after a failure that may pass."""
_LONGEST = 2000  # characters of an error's text that a model is shown


def settled(message: AIMessage) -> AIMessage:
    """``message`` with those calls alone that the model finished writing, each with an id of its own; the
    others are invalid ones.

    Where an answer is streamed, LangChain completes JSON that broke off, and a tool would be run with half of
    its arguments. The text as it was written is known of lc_memory's own models; of others, that an answer
    which ran into its limit of tokens ended in the middle of its last call.
    """
    if not message.tool_calls and not message.invalid_tool_calls:
        return message
    written: dict[str, Any] = from_lc(message)
    named = _name_each(written["tool_calls"])
    functions = [c["function"] for c in written["tool_calls"] if isinstance(c.get("function"), dict)]
    ended = message.response_metadata.get("finish_reason") or message.response_metadata.get("stop_reason")
    cut = ended in ("length", "max_tokens") and bool(functions) and _readable(functions[-1])
    if cut:
        functions[-1]["arguments"] = functions[-1]["arguments"].rstrip().rstrip("}")
    broken = message.tool_calls and not all(map(_readable, functions))
    return cast(AIMessage, _to_lc(written)) if named or broken else message


def _name_each(calls: list[dict[str, Any]]) -> bool:
    """Give calls an id that have none, or that of another one, as some local servers write them."""
    seen: set[Any] = {None, ""}
    changed = False
    for call in calls:
        if call.get("id") in seen:
            call["id"] = f"call_{uuid.uuid4().hex[:12]}"
            changed = True
        seen.add(call["id"])
    return changed


def _readable(function: Mapping[str, Any]) -> bool:
    try:
        return isinstance(json.loads(function.get("arguments") or "{}", strict=False), dict)
    except (ValueError, TypeError, RecursionError):
        return False


class TransientToolError(ToolException):
    """A failure that may pass (a service that is busy): raised by a tool that wants to be tried again."""


class ToolArgumentError(ToolException):
    """The arguments of a call are not what the tool takes, and could not be repaired."""


class ToolRecord(TypedDict):
    """One tool call and what came of it."""

    tool: str
    args: Any
    """What the tool was run with; the raw text where it was no JSON object."""
    asked: NotRequired[dict[str, Any]]
    """What the model had written, where that was repaired."""
    result: Any
    """What the tool gave back; None where it failed."""
    error: str | None
    seconds: float
    """Wall clock, further tries included."""


def transient() -> tuple[type[Exception], ...]:
    """Failures after which a tool is tried again: connections that broke or timed out, TransientToolError."""
    import httpx

    return (TransientToolError, ConnectionError, TimeoutError, httpx.TransportError)


def with_tools(model: Any) -> Any:
    """``model``, if it can call tools. MemoryInputError: LangChain's base class alone answers for it."""
    if isinstance(model, BaseChatModel) and type(model).bind_tools is BaseChatModel.bind_tools:
        raise MemoryInputError(
            f"{type(model).__name__} cannot call tools. Take a model that can: chat_model() with a provider "
            "whose key is set"
        )
    return model


def parameters_of(tool: BaseTool) -> Mapping[str, Any]:
    """The JSON schema of a tool's arguments, as the model is shown it."""
    function = convert_to_openai_tool(tool)["function"]
    return dict(function.get("parameters") or {})


def checked(tool: BaseTool, args: Mapping[str, Any], aliases: Mapping[str, str]) -> dict[str, Any]:
    """The arguments to run ``tool`` with. ToolArgumentError, for the model to read, where they stay wrong."""
    parameters = parameters_of(tool)
    repaired = repair(args, parameters, aliases)
    wrong = flaw(repaired, parameters)
    if wrong:
        raise ToolArgumentError(wrong)
    return repaired


def failed(call: Mapping[str, Any], error: BaseException | str) -> ToolMessage:
    """The result of a call that failed, as the model is told it."""
    if isinstance(error, ToolException):
        error = str(error)
    elif isinstance(error, BaseException):
        error = f"{type(error).__name__}: {error}"
    name = call.get("name") or "unknown"
    return ToolMessage(
        content=f"Error: {name} failed: {error[:_LONGEST]}",
        name=name,
        tool_call_id=call.get("id") or "",
        status="error",
    )


def unreadable(call: Mapping[str, Any]) -> ToolMessage:
    """The result of a call whose arguments are no JSON object: it was not run."""
    return failed(call, f"its arguments are no JSON object, so it was not run: {call.get('args')!s:.200}")


def noted(message: ToolMessage, started: float, args: Mapping[str, Any] | None) -> ToolMessage:
    """``message`` with what the record needs beside its words. ``args``: where they were repaired."""
    note: dict[str, Any] = {"seconds": round(time.perf_counter() - started, 4)}
    if args is not None:
        note["args"] = dict(args)
    return message.model_copy(update={"response_metadata": {**message.response_metadata, **note}})


def tool_records(messages: Iterable[BaseMessage]) -> list[ToolRecord]:
    """The tool calls in ``messages`` that were answered, in the order of the answers."""
    asked: dict[str | None, Mapping[str, Any]] = {}
    records: list[ToolRecord] = []
    for message in messages:
        if isinstance(message, AIMessage):
            asked |= {call["id"]: call for call in (*message.tool_calls, *message.invalid_tool_calls)}
        elif isinstance(message, ToolMessage):
            records.append(_record(message, asked.get(message.tool_call_id) or {}))
    return records


def _record(message: ToolMessage, call: Mapping[str, Any]) -> ToolRecord:
    note = message.response_metadata
    good = message.status != "error"
    record: ToolRecord = {
        "tool": message.name or call.get("name") or "unknown",
        "args": note.get("args", call.get("args")),
        "result": message.content if good else None,
        "error": None if good else str(message.text),
        "seconds": float(note.get("seconds", 0.0)),
    }
    if "args" in note:
        record["asked"] = call.get("args") or {}
    return record
