"""The two indexes follow the store: new facts and turns, changed ones, retired ones, erased ones.

The store says what is to be done: the ledger's unindexed facts, the turns that are pending, and the list of
what the vectors have still to look at (:mod:`lc_memory.store.items`). Everything may be done twice, and is
marked as done after it was, so a process that dies leaves nothing out. Words are written first: they are in
the store's own database and always can be. What the vector index does not take goes on the list.

Each call does what was there when it began, and no more: others go on saving meanwhile, and whoever waits for
it must come to an end.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence

from sqlalchemy import bindparam, text

from lc_memory.errors import FactIndexError
from lc_memory.store import DatabaseLexicalIndex, Fact, LexicalItem, SqlStore, StoredTurn, Turn, items

from .attempts import Attempts
from .chroma.collection import BATCH, Item, VectorIndex
from .collected import LAST, NEXT, abandon, recorded
from .gate import Gate
from .texts import fact_entries, texts, turn_entries
from .vectors import Vectors

_TURNS_AT_ONCE = 64

_Entries = tuple[Item, LexicalItem]


def _fact_known_as(fact: Fact) -> tuple[str, int]:
    return items.fact_item(fact.row), fact.revision


def _turn_known_as(stored: StoredTurn) -> tuple[str, int]:
    return items.turn_item(stored.row), 1  # a turn never changes


class Follower:
    """Brings both indexes up to the store. Safe to use from several threads and processes."""

    def __init__(self, store: SqlStore, vectors: Vectors, stopping: Callable[[], bool]) -> None:
        self._store = store
        self._vectors = vectors
        self._stopping = stopping
        self._lexical = DatabaseLexicalIndex()
        self._attempts = Attempts(store.database)
        self._batches = Gate()  # inside: memories that were read, and are not yet written
        # One batch of a kind at a time, from its reading on: who reads what another thread is about to index
        # would do it once more, and take that attempt for one that failed.
        self._one_of_facts = threading.Lock()
        self._one_of_turns = threading.Lock()

    # ------------------------------------------------------------ new things

    def facts(self, *, wait: bool = True) -> None:
        """Index the facts that are new or changed, and let those go that are history."""
        ledger = self._store.ledger()
        left = -1
        after = 0
        while left:
            with self._one_of_facts, self._batches.inside():
                facts = ledger.unindexed(BATCH, after=after)
                if not facts:
                    return
                if left < 0:
                    left = ledger.count_unindexed()
                self._attempts.made(
                    facts, _fact_known_as, self._index_facts, lambda fact: ledger.mark_indexed([fact])
                )
            after, left = facts[-1].row, max(0, left - len(facts))
            if not wait or self._stopping():
                return

    def turns(self, *, wait: bool = True) -> None:
        """Index the turns that are pending; some of them, where ``wait`` is False."""
        backlog = self._store.backlog()
        newest = backlog.newest()

        def leave(turn: StoredTurn) -> None:
            backlog.advance("index", [turn])

        while not self._stopping():
            with self._one_of_turns, self._batches.inside():
                turns = backlog.pending("index", limit=_TURNS_AT_ONCE, upto=newest)
                if not turns:
                    return
                self._attempts.made(turns, _turn_known_as, self._index_turns, leave)
            if not wait:
                return

    def settled(self) -> None:
        """Wait until what was read before this call is written: what is erased before it cannot come back
        after it."""
        self._batches.settled()

    def _index_facts(self, facts: Sequence[Fact]) -> None:
        kept = [entries for fact in facts if (entries := fact_entries(fact)) is not None]
        staying = {item.id for item, _ in kept}
        gone = [fact for fact in facts if items.fact_item(fact.row) not in staying]
        self._write_words(kept, "lcm_facts", gone)
        self._write_vectors(kept, [items.fact_item(fact.row) for fact in gone])
        self._store.ledger().mark_indexed(facts)

    def _index_turns(self, turns: Sequence[StoredTurn]) -> None:
        kept = self.entries_of_turns(turns)
        self._write_words(kept, "lcm_turns", ())
        self._write_vectors(kept, ())
        self._store.backlog().advance("index", turns)

    def set_aside(self) -> list[str]:
        """The items that could not be indexed: see :mod:`lc_memory.index.attempts`."""
        return self._attempts.aside()

    def try_again(self) -> None:
        """Index what was set aside, if it can be now."""
        aside = self._attempts.aside()
        self._attempts.again(aside)
        facts, turns = items.rows_of(aside)
        for fact in self._store.ledger().by_row(facts).values():
            self._attempts.made([fact], _fact_known_as, self._index_facts, lambda _: None)
        for turn in self._store.backlog().by_row(turns).values():
            self._attempts.made([turn], _turn_known_as, self._index_turns, lambda _: None)

    def _write_words(self, kept: Sequence[_Entries], table: str, gone: Iterable[Fact]) -> None:
        with self._store.database.write() as connection:
            # What was erased since it was read must not come back: on PostgreSQL the rows are held, so
            # that an erasure under way comes after this and takes the words along.
            lock = "" if connection.dialect.name == "sqlite" else " FOR SHARE"
            there = text(f"SELECT id FROM {table} WHERE id IN :rows{lock}").bindparams(
                bindparam("rows", expanding=True)
            )
            rows = [item.row for item, _ in kept]
            alive = set(connection.execute(there, {"rows": rows}).scalars()) if rows else set()
            for owner, words in texts([e for e in kept if e[0].row in alive]).items():
                self._lexical.add(connection, owner, words)
            for fact in gone:
                self._lexical.remove(connection, fact.owner, [items.fact_item(fact.row)])

    def _write_vectors(self, kept: Sequence[_Entries], gone: Sequence[str]) -> None:
        def write(index: VectorIndex) -> None:
            index.put([item for item, _ in kept])
            index.remove(gone)

        if not kept and not gone:
            return
        try:
            self._vectors.use(write)
        except FactIndexError:
            with self._store.database.write() as connection:
                items.put_on_list(connection, [*(item.id for item, _ in kept), *gone])
            return
        # Erased while it was written: another process's erasure may have come and gone in between.
        there = self._wanted([item.id for item, _ in kept])
        lost = [item.id for item, _ in kept if item.id not in there]
        if lost:
            with self._store.database.write() as connection:
                items.put_on_list(connection, lost)

    # ------------------------------------------------------------ what is on the list

    def listed(self, *, anyway: bool = False) -> None:
        """Work off the list of what the vector index has to look at. FactIndexError where it cannot."""
        with self._store.database.read() as connection:
            last = items.last_listed(connection)
        done = 0
        while done < last:
            with self._batches.inside():
                with self._store.database.read() as connection:
                    entries = items.listed(connection, BATCH, after=done)
                if not entries:
                    return
                self._renew([item for _, item in entries], anyway=anyway)
                with self._store.database.write() as connection:
                    items.take_off_list(connection, [entry for entry, _ in entries])
            done = entries[-1][0]
            if self._stopping():
                return

    def erased(self) -> None:
        """Of the list do what concerns erased memories: they leave the vectors and their files, whatever
        embedding these are of. FactIndexError where they cannot."""
        gone: dict[int, str] = {}
        after = 0
        while True:
            with self._store.database.read() as connection:
                entries = items.listed(connection, BATCH, after=after)
            if not entries:
                break
            after = entries[-1][0]
            facts, turns = items.rows_of(item for _, item in entries)
            there = {items.fact_item(row) for row in self._store.ledger().by_row(facts)}
            there |= {items.turn_item(row) for row in self._store.backlog().by_row(turns)}
            gone |= {entry: item for entry, item in entries if item not in there}
        if gone:
            self._purge(list(dict.fromkeys(gone.values())))
            with self._store.database.write() as connection:
                items.take_off_list(connection, list(gone))

    def _purge(self, ids: Sequence[str]) -> None:
        database = self._store.database
        old, filling = recorded(database, LAST), recorded(database, NEXT)

        def purge(index: VectorIndex) -> None:
            if old is not None:
                index.drop(old.collection)
            index.remove(ids, purge=True, filling=filling)

        self._vectors.erase(purge)
        if old is not None:
            abandon(database, LAST)

    def _renew(self, ids: Sequence[str], *, anyway: bool = False) -> None:
        there = self._wanted(ids)
        history, _ = items.rows_of(i for i in ids if i not in there)
        retired = {items.fact_item(row) for row in self._store.ledger().by_row(history)}
        erased = [i for i in dict.fromkeys(ids) if i not in there and i not in retired]

        def renew(index: VectorIndex) -> None:
            index.put(list(there.values()))
            index.remove(sorted(retired))

        self._vectors.use(renew, anyway=anyway)
        if erased:
            self._purge(erased)

    def _wanted(self, ids: Iterable[str]) -> dict[str, Item]:
        """Of these items those that the vector index should have, as they are now."""
        aside = set(self._attempts.aside())
        facts, turns = items.rows_of(i for i in ids if i not in aside)
        found = [fact_entries(fact) for fact in self._store.ledger().by_row(facts).values()]
        stored = sorted(
            self._store.backlog().by_row(turns).values(), key=lambda s: (s.session_row, s.turn.seq)
        )
        return {e[0].id: e[0] for e in [*found, *self.entries_of_turns(stored)] if e is not None}

    def entries_of_turns(self, turns: Sequence[StoredTurn]) -> list[_Entries]:
        """Index entries of turns that come session by session, in order."""
        entries = []
        aside = {i for i in self._attempts.aside() if i[0] == "t"}
        before: StoredTurn | None = None
        for stored in turns:
            entry = turn_entries(stored, self._previous(stored, before, aside))
            if entry is not None:
                entries.append(entry)
            before = stored
        return entries

    def _previous(self, stored: StoredTurn, before: StoredTurn | None, aside: Collection[str]) -> Turn | None:
        """The turn before, None where it could not be indexed: it is no context either."""
        seq = stored.turn.seq - 1
        if before is not None and before.session_row == stored.session_row and before.turn.seq == seq:
            return None if items.turn_item(before.row) in aside else before.turn
        turn = next(self._store.turns(stored.key, start=seq, limit=1), None) if seq else None
        if turn is None or not aside:
            return turn
        left_out = self._store.backlog().by_row([int(item[1:]) for item in aside]).values()
        return None if any(one.key == stored.key and one.turn.seq == seq for one in left_out) else turn
