"""What one turn's prompt gets: pure functions from lists of dict messages to lists of dict messages.

The unit of everything here is the *group*: an assistant message with tool calls together with the
results of all of them, or any other single message. Chat services refuse a request in which a call is not
answered, or an answer has no call, so a group stays whole or goes whole.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from langchain_core.messages import BaseMessage

from .errors import MemoryInputError
from .messages import Message, _to_lc, text_of
from .spoken import (
    answer_of,
    answered_id,
    call_id,
    is_call,
    is_result,
    is_thought,
    part_type,
    spoken,
    without_thoughts,
)
from .tokens import count_message_tokens
from .wording import CORE, RECALLED, SUMMARY, Language, language_of, listed, told

Group: TypeAlias = list[Message]
_PLAIN = frozenset({"user", "assistant", "system"})
Missing: TypeAlias = Counter[str] | None  # results a group still waits for; None: it can't be answered


def valid_groups(messages: Sequence[Message]) -> list[Message]:
    """``messages`` as a chat service accepts them: each tool call directly followed by its results.

    A result further down is moved up to its call. A result without a call is left out, and so is a call
    that is not answered in full, wherever in a message it stands (``tool_calls``, a part of the content,
    ``function_call``); the words an assistant said beside such a call stay. The pass is idempotent, leaves
    the dicts it is given untouched and returns those it does not change as they are.
    """
    if all(_is_plain(m) for m in messages):
        return list(messages)
    return [message for group in groups(messages) for message in group]


def groups(messages: Sequence[Message]) -> list[Group]:
    """``valid_groups`` before it is made flat again: the units in which a window may be cut."""
    out: list[tuple[Group, Missing]] = []
    for message in messages:
        role = _role(message)
        if role == "tool":
            _give(message, [_text_id(message.get("tool_call_id"))], out)
        elif role == "function" and any(m and f"{_LEGACY}{message.get('name')}" in m for _, m in out):
            _give(message, [f"{_LEGACY}{message.get('name')}"], out)
        elif role == "assistant":
            out.append(([message], _call_ids(message)))
        elif results := _parts(message, is_result):
            if not _give(message, [_text_id(answered_id(part)) for part in results], out):
                rest = without_calls(message)
                out += [([rest], Counter())] if rest.get("content") else []
        else:
            out.append(([message], Counter()))
    return [kept for group, missing in out if (kept := _answered(group, missing))]


_LEGACY = "function_call: "  # before the name by which a function_call of 2023 is answered


def _is_plain(message: Message) -> bool:
    """Certainly neither a call nor a result. A window mostly holds nothing else."""
    if type(message) is not dict or "tool_calls" in message or "function_call" in message:
        return False
    role = message.get("role")
    return type(role) is str and role in _PLAIN and type(message.get("content")) is str


def _role(message: Message) -> str:
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str):
        return "user"
    role = role.strip().lower()
    return "assistant" if role == "ai" else role


def _parts(message: Message, wanted: Callable[[Any], bool]) -> list[Any]:
    content = message.get("content") if isinstance(message, dict) else None
    return [part for part in content if wanted(part)] if isinstance(content, list) else []


def _text_id(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _call_ids(message: Message) -> Missing:
    """How many results each id waits for; None where a call has no id, and so can't be answered."""
    calls = message.get("tool_calls")
    if not calls:
        legacy = message.get("function_call")
        if isinstance(legacy, dict) and legacy.get("name"):
            return Counter([f"{_LEGACY}{legacy['name']}"])
        here = {answered_id(part) for part in _parts(message, is_result)}
        ids = [i for i in map(call_id, _parts(message, is_call)) if i not in here]
    elif isinstance(calls, list):
        ids = [c.get("id") if isinstance(c, dict) else None for c in calls]
    else:
        return None
    named = [i for i in ids if isinstance(i, str) and i]
    return Counter(named) if len(named) == len(ids) else None


def _give(result: Message, ids: Sequence[str], out: list[tuple[Group, Missing]]) -> bool:
    """Put a result behind the newest call that waits for it; one that nobody waits for is dropped."""
    for group, missing in reversed(out):
        if missing and (found := [i for i in ids if missing[i] > 0]):
            missing.subtract(found)
            group.append(result)
            return True
    return False


def _answered(group: Group, missing: Missing) -> Group:
    call, results = group[0], group[1:]
    if missing is not None and not any(missing.values()):
        stale = _parts(call, is_call) and _without_stale(call, _known(call, results))
        return group if not stale or stale is call else [stale, *results]
    # Not answered in full: the calls go, what was said beside them stays.
    left = [without_calls(m) for m in group if m is call or _role(m) not in ("tool", "function")]
    return [m for m in left if m.get("content")]


def _known(call: Message, results: Sequence[Message]) -> set[str | None]:
    """The ids of the calls of a message that are answered."""
    ids = {c.get("id") for c in call.get("tool_calls") or () if isinstance(c, dict)}
    ids |= {answered_id(part) for m in (call, *results) for part in _parts(m, is_result)}
    return (ids | {m.get("tool_call_id") for m in results}) - {None}


def _without_stale(message: Message, known: set[str | None]) -> Message:
    """The message without parts that call what is no call of it any more."""
    content = message["content"]
    kept = [p for p in content if not is_call(p) or call_id(p) in known]
    return message if len(kept) == len(content) else {**message, "content": kept}


_CALL_KEYS = frozenset({"tool_calls", "function_call", "tool_outputs", "reasoning"})


def without_calls(message: Message) -> Message:
    """What was said beside the calls of a message (or beside its results). What was thought on the way to a
    call goes with it: a service takes the one only with the other."""
    out = {k: v for k, v in message.items() if k not in _CALL_KEYS}
    nested = out.get("additional_kwargs")
    if isinstance(nested, dict):  # ChatOpenAI reads calls there, too
        out["additional_kwargs"] = {k: v for k, v in nested.items() if k not in _CALL_KEYS}
    if isinstance(out.get("content"), list):
        dropped = {call_id(p) for p in _parts(message, is_call)}
        out["content"] = [
            p for p in out["content"] if not (is_call(p) or is_result(p) or (dropped and is_thought(p)))
        ]
    return out


# ---------------------------------------------------------------- turns as a prompt shows them


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
    return _without_middle(told, _CLOSING) if told else _NOTHING_SAID


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


# ---------------------------------------------------------------- one prompt under one budget

Kind: TypeAlias = Literal["system", "core", "summary", "window", "recalled", "question"]


@dataclass(frozen=True)
class Part:
    """A piece of the prompt-to-be, and why it is in it or not.

    ``tokens``: what it takes (or would have taken). ``score``: how well a recalled one fits, 0 to 1.
    """

    kind: Kind
    text: str
    tokens: int
    included: bool
    why: str
    score: float | None = None


@dataclass(frozen=True)
class Unit:
    """One turn of the window: its messages as a service accepts them, and their tokens."""

    messages: tuple[Message, ...]
    tokens: int


@dataclass(frozen=True)
class Remembered:
    """A recalled fact or turn: its line for the prompt, how well it fits (0 to 1), and why it was found."""

    line: str
    score: float
    why: str


@dataclass(frozen=True)
class Material:
    """All that could stand before one question, best first where an order is one of rank."""

    question: Message
    system: Sequence[Message] = ()
    core: Sequence[str] = ()
    summary: str | None = None
    window: Sequence[Unit] = ()
    recalled: Sequence[Remembered] = ()


@dataclass(frozen=True)
class Plan:
    """The messages before the question, and the account of every part."""

    messages: list[Message]
    parts: list[Part]


def assemble(material: Material, budget: int | None, count: Callable[[Message], int]) -> Plan:
    """What one turn's prompt gets, under ``budget`` tokens (the question's counted in; None: all of it).

    It stands in this order: system messages, core facts, summary, window, what was recalled; what changes
    with every question comes last, so that a request repeats the beginning of the one before it. Who gets
    room first is another order: the question and the system messages always, then core facts, the summary,
    what was recalled (a quarter of the room at the most, for one long memory must not push the
    conversation out), and the window from its newest turn backwards.

    MemoryInputError when the question and the system messages alone are over the budget.
    """
    question = text_of(material.question.get("content"))
    language = language_of(question)
    asked = count(material.question)
    system = [(m, count(m)) for m in material.system]
    room = _Room(budget, asked + sum(tokens for _, tokens in system))

    settled = [(line, None, "set for this user") for line in material.core]
    core_lines, core_parts = _take_lines("core", CORE, settled, room, count)
    summary, summary_parts = _take_summary(material.summary, room, count)
    found = [(r.line, r.score, r.why) for r in material.recalled]
    limit = None if budget is None else max(0, room.left // 4)
    recalled_lines, recalled_parts = _take_lines("recalled", RECALLED, found, room, count, limit, language)
    window, window_parts = _take_window(material.window, room, count)

    messages = [m for m, _ in system]
    messages += [core_lines] if core_lines else []
    messages += [summary] if summary else []
    messages += window
    messages += [recalled_lines] if recalled_lines else []
    parts = [Part("system", text_of(m.get("content")), tokens, True, "always") for m, tokens in system]
    parts += [*core_parts, *summary_parts, *window_parts, *recalled_parts]
    parts.append(Part("question", question, asked, True, "always"))
    return Plan(messages, parts)


class _Room:
    """What is left of the budget."""

    def __init__(self, budget: int | None, fixed: int) -> None:
        if budget is not None and fixed > budget:
            raise MemoryInputError(
                f"the question and the system messages take {fixed} tokens, and max_context_tokens is "
                f"{budget}: shorten them, or allow more"
            )
        self.left = sys.maxsize if budget is None else budget - fixed

    def take(self, tokens: int) -> bool:
        if tokens > self.left:
            return False
        self.left -= tokens
        return True


_OVER = "over the budget"


def _take_lines(
    kind: Kind,
    headings: dict[Language, str],
    lines: Sequence[tuple[str, float | None, str]],
    room: _Room,
    count: Callable[[Message], int],
    limit: int | None = None,
    language: Language | None = None,
) -> tuple[Message | None, list[Part]]:
    """As many of ``lines`` as fit, in one message."""
    heading = headings[language or language_of(" ".join(line for line, _, _ in lines))]
    kept: list[str] = []
    parts: list[Part] = []
    spent, limit = 0, room.left if limit is None else min(limit, room.left)
    for line, score, why in lines:
        whole = count({"role": "system", "content": listed(heading, [*kept, line])})
        fits = whole <= limit
        parts.append(Part(kind, line, whole - spent, fits, why if fits else f"{why}; {_OVER}", score))
        if fits:
            kept.append(line)
            spent = whole
    room.take(spent)
    return ({"role": "system", "content": listed(heading, kept)} if kept else None), parts


def _take_summary(
    summary: str | None, room: _Room, count: Callable[[Message], int]
) -> tuple[Message | None, list[Part]]:
    if not summary:
        return None, []
    heading = SUMMARY[language_of(summary)]
    message: Message = {"role": "system", "content": told(heading, summary), "is_summary": True}
    tokens = count(message)
    fits = room.take(tokens)
    why = "stands for the turns before the window" if fits else _OVER
    return (message if fits else None), [Part("summary", summary, tokens, fits, why)]


def _take_window(
    window: Sequence[Unit], room: _Room, count: Callable[[Message], int]
) -> tuple[list[Message], list[Part]]:
    """Whole turns, the newest first; the first that does not fit ends it, for a gap would mislead. A turn
    that is too large for its tool results alone stays with what was said in it, and the newest with the
    beginning and end of that: a question about the answer just given must find something of it."""
    kept: list[Sequence[Message]] = []
    parts: list[Part] = []
    full = False
    for unit in reversed(window):
        messages, tokens, why = unit.messages, unit.tokens, "recent"
        if not full and tokens > room.left:
            messages = tuple(m for m in messages if m.get("role") != "tool" and not m.get("tool_calls"))
            tokens, why = sum(map(count, messages)), f"recent; its tool results are {_OVER}"
            if tokens > room.left and not kept:
                messages = _shortened(messages, room.left, count)
                tokens, why = sum(map(count, messages)), f"the last turn, shortened; whole it is {_OVER}"
        full = full or not room.take(tokens)
        if full:
            tokens, why = unit.tokens, _OVER
        else:
            kept.append(messages)
        text = " / ".join(t for m in unit.messages if (t := text_of(m.get("content"))))
        parts.append(Part("window", text, tokens, not full, why))
    return [m for messages in reversed(kept) for m in messages], parts[::-1]


_CUT = " … "
_LINE = 40  # characters; less of a message says nothing


def _shortened(
    messages: Sequence[Message], room: int, count: Callable[[Message], int]
) -> tuple[Message, ...]:
    """The messages with the middle of their texts left out, so that they take ``room`` tokens at the most;
    those that are short stay whole. Where not even a line of each would fit, the first and the last of them;
    as they were, where not even those do."""
    texts = [text_of(m.get("content")) for m in messages]
    limit = max(map(len, texts), default=0)
    while limit >= _LINE:
        short = tuple(
            m if len(text) <= limit else {**m, "content": _without_middle(text, limit)}
            for m, text in zip(messages, texts, strict=True)
        )
        if sum(map(count, short)) <= room:
            return short
        limit = limit * 3 // 4
    if len(messages) > 2:  # too many to say anything of each: what was asked, and what came of it
        return _shortened((messages[0], messages[-1]), room, count)
    return tuple(messages)


def _without_middle(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[: limit // 2] + _CUT + text[-limit // 2 :]


def message_counter(token_counter: Any) -> Callable[[Message], int]:
    """Tokens of one dict message, by what LangChain's trim_messages takes as a counter: a chat model, a
    function of a list of messages, or one whose parameter is annotated as a BaseMessage. None: our own
    estimate, which needs no download."""
    if token_counter is None:
        return count_message_tokens
    many = getattr(token_counter, "get_num_tokens_from_messages", token_counter)
    if not callable(many):
        raise MemoryInputError(
            "token_counter: expected a chat model, or a function of a message or of a list of them, "
            f"got {token_counter!r:.80}"
        )
    if _takes_one(many):
        return lambda message: int(many(_to_lc(message)))
    return lambda message: int(many([_to_lc(message)]))


def _takes_one(counter: Callable[..., Any]) -> bool:
    try:
        first = next(iter(inspect.signature(counter).parameters.values()), None)
    except (TypeError, ValueError):  # a builtin may have no signature
        return False
    return first is not None and first.annotation in (BaseMessage, "BaseMessage")
