"""Turns that say little else than a fact: the fact speaks for them.

``我住在北京`` is noted as a fact, and superseded when the user moves. The turn it was said in is indexed too
and never changes; recalled beside the new fact it would contradict it, and beside the same fact repeat it. So
would another turn with the words of a superseded fact: it was said twice, or a program noted it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from lc_memory.index import said
from lc_memory.language import terms
from lc_memory.store import Fact, Ledger, StoredTurn

_MOST = 0.5
"""The part of a user's message that a fact has to hold for the turn to say little else."""

_RETIRED = 200
"""So many superseded facts of the kinds found are looked through, the last noted first."""


def restated(ledger: Ledger, owner: str, found: Mapping[str, Fact | StoredTurn]) -> set[str]:
    """Those of the turns found that stand back: what they say is history, expired, or found as a fact too."""
    turns = {item: memory for item, memory in found.items() if isinstance(memory, StoredTurn)}
    if not turns:
        return set()
    facts = [memory for memory in found.values() if isinstance(memory, Fact)]
    quotes = _quotes(ledger, owner, turns, {fact.row for fact in facts})
    current = [*facts, *ledger.current(owner, core=True)]
    kinds = {fact.kind for fact in current if fact.kind is not None}
    outdated = [_Saying.of(text) for text in ledger.superseded(owner, kinds, _RETIRED)]
    valid = [_Saying.of(fact.text) for fact in current]
    spoken_for = set()
    for item, stored in turns.items():
        words = _Saying.of(said(stored.turn)[0])
        noted = quotes.get((stored.key.session_id, stored.turn.turn_id), set())
        is_noted = bool(noted) and sum(map(len, noted)) >= _MOST * words.length
        is_outdated = any(old.fills(words) for old in outdated)
        if is_noted or (is_outdated and not any(new.is_in(words) for new in valid)):
            spoken_for.add(item)
    return spoken_for


def _quotes(
    ledger: Ledger, owner: str, turns: Mapping[str, StoredTurn], there: set[int]
) -> Mapping[tuple[str, str], set[str]]:
    """By session and turn: the words that facts rest on which are gone, or found themselves."""
    now = time.time()
    quotes: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for fact in ledger.noted_in(owner, {stored.key.session_id for stored in turns.values()}):
        gone = fact.superseded_by is not None or (fact.expires_at is not None and fact.expires_at <= now)
        if gone or fact.row in there or fact.core:
            quote = fact.source.get("quote")
            words = _letters(quote if isinstance(quote, str) and quote else fact.text)
            quotes[str(fact.source.get("session")), str(fact.source.get("turn"))].add(words)
    return quotes


@dataclass(frozen=True)
class _Saying:
    terms: frozenset[str]
    length: int

    @classmethod
    def of(cls, text: str) -> _Saying:
        return cls(frozenset(terms(text)), len(_letters(text)))

    def is_in(self, other: _Saying) -> bool:
        return bool(self.terms) and self.terms <= other.terms

    def fills(self, other: _Saying) -> bool:
        return self.is_in(other) and self.length >= _MOST * other.length


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


__all__ = ["restated"]
