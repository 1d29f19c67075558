"""One user's facts behind the calls of a dict-based manager's long-term part."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from lc_memory.errors import FactIndexError
from lc_memory.facts.privacy import PrivacyMode, passed, warn_of_private
from lc_memory.recall import LongTerm
from lc_memory.store import SqlStore


class UserFacts:
    """``add_fact``, ``recall`` and ``delete``, as ``legacy_memory.LongTermMemory`` has them.

    Got by :meth:`Memory.facts_for`; a manager gets the facts by ``manager.ltm = memory.facts_for("u1")``.
    Where the vector index cannot be had, ``recall`` goes by words alone, with one warning.
    """

    def __init__(
        self,
        owner: str,
        store: Callable[[], SqlStore],
        longterm: LongTerm,
        privacy: PrivacyMode,
        wipe: Callable[[], object],
    ) -> None:
        self._owner = owner
        self._store = store
        self._longterm = longterm
        self._privacy = privacy
        self._wipe = wipe

    def add_fact(self, text: str, fid: str, private: bool = False) -> None:
        """Keep ``text`` under ``fid``; one that has this id is written over. Private data in a fact that is
        not called ``private`` is dealt with as this memory's ``privacy`` says, with a warning."""
        kept, found = passed(text, "off" if private else self._privacy)
        if found:
            warn_of_private(kept, found)
        if kept is None:
            return
        self._store().ledger().add(self._owner, kept, fact_id=fid, private=private)
        self._longterm.noted()

    def recall(self, query: str, k: int = 3, include_private: bool = False) -> list[str]:
        """Of the user's facts at most ``k`` that bear on ``query``, best first."""
        try:
            found = self._longterm.find(
                self._owner, query or "", k, sources=["facts"], include_private=include_private
            )
        except FactIndexError as error:  # of another embedding: a manager has nobody to tell but its user
            warnings.warn(str(error), RuntimeWarning, stacklevel=2)
            return []
        return [one.text for one in found]

    def delete(self, fid: str) -> None:
        """Erase a fact, from the files too; one that is not there is no error.

        The turn it was said in stays, as part of the conversation, and may be recalled:
        :meth:`Memory.forget <lc_memory.Memory.forget>` erases a session with all that was learnt in it.
        """
        if self._store().ledger().remove(self._owner, [fid]):
            self._wipe()
