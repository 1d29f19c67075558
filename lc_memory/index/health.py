"""How the long-term memory is: what ``memory.health()`` answers."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Health:
    """``print`` it. ``ok``: all that is stored can be recalled, by meaning and by words.

    ``facts``: that hold now; ``superseded`` and ``expired`` are kept and not recalled. ``entries``: of the
    vector index, None where it cannot be asked. ``unindexed``: memories that it has still to take in.
    ``drift``: entries that it has too many (or, below 0, too few) beside those. ``degraded``: recall goes
    by words alone. ``refused``: the index is of another embedding, and a question raises
    EmbeddingMismatchError. ``notes``: what is wrong, and what to do.
    """

    facts: int
    private: int
    superseded: int
    expired: int
    turns: int
    entries: int | None
    unindexed: int
    drift: int
    embedding: str
    index: str
    degraded: bool
    notes: list[str] = field(default_factory=list)
    refused: bool = False

    @property
    def ok(self) -> bool:
        return not (self.degraded or self.unindexed or self.drift or self.notes)

    def __str__(self) -> str:
        recall = "by words alone" if self.degraded else "by meaning and words"
        if self.refused:
            recall = "refused"
        entries = "?" if self.entries is None else self.entries
        lines = [
            f"long-term memory: {'in order' if self.ok else 'needs attention'}",
            f"  facts      {self.facts} ({self.private} private), {self.superseded} superseded, "
            f"{self.expired} expired",
            f"  turns      {self.turns}",
            f"  index      {entries} entries, {self.unindexed} to come, drift {self.drift:+d}; {self.index}",
            f"  embedding  {self.embedding}",
            f"  recall     {recall}",
            *(f"  ! {note}" for note in self.notes),
        ]
        return "\n".join(lines)
