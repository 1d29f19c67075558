"""Bringing the rest of a request, all but its messages, into line with a service's profile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lc_memory.messages import Message, text_of

from .profiles import Profile
from .shape import shape

Payload = dict[str, Any]
_OFF: dict[str, Any] = {"thinking": {"type": "disabled"}, "enable_thinking": False}
_ANYTHING = [{"type": t} for t in ("string", "number", "boolean", "object", "array", "null")]


def shape_request(payload: Payload, profile: Profile) -> Payload:
    """A chat completions request as ``profile`` takes it. ``payload`` is not touched."""
    out = {**payload, "messages": shape(payload["messages"], profile)}
    for name in ("max_tokens", "max_completion_tokens"):
        if name in out and name != profile.max_tokens:
            out[profile.max_tokens] = out.pop(name)
    if out.get("tool_choice") == "any":  # LangChain's word for "required"
        out["tool_choice"] = "required"
    if profile.forced_calls != "yes" and out.get("tool_choice") not in (None, "auto", "none"):
        _let_force(out, profile)
    if (schema := _schema_wanted(out)) is not None and "json_schema" not in profile.structured:
        out["response_format"] = {"type": "json_object"}
        out["messages"] = _asking(out["messages"], schema_in_words(schema))
    if _is_json_mode(out):
        if not profile.json_thinks:
            _switch_thinking_off(out, profile)
        out["messages"] = _asking_for_json(out["messages"])
    if profile.typed_tools and out.get("tools"):
        out["tools"] = [_typed_tool(tool) for tool in out["tools"]]
    return out


def schema_in_words(schema: Mapping[str, Any]) -> str:
    """What to tell a model that is to answer in JSON, where the service does not enforce a schema."""
    return "Answer with one JSON object and nothing else. It must follow this JSON schema:\n" + json.dumps(
        schema, ensure_ascii=False
    )


def _let_force(out: Payload, profile: Profile) -> None:
    """A forced call is what the caller asked for by name (a structured output, say); thinking is the
    service's default. So the default gives way, for this request only. Where thinking was asked for too,
    or cannot be switched off, the model is left to choose: the tools are still there."""
    if profile.forced_calls == "no" or not _switch_thinking_off(out, profile):
        out["tool_choice"] = "auto"


def _switch_thinking_off(out: Payload, profile: Profile) -> bool:
    """Whether thinking is off now; False where the caller has switched it on."""
    extra = dict(out.get("extra_body") or {})
    asked = [k for k in _OFF if k in extra]
    if asked:
        return all(extra[k] == _OFF[k] for k in asked)
    if profile.thinking_off:
        out["extra_body"] = {**extra, profile.thinking_off: _OFF[profile.thinking_off]}
    return True


def _is_json_mode(out: Payload) -> bool:
    wanted = out.get("response_format")
    return isinstance(wanted, dict) and wanted.get("type") == "json_object"


def _schema_wanted(out: Payload) -> Mapping[str, Any] | None:
    """The schema of a response_format, which may also be a pydantic class."""
    wanted = out.get("response_format")
    if isinstance(wanted, type) and hasattr(wanted, "model_json_schema"):
        return dict(wanted.model_json_schema())
    if isinstance(wanted, dict) and wanted.get("type") == "json_schema":
        return dict((wanted.get("json_schema") or {}).get("schema") or {})
    return None


def _asking_for_json(messages: list[Message]) -> list[Message]:
    """JSON mode is refused unless the word stands somewhere in the prompt."""
    if any("json" in text_of(m.get("content")).lower() for m in messages):
        return messages
    return _asking(messages, "Answer in JSON.")


def _asking(messages: list[Message], words: str) -> list[Message]:
    """``words`` behind the last user message, so that no rule about who speaks when is broken."""
    for i in range(len(messages) - 1, -1, -1):
        if messages[i]["role"] == "user":
            content = messages[i].get("content") or ""
            more = f"{content}\n\n{words}" if isinstance(content, str) \
                else [*content, {"type": "text", "text": words}]  # fmt: skip
            return [*messages[:i], {**messages[i], "content": more}, *messages[i + 1 :]]
    return [*messages, {"role": "user", "content": words}]


# ---------------------------------------------------------------- tool schemas


def _typed_tool(tool: dict[str, Any]) -> dict[str, Any]:
    function = tool.get("function")
    if not isinstance(function, dict):
        return tool
    parameters = function.get("parameters")
    typed = typed_schema(parameters) if isinstance(parameters, dict) else {}
    if typed.get("type") != "object":
        typed = {"type": "object", "properties": {}, **{k: v for k, v in typed.items() if k != "type"}}
    return {**tool, "function": {**function, "parameters": typed}}


def typed_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON schema that means the same, with a ``type`` or an ``anyOf`` in each of its places.

    Where both stand, the type moves into the alternatives, which is where Moonshot's validator wants it.
    """
    out = dict(schema)
    for key in ("properties", "$defs", "definitions"):
        if isinstance(out.get(key), Mapping):
            out[key] = {k: typed_schema(v) if isinstance(v, Mapping) else v for k, v in out[key].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(out.get(key), Mapping):
            out[key] = typed_schema(out[key])
    if isinstance(out.get("oneOf"), list) and "anyOf" not in out:
        out["anyOf"] = out.pop("oneOf")
    if isinstance(out.get("anyOf"), list):
        inherited = {"type": out.pop("type")} if "type" in out else {}
        out["anyOf"] = [typed_schema({**inherited, **s}) for s in out["anyOf"] if isinstance(s, Mapping)]
    elif "type" not in out and "$ref" not in out:
        kind = _kind_of(out)
        out.update({"type": kind} if kind else {"anyOf": _ANYTHING})
    return out


def _kind_of(schema: Mapping[str, Any]) -> str | None:
    """The type a schema without one can only have; None where it can have several."""
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    values = schema.get("enum") or ([schema["const"]] if "const" in schema else [])
    names = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}
    kinds = {names.get(type(v)) for v in values}
    return kinds.pop() if len(kinds) == 1 else None
