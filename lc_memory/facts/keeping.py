"""What is stored gets into the indexes: at once, in the background, or later where that cannot be.

Facts are indexed when they are noted, so that they are found at once; turns in the background. The vector
index may be away or behind: what is left to do is in the store, and is done when it can be.
"""

from __future__ import annotations

import contextlib
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from lc_memory.errors import FactIndexError
from lc_memory.facts import items
from lc_memory.facts.collected import recorded
from lc_memory.facts.following import Follower
from lc_memory.facts.health import Health
from lc_memory.facts.mending import Mended, Progress, expected, mend
from lc_memory.facts.texts import indexable
from lc_memory.facts.vectors import Vectors
from lc_memory.store import SessionKey
from lc_memory.store.sql import SqlStore

Source = Literal["facts", "turns"]


class RunsLater(Protocol):
    """:class:`lc_memory.stored.Background`."""

    def submit(self, key: object, work: Callable[[], None]) -> None: ...
    def wait(self) -> None: ...


class _Following:
    """A name for the log. No two are the same, for the one before may be at its very end still."""

    def __str__(self) -> str:
        return "the index of long-term memory"


class Keeping:
    """Keeps the indexes of one store up to it. ``sources``: what is indexed."""

    def __init__(
        self,
        store: Callable[[], SqlStore],
        vectors: Vectors,
        background: RunsLater,
        sources: Sequence[Source],
    ) -> None:
        self._open = store
        self._vectors = vectors
        self._background = background
        self._sources = tuple(sources)
        self._follower: Follower | None = None
        self._guard = threading.Lock()
        self._scheduled = self._again = self._closing = False
        _all.add(self)

    # ------------------------------------------------------------ following the store

    def saved(self, key: SessionKey) -> None:
        """A turn was saved: it is indexed in the background."""
        self._schedule()

    def noted(self) -> None:
        """Facts were noted, changed or removed: now."""
        self._indexer().facts()
        if self._vectors.outage is None:
            with contextlib.suppress(FactIndexError):  # it is on the list, and told
                self._indexer().listed()

    def forgotten(self) -> bool:
        """Memories were erased: their vectors go too, from the files as well, before this returns. False
        where the index cannot be reached: they go when it is back, and a warning says so."""
        indexable.cache_clear()  # nor do their words stay in this process
        if recorded(self._open().database) is None:
            return True
        try:
            self._indexer().erased()
        except FactIndexError as error:
            warnings.warn(
                f"what was forgotten is still in the vector index, and leaves it when that is back ({error})",
                RuntimeWarning,
                stacklevel=4,
            )
            return False
        return True

    def _schedule(self) -> None:
        with self._guard:
            self._again = True
            if self._scheduled or self._closing:
                return
            self._scheduled = True
        self._background.submit(_Following(), self._follow)

    def _follow(self) -> None:
        while True:
            with self._guard:
                if not self._again or self._closing:
                    self._scheduled = False
                    return
                self._again = False
            try:
                self._catch_up()
            except BaseException:
                with self._guard:
                    self._scheduled = False
                raise

    def _catch_up(self) -> None:
        follower = self._indexer()
        if "facts" in self._sources:
            follower.facts()
        if "turns" in self._sources:
            follower.turns()
        try:
            if self._vectors.due():
                self._vectors.use(lambda index: index.probe(), anyway=True)
            if self._vectors.outage is None:
                follower.listed()
                self._check()
        except FactIndexError:
            return  # kept in Vectors.outage, and told there

    def catch_up(self, *, progress: Progress | None = None) -> None:
        """Index now what is still to be indexed. Raises what is in the way."""
        store, follower = self._open(), self._indexer()

        def left() -> int:
            return store.ledger().count_unindexed() + store.backlog().counts("index")[1]

        total = left()
        while True:
            follower.facts(wait=False)
            follower.turns(wait=False)
            follower.listed(anyway=True)
            still = left()
            if progress is not None:
                progress(total - still, total)
            if not still or self._closing:
                return

    def _check(self) -> None:
        if not self._vectors.unchecked or not self._vectors.is_open:
            return
        store = self._open()
        if self._vectors.use(lambda index: index.count()) != expected(store, self._sources):
            self.mend(stopping=lambda: self._closing)
        self._vectors.unchecked = False

    def mend(
        self, *, progress: Progress | None = None, stopping: Callable[[], bool] = lambda: False
    ) -> Mended:
        """Compare the vector index with the store, entry by entry, and make it the same."""
        store, follower = self._open(), self._indexer()
        return self._vectors.use(
            lambda index: mend(store, follower, index, self._sources, progress=progress, stopping=stopping),
            anyway=True,
        )

    def reset(self) -> None:
        """In the child of a fork: nothing runs there, and nothing is open."""
        self._guard = threading.Lock()
        self._scheduled = self._again = self._closing = False
        self._vectors.reset()

    def _indexer(self) -> Follower:
        if self._follower is None:
            self._follower = Follower(self._open(), self._vectors, lambda: self._closing)
        return self._follower

    # ------------------------------------------------------------ how it is

    def notes(self) -> list[str]:
        """What does not work as it should, for people."""
        return [] if self._vectors.outage is None else [f"recall by words alone: {self._vectors.outage}"]

    def health(self) -> Health:
        """Asks the index, which is opened for it."""
        store = self._open()
        facts = store.ledger().counts()
        turns, pending = store.backlog().counts("index")
        with store.database.read() as connection:
            listed = items.count_listed(connection)
        entries: int | None = None
        try:
            entries = self._vectors.use(lambda index: index.count(), anyway=True)
            if self._vectors.outage is None and self._vectors.unchecked:
                self._schedule()
        except FactIndexError:
            pass
        unindexed = (facts.unindexed if "facts" in self._sources else 0) + listed
        unindexed += pending if "turns" in self._sources else 0
        drift = 0 if entries is None or unindexed else entries - expected(store, self._sources)
        notes = self.notes()
        if drift:
            notes.append(
                "the index differs from the store; it is mended in the background, or now: lc-memory reindex"
            )
        if unindexed and self._vectors.outage is None:
            notes.append(
                f"{unindexed} memories are still to be indexed: that goes on whenever the memory is used, or "
                "now: lc-memory reindex"
            )
        about = recorded(store.database)
        return Health(
            facts=facts.current,
            private=facts.private,
            superseded=facts.superseded,
            expired=facts.expired,
            turns=turns,
            entries=entries,
            unindexed=unindexed,
            drift=drift,
            embedding=about.fingerprint if about else type(self._vectors.embedding).__name__,
            index=self._vectors.name,
            degraded=self._vectors.outage is not None,
            notes=notes,
        )

    def reindex(self, *, progress: Progress | None = None) -> int:
        """See :func:`lc_memory.facts.reindexing.reindex`; then this recall uses the new index."""
        from lc_memory.facts.reindexing import reindex

        entries = reindex(
            self._open(),
            self._indexer(),
            self._vectors.another_home(),
            self._vectors.embedding,
            self._sources,
            progress=progress,
            stopping=lambda: self._closing,
        )
        self._vectors.close()
        self._vectors.reset()
        return entries

    def close(self) -> None:
        """Begin to stop: work that is under way ends at the next step, and is taken up at the next start."""
        self._closing = True

    def closed(self) -> None:
        """After the last of it: let go of files and connections. It may be used again."""
        self._vectors.close()
        self._closing = False


_all: weakref.WeakSet[Keeping] = weakref.WeakSet()


def _in_child() -> None:
    for one in list(_all):
        one.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
