"""What of a message is said to others: its words without a model's thoughts, and the parts that are no words.

One place for the index, recall, the summary, notes and the prompt: :func:`spoken`. What is stored is the
message as it came.

Also here, because all who read a list of content parts need it: which parts are calls of tools, which are
results, and which are thoughts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .convert import Message, text_of

# ---------------------------------------------------------------- thoughts in a text

# The marks that local models put around what they think. Every repetition is bounded, and none overlaps with
# what follows it, so that a text is read once.
_THOUGHT_MARK = re.compile(
    r"(?i:<[ \t]{0,4}(?P<end>/?)[ \t]{0,4}(?:[a-z]{1,12}:)?"
    r"(?:thinking|think|thoughts|thought|reasoning)(?:[ \t][^<>\n]{0,80})?>)"
    r"|\[(?P<end2>/?)THINK\]"
    r"|◁(?P<end3>/?)think▷"
    r"|<\|(?:begin_of_thought|(?P<end4>end_of_thought))\|>"
)


def without_thoughts(text: str) -> str:
    """``text`` without what a model thought in it: ``<think>…</think>`` and its kin.

    Nested marks are one thought. One that was never closed goes on to the end; a closing mark that nothing
    opened closes what the prompt had opened, so all before it is thought. A mark in backquotes is a word.
    """
    if "<" not in text and "[" not in text and "◁" not in text:
        return text
    shown = "".join(text[start:end] for start, end in _shown(text))
    return text if len(shown) == len(text) else shown.strip()


def _shown(text: str) -> list[tuple[int, int]]:
    """Where the words stand that are no thoughts."""
    marks = [
        (m.start(), m.end(), any(m.groups())) for m in _THOUGHT_MARK.finditer(text) if not _quoted(text, m)
    ]
    out: list[tuple[int, int]] = []
    at = i = 0
    while i < len(marks):
        start, end, closes = marks[i]
        if closes:
            out, at = [], end
        else:
            out.append((at, start))
            i = _closing(marks, i)
            at = marks[i][1] if i < len(marks) else len(text)
        i += 1
    return [*out, (at, len(text))]


def _closing(marks: Sequence[tuple[int, int, bool]], opening: int) -> int:
    """The mark that closes the one at ``opening``: where depth is back, else the last closing one before
    anything new is opened (a model that thinks about the mark opens it twice); else none."""
    depth, last = 0, len(marks)
    for i in range(opening, len(marks)):
        depth += -1 if marks[i][2] else 1
        if marks[i][2]:
            last = i
        if depth == 0:
            return i
    return last


def _quoted(text: str, mark: re.Match[str]) -> bool:
    return text[mark.start() - 1 : mark.start()] == "`" == text[mark.end() : mark.end() + 1]


# ---------------------------------------------------------------- parts of a content

_THOUGHTS = frozenset({
    "thinking", "redacted_thinking", "reasoning", "reasoning_content", "thought", "reasoningContent",
})  # fmt: skip
# Items of the Responses API that are a call and its result in one.
_WHOLE = frozenset({
    "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call",
})  # fmt: skip
# How the types end, of today's and of those to come.
_CALL = (
    "_use", "_call", "_call_chunk", "-call", "toolUse", "functionCall", "_approval_request",
    "input_json_delta",
)  # fmt: skip
_RESULT = (
    "_result", "_call_output", "-result", "toolResult", "functionResponse", "_approval_response",
    "_search_output",
)  # fmt: skip
_ID_OF_CALL = ("call_id", "id", "toolCallId", "toolUseId")
_ID_OF_RESULT = (
    "tool_use_id", "call_id", "tool_call_id", "toolCallId", "toolUseId", "approval_request_id", "id",
)  # fmt: skip


def part_type(part: Any) -> str:
    """The type of a content part; of those that have none (Bedrock's, Gemini's) the name they stand under."""
    if not isinstance(part, dict):
        return "text" if isinstance(part, str) else ""
    kind = part.get("type")
    if kind == "non_standard" and isinstance(part.get("value"), dict):
        return part_type(part["value"])
    if isinstance(kind, str):
        return kind
    return next((str(k) for k in part if isinstance(part[k], dict)), "text" if "text" in part else "")


def is_thought(part: Any) -> bool:
    return part_type(part) in _THOUGHTS or (isinstance(part, dict) and part.get("thought") is True)


def is_call(part: Any) -> bool:
    """A part that asks for a result which stands elsewhere."""
    kind = part_type(part)
    return kind.endswith(_CALL) and kind not in _WHOLE


def is_result(part: Any) -> bool:
    return part_type(part).endswith(_RESULT)


def call_id(part: Any) -> str | None:
    """By which id a call part is answered."""
    return _first(part, _ID_OF_CALL)


def answered_id(part: Any) -> str | None:
    """Which call a result part answers."""
    return _first(part, _ID_OF_RESULT)


def _first(part: Any, names: Sequence[str]) -> str | None:
    if not isinstance(part, dict):
        return None
    kind = part.get("type")
    body = part if isinstance(kind, str) else part.get(part_type(part))
    if kind == "non_standard":
        body = part["value"]
    if not isinstance(body, Mapping):
        return None
    return next((body[n] for n in names if isinstance(body.get(n), str) and body[n]), None)


def in_words(part: Any) -> str:
    """A line for a part that cannot be sent: its text, where it has one, or what it was and where it lies."""
    if not isinstance(part, dict):
        return str(part)
    kind = str(part.get("type"))
    body = part.get(kind)
    for text in (part.get("text"), body, part.get("transcript")):
        if isinstance(text, str) and text and not text.startswith("data:"):
            return text if kind in ("refusal", "text", "output_text") else f"[{kind}: {text}]"
    for holder in (body, part):
        if isinstance(holder, dict):
            for key in ("transcript", "filename", "file_id", "url", "title"):
                value = holder.get(key)
                if isinstance(value, str) and value and not value.startswith("data:"):
                    return f"[{kind}: {value}]"
    return f"[{kind}]"


# ---------------------------------------------------------------- what a message says


def spoken(message: Message) -> str:
    """The words of a message as others may read them: of an assistant without thoughts, a refusal and a
    line for each picture or sound included; of anybody else all words, whatever they look like."""
    content = message.get("content")
    if message.get("role") != "assistant":
        return text_of(content)
    words = without_thoughts(content) if isinstance(content, str) else ""
    if isinstance(content, list):
        words = without_thoughts("".join(_lines(content)))
    if words.strip():
        return words
    return next(_elsewhere(message), "")


def _lines(content: Sequence[Any]) -> Iterator[str]:
    """The parts as text. Pieces of a text are joined as they are, for a mark may stand in two of them."""
    before = True  # the last one was text, or there was none
    for part in content:
        kind = part_type(part)
        if is_thought(part) or is_call(part) or is_result(part) or kind in _SILENT:
            continue
        text = part if isinstance(part, str) else part.get("text") if kind in _TEXT else None
        if isinstance(text, str):
            yield text if before else f"\n{text}"
            before = True
        elif isinstance(part, dict) and kind and kind not in _TEXT:
            yield f"\n{in_words(part)}"
            before = False


_TEXT = frozenset({"text", "output_text"})
_SILENT = _WHOLE - {"image_generation_call"}  # what came of it stands in the words; a picture does not


def _elsewhere(message: Message) -> Iterator[str]:
    """Where services put what is said, when it is not in the content."""
    if isinstance(message.get("refusal"), str) and message["refusal"].strip():
        yield message["refusal"]
    audio = message.get("audio")
    if isinstance(audio, dict):
        yield in_words({**audio, "type": "audio"})


def arguments_of(message: Message) -> str:
    """What the calls of a message hand over, a line of JSON each: a structured answer is that."""
    lines: list[Any] = []
    for call in message.get("tool_calls") or ():
        if isinstance(call, dict):
            body = call.get("function")
            lines.append(body.get("arguments") if isinstance(body, dict) else call.get("args"))
    if not lines and isinstance(message.get("content"), list):
        calls = [p for p in message["content"] if isinstance(p, dict) and is_call(p)]
        lines = [p.get("input", p.get("arguments")) for p in calls]
    return "\n".join(
        given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, default=str)
        for given in lines
        if given
    )


def answer_of(turn: Sequence[Message]) -> str:
    """What the user was told in a turn: the assistant's last words, or, where it ends in a tool's result or
    in a call, what was handed over and what came of it."""
    results: list[str] = []
    for message in reversed(turn):
        role = message.get("role")
        if role in ("tool", "function"):
            results.append(text_of(message.get("content")))
        elif role == "assistant":
            words = spoken(message) if not results else ""
            if told := _joined(words, arguments_of(message), *reversed(results)):
                return told
    return _joined(*reversed(results))


def _joined(*texts: str) -> str:
    return "\n".join(t.strip() for t in texts if t.strip())
