"""Bringing a list of messages into line with a service's profile.

Each step is a function from a list of OpenAI-style dicts to a new one; the dicts that came in are not
touched, and those that need no change come out as the very same objects. ``shape`` is idempotent.

Nothing is said here that nobody said, but for a filler ``…`` where a service demands a message that the
conversation does not have, and a line that names an attachment the service cannot take.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import takewhile
from typing import Any

from ..context import valid_groups
from ..errors import MemoryInputError
from ..messages import Message
from ..spoken import in_words
from ..wording import CORE, RECALLED, SUMMARY
from .content import with_sendable_content
from .profiles import Profile

FILLER = "…"
_HEADINGS = frozenset({*CORE.values(), *SUMMARY.values(), *RECALLED.values()})
_REMEMBERED = re.compile(r"<\s*/?\s*remembered\b", re.IGNORECASE)
_SYSTEM = re.compile(r"<(?=\s*/?\s*system\b)", re.IGNORECASE)

_NOT_IN_NAMES = re.compile(r"[\s<|\\/>]+")


def shape(messages: Iterable[Message], profile: Profile) -> list[Message]:
    """The same conversation as ``profile`` takes it.

    ``messages``: OpenAI-style dicts in order, as they would be sent. Raises MemoryInputError when nothing
    is left to send: all services refuse an empty list.
    """
    shaped = _with_tool_calls(list(messages))
    shaped = [_with_known_role(m, profile) for m in shaped]
    shaped = valid_groups(shaped)
    shaped = [said for m in shaped if (said := with_sendable_content(m, profile)) is not None]
    if profile.json_arguments:
        shaped = [_with_json_arguments(m) for m in shaped]
    shaped = _with_reasoning(shaped, profile)
    if profile.system != "many":
        shaped = _with_one_system(shaped, profile)
    if profile.alternate:
        shaped = _alternating(shaped)
    elif profile.needs_user and not any(m["role"] == "user" for m in shaped):
        at = 1 if shaped and shaped[0]["role"] == "system" else 0
        shaped = [*shaped[:at], _filler("user"), *shaped[at:]] if shaped else shaped
    if not shaped:
        raise MemoryInputError(
            "no message is left to send; a request needs at least the user's question "
            "(tool results whose call is missing are never sent)"
        )
    return shaped


def fenced(text: str) -> str:
    """The text of a system message as it may stand in a user message, between marks it cannot close.

    What the memory remembered comes with its marks, which say that it is information; it stays as it is.
    Any other system message is the application's; it is marked as that.
    """
    heading, _, marked = text.partition("\n")
    if (
        heading in _HEADINGS
        and marked.startswith("<remembered>\n")
        and marked.endswith("\n</remembered>")
        and len(_REMEMBERED.findall(text)) == 2
    ):
        return text
    return f"<system>\n{_SYSTEM.sub('‹', text)}\n</system>"


# ---------------------------------------------------------------- roles and calls


def _with_tool_calls(messages: list[Message]) -> list[Message]:
    """``function_call`` and the role ``function``, given up in 2023, as tool calls and their results."""
    out: list[Message] = []
    pending: dict[str, str] = {}
    for i, m in enumerate(messages):
        call = m.get("function_call")
        if call and not m.get("tool_calls"):
            call_id = f"call_{i}"
            pending[call.get("name", "")] = call_id
            m = {**m, "tool_calls": [{"id": call_id, "type": "function", "function": call}]}
        elif m.get("role") == "function":
            m = {**m, "role": "tool", "tool_call_id": pending.pop(m.get("name") or "", "")}
        if "function_call" in m:
            m = {k: v for k, v in m.items() if k != "function_call"}
        out.append(m)
    return out


def _with_known_role(message: Message, profile: Profile) -> Message:
    role = message.get("role")
    if role == "developer":
        known = "developer" if profile.developer else "system"
    else:
        known = role if role in ("system", "user", "assistant", "tool") else "user"
    if known != role:
        message = {**message, "role": known}
    name = message.get("name")
    if isinstance(name, str) and (clean := _NOT_IN_NAMES.sub("_", name)[:64]) != name:
        message = {**message, "name": clean}
    if "audio" in message and not profile.audio_ids:
        message = {k: v for k, v in message.items() if k != "audio"}
    return message


def _with_json_arguments(message: Message) -> Message:
    calls = message.get("tool_calls")
    if not calls:
        return message
    sound = [_with_object(c) for c in calls]
    return message if sound == calls else {**message, "tool_calls": sound}


def _with_object(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function") or {}
    written = function.get("arguments") or ""
    try:
        if isinstance(json.loads(written), dict):
            return call
    except (TypeError, ValueError):
        pass
    said = {"arguments": written} if written else {}
    return {**call, "function": {**function, "arguments": json.dumps(said, ensure_ascii=False)}}


# ---------------------------------------------------------------- reasoning


def _with_reasoning(messages: list[Message], profile: Profile) -> list[Message]:
    if profile.reasoning == "keep":
        return messages
    wanted: set[int] = set()
    turn: list[int] = []  # assistant messages since the user last spoke
    for i, m in enumerate([*messages, {"role": "user"}]):
        if m["role"] == "assistant":
            turn.append(i)
        elif m["role"] == "user":
            called = [j for j in turn if messages[j].get("tool_calls")]
            if profile.reasoning == "calls":
                wanted.update(called)
            elif profile.reasoning == "turns" and called:
                wanted.update(turn)
            turn = []
    return [_reasoned(m, profile.no_reasoning if i in wanted else None) for i, m in enumerate(messages)]


def _reasoned(message: Message, default: str | None) -> Message:
    """``reasoning_content`` set, to ``default`` where there is none; taken away when ``default`` is None."""
    if default is None:
        return {k: v for k, v in message.items() if k != "reasoning_content"} \
            if "reasoning_content" in message else message  # fmt: skip
    known = message.get("reasoning_content")
    wanted = known if isinstance(known, str) and known else default
    return message if known == wanted else {**message, "reasoning_content": wanted}


# ---------------------------------------------------------------- system messages


def _with_one_system(messages: list[Message], profile: Profile) -> list[Message]:
    leading = list(takewhile(_is_system, messages))
    rest = messages[len(leading) :]
    out: list[Message] = []
    if leading:
        out = [_merged({**leading[0], "role": "system"}, leading[1:])] if len(leading) > 1 else [leading[0]]
    waiting: list[Message] = []  # later ones, until a user message comes to carry them
    for m in rest:
        if _is_system(m):
            waiting.append(m)
        elif waiting and m["role"] == "user":
            out.append(_carrying(m, waiting))
            waiting = []
        else:
            out.append(m)
    if waiting:
        out.append(_carrying({"role": "user", "content": ""}, waiting))
    if leading and profile.system == "user":
        out[0] = {k: v for k, v in out[0].items() if k != "name"} | {"role": "user"}
    return out


def _is_system(message: Message) -> bool:
    return message["role"] in ("system", "developer")


def _carrying(user: Message, systems: list[Message]) -> Message:
    """A user message with the system messages that stood before it folded in. Moved to the front instead,
    what was recalled for one question would change the beginning of every request, which services cache."""
    folded = [{"role": "user", "content": fenced(_plain(m.get("content")))} for m in systems]
    words = [user] if user.get("content") else []
    return _merged({**user, "content": folded[0]["content"]}, [*folded[1:], *words])


def _plain(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join(p if isinstance(p, str) else in_words(p) for p in content)
    return content if isinstance(content, str) else ""


def _merged(first: Message, others: Iterable[Message]) -> Message:
    """One message with the content of all, in order: text where all are text, else a list of parts."""
    contents = [c for m in (first, *others) if (c := m.get("content"))]
    if all(isinstance(c, str) for c in contents):
        return {**first, "content": "\n\n".join(contents)}
    parts: list[Any] = []
    for c in contents:
        parts += c if isinstance(c, list) else [{"type": "text", "text": c}]
    return {**first, "content": parts}


# ---------------------------------------------------------------- taking turns


def _alternating(messages: list[Message]) -> list[Message]:
    merged: list[Message] = []
    for m in messages:
        before = merged[-1] if merged else None
        if before and before["role"] == m["role"] != "tool" and not before.get("tool_calls"):
            both = _merged({**before, **m, "content": before.get("content")}, [m])
            if m.get("tool_calls") and not both["content"]:
                both["content"] = m.get("content")  # however this service spells "nothing"
            merged[-1] = both
        else:
            merged.append(m)
    out: list[Message] = []
    last = "assistant"
    for m in merged:
        if not out and m["role"] != "user":
            out.append(_filler("user"))
            last = "user"
        if m["role"] != "tool" and not m.get("tool_calls"):
            if m["role"] == last:  # only a tool call stands between two of the same role
                out.append(_filler("user" if last == "assistant" else "assistant"))
            last = m["role"]
        out.append(m)
    return out


def _filler(role: str) -> Message:
    return {"role": role, "content": FILLER}
