"""Which memories bear on a question: what was found by meaning and by words, weighed together.

::

    evidence  =  meaning  +  WORDS * share

``meaning`` is the cosine of question and memory on the scale of the default embedding
(:mod:`lc_memory.index.scale`), ``share`` the part of the question's information that the memory's words hold
(see :mod:`lc_memory.store.lexical.scoring`). Both are absolute: neither depends on what else was found, so a
ranking of the nearest few dozen by meaning and by words is that of all memories. A share is next to nothing
where the words in common are mere noise, and leaves the meaning to decide; it is near 1 where a rare name
fits.

A message of a conversation often says little by itself ("Yes, last Friday!"). On both sides it is indexed
with what was said just before: :mod:`lc_memory.index.texts`.

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
from lc_memory.language import same_saying, size, speaks_of_asker

WORDS = 2.0
"""What a full share counts beside a cosine. From 1.4 to 2.6 recall differs by .013 at most."""

FLOOR = 0.24
"""The least evidence for a question of :data:`USUAL_LENGTH`, here with words counted once: a word more in
common makes a memory the better of two, and not one that bears on the question.

Of sixty unrelated messages two in a hundred recall something from forty facts, and one in seven from three
hundred turns; of the memories asked for that are among the first five, 97 in a hundred pass.
"""

SHORTEST, USUAL_LENGTH, LONGEST = 4.0, 8.0, 40.0
"""Words of a question. The vector of a long text is the mean of many subjects: its cosine with a memory of
one of them falls with the square root of their number. A short one is near to anything by chance."""

OF_THE_ASKER = 0.1
"""What it adds that a question speaks of who asks it: a user's memories are about him."""

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
    overlap: float | None = None
    """The same with common words in full, for the floor. None: the share."""
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
    if it had that of the farthest that has one, for it can be no nearer; for the floor, as if it had that of
    any two sentences.
    """
    found = list(candidates)
    known = {c.id: scale.meaning(c.cosine) for c in found if c.cosine is not None}
    farthest = min(known.values(), default=0.0)
    length = math.sqrt(max(SHORTEST, min(LONGEST, size(question))) / USUAL_LENGTH)
    least = floor - (OF_THE_ASKER if speaks_of_asker(question) else 0.0)
    usual = min(farthest, LOCAL.mean)
    evidence = {
        c.id: (known.get(c.id, farthest) + WORDS * c.share) * (1 if c.answer is None else ASKING)
        for c in found
    }
    ranked: list[Ranked] = []
    said: set[str] = set()
    for candidate in sorted(found, key=lambda c: (-evidence[c.id], -c.noted_at, c.id)):
        if len(ranked) >= k:
            break
        overlap = candidate.share if candidate.overlap is None else candidate.overlap
        if (known.get(candidate.id, usual) + overlap) * length < least:
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
