"""The write filter: from what a user said to the few facts worth keeping.

::

    notes = notes_from(model, kinds=["开店计划", "经营现状"]).invoke(messages)
    notes.notes      # [MemoryNote(kind="经营现状", content="我在深圳南山开了家 60 平米的面馆", …)]
    notes.dropped    # what the model proposed beside them, and why it was not taken

A model proposes; code decides. Only the user's own words are shown to the model, without anything private in
them and without what a memory put there. Each proposal has to be of a kind on the list, to rest on words that
were said (:mod:`lc_memory.facts.extract.evidence`), to hold for long, and to be free of private data
(:mod:`lc_memory.facts.privacy`); what falls short is dropped, with the reason.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from pydantic import BaseModel, Field

from lc_memory.errors import MemoryInputError
from lc_memory.facts.privacy import (
    MOST_READ,
    PrivacyMode,
    has_blanks,
    kinds_in_words,
    private_in,
    redacted,
    without_blanks,
)
from lc_memory.language import language_of
from lc_memory.messages import messages_to_lc

from ..kinds import FAMILY, Kinds, NoteKind, kind_named, kinds_of, subject_of
from ..remember import said_to_remember
from .asking import answer_schema, ask, question
from .evidence import AboutOthers, NotBorne, grounded, was_said

_LONGEST = 4000  # characters of a message that a model is shown
_READ = 8000  # and that are looked through for it: where these are cut lies outside what is shown
_OPENS = re.compile(r"<\s*remembered\s*>", re.IGNORECASE)
_CLOSES = re.compile(r"<\s*/\s*remembered\s*>", re.IGNORECASE)


_DROPPED = 200  # characters of a note that was not taken

log = logging.getLogger("lc_memory")


class MemoryNote(BaseModel):
    """A fact worth keeping."""

    kind: str = Field(description="one of the kinds that were asked for")
    content: str = Field(description="one sentence, in the user's words and language")
    subject: str | None = Field(None, description="which one of its kind it is about")
    quote: str = Field("", description="the user's words it rests on")
    message: int = Field(0, description="which of the messages given they stand in, from 0")


class DroppedNote(BaseModel):
    """What a model proposed and was not taken. ``content`` holds nothing private."""

    kind: str
    content: str
    why: str


class MemoryNotes(BaseModel):
    """What is worth keeping of a conversation; often nothing."""

    notes: list[MemoryNote] = Field(default_factory=list)
    dropped: list[DroppedNote] = Field(default_factory=list)

    def reasons(self) -> str:
        """Why notes were dropped, in one line without their words: ``2 x it is a question, …``."""
        return ", ".join(f"{n} x {why}" for why, n in Counter(note.why for note in self.dropped).items())


def notes_from(
    model: Any, kinds: Kinds | None = None, *, privacy: PrivacyMode = "refuse"
) -> Runnable[Any, MemoryNotes]:
    """A Runnable from messages (LangChain's, or dicts) to what is worth keeping of them.

    ``model``: a chat model (or a Runnable that takes messages), asked by the structured output that its
    service takes. Nothing is asked where the user said nothing. ``kinds``: see
    :data:`~lc_memory.facts.kinds.Kinds`; by default a set for everyday talk, Chinese and English.
    ``privacy``: "refuse" drops a note that private data stood in, "redact" keeps it without them. In both
    the model is shown the conversation without them. "off" looks for none.

    Raises NotesFailed where the answer cannot be read, and what the model raises.
    """
    return RunnableLambda(extractor(model, kinds, privacy), name="notes")


def extractor(
    model: Any, kinds: Kinds | None = None, privacy: PrivacyMode = "refuse"
) -> Callable[[Any, RunnableConfig], MemoryNotes]:
    """:func:`notes_from` as a function. What a Runnable is given stands in traces as it is; of this, they
    show only what the model is asked."""
    if not isinstance(model, Runnable):
        raise MemoryInputError(
            f"notes: expected a chat model or a Runnable that takes messages, got {type(model).__name__}"
        )
    known = kinds_of(kinds)

    def extract(messages: Any, config: RunnableConfig) -> MemoryNotes:
        said = users_words(messages)
        shown = [_shortened(text) for text in (said if privacy == "off" else redacted_together(said))]
        lines = [line for line in shown if line.strip()]
        if not lines:
            return MemoryNotes()
        language = language_of(" ".join(lines))
        proposed = ask(
            model, question(lines, known, language), answer_schema(known, language), language, config
        )
        return weigh(proposed, shown, known, privacy)

    return extract


def users_words(messages: Any) -> list[str]:
    """What the user said, message by message "
    "("" for those of others): without what was injected, and without
    ``记住: …``, which is kept as it stands when it is said."""
    out = []
    for message in messages_to_lc(messages):
        text = str(message.text) if isinstance(message, HumanMessage) else ""
        text = _shortened(text, _READ)
        out.append("" if said_to_remember(text) else _not_injected(text).strip())
    return out


def _not_injected(text: str) -> str:
    """``text`` without what a memory put into it: its marks, all between them, and the heading above."""
    out, at = [], 0
    while opens := _OPENS.search(text, at):
        line = text.rfind("\n", at, opens.start())
        if line == opens.start() - 1:
            line = text.rfind("\n", at, max(at, line))
        out.append(text[at : line + 1] if line >= 0 else "")
        closes = _CLOSES.search(text, opens.end())
        at = closes.end() if closes else len(text)
    return "".join([*out, text[at:]])


def _shortened(text: str, longest: int = _LONGEST) -> str:
    """A message as far as a model is shown it. What is longer was pasted, and is about something else."""
    return text if len(text) <= longest else f"{text[: longest * 3 // 4]}\n…\n{text[-longest // 4 :]}"


def redacted_together(said: Sequence[str]) -> list[str]:
    """The messages without private data, that which begins in one and ends in the next included."""
    whole = "\n".join(said)
    if len(whole) > MOST_READ:
        return [redacted(text) for text in said]
    found = private_in(whole)
    if not found:
        return list(said)
    out, start = [], 0
    for text in said:
        end = start + len(text)
        here = [
            type(p)(p.kind, max(p.start, start) - start, min(p.end, end) - start)
            for p in found
            if p.start < end and p.end > start
        ]
        out.append(redacted(text, here))
        start = end + 1
    return out


def weigh(
    proposed: Sequence[Any], said: Sequence[str], kinds: Sequence[NoteKind], privacy: PrivacyMode = "refuse"
) -> MemoryNotes:
    """What of a model's proposals is taken. ``said`` is what it was shown of the user's messages."""
    result = MemoryNotes()
    taken: set[tuple[str, str]] = set()
    for one in proposed:
        fields = {key: _text(one, key) for key in ("kind", "subject", "content", "quote")}
        try:
            note = _weighed(fields, said, kinds, privacy)
            same = (note.kind, "".join(note.content.casefold().split()))
            if same in taken:
                raise NotBorne("it is there already")
            taken.add(same)
            result.notes.append(note)
        except NotBorne as reason:
            content = fields["content"][: 2 * _DROPPED]
            content = (content if privacy == "off" else redacted(content))[:_DROPPED]
            result.dropped.append(DroppedNote(kind=fields["kind"][:40], content=content, why=str(reason)))
        except Exception as error:  # of these words alone: the other notes are not to be lost by it
            log.warning("a note could not be weighed (%s)", type(error).__name__)
            why = f"it could not be weighed ({type(error).__name__})"
            result.dropped.append(DroppedNote(kind=fields["kind"][:40], content="", why=why))
    return result


def _weighed(
    fields: dict[str, str], said: Sequence[str], kinds: Sequence[NoteKind], privacy: PrivacyMode
) -> MemoryNote:
    kind = kind_named(fields["kind"], kinds)
    if kind is None:
        raise NotBorne("its kind is not on the list")
    if privacy != "off":
        for words in (fields["content"], fields["subject"]):
            if found := private_in(words):
                raise NotBorne(f"private: {kinds_in_words(found)}")
    try:
        borne = grounded(fields["content"], fields["quote"], said, about_user=not kind.others)
    except AboutOthers as others:
        # "My son has coeliac disease" may well be proposed as health, which is the user's own.
        family = kind_named(FAMILY, kinds) if others.family else None
        if family is None:
            raise
        kind = family
        borne = grounded(fields["content"], fields["quote"], said, about_user=False)
    if has_blanks(f"{borne.text} {borne.quote}") and (
        privacy == "refuse" or not any(c.isalpha() for c in without_blanks(borne.text))
    ):
        raise NotBorne("private data stood in it")
    if not kind.fits(borne.text):
        raise NotBorne("its words do not say what its kind is for")
    subject = subject_of(borne.text)
    if subject is None and was_said(fields["subject"], said[borne.message]):
        subject = " ".join(fields["subject"].split())[:60].casefold()
    return MemoryNote(
        kind=kind.name,
        content=borne.text,
        subject=subject if kind.several else None,
        quote=borne.quote,
        message=borne.message,
    )


def _text(note: Any, key: str) -> str:
    value = note.get(key) if isinstance(note, dict) else getattr(note, key, None)
    return value if isinstance(value, str) else ""


__all__ = ["DroppedNote", "MemoryNote", "MemoryNotes", "notes_from", "users_words", "weigh"]
