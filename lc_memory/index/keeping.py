"""What is stored gets into the indexes: at once, in the background, or later where that cannot be.

Facts are indexed when they are noted, so that they are found at once; turns in the background. The vector
index may be away or behind: what is left to do is in the store, and is done when it can be.
"""

from __future__ import annotations

import contextlib
import logging
import os
import warnings
import weakref
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from lc_memory.errors import FactIndexError, MemoryInputError
from lc_memory.store import SessionKey, SqlStore, apart, items, undisturbed

from .chroma.collection import VectorIndex
from .collected import recorded
from .following import Follower
from .health import Health
from .mending import Mended, Progress, expected, mend
from .texts import indexable
from .vectors import Vectors

log = logging.getLogger("lc_memory")

Source = Literal["facts", "turns"]

_NAMED = 5  # items that are set aside that health() names


class RunsLater(Protocol):
    """:class:`lc_memory.store.background.Background`."""

    def submit(self, key: object, work: Callable[[], None]) -> None: ...
    def wait(self) -> None: ...
    def problems(self) -> list[str]: ...


_FOLLOWING = "the index of long-term memory"


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
        self._closing = False
        _all.add(self)

    # ------------------------------------------------------------ following the store

    def saved(self, key: SessionKey) -> None:
        """A turn was saved: it is indexed in the background."""
        self._schedule()

    @apart
    def noted(self) -> None:
        """Facts were noted, changed or removed: now. What fails is done later, and raises nothing: the facts
        are in the store."""
        try:
            if "facts" in self._sources:
                self._indexer().facts()
            if self._vectors.outage is None:
                with contextlib.suppress(FactIndexError):  # it is on the list, and told
                    self._indexer().listed()
        except MemoryInputError:
            raise  # a wrong setting, which will be as wrong later
        except Exception as error:
            log.warning("facts are indexed later: %s: %s", type(error).__name__, error)
            self._schedule()

    @undisturbed
    def forgotten(self) -> bool:
        """Memories were erased: their vectors go too, from the files as well, before this returns. False
        where the index cannot be reached: they go when it is back, and a warning says so."""
        indexable.cache_clear()  # nor do their words stay in this process
        if recorded(self._open().database) is None:
            return True
        try:
            self._indexer().settled()
            self._indexer().erased()
        except FactIndexError as error:
            warnings.warn(
                f"what was forgotten is still in the vector index, and leaves it when that is back ({error})",
                RuntimeWarning,
                stacklevel=4,
            )
            return False
        return True

    def follow(self) -> None:
        """Have done what is left to do, in the background."""
        self._schedule()

    def _schedule(self) -> None:
        if not self._closing:
            self._background.submit(_FOLLOWING, self._follow)

    def _follow(self) -> None:
        if not self._closing:
            self._catch_up()

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

    @apart
    def catch_up(self, *, progress: Progress | None = None) -> None:
        """Index now what is still to be indexed. Raises what is in the way."""
        store, follower = self._open(), self._indexer()

        def left() -> int:
            return store.ledger().count_unindexed() + store.backlog().counts("index")[1]

        still = total = left()
        while True:
            before = still
            follower.facts(wait=False)
            follower.turns(wait=False)
            follower.listed(anyway=True)
            still = left()
            if progress is not None:
                progress(max(0, total - still), total)
            if not still or still >= before or self._closing:  # others save as fast: these are theirs
                return

    def _check(self) -> None:
        if not self._vectors.unchecked or not self._vectors.is_open:
            return
        store = self._open()
        if self._vectors.use(lambda index: index.count()) != expected(store, self._sources):
            self.mend(stopping=lambda: self._closing)
        self._vectors.unchecked = False

    @apart
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
        self._closing = False
        self._follower = None
        self._vectors.reset()

    def _indexer(self) -> Follower:
        if self._follower is None:
            self._follower = Follower(self._open(), self._vectors, lambda: self._closing)
        return self._follower

    # ------------------------------------------------------------ how it is

    def notes(self) -> list[str]:
        """What does not work as it should, for people."""
        outage = self._vectors.outage
        problems = self._background.problems()
        if outage is None:
            return problems
        what = "questions are refused" if self._vectors.refused else "recall by words alone"
        return [f"{what}: {outage}", *problems]

    @apart
    def health(self) -> Health:
        """Asks the index, which is opened for it, and the embedding: what a question would meet is told."""
        store = self._open()
        facts = store.ledger().counts()
        turns, pending = store.backlog().counts("index")
        with store.database.read() as connection:
            listed = items.count_listed(connection)
        entries: int | None = None
        try:
            entries = self._vectors.use(_probed, anyway=True)
            if self._vectors.outage is None and self._vectors.unchecked:
                self._schedule()
        except FactIndexError:
            pass
        unindexed = (facts.unindexed if "facts" in self._sources else 0) + listed
        unindexed += pending if "turns" in self._sources else 0
        drift = 0 if entries is None or unindexed else entries - expected(store, self._sources)
        notes = self.notes()
        if aside := self._indexer().set_aside():
            some = f"{', '.join(aside[:_NAMED])}{' …' if len(aside) > _NAMED else ''}"
            notes.append(
                f"{len(aside)} of the memories could not be indexed, tried three times, and cannot be "
                f"recalled ({some}); the log says why, lc-memory reindex tries them again"
            )
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
            refused=self._vectors.refused,
            notes=notes,
        )

    @apart
    def reindex(self, *, progress: Progress | None = None) -> int:
        """See :func:`lc_memory.index.reindexing.reindex`; then this recall uses the new index."""
        from .reindexing import reindex

        self._indexer().try_again()
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

    @undisturbed
    def closed(self) -> None:
        """After the last of it: let go of files and connections. It may be used again."""
        self._vectors.close()
        self._closing = False


def _probed(index: VectorIndex) -> int:
    index.probe()
    return index.count()


_all: weakref.WeakSet[Keeping] = weakref.WeakSet()


def _in_child() -> None:
    for one in list(_all):
        one.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
