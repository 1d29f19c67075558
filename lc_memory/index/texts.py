"""Facts and turns as texts: what of them is indexed, and what a prompt shows."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import lru_cache

from lc_memory.facts.privacy import passed, private_in
from lc_memory.language import MAX_CHARS, SPEAKERS, is_phatic, language_of
from lc_memory.messages import Message, answer_of, spoken
from lc_memory.store import Fact, LexicalItem, StoredTurn, Turn, fact_item, turn_item

from .chroma.collection import Item

FACT, PRIVATE, TURN = "fact", "private", "turn"
"""Sources in the lexical index, which has no other filter."""

_ANSWER_CHARS = 500  # of an answer that are embedded: a page of it would drown its question
_LINE_CHARS = 120  # of each side of a turn, in a prompt
_SEAM = 1200  # characters, more than anything private has
_COURTESY = 30  # characters of an answer to a message that says nothing
_PLACES = 64  # of the telling words in a long text that are tried


CONTEXT_MESSAGES = 2
CONTEXT_CHARS = 200
"""So much of each message of the context is taken: a page-long answer would drown what follows it."""


@lru_cache(maxsize=4096)  # the same turns are shown again and again
def indexable(text: str) -> str | None:
    """What of a text may enter the indexes, and prompts from there: its first 20,000 characters, and what
    is private in them is taken out. None: nothing is left."""
    if len(text) > MAX_CHARS:  # not the half of something private
        ends = [p.start for p in private_in(text[: MAX_CHARS + _SEAM]) if p.start < MAX_CHARS < p.end]
        text = text[: min([MAX_CHARS, *ends])]
    kept, _ = passed(text, "redact")
    return kept if kept is not None and kept.strip() else None


def said(turn: Turn) -> tuple[str, str]:
    """Question and answer of a turn, without what tools said between, and without what is private. Where the
    turn ends in a tool's result, that is the answer."""
    questions = [_text(m) for m in turn.messages if m.get("role") == "user"]
    return "\n".join(q for q in questions if q), indexable(answer_of(turn.messages)) or ""


def fact_entries(fact: Fact) -> tuple[Item, LexicalItem] | None:
    """What the two indexes hold of a fact. None: nothing, it is history or must not be indexed."""
    words = indexable(fact.text)
    if words is None or fact.superseded_by is not None:
        return None
    item = Item(
        id=fact_item(fact.row),
        owner=fact.owner,
        source=FACT,
        text=words,
        row=fact.row,
        revision=fact.revision,
        private=fact.private,
        kind=fact.kind,
        session=fact.source.get("session") if isinstance(fact.source.get("session"), str) else None,
    )
    return item, LexicalItem(item.id, PRIVATE if fact.private else FACT, words, fact.kind or "")


def turn_entries(stored: StoredTurn, before: Turn | None) -> tuple[Item, LexicalItem] | None:
    """What the two indexes hold of a turn; ``before`` is the one before it, its context."""
    question, answer = said(stored.turn)
    if is_phatic(question) and (is_phatic(answer) or len(answer) <= _COURTESY):
        return None  # with its context it would be found for what was said before it
    words = indexable("\n".join(part for part in (question, answer) if part))
    if words is None:
        return None
    earlier = [] if before is None else [part for part in said(before) if part]
    context = context_of(earlier)
    if context and indexable(context) is None:
        earlier, context = [], ""
    item = Item(
        id=turn_item(stored.row),
        owner=stored.key.owner,
        source=TURN,
        text=_embedded(question, answer),
        before=_embedded(*said(before)) if before is not None and earlier else "",
        row=stored.row,
        session=stored.key.session_id,
    )
    return item, LexicalItem(item.id, TURN, words, context)


def context_of(messages_before: Sequence[str]) -> str:
    """The context of a message: the beginnings of the last messages before it, oldest first."""
    return "\n".join(text[:CONTEXT_CHARS] for text in messages_before[-CONTEXT_MESSAGES:])


def _embedded(question: str, answer: str) -> str:
    return "\n".join(part for part in (question, answer[:_ANSWER_CHARS]) if part)


def fact_line(fact: Fact, telling: Sequence[str] = ()) -> str:
    """``[2026-08-24] 我喜欢打篮球``, or under its kind: ``[2026-08-24] 过敏: 花生``"""
    kind = f"{fact.kind}: " if fact.kind else ""
    return f"[{day(fact.noted_at)}] {kind}{excerpt(fact.text, 2 * _LINE_CHARS, telling)}"


def turn_line(turn: Turn, telling: Sequence[str] = ()) -> str:
    """``[2026-08-24] 用户: … / 助手: …``"""
    question, answer = said(turn)
    names: Mapping[str, str] = SPEAKERS[language_of(question or answer)]
    sides = [("user", question), ("assistant", answer)]
    shown = [f"{names[role]}: {excerpt(words, _LINE_CHARS, telling)}" for role, words in sides if words]
    return f"[{day(turn.created_at)}] {' / '.join(shown)}"


def turn_text(turn: Turn) -> str:
    """Question and answer, whole."""
    return "\n".join(part for part in said(turn) if part)


def day(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, timezone.utc).astimezone().strftime("%Y-%m-%d")
    except (ValueError, OverflowError, OSError):
        return "?"


def excerpt(text: str, limit: int, telling: Sequence[str] = ()) -> str:
    """About ``limit`` characters of ``text``: where most of the ``telling`` words stand, the first of which
    count most; the beginning where none does."""
    whole = " ".join(text[:MAX_CHARS].split())
    if len(whole) <= limit:
        return whole
    plain = whole.lower()
    words = telling[:_PLACES]
    places = [(at, 1 / rank) for rank, word in enumerate(words, 1) for at in _stands(word, plain)]

    def told(start: int) -> float:  # each word counts once, and no two weigh the same
        return math.fsum({weight for at, weight in places if start <= at < start + limit})

    starts = [0, *sorted({max(0, min(at - limit // 4, len(whole) - limit)) for at, _ in places[:_PLACES]})]
    start = max(starts, key=told)
    if start == 0:
        return whole[: limit - 1] + "…"
    if whole[start - 1].isascii() and whole[start].isascii():  # not from the middle of a word
        start = max(whole.find(" ", start, start + 20) + 1, start)
    shown = whole[start : start + limit]
    return f"…{shown}" if start + limit >= len(whole) else f"…{shown[:-1]}…"


def _stands(word: str, plain: str) -> Iterator[int]:
    """Where a word stands in a text, or another form of it."""
    form = word[: max(3, len(word) - 2)] if word.isascii() else word
    at = plain.find(form) if form else -1
    while at >= 0:
        if not (word.isascii() and at and (plain[at - 1].isalnum() or plain[at - 1] == "_")):
            yield at
        at = plain.find(form, at + len(form))


def _text(message: Message) -> str:
    return indexable(spoken(message).strip()) or ""


def texts(entries: Sequence[tuple[Item, LexicalItem]]) -> dict[str, list[LexicalItem]]:
    """Lexical entries by owner."""
    by_owner: dict[str, list[LexicalItem]] = {}
    for item, words in entries:
        by_owner.setdefault(item.owner, []).append(words)
    return by_owner
