"""The one place where OpenAI-style dicts and LangChain's message objects meet.

::

    _to_lc({"role": "user", "content": "我叫小明"})   -> HumanMessage("我叫小明")
    from_lc(HumanMessage("我叫小明"))                 -> {"role": "user", "content": "我叫小明"}

Nothing is lost on the way there and back: ``from_lc(_to_lc(d)) == d``, but for a missing or null role,
which comes back as ``"user"``. It works like this. Every dict has a *natural* message, and every message
a natural dict: keys LangChain has a field for go there, all others go to ``additional_kwargs``. Where the
natural dict differs from the one that came in (white space in argument JSON, ``content: null``, a role
written ``"User"``), the message carries a note of the difference in ``additional_kwargs["lc_memory"]``:
for each such key what it looked like naturally and what it was. On the way back the note is believed for
the keys that still look the same, so that a message somebody has edited stays edited. Chat models of
LangChain send known keys only; the note never leaves the machine.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    BaseMessageChunk,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    message_chunk_to_message,
)

from lc_memory.errors import MemoryInputError

Message: TypeAlias = dict[str, Any]
"""An OpenAI-style message: ``role``, ``content`` and whatever else a service or program put there."""

NOTE = "lc_memory"  # the key of the note in additional_kwargs
_ROLE = "__openai_role__"  # where LangChain keeps that a SystemMessage was a "developer" message

_SIMPLE: dict[str, type[BaseMessage]] = {
    "user": HumanMessage,
    "assistant": AIMessage,
    "system": SystemMessage,
}
_ROLES = {
    "user": "user", "human": "user",
    "assistant": "assistant", "ai": "assistant",
    "system": "system", "developer": "developer",
    "tool": "tool", "function": "function", "remove": "remove",
}  # fmt: skip
_OWN_KEYS = {"role", "content", "name", "id", "tool_calls", "tool_call_id", "status", "artifact",
             "usage_metadata", "response_metadata", "additional_kwargs"}  # fmt: skip


def _to_lc(message: Message, index: int | None = None) -> BaseMessage:
    """The LangChain message of one OpenAI-style dict.

    ``role``: user/human, assistant/ai, system, developer, tool, function, remove, in any case; a missing
    one is a user's; any other becomes a ``ChatMessage``. ``content``: text, a list of parts, null, missing
    or a number. ``tool_calls`` in OpenAI's or LangChain's form; arguments that are no JSON object become
    ``invalid_tool_calls``. All other keys are kept in ``additional_kwargs``. The dict is not touched and
    shares nothing mutable with the message.

    Raises MemoryInputError, naming the key (and ``index``, the message's place in its list), for what no
    message can carry: a message that is no dict, a role that is no text, tool calls that are no list.
    """
    # Nine messages in ten are just this; the rest of the module costs several times as much.
    try:
        if len(message) == 2 and type(message["content"]) is str:
            return _SIMPLE[message["role"]](content=message["content"])
    except (KeyError, TypeError):
        pass
    where = "message" if index is None else f"messages[{index}]"
    _check(message, where)
    check_depth(message, where)
    source: Message = copy.deepcopy(message)
    try:
        built = _build(source, where)
        _leave_note(built, source)
    except MemoryInputError:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise MemoryInputError(f"{where} cannot become a message: {error}") from error
    return built


def messages_to_lc(messages: Iterable[Any]) -> list[BaseMessage]:
    """``_to_lc`` for a list. Message objects, ``(role, content)`` pairs and bare strings (a user's words)
    may stand among the dicts; a bare string or dict *instead of* the list is a MemoryInputError."""
    if isinstance(messages, (str, bytes, dict, BaseMessage)) or not isinstance(messages, Iterable):
        raise MemoryInputError(
            f"expected a list of messages, got {_shown(messages)}; put a single message into a list"
        )
    return [one_to_lc(m, i) for i, m in enumerate(messages)]


def from_lc(message: BaseMessage) -> Message:
    """The OpenAI-style dict of one LangChain message; the way back of ``_to_lc``.

    Beside the keys a chat service knows, the dict holds what the message knows of itself: ``id``,
    ``usage_metadata``, ``response_metadata``, a tool's ``status`` and ``artifact``, where there are any.
    """
    if not isinstance(message, BaseMessage):
        raise MemoryInputError(f"expected a LangChain message, got {_shown(message)}")
    for held in (message.content, message.additional_kwargs, message.response_metadata, _data(message)):
        if held and not isinstance(held, str):
            check_depth(held, "the message")
    if isinstance(message, BaseMessageChunk):
        message = message_chunk_to_message(message)
    natural = _natural(message)
    note = message.additional_kwargs.get(NOTE)
    if isinstance(note, dict):
        for key, entry in note.items():
            if not _same(_seen(natural, key), {k: v for k, v in entry.items() if k == "natural"}):
                continue  # somebody has changed the message since
            if "original" in entry:
                natural[key] = copy.deepcopy(entry["original"])
            else:
                natural.pop(key, None)
    return natural


def messages_from_lc(messages: Iterable[BaseMessage]) -> list[Message]:
    """``from_lc`` for a list."""
    if isinstance(messages, (str, bytes, dict, BaseMessage)) or not isinstance(messages, Iterable):
        raise MemoryInputError(f"expected a list of LangChain messages, got {_shown(messages)}")
    return [from_lc(m) for m in messages]


DEEPEST = 100
"""Levels of lists and dicts in a message; what programs write has ten, and what reads more of them (JSON, a
copy) ends in a RecursionError, here or with whoever reads the message next."""


def check_depth(value: Any, where: str) -> None:
    """Raise MemoryInputError for a value that is nested more than ``DEEPEST`` levels deep."""
    if is_deep(value):
        raise MemoryInputError(f"{where} is nested more than {DEEPEST} levels deep")


def is_deep(value: Any) -> bool:
    if not isinstance(value, _HOLDS):
        return False
    level = [value]
    for _ in range(DEEPEST + 1):
        inner = {}  # by id: what is held twice is looked into once
        for held in level:
            for one in held.values() if isinstance(held, dict) else held:
                if isinstance(one, _HOLDS):
                    inner[id(one)] = one
        if not inner:
            return False
        level = list(inner.values())
    return True


_HOLDS = (dict, list, tuple)


def text_of(content: Any) -> str:
    """The words of a message's content: the text itself, or the text parts of a list joined by newlines."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = (p if isinstance(p, str) else p.get("text") if isinstance(p, dict) else None for p in content)
        return "\n".join(p for p in parts if isinstance(p, str))
    return ""


# ---------------------------------------------------------------- dict -> message


def one_to_lc(message: Any, index: int) -> BaseMessage:
    """One element of a list that ``messages_to_lc`` takes; ``index`` is its place, for errors."""
    if isinstance(message, BaseMessage):
        return message
    if isinstance(message, str):
        return HumanMessage(content=message)
    if isinstance(message, (tuple, list)):
        if len(message) != 2 or not isinstance(message[0], str):
            raise MemoryInputError(f"messages[{index}]: a message in a tuple is (role, content)")
        return _to_lc({"role": message[0], "content": message[1]}, index)
    return _to_lc(message, index)


def _check(message: Any, where: str) -> None:
    if not isinstance(message, dict):
        raise MemoryInputError(f"{where}: expected a dict with role and content, got {_shown(message)}")
    for key in message:
        if not isinstance(key, str):
            raise MemoryInputError(f"{where}: the key {key!r} is not text")
    role = message.get("role")
    if role is not None and not isinstance(role, str):
        raise MemoryInputError(f"{where}['role']: expected text, got {_shown(role)}")
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise MemoryInputError(f"{where}['tool_calls']: expected a list, got {_shown(calls)}")
    for i, call in enumerate(calls or ()):
        if not isinstance(call, dict):
            raise MemoryInputError(f"{where}['tool_calls'][{i}]: expected a dict, got {_shown(call)}")


def _build(source: Message, where: str) -> BaseMessage:
    role = _role(source)
    fields: dict[str, Any] = {"content": _content(source.get("content"))}
    extras = {k: v for k, v in source.items() if k not in _OWN_KEYS}
    nested = source.get("additional_kwargs")
    if isinstance(nested, dict):
        extras = {**nested, **extras}
    for key in ("name", "id"):
        if isinstance(source.get(key), str):
            fields[key] = source[key]
    if isinstance(source.get("response_metadata"), dict):
        fields["response_metadata"] = source["response_metadata"]
    extras.pop(NOTE, None)
    for key in ("audio", "function_call"):
        # ChatOpenAI looks into these without asking whether they are there; a service writes null.
        if extras.get(key, "") is None:
            del extras[key]
    fields["additional_kwargs"] = extras

    if role == "user":
        return HumanMessage(**fields)
    if role in ("system", "developer"):
        if role == "developer":
            extras[_ROLE] = "developer"
        return SystemMessage(**fields)
    if role == "assistant":
        fields["tool_calls"], fields["invalid_tool_calls"] = _calls(source.get("tool_calls") or [])
        usage = source.get("usage_metadata")
        if isinstance(usage, dict):
            try:
                return AIMessage(**fields, usage_metadata=usage)
            except ValueError:  # not LangChain's shape of it; the note keeps it
                pass
        return AIMessage(**fields)
    if role == "tool":
        call_id = source.get("tool_call_id")
        fields["tool_call_id"] = "" if call_id is None else str(call_id)
        if source.get("status") in ("success", "error"):
            fields["status"] = source["status"]
        return ToolMessage(**fields, artifact=source.get("artifact"))
    if role == "function" and "name" in fields:
        return FunctionMessage(**fields)
    if role == "remove" and "id" in fields:
        return RemoveMessage(id=fields["id"])
    if not role:
        raise MemoryInputError(f"{where}['role']: empty")
    return ChatMessage(role=role, **fields)


def _role(source: Message) -> str:
    role = source.get("role")
    if role is None:
        # LangChain's own dicts say "type" where OpenAI's say "role".
        kind = source.get("type")
        return _ROLES.get(kind, "user") if isinstance(kind, str) else "user"
    assert isinstance(role, str)
    return _ROLES.get(role.strip().lower(), role)


def _content(content: Any) -> str | list[str | dict[str, Any]]:
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, list):
        return [part if isinstance(part, (str, dict)) else _json(part) for part in content]
    if isinstance(content, dict) and isinstance(content.get("type"), str):
        return [content]  # one part without its list
    return _json(content)


def _calls(raw: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """OpenAI's or LangChain's calls -> (those with an object of arguments, the others as they came)."""
    valid: list[dict[str, Any]] = []
    invalid: list[dict[str, Any]] = []
    for call in raw:
        body = call.get("function")
        if isinstance(body, dict):
            name, arguments = body.get("name"), body.get("arguments")
        else:
            name, arguments = call.get("name"), call.get("args")
        call_id = call.get("id")
        call_id = None if call_id is None else str(call_id)
        args = _arguments(arguments)
        if args is not None and isinstance(name, str):
            valid.append({"name": name, "args": args, "id": call_id, "type": "tool_call"})
        else:
            invalid.append({
                "name": name if isinstance(name, str) else None,
                "args": arguments if isinstance(arguments, str) else _json(arguments),
                "id": call_id,
                "error": None,
                "type": "invalid_tool_call",
            })  # fmt: skip
    return valid, invalid


def _arguments(arguments: Any) -> dict[str, Any] | None:
    # Services write "" or nothing for a call without arguments.
    if arguments is None or arguments == "":
        return {}
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments, strict=False)
        except (ValueError, RecursionError):
            return None
    return arguments if isinstance(arguments, dict) else None


def _leave_note(message: BaseMessage, source: Message) -> None:
    natural = _natural(message)
    note: dict[str, dict[str, Any]] = {}
    for key, value in source.items():
        if not (key == "role" and value is None) and not (key in natural and _same(natural[key], value)):
            note[key] = {**_seen(natural, key), "original": value}
    for key in natural.keys() - source.keys() - {"role"}:
        note[key] = _seen(natural, key)
    if note:
        message.additional_kwargs[NOTE] = note


def _seen(natural: Message, key: str) -> dict[str, Any]:
    return {"natural": natural[key]} if key in natural else {}


# ---------------------------------------------------------------- message -> dict


def _natural(message: BaseMessage) -> Message:
    extras = {k: v for k, v in message.additional_kwargs.items() if k not in (NOTE, _ROLE)}
    out: Message = {"role": _role_of(message), "content": copy.deepcopy(message.content)}
    if message.name is not None:
        out["name"] = message.name
    if message.id is not None:
        out["id"] = message.id
    if isinstance(message, AIMessage):
        calls = [_openai_call(c["id"], c["name"], _json(c["args"]))
                 for c in message.tool_calls]  # fmt: skip
        calls += [_openai_call(c["id"], c["name"], c["args"]) for c in message.invalid_tool_calls]
        if calls:
            out["tool_calls"] = calls
        if message.usage_metadata:
            out["usage_metadata"] = copy.deepcopy(message.usage_metadata)
    if isinstance(message, ToolMessage):
        out["tool_call_id"] = message.tool_call_id
        if message.status != "success":
            out["status"] = message.status
        if message.artifact is not None:
            out["artifact"] = copy.deepcopy(message.artifact)
    if message.response_metadata:
        out["response_metadata"] = copy.deepcopy(message.response_metadata)
    clashing: dict[str, Any] = {}
    for key, value in extras.items():
        # "type" without a role would be read as one; here a role always stands beside it.
        (clashing if key in _OWN_KEYS else out)[key] = copy.deepcopy(value)
    if clashing:
        out["additional_kwargs"] = clashing
    return out


def _data(message: BaseMessage) -> Sequence[Any]:
    if isinstance(message, AIMessage):
        return message.tool_calls
    return [message.artifact] if isinstance(message, ToolMessage) else []


def _role_of(message: BaseMessage) -> str:
    if isinstance(message, ChatMessage):
        return message.role
    if isinstance(message, SystemMessage) and message.additional_kwargs.get(_ROLE) == "developer":
        return "developer"
    return {"human": "user", "ai": "assistant"}.get(message.type, message.type)


def _openai_call(call_id: str | None, name: str | None, arguments: str | None) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _same(a: Any, b: Any) -> bool:
    """Equal as JSON is: ``1``, ``1.0`` and ``True`` differ, NaN equals itself, key order does not count."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return bool(a == b) or (a != a and b != b)


def _shown(value: Any) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '…'}"
