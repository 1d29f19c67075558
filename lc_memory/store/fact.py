"""Long-term memory: what is known of a user beyond the conversation.

The ledger (:mod:`lc_memory.store.ledger`), in the store's database, is the truth. Whatever finds facts by
meaning or by words is an index of it, knows them by :attr:`Fact.row`, and can be rebuilt from it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fact:
    """Something worth keeping, as the ledger holds it."""

    row: int
    """Unique in the store and never given twice: the id under which an index knows the fact."""
    owner: str
    """Any string; for a conversation :attr:`SessionKey.owner <lc_memory.store.SessionKey.owner>`."""
    id: str
    """Unique for the owner."""
    text: str
    kind: str | None
    subject: str | None
    """Tells facts of one kind apart, where a kind may have several (``allergy``: peanuts, pollen)."""
    private: bool
    """Kept, but out of prompts unless asked for by name."""
    core: bool
    """Stands in every prompt of the owner, word for word."""
    source: dict[str, Any]
    """Where it was learnt: ``session`` (id), ``turn`` (id), ``quote`` (the user's words); may be empty."""
    noted_at: float
    """Unix seconds, when it was said last."""
    expires_at: float | None
    superseded_by: str | None
    """The ``id`` of the fact that took its place. None: it is still true."""
    superseded_at: float | None
    count: int
    """How often it was said."""
    indexed: bool
    """Whether the index has it as it is now."""
    revision: int
    """Grows when something changes that the index has to know."""


@dataclass(frozen=True)
class FactCounts:
    """How many facts there are. ``current``, ``superseded`` and ``expired`` add up to ``total``."""

    total: int
    current: int
    superseded: int
    expired: int
    private: int
    unindexed: int


__all__ = ["Fact", "FactCounts"]
