"""Turns that say little else than a fact which was noted from them: the fact speaks for them.

``我住在北京`` is noted as a fact, and superseded when the user moves. The turn it was said in is indexed too
and never changes; recalled beside the new fact it would contradict it, and beside the same fact repeat it.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping

from lc_memory.facts import Fact
from lc_memory.facts.ledger import Ledger
from lc_memory.facts.texts import said
from lc_memory.store.backlog import StoredTurn

_MOST = 0.5
"""The part of a user's message that facts have to hold for the turn to say little else."""


def restated(ledger: Ledger, owner: str, found: Mapping[str, Fact | StoredTurn]) -> set[str]:
    """Those of the turns found that stand back: what they say is history, expired, or found as a fact too."""
    turns = {item: memory for item, memory in found.items() if isinstance(memory, StoredTurn)}
    there = {memory.row for memory in found.values() if isinstance(memory, Fact)}
    now = time.time()
    quotes: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for fact in ledger.noted_in(owner, {stored.key.session_id for stored in turns.values()}):
        gone = fact.superseded_by is not None or (fact.expires_at is not None and fact.expires_at <= now)
        if gone or fact.row in there:
            quote = fact.source.get("quote")
            words = _letters(quote if isinstance(quote, str) and quote else fact.text)
            quotes[str(fact.source.get("session")), str(fact.source.get("turn"))].add(words)
    return {
        item
        for item, stored in turns.items()
        if _hold(
            quotes.get((stored.key.session_id, stored.turn.turn_id), set()), _letters(said(stored.turn)[0])
        )
    }


def _hold(quotes: set[str], words: str) -> bool:
    return bool(quotes) and sum(map(len, quotes)) >= _MOST * len(words)


def _letters(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


__all__ = ["restated"]
