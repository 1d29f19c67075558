"""Long-term memory at work: what bears on a question is found, and what is stored gets into the indexes.

Recall asks both sides, the vectors for the nearest in meaning and the words for those that share telling
ones, of the owner's memories alone, weighs them together (:mod:`lc_memory.facts.recall`), and believes
neither about what a memory says: text, owner, and whether it still holds are read from the store.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from sqlalchemy import text

from lc_memory.context import Remembered
from lc_memory.errors import EmbeddingMismatchError, FactIndexError
from lc_memory.facts import Fact, items
from lc_memory.facts.collected import recorded
from lc_memory.facts.following import Follower
from lc_memory.facts.health import Health
from lc_memory.facts.lexical_sql import DatabaseLexicalIndex
from lc_memory.facts.mending import Mended, Progress, expected, mend
from lc_memory.facts.recall import CANDIDATES, LOCAL, Candidate, rank
from lc_memory.facts.texts import FACT, PRIVATE, TURN, fact_line, turn_line, turn_text
from lc_memory.facts.vectors import Vectors
from lc_memory.store import SessionKey, Turn
from lc_memory.store.backlog import StoredTurn
from lc_memory.store.sql import SqlStore
from lc_memory.store.text import digest

Source = Literal["facts", "turns"]
ALL: tuple[Source, ...] = ("facts", "turns")

_OWNED = text(
    "SELECT (SELECT items FROM lcm_lexical_owners WHERE owner_key = :key),"
    " CASE WHEN EXISTS (SELECT 1 FROM lcm_to_vectors) THEN 1 ELSE 0 END"
)


class RunsLater(Protocol):
    """:class:`lc_memory.stored.Background`."""

    def submit(self, key: object, work: Callable[[], None]) -> None: ...
    def wait(self) -> None: ...


@dataclass(frozen=True)
class Found:
    """A memory that bears on a question."""

    id: str
    """``f12`` or ``t12``."""
    text: str
    line: str
    """For a prompt: date and words, shortened."""
    score: float
    why: str
    memory: Fact | StoredTurn


class LongTerm:
    """Recall over one store. Safe to use from several threads.

    ``sources``: what is indexed and recalled. ``k``: how many memories a prompt gets at most.
    """

    def __init__(
        self,
        store: Callable[[], SqlStore],
        vectors: Vectors,
        background: RunsLater,
        *,
        sources: Sequence[Source] = ALL,
        k: int = 4,
    ) -> None:
        self._open = store
        self._vectors = vectors
        self._background = background
        self._sources = tuple(sources)
        self._k = k
        self._lexical = DatabaseLexicalIndex()
        self._follower: Follower | None = None
        self._guard = threading.Lock()
        self._scheduled = self._again = self._closing = False
        _all.add(self)

    # ------------------------------------------------------------ recall

    def remembered(self, key: SessionKey, query: str, in_window: Sequence[Turn]) -> list[Remembered]:
        """What a prompt of this session gets beside its window."""
        window = {turn.turn_id for turn in in_window}

        def stands_there(memory: Fact | StoredTurn) -> bool:
            if isinstance(memory, StoredTurn):
                return memory.key == key and memory.turn.turn_id in window
            here = memory.source.get("session") == key.session_id and memory.source.get("turn") in window
            return here or memory.core

        found = self.find(key.owner, query, self._k, leave_out=stands_there, spare=len(window))
        return [Remembered(f.line, f.score, f.why) for f in found]

    def find(
        self,
        owner: str,
        query: str,
        k: int,
        *,
        sources: Collection[Source] | None = None,
        kinds: Sequence[str] | None = None,
        include_private: bool = False,
        leave_out: Callable[[Fact | StoredTurn], bool] = lambda memory: False,
        spare: int = 0,
    ) -> list[Found]:
        """At most ``k`` of the owner's memories that bear on the question, best first.

        ``kinds``: facts of these kinds only. ``spare``: about how many will be left out.
        EmbeddingMismatchError where the index is of another embedding; whatever else is wrong with it leaves
        the words (see :meth:`notes`).
        """
        asked = [s for s in self._sources if sources is None or s in sources]
        if kinds is not None:
            asked = [s for s in asked if s == "facts"]
        if not asked or k < 1 or not query.strip() or (kinds is not None and not kinds):
            return []
        self._indexer().facts(wait=False)
        owned = self._owned(owner)
        if not owned:
            return []
        limit = max(CANDIDATES, 3 * k) + spare
        cosines = self._nearest(owner, query, limit, asked, kinds, include_private, owned)
        words = {"facts": [FACT, *([PRIVATE] if include_private else [])], "turns": [TURN]}
        with self._open().database.read() as connection:
            # By kind the words cannot be asked; more of them are read instead.
            many = limit if kinds is None else 8 * limit
            hits = {
                hit.id: hit
                for hit in self._lexical.search(
                    connection, owner, query, many, [name for s in asked for name in words[s]]
                )
            }
        memories = self._memories([*cosines, *hits])
        now = time.time()
        candidates = []
        for item, memory in memories.items():
            if not _holds(memory, owner, kinds, include_private, now) or leave_out(memory):
                continue
            hit = hits.get(item)
            candidates.append(
                Candidate(
                    id=item,
                    text=memory.text if isinstance(memory, Fact) else turn_text(memory.turn),
                    cosine=cosines.get(item),
                    share=hit.score if hit else 0.0,
                    words=hit.words if hit else (),
                    noted_at=memory.noted_at if isinstance(memory, Fact) else memory.turn.created_at,
                )
            )
        about = recorded(self._open().database) if cosines else None
        ranked = rank(query, candidates, k=k, scale=about.scale if about else LOCAL)
        texts = {candidate.id: candidate.text for candidate in candidates}
        return [
            Found(r.id, texts[r.id], _line(memories[r.id]), r.score, r.why, memories[r.id]) for r in ranked
        ]

    def _nearest(
        self,
        owner: str,
        query: str,
        limit: int,
        asked: Sequence[Source],
        kinds: Sequence[str] | None,
        include_private: bool,
        owned: int,
    ) -> dict[str, float]:
        if self._vectors.due():
            self._schedule()
        sources = None if set(asked) == set(self._sources) else [s.removesuffix("s") for s in asked]
        try:
            near = self._vectors.use(
                lambda index: index.nearest(
                    query,
                    owner,
                    limit,
                    sources=sources,
                    kinds=kinds,
                    include_private=include_private,
                    owned=owned,
                )
            )
        except FactIndexError as error:
            if self._vectors.refused:
                raise EmbeddingMismatchError(str(error)) from error
            return {}
        if self._vectors.unchecked:
            self._schedule()
        return {hit.id: hit.cosine for hit in near}

    def _owned(self, owner: str) -> int:
        with self._open().database.read() as connection:
            owned, listed = connection.execute(_OWNED, {"key": digest(owner)}).one()
        if listed and self._vectors.outage is None:  # another process left something to do
            self._schedule()
        return int(owned or 0)

    def _memories(self, ids: Sequence[str]) -> dict[str, Fact | StoredTurn]:
        facts, turns = items.rows_of(dict.fromkeys(ids))
        found: dict[str, Fact | StoredTurn] = {}
        if facts:
            by_row = self._open().ledger().by_row(facts)
            found |= {items.fact_item(row): fact for row, fact in by_row.items()}
        if turns:
            stored = self._open().backlog().by_row(turns)
            found |= {items.turn_item(row): turn for row, turn in stored.items()}
        return found

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

    def forgotten(self) -> None:
        """Memories were erased: their vectors go too, from the files as well, before this returns. Where
        the index cannot be reached they go when it is back, and a warning says so."""
        if recorded(self._open().database) is None:
            return
        try:
            self._indexer().listed(anyway=True)
        except FactIndexError as error:
            warnings.warn(
                f"what was forgotten is still in the vector index, and leaves it when that is back ({error})",
                RuntimeWarning,
                stacklevel=3,
            )

    def _schedule(self) -> None:
        with self._guard:
            self._again = True
            if self._scheduled or self._closing:
                return
            self._scheduled = True
        self._background.submit(object(), self._follow)

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
        total = store.ledger().counts().unindexed
        while True:
            follower.facts(wait=False)
            follower.listed(anyway=True)
            left = store.ledger().counts().unindexed
            if progress is not None:
                progress(total - left, total)
            if not left:
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


_all: weakref.WeakSet[LongTerm] = weakref.WeakSet()


def _in_child() -> None:
    for one in list(_all):
        one.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def _holds(
    memory: Fact | StoredTurn, owner: str, kinds: Sequence[str] | None, include_private: bool, now: float
) -> bool:
    if isinstance(memory, StoredTurn):
        return memory.key.owner == owner
    return (
        memory.owner == owner
        and memory.superseded_by is None
        and (memory.expires_at is None or memory.expires_at > now)
        and (include_private or not memory.private)
        and (kinds is None or memory.kind in kinds)
    )


def _line(memory: Fact | StoredTurn) -> str:
    return fact_line(memory) if isinstance(memory, Fact) else turn_line(memory.turn)
