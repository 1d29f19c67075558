"""Saved turns as they go back into a prompt: whole tool groups, and of an assistant what was said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .convert import Message, text_of
from .speech import answer_of, call_id, is_call, is_result, part_type, spoken, without_thoughts
from .tool_groups import _is_plain, _parts, _role, valid_groups


def in_prompt(messages: Sequence[Message]) -> list[Message]:
    """``messages``, one turn or several, as they go back into a prompt.

    ``valid_groups``, and then: of an assistant's messages what was said, without thoughts, as text; the last
    message of an answered turn is the answer, in words, whatever it came as (a structured answer, a refusal,
    a picture, a tool's result), and ``…`` where nothing was said at all. Services refuse an assistant that
    says nothing, or take it for an example.
    """
    if all(_is_plain(m) and (m["role"] != "assistant" or _says(m["content"])) for m in messages):
        return list(messages)
    out: list[Message] = []
    starts = [i for i, m in enumerate(messages) if i == 0 or _starts_turn(messages, i)]
    for start, end in zip(starts, [*starts[1:], len(messages)], strict=True):
        out += _shown(messages[start:end])
    return out


def _starts_turn(messages: Sequence[Message], i: int) -> bool:
    return _role(messages[i]) == "user" and not _parts(messages[i], is_result)


def _says(content: str) -> bool:
    return bool(content) and not content.isspace() and without_thoughts(content) is content


def _shown(turn: Sequence[Message]) -> list[Message]:
    shown = [m if _role(m) != "assistant" else _as_said(m) for m in valid_groups(turn)]
    last = next((i for i in range(len(shown) - 1, -1, -1) if _role(shown[i]) != "system"), -1)
    before, after = shown[:last], shown[last + 1 :]
    ending = shown[last : last + 1] if last >= 0 else []
    before = [m for m in before if _role(m) != "assistant" or _calls(m) or m.get("content")]
    roles = set(map(_role, turn))
    told = (
        bool(ending) and _role(ending[0]) == "assistant" and (ending[0].get("content") or _calls(ending[0]))
    )
    if not told and "user" not in roles and ending and _role(ending[0]) == "assistant":
        ending = []  # nobody asked, and nothing was said
    elif not told and ending and roles & {"assistant", "tool", "function"}:
        answer: Message = {"role": "assistant", "content": _closing(turn, ending)}
        if ending and _role(ending[0]) == "assistant":
            ending = [{**ending[0], **answer}]
        else:
            ending = [*ending, answer]
    return [*before, *ending, *after]


_NOTHING_SAID = "…"
_CLOSING = 2000  # characters of a tool's result that end a turn; the result itself stands before them


def _closing(turn: Sequence[Message], ending: Sequence[Message]) -> str:
    """The answer of a turn that does not end in an assistant's words."""
    if ending and _role(ending[0]) in ("tool", "function"):
        told = text_of(ending[0].get("content")).strip()
    else:
        told = answer_of(turn)
    return without_middle(told, _CLOSING) if told else _NOTHING_SAID


def _calls(message: Message) -> bool:
    return bool(message.get("tool_calls") or message.get("function_call") or _parts(message, is_call))


def _as_said(message: Message) -> Message:
    """An assistant's message with what was said in it as text, which every service takes. Its calls stay."""
    content = message.get("content")
    if (not content and _calls(message)) or (isinstance(content, str) and _says(content)):
        return message
    if isinstance(content, list) and content and all(_is_said(p) for p in content):
        return message
    known = {c.get("id") for c in message.get("tool_calls") or () if isinstance(c, dict)}
    raw = [p for p in _parts(message, is_call) if call_id(p) not in known]  # calls that stand nowhere else
    words = spoken(message)
    words = words if words.strip() else ""
    dropped = {"refusal", "reasoning", "tool_outputs"} if not _calls(message) else {"refusal"}
    out = {k: v for k, v in message.items() if k not in dropped}
    out["content"] = [*([{"type": "text", "text": words}] if words else []), *raw] if raw else words
    metadata = out.get("response_metadata")
    if isinstance(metadata, dict):  # it may say that the content is a list of parts
        out["response_metadata"] = {k: v for k, v in metadata.items() if k != "output_version"}
    return out


def _is_said(part: Any) -> bool:
    text = part if isinstance(part, str) else part.get("text") if part_type(part) == "text" else None
    return isinstance(text, str) and _says(text)


_CUT = " … "


def without_middle(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit // 2] + _CUT + text[-limit // 2 :]
