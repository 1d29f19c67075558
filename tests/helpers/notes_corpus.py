"""The corpus of user turns with what is worth keeping of each, and extractors to try the write filter with.

``tests/excerpts/turns_worth_keeping.jsonl``: 300 turns, half Chinese, half English, a line each: ``say``,
``keep`` (the right notes, none for more than half of them) and, where there is a reason, ``why`` not. Nobody
said these things: they were written for this, and the numbers in them belong to nobody.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable, RunnableLambda

from lc_memory.facts.extract.notes import MemoryNotes, notes_from
from lc_memory.facts.kinds import DEFAULT_KINDS, kind_named
from lc_memory.facts.privacy import private_in, redacted

FILE = Path(__file__).resolve().parent.parent / "excerpts" / "turns_worth_keeping.jsonl"


@dataclass(frozen=True)
class Row:
    say: str
    keep: list[dict[str, str]]
    lang: str
    why: str | None = None


def corpus() -> list[Row]:
    return [Row(**json.loads(line)) for line in FILE.read_text("utf-8").splitlines()]


# ---------------------------------------------------------------- extractors

Proposes = Callable[[Row], list[dict[str, str]]]


def scripted(rows: Sequence[Row], proposes: Proposes) -> Runnable[Any, Any]:
    """A model that finds the rows it is asked about in its prompt, and answers as ``proposes`` says."""
    by_line = {_line(redacted(row.say)): row for row in rows} | {_line(row.say): row for row in rows}

    def answer(messages: list[BaseMessage]) -> AIMessage:
        shown = str(messages[1].text).split("\n")
        asked = [by_line[_line(line.removeprefix("- "))] for line in shown if line.startswith("- ")]
        notes = [note for row in asked for note in proposes(row)]
        return AIMessage(json.dumps({"notes": notes}, ensure_ascii=False))

    return RunnableLambda(answer)


def perfect(row: Row) -> list[dict[str, str]]:
    return row.keep


def careless(row: Row) -> list[dict[str, str]]:
    """Keeps all, private data as it was said and taken to pieces, and makes things up beside it."""
    digits = "".join(re.findall(r"\d", unicodedata.normalize("NFKC", row.say)))
    kinds = [kind.name for kind in DEFAULT_KINDS]
    kind = row.keep[0]["kind"] if row.keep else kinds[len(row.say) % len(kinds)]

    def note(content: str, quote: str = row.say, kind: str = kind) -> dict[str, str]:
        return {"kind": kind, "subject": "", "content": content, "quote": quote}

    return [
        note(row.say),
        note(row.say, quote=""),
        note(redacted(row.say)),
        note(f"{row.say} 99"),
        note(f"我叫王大锤，{row.say}"),
        note(f"{row.say}，我在东京有三套房"),
        note("我有糖尿病", kind="health"),
        note("I work at Globex and live in Springfield", kind="work"),
        note(f"My number is {digits}"),
        note(digits[:6], quote=digits[:6]),
        note(f"用户可能{row.say}", kind="心情"),
        note(row.say, kind="everything"),
    ]


# ---------------------------------------------------------------- figures


@dataclass
class Outcome:
    expected: int = 0
    found: int = 0
    kept: int = 0
    worth: int = 0
    """Kept notes of rows that are worth keeping, whatever the kind."""
    right: int = 0
    """Kept notes that are an expected one: its kind and its words."""
    private: list[str] = field(default_factory=list)
    unsaid: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    junk: list[str] = field(default_factory=list)
    failed: int = 0

    def __str__(self) -> str:
        return (
            f"kept {self.kept}: worth keeping {_share(self.worth, self.kept)}, of the right kind too "
            f"{_share(self.right, self.kept)}; found of what is worth it {_share(self.found, self.expected)}; "
            f"private {len(self.private)}, unsaid {len(self.unsaid)}, unreadable answers {self.failed}"
        )


def _share(part: int, whole: int) -> str:
    return f"{part}/{whole}" + (f" {part / whole:.0%}" if whole else "")


def measure(
    rows: Sequence[Row],
    model: Any,
    at_once: int = 1,
    seen: Callable[[int, Outcome], None] = lambda done, so_far: None,
) -> Outcome:
    """Run the write filter over the rows, ``at_once`` turns a call. ``seen`` is told how far it is."""
    filter_ = notes_from(model)
    out = Outcome()
    for start in range(0, len(rows), at_once):
        some = rows[start : start + at_once]
        out.expected += sum(len(row.keep) for row in some)
        try:
            notes = filter_.invoke([{"role": "user", "content": row.say} for row in some])
        except Exception:
            out.failed += 1
            notes = MemoryNotes()
        _count(out, some, notes)
        seen(start + len(some), out)
    return out


def _count(out: Outcome, rows: Sequence[Row], notes: MemoryNotes) -> None:
    for note in notes.notes:
        row = rows[note.message]
        out.kept += 1
        out.worth += bool(row.keep)
        out.right += any(_same(note.content, note.kind, expected) for expected in row.keep)
        if not row.keep:
            out.junk.append(f"{note.kind}: {note.content}")
        if private_in(note.content) or any(
            row.say[p.start : p.end] in text
            for p in private_in(row.say)
            for text in (note.content, note.quote)
        ):
            out.private.append(note.content)
        if not said_in(note.content, row.say):
            out.unsaid.append(note.content)
    for row_number, row in enumerate(rows):
        for expected in row.keep:
            hit = any(n.message == row_number and _same(n.content, n.kind, expected) for n in notes.notes)
            out.found += hit
            if not hit:
                why = [d.why for d in notes.dropped]
                out.missed.append(f"{expected['kind']}: {row.say} {why or ''}")


def _same(content: str, kind: str, expected: dict[str, str]) -> bool:
    one, other = _squeezed(content), _squeezed(expected["content"])
    known = kind_named(kind, DEFAULT_KINDS)
    return known is not None and known.name == expected["kind"] and (one in other or other in one)


def said_in(content: str, say: str) -> bool:
    """Every Chinese character and every other word of ``content`` is one of ``say``; speaker and "
    "copula aside."""
    words = re.compile(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+")
    said = set(words.findall(say.casefold()))
    free = {
        *"我的是了在有叫也都和与及",
        "i",
        "m",
        "my",
        "am",
        "is",
        "are",
        "a",
        "an",
        "the",
        "and",
        "to",
        "of",
        "in",
        "at",
        "have",
    }
    return all(word in said or word in free for word in words.findall(content.casefold()))


def _squeezed(text: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if c.isalnum())


def _line(text: str) -> str:
    return " ".join(text.split())
