"""The lexical side of recall: which memories share telling words with a question, and how much.

The score of a memory is the share of the question's information that it holds::

              sum over the question's terms  idf(t) * tf / (tf + K1 * (1 - B + B * length / mean length))
    score  =  -------------------------------------------------------------------------------------------
              sum over the question's terms  idf(t)

BM25, that is, divided by the most that any memory could reach: 0 where no word is shared, near 1 where every
word of the question is there. A rare name makes up most of a short question and so most of the score; two
common words of a long one make up next to nothing, and words of a question that occur nowhere (it is asked
in another language) still count in the divisor. Being a share, it can be added to a cosine as it is, with no
maximum or mean over all memories to be known first.

``idf`` and the mean length are the owner's own: what is telling in one user's memories says nothing of
another's. Where these are few and the question is short, though, one word makes up the whole score, and a
frequency among forty memories does not tell "home" from a name: there a word counts the less, the more common
it is in the language (:func:`weight_of`). ``tf`` counts the memory's own words twice and those of its context
(for a message of a conversation, the two before it) once.

Where the items lie is :mod:`lc_memory.store.lexical.index`'s to know.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from lc_memory.language import terms, with_surface
from lc_memory.models import commonness

K1, B = 1.2, 0.75  # the values that BM25 is published and shipped with

B_TURNS = 0.4
"""The same for messages of a conversation: the longer of two says more, not the same at greater length.
LoCoMo R@1 .337 with the B of documents, .361 with this one."""

COMMON, RARE = 4_000, 45_000
"""Places in a vocabulary sorted by frequency (:func:`lc_memory.models.commonness`): up to the
first a word says nothing by itself, from the second on all that a word can. Either moved by 30 % changes
nothing."""

SURE = 0.35
"""What the rarest word counts for where frequencies are in doubt."""

FEW_TERMS, MANY_TERMS = 3, 8
"""Up to so few terms of a question a single word decides; from the second on no single one does."""

FEW_ITEMS = 300
"""About so many memories tell by themselves which of their words are rare."""
OWN, CONTEXT = 2, 1

SINGLE = 0.5
"""What a single Chinese character counts: between function characters it mostly is a light verb, like 用."""

LEAST_INFORMATION = 2.0
"""A share is of at least so many words as rare as can be: of "What do I do for a living?" one is left, and a
memory with a form of "live" is not for that all that was asked for. From 1 to 3 recall differs by .004."""

MAX_TERMS = 2_000
"""So many terms of a memory, and of its context, are kept."""

MAX_QUESTION_TERMS = 256
"""So many different terms of a question are looked up."""


@dataclass(frozen=True)
class LexicalItem:
    """A memory to be found by its words."""

    id: str
    """Any string, unique for the owner."""
    source: str
    """What it is ("fact", "turn"); a search may be limited to some sources."""
    text: str
    context: str = ""
    """What was said just before, for messages of a conversation."""


@dataclass(frozen=True)
class LexicalHit:
    id: str
    source: str
    score: float
    """0 to 1, see the module."""
    overlap: float
    """The same with common words counted in full."""
    words: tuple[str, ...]
    """The words in common as the question writes them, the most telling first."""


@dataclass(frozen=True)
class Entry:
    """An item as an index keeps it: its terms."""

    id: str
    source: str
    own: tuple[str, ...]
    context: tuple[str, ...]

    @classmethod
    def of(cls, item: LexicalItem) -> Entry:
        own, context = terms(item.text), terms(item.context)
        # Of a long context the end is nearest to the message.
        return cls(item.id, item.source, tuple(own[:MAX_TERMS]), tuple(context[-MAX_TERMS:]))

    @property
    def length(self) -> int:
        """How many words, weighted as in the score."""
        return OWN * len(self.own) + CONTEXT * len(self.context)


@dataclass(frozen=True)
class Question:
    """A question's terms, with what the owner's memories say about them."""

    surface: Mapping[str, str]
    """Term to the word as it was asked."""
    idf: Mapping[str, float]
    total: float
    """Of all idf, or more where they are few: see :data:`LEAST_INFORMATION`."""
    mean_length: float
    weights: Mapping[str, float]
    """What of its idf a term counts for: see :func:`weight_of`."""

    @staticmethod
    def terms(question: str) -> dict[str, str]:
        """The different terms of a question, each with its word: what the frequencies are needed of."""
        found: dict[str, str] = {}
        for term, surface in with_surface(question):
            found.setdefault(term, surface)
            if len(found) == MAX_QUESTION_TERMS:
                break
        return found

    @classmethod
    def weigh(
        cls, surface: Mapping[str, str], frequency: Mapping[str, int], items: int, length: int
    ) -> Question:
        """``frequency``: in how many of the owner's ``items`` a term is; ``length``: of all of them."""
        idf = {}
        for term in surface:
            n = min(frequency.get(term, 0), items)
            idf[term] = math.log(1 + (items - n + 0.5) / (n + 0.5)) * (SINGLE if _is_single(term) else 1)
        # Among a handful of memories no frequency tells what is rare.
        least = LEAST_INFORMATION * math.log(1 + max(0.0, items - 0.5) / 1.5) * min(1.0, items / 50)
        doubt = _doubt(len(surface), items)
        places = commonness(list(surface.values())) if doubt else {}
        return cls(
            surface,
            idf,
            max(sum(idf.values()), least),
            max(1.0, length / max(1, items)),
            {term: weight_of(places.get(word), doubt) for term, word in surface.items()},
        )

    def rarest(self, frequency: Mapping[str, int], budget: int, most: int) -> list[str]:
        """Terms to look for: the rarest first, up to ``budget`` matches, but at least one."""
        chosen: list[str] = []
        matches = 0
        for term in sorted((t for t in self.idf if frequency.get(t)), key=lambda t: frequency[t])[:most]:
            matches += frequency[term]
            if chosen and matches > budget:
                break
            chosen.append(term)
        return chosen

    def best(self, entries: Iterable[Entry], limit: int) -> list[LexicalHit]:
        """The entries that share terms with the question, scored."""
        hits = (hit for entry in entries if (hit := self._hit(entry)) is not None)
        return heapq.nsmallest(limit, hits, key=lambda hit: (-hit.score, -hit.overlap, hit.id))

    def _hit(self, entry: Entry) -> LexicalHit | None:
        common = self.idf.keys() & {*entry.own, *entry.context}
        if not common:
            return None
        b = B_TURNS if entry.context else B
        damping = K1 * (1 - b + b * entry.length / self.mean_length)
        found = {}
        for term in common:
            n = OWN * entry.own.count(term) + CONTEXT * entry.context.count(term)
            found[term] = self.idf[term] * n / (n + damping)
        telling = sorted(found, key=lambda term: (-self.weights[term] * found[term], -found[term], term))
        # Summed in one order, so that every index gives the same number to the last bit.
        overlap = sum(found[term] for term in telling) / self.total
        score = sum(self.weights[term] * found[term] for term in telling) / self.total
        return LexicalHit(
            entry.id, entry.source, score, overlap, tuple(self.surface[term] for term in telling)
        )


def weight_of(place: int | None, doubt: float) -> float:
    """What a word counts for, 0 to 1: by its place among the words of the language, as far as the owner's
    memories leave that in ``doubt`` (0 to 1). None: it is no common word."""
    rarity = 1.0 if place is None else math.log(max(place, COMMON) / COMMON) / math.log(RARE / COMMON)
    return 1 - (1 - SURE * min(1.0, rarity)) * doubt


def _doubt(terms: int, items: int) -> float:
    short = max(0.0, min(1.0, (MANY_TERMS - terms) / (MANY_TERMS - FEW_TERMS)))
    return short * FEW_ITEMS**4 / (FEW_ITEMS**4 + items**4)


def _is_single(term: str) -> bool:
    return len(term) == 1 and "\u3400" <= term <= "\u9fff"
