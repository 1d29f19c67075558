"""Recall: what of the facts and turns of a user bears on a question.

Recall asks both sides, the vectors for the nearest in meaning and the words for those that share telling
ones, of the owner's memories alone, weighs them together (:mod:`lc_memory.recall.ranking`), and believes
neither about what a memory says: text, owner, and whether it still holds are read from the store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from sqlalchemy import text

from lc_memory.errors import EmbeddingMismatchError, FactIndexError
from lc_memory.index import (
    FACT,
    LOCAL,
    PRIVATE,
    TURN,
    Keeping,
    RunsLater,
    Source,
    Vectors,
    fact_line,
    recorded,
    said,
    turn_line,
    turn_text,
)
from lc_memory.language import is_phatic, only_asks
from lc_memory.prompt import Remembered
from lc_memory.store import (
    DatabaseLexicalIndex,
    Fact,
    SessionKey,
    SqlStore,
    StoredTurn,
    Turn,
    apart,
    digest,
    items,
)

from .ranking import CANDIDATES, Candidate, rank
from .restated import restated

ALL: tuple[Source, ...] = ("facts", "turns")

_OWNED = text(
    "SELECT (SELECT items FROM lcm_lexical_owners WHERE owner_key = :key),"
    " CASE WHEN EXISTS (SELECT 1 FROM lcm_to_vectors) THEN 1 ELSE 0 END"
)


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


class LongTerm(Keeping):
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
        super().__init__(store, vectors, background, sources)
        self._k = k
        self._lexical = DatabaseLexicalIndex()

    @apart
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

    @apart
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
        """At most ``k`` of the owner's memories that bear on the question, best first; none for a message
        that says nothing by itself.

        ``kinds``: facts of these kinds only. ``spare``: about how many will be left out.
        EmbeddingMismatchError where the index is of another embedding; whatever else is wrong with it leaves
        the words (see :meth:`notes`).
        """
        asked = [s for s in self._sources if sources is None or s in sources]
        if kinds is not None:
            asked = [s for s in asked if s == "facts"]
        if not asked or k < 1 or is_phatic(query) or (kinds is not None and not kinds):
            return []
        self._indexer().facts(wait=False)
        owned = self._owned(owner)
        if not owned:
            return []
        limit = max(CANDIDATES, 3 * k) + spare
        cosines = self._nearest(owner, query, limit, asked, kinds, include_private, owned)
        with self._open().database.read() as connection:
            # By kind the words cannot be asked; more of them are read instead.
            many = limit if kinds is None else 8 * limit
            hits = {
                hit.id: hit
                for hit in self._lexical.search(
                    connection, owner, query, many, _words_of(asked, include_private)
                )
            }
        memories = self._memories([*cosines, *hits])
        now = time.time()
        memories = {
            item: memory
            for item, memory in memories.items()
            if _holds(memory, owner, kinds, include_private, now)
        }
        spoken_for = restated(self._open().ledger(), owner, memories)
        candidates = []
        for item, memory in memories.items():
            if item in spoken_for or leave_out(memory):
                continue
            hit = hits.get(item)
            candidates.append(
                Candidate(
                    id=item,
                    text=memory.text if isinstance(memory, Fact) else turn_text(memory.turn),
                    cosine=cosines.get(item),
                    share=hit.score if hit else 0.0,
                    overlap=hit.overlap if hit else 0.0,
                    words=hit.words if hit else (),
                    noted_at=memory.noted_at if isinstance(memory, Fact) else memory.turn.created_at,
                    answer=None if isinstance(memory, Fact) else _answer_alone(memory.turn),
                )
            )
        about = recorded(self._open().database) if cosines else None
        ranked = rank(query, candidates, k=k, scale=about.scale if about else LOCAL)
        texts = {candidate.id: candidate.text for candidate in candidates}
        return [
            Found(
                r.id,
                texts[r.id],
                _line(memories[r.id], hits[r.id].words if r.id in hits else ()),
                r.score,
                r.why,
                memories[r.id],
            )
            for r in ranked
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
        words = _words_of(asked, include_private)

        def ids() -> list[str]:
            with self._open().database.read() as connection:
                return self._lexical.ids(connection, owner, words)

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
                    ids=ids,
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


def _words_of(asked: Sequence[Source], include_private: bool) -> list[str]:
    """The sources of the lexical index."""
    names = {"facts": [FACT, *([PRIVATE] if include_private else [])], "turns": [TURN]}
    return [name for source in asked for name in names[source]]


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


def _answer_alone(turn: Turn) -> str | None:
    """The answer, where the question only asks."""
    question, answer = said(turn)
    return answer if only_asks(question) else None


def _line(memory: Fact | StoredTurn, telling: Sequence[str]) -> str:
    if isinstance(memory, Fact):
        return fact_line(memory, telling)
    return turn_line(memory.turn, telling)


__all__ = ["ALL", "Found", "LongTerm", "Source"]
