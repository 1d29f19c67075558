"""The sets that recall is measured on, in one form.

MADial-Bench (``madial/``): 76 dialogues of one person in Chinese and in English, and what of 83 (76)
memories is worth recalling. The question is the dialogue up to the first ``test-turn`` index, without
``<BOD>``, speaker tags and the quotation marks around a line. Ranked are ``"{time} {event}"`` of all.

LoCoMo (``locomo/``): five long conversations of two people with questions of all five categories. Ranked are
the messages of a conversation, ``"{speaker}: {text}"`` with an image's caption behind; their context ends
where a session does. Evidence ids are normalised, and only those that exist count.

``tests/excerpts/fact_questions.jsonl``: forty facts a language with questions that share hardly a word with
their fact, twenty questions in the other language, sixty messages that nothing answers. Written here.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lc_memory.index.texts import context_of

EXCERPTS = Path(__file__).resolve().parent.parent / "tests" / "excerpts" / "fact_questions.jsonl"
_TAG = re.compile(r"^<[^>]*>\s*[:：]\s*")
_EVIDENCE = re.compile(r"D:?(\d+)[:;](\d+)")
_SESSION = re.compile(r"session_(\d+)")


@dataclass
class Corpus:
    """Memories that are ranked together, and questions about them."""

    name: str
    """Corpora of one name are one column of the table."""
    texts: list[str]
    before: list[list[str]] = field(default_factory=list)
    """For messages of a conversation: all that came before in the same session."""
    questions: list[tuple[str, list[int]]] = field(default_factory=list)
    """Question, and the places of its gold memories in ``texts``; at least one."""

    def contexts(self) -> list[str]:
        return [context_of(messages) for messages in self.before] or [""] * len(self.texts)


def madial(folder: Path) -> list[Corpus]:
    """zh and en, and each asked in the other language."""
    found = []
    for asked, stored in (("zh", "zh"), ("en", "en"), ("zh", "en"), ("en", "zh")):
        memories = _lines(folder / "madial" / f"memories-{stored}.jsonl")
        place = {memory["id"]: i for i, memory in enumerate(memories)}
        corpus = Corpus(
            f"madial {asked}" if asked == stored else f"{asked}->{stored}",
            [f"{memory['time']} {memory['event']}" for memory in memories],
        )
        for dialogue in _lines(folder / "madial" / f"dialogues-{asked}.jsonl"):
            lines = dialogue["dialogue"][: dialogue["test-turn"][0]]
            question = " ".join(_said(line) for line in lines if "<BOD>" not in line)
            gold = [place[id_] for id_ in dialogue["relevant-id"] if id_ in place]
            if gold:
                corpus.questions.append((question, gold))
        found.append(corpus)
    return found


def locomo(folder: Path) -> list[Corpus]:
    """One corpus a conversation, all of the name ``locomo``."""
    found = []
    for sample in json.loads((folder / "locomo" / "locomo-first5.json").read_text("utf-8")):
        corpus, place = Corpus("locomo", []), {}
        conversation: dict[str, Any] = sample["conversation"]
        sessions = sorted(int(m[1]) for key in conversation if (m := _SESSION.fullmatch(key)))
        for session in sessions:
            start = len(corpus.texts)
            for turn in conversation[f"session_{session}"]:
                place[turn["dia_id"]] = len(corpus.texts)
                corpus.before.append(corpus.texts[start:])
                caption = turn.get("blip_caption")
                corpus.texts.append(f"{turn['speaker']}: {turn['text']}" + (f" {caption}" if caption else ""))
        for item in sample["qa"]:
            ids = [f"D{a}:{b}" for evidence in item["evidence"] for a, b in _EVIDENCE.findall(evidence)]
            gold = [place[id_] for id_ in dict.fromkeys(ids) if id_ in place]
            if gold:
                corpus.questions.append((item["question"], gold))
        found.append(corpus)
    return found


def excerpts() -> tuple[list[Corpus], list[str]]:
    """facts zh, facts en, facts asked in the other language (among all); and the unrelated messages."""
    lines = _lines(EXCERPTS)
    facts = [line for line in lines if "fact" in line]
    found = []
    for name, some in (
        ("facts zh", [fact for fact in facts if fact["lang"] == "zh"]),
        ("facts en", [fact for fact in facts if fact["lang"] == "en"]),
        ("facts across", facts),
    ):
        place = {fact["id"]: i for i, fact in enumerate(some)}
        corpus = Corpus(name, [fact["fact"] for fact in some])
        asked = [line for line in lines if "answers" in line] if name == "facts across" else some
        for line in asked:
            answers = line.get("answers", [line["id"]])
            corpus.questions.append((line["question"], [place[id_] for id_ in answers]))
        found.append(corpus)
    return found, [line["unrelated"] for line in lines if "unrelated" in line]


def _said(line: str) -> str:
    line = _TAG.sub("", line.strip())
    return line[1:-1] if len(line) > 1 and line[0] in '"“' and line[-1] in '"”' else line


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
