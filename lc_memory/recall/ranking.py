"""Which memories bear on a question: what was found by meaning and by words, weighed together.

::

    evidence  =  meaning  +  WORDS * share

``meaning`` is the cosine of question and memory on the scale of the default embedding
(:mod:`lc_memory.index.scale`), ``share`` the part of the question's information that the memory's words hold
(see :mod:`lc_memory.store.lexical.scoring`). Both are absolute: neither depends on what else was found, so a
ranking of the nearest few dozen by meaning and by words is that of all memories. A share is next to nothing
where the words in common are mere noise, and leaves the meaning to decide; it is near 1 where a rare name
fits.

A message of a conversation often says little by itself ("Yes, last Friday!"). It is indexed, on both sides,
with the two messages before it (:mod:`lc_memory.index.texts`).

Five numbers here and two of the lexical side were chosen, on MADial-Bench (76 dialogues, Chinese and
English), the first five conversations of LoCoMo and the sentences of ``tests/excerpts/fact_questions.jsonl``;
``benchmarks/recall.py`` prints what they give and what each does when it is moved. :data:`ASKING` was chosen
by hand: those sets hold no turns that only ask.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from lc_memory.index import LOCAL, Scale
from lc_memory.language import same_saying
from lc_memory.store import Question

WORDS = 2.0
"""What a full share counts beside a cosine. From 1.4 to 2.6 recall differs by .013 at most."""

FLOOR = 0.2
"""The least evidence for a short question.

It costs one in eighty of the answers that would have been among the first five. Of unrelated messages, one in
three still recalls something from ten facts, and two in three from forty (of five asked for, one or two).
"""

SHORT_QUESTION = 3
"""Up to so many different terms a question has one subject; most that ask for one thing have no more.

The vector of a long text is the mean of many subjects: its cosine with a memory of one of them falls with
the square root of their number, and so does the floor. With 5, two messages of a dialogue recalled .04 less
across languages; with 2, half of the unrelated messages recalled something from ten facts.
"""

ASKING = 0.5
"""What the evidence of a turn that only asks counts. It is nearest to the same question asked again, and
tells nothing unless its answer does."""

CANDIDATES = 32
"""So many of the nearest by meaning, and as many by words, are enough for the first ten."""


@dataclass(frozen=True)
class Candidate:
    """A memory that was found by meaning, by words, or by both."""

    id: str
    text: str
    cosine: float | None = None
    """With the question. None: it is not among the nearest, or there is no embedding."""
    share: float = 0.0
    """:attr:`LexicalHit.score <lc_memory.store.lexical.scoring.LexicalHit.score>`. 0: not among the best."""
    words: tuple[str, ...] = ()
    """What it has in common with the question, the most telling first."""
    noted_at: float = 0.0
    """Unix seconds; of two that are equally good the newer comes first."""
    answer: str | None = None
    """Of a turn that only asks: what was answered. Of those with the same answer one is given."""


@dataclass(frozen=True)
class Ranked:
    id: str
    score: float
    """0 to 1, falling along the list; near the cosine where no words are shared."""
    why: str
    """For people: ``meaning 0.62; words: 篮球, 周末``."""


def rank(
    question: str,
    candidates: Iterable[Candidate],
    *,
    k: int,
    floor: float = FLOOR,
    scale: Scale = LOCAL,
) -> list[Ranked]:
    """The at most ``k`` memories that bear on the question, best first; none where nothing does.

    Memories that say the same in nearly the same words are given once. A memory without a cosine is placed as
    if it had that of the farthest that has one, for it can be no nearer; to pass the floor, its words have to
    do. ``floor`` is for a short question: see :data:`SHORT_QUESTION`.
    """
    found = list(candidates)
    known = {c.id: scale.meaning(c.cosine) for c in found if c.cosine is not None}
    farthest = min(known.values(), default=0.0)
    least = floor / math.sqrt(max(1.0, len(Question.terms(question)) / SHORT_QUESTION))
    evidence = {
        c.id: (known.get(c.id, farthest) + WORDS * c.share) * (1 if c.answer is None else ASKING)
        for c in found
    }
    ranked: list[Ranked] = []
    said: set[str] = set()
    for candidate in sorted(found, key=lambda c: (-evidence[c.id], -c.noted_at, c.id)):
        if len(ranked) >= k:
            break
        if known.get(candidate.id, 0.0) + WORDS * candidate.share < least:
            continue
        saying = same_saying(candidate.text if candidate.answer is None else candidate.answer)
        if saying in said:
            continue
        said.add(saying)
        score = math.tanh(max(0.0, evidence[candidate.id]))
        ranked.append(Ranked(candidate.id, score, _why(known.get(candidate.id), candidate.words)))
    return ranked


def _why(meaning: float | None, words: tuple[str, ...]) -> str:
    reasons = [] if meaning is None else [f"meaning {max(0.0, meaning):.2f}"]
    if words:
        reasons.append(f"words: {', '.join(words[:3])}")
    return "; ".join(reasons)


__all__ = [
    "CANDIDATES",
    "FLOOR",
    "Candidate",
    "Ranked",
    "rank",
]
