"""What five chat services refuse, written down independently of the code under test.

``refusal(body, profile)`` is the message of the 400 a service answers to a chat completions request, or
None. Sources are the vendors' pages and public reports of 2026; the wording is theirs where it is known.
Where the services differ in what they overlook, the stricter reading is played.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

PROFILES = ("openai", "deepseek", "kimi", "qwen", "gemma")

_COMMON = {
    "model", "messages", "stream", "stream_options", "temperature", "top_p", "n", "stop", "seed",
    "presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "tools", "tool_choice",
    "parallel_tool_calls", "response_format", "user",
}  # fmt: skip
FIELDS = {
    "openai": _COMMON | {
        "max_tokens", "max_completion_tokens", "logit_bias", "reasoning_effort", "service_tier", "store",
        "metadata", "modalities", "audio", "prediction", "verbosity", "prompt_cache_key",
    },
    "deepseek": _COMMON | {"max_tokens", "thinking"},
    "kimi": _COMMON | {"max_tokens", "thinking"},
    "qwen": _COMMON | {"max_tokens", "enable_thinking", "thinking_budget", "top_k"},
    "gemma": _COMMON | {"max_tokens", "top_k", "chat_template_kwargs"},
}  # fmt: skip
ROLES = {
    "openai": ("system", "assistant", "user", "function", "tool", "developer"),
    **dict.fromkeys(("deepseek", "kimi", "qwen", "gemma"), ("system", "user", "assistant", "tool")),
}
PARTS = {
    "openai": {"text", "image_url", "input_audio", "file"},
    "deepseek": {"text"},
    "kimi": {"text", "image_url", "video_url"},
    "qwen": {"text", "image_url", "video_url", "input_audio"},
    "gemma": {"text", "image_url"},
}
MESSAGE_KEYS = {
    "system": {"role", "content", "name"},
    "developer": {"role", "content", "name"},
    "user": {"role", "content", "name"},
    "assistant": {"role", "content", "name", "tool_calls"},
    "tool": {"role", "content", "name", "tool_call_id"},
    "function": {"role", "content", "name"},
}
THINKS = ("deepseek", "kimi", "qwen")

NO_CALL = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
NO_RESULT = (
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
    "'tool_call_id'. The following tool_call_ids did not have response messages: {}"
)
REASONING = {
    "deepseek": "The `reasoning_content` in the thinking mode must be passed back to the API.",
    "kimi": "thinking is enabled but reasoning_content is missing in assistant tool call message at index {}",
}
FORCED = {
    "deepseek": "Thinking mode does not support this tool_choice",
    "kimi": "tool_choice 'specified' is incompatible with thinking enabled",
    "qwen": "The tool_choice parameter does not support being set to required or object in thinking mode",
}


def refusal(body: Any, profile: str) -> str | None:
    """Why the service called ``profile`` refuses ``body``; None when it does not."""
    return next(refusals(body, profile), None)


def refusals(body: Any, profile: str) -> Iterator[str]:
    """All there is to refuse in ``body``; a service names the first."""
    if not isinstance(body, dict):
        yield "We could not parse the JSON body of your request."
        return
    for field in body.keys() - FIELDS[profile]:
        yield f"Unrecognized request argument supplied: {field}"
    if not isinstance(body.get("model"), str) or not body["model"]:
        yield "you must provide a model parameter"
    messages = body.get("messages")
    if not isinstance(messages, list):
        yield "Invalid type for 'messages': expected an array of objects."
        return
    if not messages:
        yield "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array."
        return
    for i, message in enumerate(messages):
        yield from _message(message, f"messages[{i}]", profile)
    yield from _tool_groups(messages)
    yield from _order(messages, profile)
    if _thinking(body, profile):
        yield from _reasoning(messages, profile)
    yield from _parameters(body, profile)


def _thinking(body: dict[str, Any], profile: str) -> bool:
    if profile == "qwen":
        return body.get("enable_thinking") is not False
    return profile in THINKS and body.get("thinking") != {"type": "disabled"}


# ---------------------------------------------------------------- one message


def _message(m: Any, at: str, profile: str) -> Iterator[str]:
    if not isinstance(m, dict):
        yield f"Invalid type for '{at}': expected an object."
        return
    role = m.get("role")
    if role not in ROLES[profile]:
        known = ", ".join(repr(r) for r in ROLES[profile])
        yield f"Invalid value: {role!r}. Supported values are: {known}. ({at}.role)"
        return
    keys = set(MESSAGE_KEYS[role])
    if role == "assistant":
        keys |= {"openai": {"refusal", "audio", "function_call"}, "deepseek": {"reasoning_content"},
                 "kimi": {"reasoning_content"}}.get(profile, set())  # fmt: skip
    for key in m.keys() - keys:
        yield f"Unknown parameter: '{at}.{key}'."
    if "name" in m and not (isinstance(m["name"], str) and re.fullmatch(r"[^\s<|\\/>]{1,64}", m["name"])):
        yield f"Invalid '{at}.name': string does not match pattern."
    if "reasoning_content" in m and not isinstance(m["reasoning_content"], str):
        yield f"Invalid type for '{at}.reasoning_content': expected a string."
    made = m.get("function_call", {"name": "f"})
    if not (isinstance(made, dict) and made.get("name")):
        yield f"Missing required parameter: '{at}.function_call.name'."
    if "audio" in m and not (isinstance(m["audio"], dict) and m["audio"].get("id")):
        yield f"Missing required parameter: '{at}.audio.id'."
    yield from _content(m, at, profile)
    if "tool_calls" in m:
        yield from _calls(m["tool_calls"], f"{at}.tool_calls", profile)
    if role == "tool" and not (isinstance(m.get("tool_call_id"), str) and m["tool_call_id"]):
        yield f"Missing required parameter: '{at}.tool_call_id'."


def _content(m: dict[str, Any], at: str, profile: str) -> Iterator[str]:
    calls = bool(m.get("tool_calls") or m.get("function_call"))
    if "content" not in m:
        if not calls:
            yield f"Missing required parameter: '{at}.content'."
        return
    content = m["content"]
    if content is None:
        if not calls:
            yield f"Invalid value for 'content': expected a string, got null. ({at}.content)"
        elif profile == "kimi":
            yield "Invalid request: text content is empty"
    elif isinstance(content, str):
        if not content and profile == "kimi" and m["role"] == "assistant":
            yield "Invalid request: text content is empty"
        if not content and profile == "gemma" and calls:
            yield "the model sees an empty answer before its call and goes on in text markup"
    elif isinstance(content, list):
        if not content:
            yield f"Invalid '{at}.content': empty array. Expected an array with minimum length 1."
        allowed = PARTS[profile] if m["role"] == "user" else {"text"}
        for j, part in enumerate(content):
            yield from _part(part, f"{at}.content[{j}]", allowed, profile)
    else:
        yield f"Invalid type for '{at}.content': expected one of a string or array of objects."


def _part(part: Any, at: str, allowed: set[str], profile: str) -> Iterator[str]:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind not in allowed:
        if profile == "deepseek":
            yield f"Failed to deserialize the JSON body: {at}: unknown variant `{kind}`, expected `text`"
        else:
            yield f"Invalid value: {kind!r}. Supported values are: {sorted(allowed)}. ({at})"
        return
    for key in part.keys() - {"type", kind}:
        yield f"Unknown parameter: '{at}.{key}'."
    body = part.get(kind)
    if not isinstance(body, str if kind == "text" else dict):
        yield f"Invalid type for '{at}.{kind}'."
    elif kind == "text" and not body and profile == "kimi":
        yield "Invalid request: text content is empty"
    elif kind in ("image_url", "video_url") and not isinstance(body.get("url"), str):
        yield f"Missing required parameter: '{at}.{kind}.url'."


def _calls(calls: Any, at: str, profile: str) -> Iterator[str]:
    if not isinstance(calls, list) or not calls:
        yield f"Invalid '{at}': expected an array with minimum length 1."
        return
    for i, call in enumerate(calls):
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or call.get("type") != "function":
            yield f"Invalid '{at}[{i}]': expected a function call."
            return
        for key in (call.keys() - {"id", "type", "function"}) | (function.keys() - {"name", "arguments"}):
            yield f"Unknown parameter: '{at}[{i}].{key}'."
        if not isinstance(call.get("id"), str) or not call["id"]:
            yield f"Missing required parameter: '{at}[{i}].id'."
        if not isinstance(function.get("name"), str) or not function["name"]:
            yield f"Missing required parameter: '{at}[{i}].function.name'."
        if not isinstance(function.get("arguments"), str):
            yield f"Invalid type for '{at}[{i}].function.arguments': expected a string."
        elif profile in ("qwen", "gemma") and not _is_object(function["arguments"]):
            yield 'The "function.arguments" parameter of the code model must be in JSON format.'


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


# ---------------------------------------------------------------- the list


def _tool_groups(messages: list[Any]) -> Iterator[str]:
    waiting: list[str] = []
    for m in [*messages, {"role": "end"}]:
        m = m if isinstance(m, dict) else {}
        if m.get("role") == "tool":
            if m.get("tool_call_id") not in waiting:
                yield NO_CALL
            else:
                waiting.remove(m["tool_call_id"])
            continue
        if waiting:
            yield NO_RESULT.format(", ".join(waiting))
        calls = m.get("tool_calls")
        waiting = [c.get("id") for c in calls if isinstance(c, dict)] if isinstance(calls, list) else []


def _order(messages: list[Any], profile: str) -> Iterator[str]:
    roles = [m.get("role") for m in messages if isinstance(m, dict)]
    if profile == "qwen":
        if "system" in roles[1:]:
            yield "System message must be at the beginning."
        if "user" not in roles:
            yield "No user query found in messages."
        if roles[-1] == "system":
            yield "The last message must not be a system message."
    if profile == "gemma":
        if "system" in roles:
            yield "System role not supported"
        counted = [m.get("role") for m in messages if m.get("role") != "tool" and "tool_calls" not in m]
        if any((role == "user") != (i % 2 == 0) for i, role in enumerate(counted)) or roles[0] != "user":
            yield "Conversation roles must alternate user/assistant/user/assistant/..."


def _reasoning(messages: list[Any], profile: str) -> Iterator[str]:
    called = False  # a tool, in this turn
    for i, m in enumerate(messages):
        if m.get("role") == "user":
            called = False
        called = called or bool(m.get("tool_calls"))
        if m.get("role") != "assistant":
            continue
        if profile == "deepseek" and called and "reasoning_content" not in m:
            yield REASONING["deepseek"]
        if profile == "kimi" and m.get("tool_calls") and not m.get("reasoning_content"):
            yield REASONING["kimi"].format(i)


# ---------------------------------------------------------------- parameters


def _parameters(body: dict[str, Any], profile: str) -> Iterator[str]:
    if "stream_options" in body and not body.get("stream"):
        yield "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    tools = body.get("tools")
    if tools is not None and (not isinstance(tools, list) or not tools):
        yield "Invalid 'tools': empty array. Expected an array with minimum length 1."
        tools = []
    choice = body.get("tool_choice")
    if choice is not None:
        if not tools:
            yield "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."
        if isinstance(choice, str) and choice not in ("none", "auto", "required"):
            yield f"Invalid value: {choice!r}. Supported values are: 'none', 'auto', and 'required'."
        if choice not in ("auto", "none") and _thinking(body, profile):
            yield FORCED[profile]
    for tool in tools or ():
        schema = tool.get("function", {}).get("parameters")
        if profile == "kimi" and schema is not None:
            yield from _moonshot(schema)
    yield from _response_format(body, profile)


def _moonshot(schema: dict[str, Any]) -> Iterator[str]:
    if schema.get("type") != "object":
        yield 'tools.function.parameters.type is required and must be "object"'
    for name, sub in schema.get("properties", {}).items():
        yield from _typed(sub, f"properties.{name}")


def _typed(schema: dict[str, Any], at: str) -> Iterator[str]:
    flaw = "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path '{}': {}>"
    if "type" in schema and "anyOf" in schema:
        yield flaw.format(at, "when using anyOf, type should be defined in anyOf items instead of the parent schema")
    if not {"type", "anyOf", "$ref"} & schema.keys():
        yield flaw.format(at, "type is not defined")
    for name, sub in schema.get("properties", {}).items():
        yield from _typed(sub, f"{at}.properties.{name}")
    if isinstance(schema.get("items"), dict):
        yield from _typed(schema["items"], f"{at}.items")
    for sub in schema.get("anyOf", ()):
        yield from _typed(sub, f"{at}.anyOf")


def _response_format(body: dict[str, Any], profile: str) -> Iterator[str]:
    wanted = body.get("response_format")
    if wanted is None:
        return
    kind = wanted.get("type") if isinstance(wanted, dict) else None
    if kind not in ("text", "json_object", "json_schema"):
        yield f"Invalid value: {kind!r}. Supported values are: 'json_object', 'json_schema', and 'text'."
    if kind == "json_schema" and profile in ("deepseek", "qwen"):
        yield "This response_format type is unavailable now"
    if kind == "json_object":
        if profile == "qwen" and _thinking(body, profile):
            yield "Json mode response is not supported when enable_thinking is true"
        if "json" not in json.dumps(body["messages"], ensure_ascii=False).lower():
            yield "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
