"""The vector index compared with the store, entry by entry, and made the same.

This is how a lost index is built anew, how one that drifted is mended, and how a collection of another
embedding is filled. It can be stopped anywhere: what is there already is not done again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlalchemy import bindparam, text

from lc_memory.store import SqlStore, items

from .attempts import Attempts
from .chroma.collection import VectorIndex
from .following import Follower
from .texts import FACT, PRIVATE, TURN, fact_entries

_PAGE = 256

Progress = Callable[[int, int], None]
"""Called with how many memories are done, and how many there are."""

_CURRENT = text("SELECT id FROM lcm_facts WHERE superseded_by IS NULL AND id IN :rows").bindparams(
    bindparam("rows", expanding=True)
)
_HISTORY = text("SELECT id FROM lcm_facts WHERE superseded_by IS NOT NULL AND id IN :rows").bindparams(
    bindparam("rows", expanding=True)
)
_TURNS = text("SELECT id FROM lcm_turns WHERE id IN :rows").bindparams(bindparam("rows", expanding=True))

_WORDS_OF = {"facts": (FACT, PRIVATE), "turns": (TURN,)}
_ALL_WORDS = {FACT, PRIVATE, TURN}
_COUNTED = text("SELECT COALESCE(SUM(items), 0) FROM lcm_lexical_owners")
_OF_SOURCES = text("SELECT COUNT(*) FROM lcm_lexical_items WHERE source IN :sources").bindparams(
    bindparam("sources", expanding=True)
)
_ASIDE = text(
    "SELECT COUNT(*) FROM lcm_lexical_items WHERE item_id IN :items AND source IN :sources"
).bindparams(bindparam("items", expanding=True), bindparam("sources", expanding=True))


@dataclass(frozen=True)
class Mended:
    """How many entries were missing or out of date, and how many stood for nothing any more."""

    added: int = 0
    removed: int = 0


def expected(store: SqlStore, sources: Sequence[str]) -> int:
    """How many entries the index should have, as far as it was told: those that the words' index has, which
    lies in the store and is written first. Not every turn has one: a greeting is nothing to be found."""
    wanted = [s for source in sources for s in _WORDS_OF[source]]
    aside = Attempts(store.database).aside()
    with store.database.read() as connection:
        if set(wanted) == _ALL_WORDS:
            total = int(connection.execute(_COUNTED).scalar_one())
        else:
            total = int(connection.execute(_OF_SOURCES, {"sources": wanted}).scalar_one()) if wanted else 0
        if aside and wanted:
            total -= int(connection.execute(_ASIDE, {"items": aside, "sources": wanted}).scalar_one())
    return total


def mend(
    store: SqlStore,
    follower: Follower,
    index: VectorIndex,
    sources: Sequence[str],
    *,
    progress: Progress | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Mended:
    """Add what the index lacks and remove what it should not have; what was done, also where it stopped."""
    total = (store.ledger().counts().total if "facts" in sources else 0) + (
        store.backlog().counts("index")[0] if "turns" in sources else 0
    )
    done = added = 0
    aside = set(follower.set_aside())

    def step(n: int) -> None:
        nonlocal done
        done += n
        if progress is not None:
            progress(min(done, total), total)

    after = 0
    while "facts" in sources and (facts := store.ledger().iterate(after=after, limit=_PAGE)):
        entries = [
            e[0]
            for fact in facts
            if items.fact_item(fact.row) not in aside and (e := fact_entries(fact)) is not None
        ]
        there = index.revisions([item.id for item in entries])
        missing = [item for item in entries if there.get(item.id) != item.revision]
        index.put(missing)
        added += len(missing)
        after = facts[-1].row
        step(len(facts))
        if stopping():
            return Mended(added)
    after = 0
    while "turns" in sources and (turns := store.backlog().scan(after=after, limit=_PAGE)):
        there = index.revisions([items.turn_item(stored.row) for stored in turns])
        absent = [stored for stored in turns if items.turn_item(stored.row) not in {*there, *aside}]
        absent.sort(key=lambda stored: (stored.session_row, stored.turn.seq))
        found = [item for item, _ in follower.entries_of_turns(absent)]
        index.put(found)
        added += len(found)
        after = turns[-1].row
        step(len(turns))
        if stopping():
            return Mended(added)
    return Mended(added, _let_go(store, index, sources))


def _let_go(store: SqlStore, index: VectorIndex, sources: Sequence[str]) -> int:
    retired: list[str] = []
    erased: list[str] = []
    for page in index.ids():
        facts, turns = items.rows_of(page)
        with store.database.read() as connection:
            current = set(connection.execute(_CURRENT, {"rows": facts}).scalars()) if facts else set()
            history = set(connection.execute(_HISTORY, {"rows": facts}).scalars()) if facts else set()
            alive = set(connection.execute(_TURNS, {"rows": turns}).scalars()) if turns else set()
        wanted = {items.fact_item(row) for row in current} if "facts" in sources else set()
        if "turns" in sources:
            wanted |= {items.turn_item(row) for row in alive}
        known = {items.fact_item(row) for row in current | history}
        known |= {items.turn_item(row) for row in alive}
        retired += [item for item in page if item in known and item not in wanted]
        erased += [item for item in page if item not in known]
    index.remove(retired)
    index.remove(erased, purge=True)
    return len(retired) + len(erased)
