"""What one turn's prompt gets: pure functions from lists of dict messages to lists of dict messages.

The unit of everything here is the group (:mod:`lc_memory.messages.tool_groups`): it stays whole or goes
whole.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from langchain_core.messages import BaseMessage

from lc_memory.errors import MemoryInputError
from lc_memory.language import CORE, RECALLED, SUMMARY, Language, language_of, listed, told
from lc_memory.messages import Message, _to_lc, count_message_tokens, text_of, without_middle

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
            m if len(text) <= limit else {**m, "content": without_middle(text, limit)}
            for m, text in zip(messages, texts, strict=True)
        )
        if sum(map(count, short)) <= room:
            return short
        limit = limit * 3 // 4
    if len(messages) > 2:  # too many to say anything of each: what was asked, and what came of it
        return _shortened((messages[0], messages[-1]), room, count)
    return tuple(messages)


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
