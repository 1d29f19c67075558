"""Core facts: the few that stand in every prompt, word for word, and never pass through the summary."""

from __future__ import annotations

from collections.abc import Callable

from lc_memory.errors import MemoryInputError
from lc_memory.store import Fact, Ledger


class CoreFacts:
    """The core facts of one owner, by kind (``budget``, ``city``, ``过敏`` …).

    ``core.set("预算", "40万")`` replaces what was known of that kind; the old fact stays as history.
    """

    def __init__(self, ledger: Callable[[], Ledger], owner: str, wipe: Callable[[], object]) -> None:
        self._ledger = ledger
        self._owner = owner
        self._wipe = wipe

    def set(self, kind: str, text: str, *, subject: str | None = None) -> Fact:
        """Note ``text`` as the core fact of ``kind``; with ``subject`` a kind may have several.

        It stands in every prompt as it is: what a program puts here is asked for by name, and is not checked
        for private data.
        """
        if not isinstance(kind, str) or not kind.strip():
            raise MemoryInputError("a core fact needs a kind, such as 'budget' or '过敏'")
        if not isinstance(text, str) or not text.strip():
            raise MemoryInputError(f"the core fact of kind {kind!r} is empty; remove(kind) takes it away")
        return self._ledger().add(self._owner, text, kind=kind, subject=subject, core=True, supersede=True)

    def get(self, kind: str, *, subject: str | None = None) -> str | None:
        """The words of a core fact, or None."""
        for fact in self._ledger().current(self._owner, kinds=[kind], core=True, include_private=True):
            if fact.subject == subject:
                return fact.text
        return None

    def all(self) -> list[Fact]:
        """Every core fact there is now, oldest first."""
        return self._ledger().current(self._owner, core=True, include_private=True)

    def history(self, kind: str) -> list[Fact]:
        """What was true of a kind over time, the superseded included, oldest first."""
        return self._ledger().history(self._owner, kind)

    def remove(self, kind: str) -> bool:
        """Erase the core facts of a kind, their history too, from the files as well. False where there was
        none."""
        facts = self._ledger().history(self._owner, kind)
        if facts:
            self._ledger().remove(self._owner, [fact.id for fact in facts])
            self._wipe()
        return bool(facts)
