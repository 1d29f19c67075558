"""Memories as the indexes know them: an id for each row, and the list of what is still to be followed.

``f12`` is the fact of row 12, ``t12`` the turn of row 12. Rows are never given twice, so an entry that was
left behind in an index can never come to stand for another memory.

The lexical index lies in the store's database and changes in its transactions. The vector index lies
elsewhere and may be away for a while: an id on the list ``lcm_to_vectors`` says that it has to look at that
memory again, to take it in as it now is, or to let it go where it is no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlalchemy import Connection, bindparam, text

from .lexical.index import DatabaseLexicalIndex
from .rows import SessionKey

_LISTED = text("SELECT id, item FROM lcm_to_vectors WHERE id > :after ORDER BY id LIMIT :limit")
_LAST = text("SELECT COALESCE(MAX(id), 0) FROM lcm_to_vectors")
_LEFT = text("SELECT COUNT(*) FROM lcm_to_vectors")
_ADD = text("INSERT INTO lcm_to_vectors (item) VALUES (:item)")
_DONE = text("DELETE FROM lcm_to_vectors WHERE id IN :entries").bindparams(
    bindparam("entries", expanding=True)
)
_NOT_TRIED = text("DELETE FROM lcm_attempts WHERE item IN :items").bindparams(
    bindparam("items", expanding=True)
)
_AT_ONCE = 500


def fact_item(row: int) -> str:
    return f"f{row}"


def turn_item(row: int) -> str:
    return f"t{row}"


def rows_of(items: Iterable[str]) -> tuple[list[int], list[int]]:
    """The rows of facts and of turns among items; ids that are neither are left out."""
    facts: list[int] = []
    turns: list[int] = []
    for item in items:
        if item[1:].isascii() and item[1:].isdigit():
            if item[0] == "f":
                facts.append(int(item[1:]))
            elif item[0] == "t":
                turns.append(int(item[1:]))
    return facts, turns


def listed(connection: Connection, limit: int, *, after: int = 0) -> list[tuple[int, str]]:
    """What the vector index has to look at, first come first: entry of the list and item; those behind the
    entry ``after``."""
    return [(row.id, row.item) for row in connection.execute(_LISTED, {"limit": limit, "after": after})]


def last_listed(connection: Connection) -> int:
    """The entry that came last; 0 where there is none."""
    return int(connection.execute(_LAST).scalar_one())


def count_listed(connection: Connection) -> int:
    return int(connection.execute(_LEFT).scalar_one())


def put_on_list(connection: Connection, items: Iterable[str]) -> None:
    """An item may stand on the list twice: whoever works off the first entry may have read what it
    was before."""
    entries = [{"item": item} for item in items]
    if entries:
        connection.execute(_ADD, entries)


def take_off_list(connection: Connection, entries: Sequence[int]) -> None:
    for start in range(0, len(entries), _AT_ONCE):
        connection.execute(_DONE, {"entries": list(entries[start : start + _AT_ONCE])})


def erased_turns(connection: Connection, sessions: Iterable[SessionKey], rows: Sequence[int]) -> None:
    """In the transaction that erases them: their words leave the index, and their vectors are to follow."""
    items = [turn_item(row) for row in rows]
    _drop(connection, dict.fromkeys((key.owner for key in sessions), items), items)


def erased_facts(connection: Connection, owners: Mapping[int, str]) -> None:
    """As :func:`erased_turns`; ``owners`` by row."""
    by_owner: dict[str, list[str]] = {}
    for row, owner in owners.items():
        by_owner.setdefault(owner, []).append(fact_item(row))
    _drop(connection, by_owner, [fact_item(row) for row in owners])


def compact_words(connection: Connection) -> None:
    """Write out of the lexical index what was removed from it."""
    DatabaseLexicalIndex().compact(connection)


def _drop(connection: Connection, by_owner: Mapping[str, Sequence[str]], items: Sequence[str]) -> None:
    if not items:
        return
    for owner, some in by_owner.items():
        DatabaseLexicalIndex().remove(connection, owner, some)
    for start in range(0, len(items), _AT_ONCE):
        connection.execute(_NOT_TRIED, {"items": list(items[start : start + _AT_ONCE])})
    put_on_list(connection, items)
