"""The lexical index in the store's own database: FTS5 in SQLite, a GIN index over tsvectors in PostgreSQL.

Neither ranks as recall needs it (FTS5 weighs words over all users together, PostgreSQL does not weigh them
at all), and neither splits Chinese. So the database only *finds*: how many of an owner's items have a term,
and which items have the rare ones. What it found is scored by :mod:`lc_memory.store.lexical.scoring`.

Every indexed term begins with its owner's number (``1fx篮球``), so that a search reads the owner's entries
and nobody else's, however many share the table, and another owner's item cannot match. ``x`` ends the
number, which is written in hexadecimal; terms are letters and digits, so nothing in a question can be
query syntax.

At 100,000 items of one owner a common word has tens of thousands of matches. A search therefore looks for the
rarest terms only, up to :data:`BUDGET` matches, newest first; the other terms count in the score of what was
found.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Row, bindparam, text

from ..ddl import ddl
from ..text import digest, from_column, to_column
from .postgres import PostgresWords
from .scoring import Entry, LexicalHit, LexicalItem, Question
from .sqlite import SqliteWords

BUDGET = 1_000
"""So many matches of the rare terms are weighed, at about 2 us each in SQLite."""

MAX_SEARCHED = 32
"""So many of a question's terms, the rarest, are searched for."""

_RESCORED = 2  # times the limit: the database's order is only near to ours
_SLICE = 500  # values in one statement

_T = TypeVar("_T")


def create_lexical(connection: Connection) -> None:
    """Create the tables, as a step of the store's schema."""
    ddl(
        connection,
        """CREATE TABLE lcm_lexical_owners (
            id {id},
            owner_key {bytes} NOT NULL UNIQUE,
            items {int} NOT NULL,
            length {int} NOT NULL
        )""",
        """CREATE TABLE lcm_lexical_items (
            id {id},
            owner {int} NOT NULL,
            item_key {bytes} NOT NULL,
            item_id TEXT NOT NULL,
            source TEXT NOT NULL,
            own TEXT NOT NULL,
            context TEXT NOT NULL,
            UNIQUE (owner, item_key)
        )""",
        *_WORDS[connection.dialect.name].tables,
    )


class DatabaseLexicalIndex:
    """Items by owner, found by their words. ``owner`` and ids are any strings.

    All calls take part in the transaction that ``connection`` is in and leave the commit to the caller, so
    that a memory and its entry here are written together. No call touches or returns another owner's items.
    The object keeps no state.

    SQLite's index holds removed words, as things to be skipped, until :meth:`compact`, which :meth:`forget`
    calls. What the database's files hold of deleted rows is for
    :meth:`Database.wipe <lc_memory.store.database.Database.wipe>` to remove.
    """

    def add(self, connection: Connection, owner: str, items: Sequence[LexicalItem]) -> None:
        """Store items; an id that is there already is replaced."""
        entries = [Entry.of(item) for item in {item.id: item for item in items}.values()]
        if not entries:
            return
        number = _make_owner(connection, owner)
        gone = _take_out(connection, number, [entry.id for entry in entries])
        for some in _slices(entries):
            rows = [_row(number, entry) for entry in some]
            _WORDS[connection.dialect.name].insert(connection, _prefix(number), rows)
        _count(connection, number, len(entries) - gone[0], sum(e.length for e in entries) - gone[1])

    def remove(self, connection: Connection, owner: str, ids: Collection[str]) -> None:
        """Remove items; ids that are not there are no error."""
        number = _find_owner(connection, owner)
        if number is not None:
            items, length = _take_out(connection, number, list(ids))
            _count(connection, number, -items, -length)

    def search(
        self,
        connection: Connection,
        owner: str,
        question: str,
        limit: int,
        sources: Collection[str] | None = None,
    ) -> list[LexicalHit]:
        """At most ``limit`` items that share a term with the question, best first.

        ``sources`` limits the search to items of these sources; None: all.
        """
        surface = Question.terms(question)
        if not surface or limit < 1 or (sources is not None and not sources):
            return []
        mine = connection.execute(_OWNER, {"key": digest(owner)}).one_or_none()
        if mine is None or not mine.items:
            return []
        kept = _WORDS[connection.dialect.name]
        prefix = _prefix(mine.id)
        counts = kept.frequencies(connection, [prefix + term for term in surface])
        frequency = {term: counts.get(prefix + term, 0) for term in surface}
        asked = Question.weigh(surface, frequency, mine.items, mine.length)
        rare = asked.rarest(frequency, BUDGET, MAX_SEARCHED)
        if not rare:
            return []
        weights = {prefix + term: asked.idf[term] for term in rare}
        found = kept.matching(connection, mine.id, weights, sources, BUDGET, max(_RESCORED * limit, 64))
        return asked.best(map(_entry, found), limit)

    def ids(self, connection: Connection, owner: str, sources: Collection[str] | None = None) -> list[str]:
        """All of the owner's items; ``sources``: of these only."""
        number = _find_owner(connection, owner)
        rows = connection.execute(_IDS, {"owner": number}).all()
        return [row.item_id for row in rows if sources is None or row.source in sources]

    def forget(self, connection: Connection, owner: str) -> None:
        """Remove all that the owner has, and see that no trace of its words is left in the index."""
        number = _find_owner(connection, owner)
        if number is None:
            return
        # By slices, so that an owner of any size fits into memory.
        while rows := connection.execute(_SOME_ITEMS, {"owner": number, "some": _SLICE}).all():
            _delete(connection, number, rows)
        connection.execute(text("DELETE FROM lcm_lexical_owners WHERE id = :id"), {"id": number})
        self.compact(connection)

    def compact(self, connection: Connection) -> None:
        """Write out of the index what was removed from it. Costs about 1 s for each 100,000 items."""
        _WORDS[connection.dialect.name].compact(connection)


class _Words(Protocol):
    """What the two databases do each in its own way. Terms are given with their owner's prefix."""

    @property
    def tables(self) -> Sequence[str]: ...

    def insert(self, connection: Connection, prefix: str, rows: list[dict[str, Any]]) -> None:
        """Insert rows of lcm_lexical_items; their ``own`` and ``context`` are without prefix."""

    def delete(self, connection: Connection, prefix: str, rows: Sequence[Row[Any]]) -> None:
        """Remove the words of rows that are about to be deleted."""

    def frequencies(self, connection: Connection, terms: list[str]) -> dict[str, int]:
        """In how many items each term is; terms that occur nowhere may be left out."""

    def matching(
        self,
        connection: Connection,
        owner: int,
        weights: Mapping[str, float],
        sources: Collection[str] | None,
        budget: int,
        limit: int,
    ) -> Sequence[Row[Any]]:
        """Of the newest ``budget`` items that have any of the terms the likely best ``limit``."""

    def compact(self, connection: Connection) -> None: ...


_WORDS: dict[str, _Words] = {"sqlite": SqliteWords(), "postgresql": PostgresWords()}

_OWNER = text("SELECT id, items, length FROM lcm_lexical_owners WHERE owner_key = :key")
_MAKE_OWNER = text(
    """INSERT INTO lcm_lexical_owners (owner_key, items, length) VALUES (:key, 0, 0)
    ON CONFLICT (owner_key) DO NOTHING"""
)
_COUNT = text(
    "UPDATE lcm_lexical_owners SET items = items + :items, length = length + :length WHERE id = :owner"
)
_ITEMS = text(
    """SELECT id, item_key, item_id, source, own, context FROM lcm_lexical_items
    WHERE owner = :owner AND item_key IN :keys"""
).bindparams(bindparam("keys", expanding=True))
_DELETE = text("DELETE FROM lcm_lexical_items WHERE id IN :rows").bindparams(
    bindparam("rows", expanding=True)
)
_IDS = text("SELECT item_id, source FROM lcm_lexical_items WHERE owner = :owner")
_SOME_ITEMS = text(
    "SELECT id, item_id, source, own, context FROM lcm_lexical_items WHERE owner = :owner LIMIT :some"
)


def _prefix(owner: int) -> str:
    return f"{owner:x}x"


def _find_owner(connection: Connection, owner: str) -> int | None:
    row = connection.execute(_OWNER, {"key": digest(owner)}).one_or_none()
    return None if row is None else int(row.id)


def _make_owner(connection: Connection, owner: str) -> int:
    number = _find_owner(connection, owner)
    if number is None:
        connection.execute(_MAKE_OWNER, {"key": digest(owner)})
        number = _find_owner(connection, owner)
    assert number is not None
    return number


def _count(connection: Connection, owner: int, items: int, length: int) -> None:
    connection.execute(_COUNT, {"owner": owner, "items": items, "length": length})


def _take_out(connection: Connection, owner: int, ids: list[str]) -> tuple[int, int]:
    """Remove items; how many there were, and their length."""
    items = length = 0
    for some in _slices(ids):
        values = {"owner": owner, "keys": [digest(id_) for id_ in some]}
        rows = connection.execute(_ITEMS, values).all()
        if rows:
            _delete(connection, owner, rows)
        items += len(rows)
        length += sum(_entry(row).length for row in rows)
    return items, length


def _delete(connection: Connection, owner: int, rows: Sequence[Row[Any]]) -> None:
    _WORDS[connection.dialect.name].delete(connection, _prefix(owner), rows)
    connection.execute(_DELETE, {"rows": [row.id for row in rows]})


def _row(owner: int, entry: Entry) -> dict[str, Any]:
    return {
        "owner": owner,
        "key": digest(entry.id),
        "id": to_column(entry.id),
        "source": entry.source,
        "own": " ".join(entry.own),
        "context": " ".join(entry.context),
    }


def _entry(row: Row[Any]) -> Entry:
    own, context = tuple(row.own.split()), tuple(row.context.split())
    return Entry(from_column(row.item_id), row.source, own, context)


def _slices(values: list[_T]) -> Iterator[list[_T]]:
    for start in range(0, len(values), _SLICE):
        yield values[start : start + _SLICE]


__all__ = ["BUDGET", "DatabaseLexicalIndex", "create_lexical"]
