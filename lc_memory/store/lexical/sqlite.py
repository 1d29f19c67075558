"""The words of the lexical index in SQLite: an FTS5 table (see :mod:`lc_memory.store.lexical.index`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, text


class SqliteWords:
    """See the module."""

    # The table keeps no text (content=''), so a deletion must say which terms a row had. The "ascii"
    # tokenizer splits at spaces and takes all that is not ASCII as letters: it finds our terms as they are.
    tables = (
        """CREATE VIRTUAL TABLE lcm_lexical_words USING fts5(
            own, context, content = '', tokenize = 'ascii')""",
        "CREATE VIRTUAL TABLE lcm_lexical_vocabulary USING fts5vocab(lcm_lexical_words, row)",
    )
    _delete_words = text(
        """INSERT INTO lcm_lexical_words (lcm_lexical_words, rowid, own, context)
        VALUES ('delete', :row, :own, :context)"""
    )
    _insert = text(
        """INSERT INTO lcm_lexical_items (owner, item_key, item_id, source, own, context)
        VALUES (:owner, :key, :id, :source, :own, :context)"""
    )
    _numbers = text(
        "SELECT id, item_key FROM lcm_lexical_items WHERE owner = :owner AND item_key IN :keys"
    ).bindparams(bindparam("keys", expanding=True))
    _insert_words = text("INSERT INTO lcm_lexical_words (rowid, own, context) VALUES (:row, :own, :context)")
    _frequencies = text("SELECT term, doc FROM lcm_lexical_vocabulary WHERE term IN :terms").bindparams(
        bindparam("terms", expanding=True)
    )
    # The inner LIMIT bounds the work: rows are walked in the order of their ids, and weighed as they come.
    _matching = """SELECT i.item_id, i.source, i.own, i.context FROM (
            SELECT w.rowid AS row, bm25(lcm_lexical_words, 2.0, 1.0) AS score
            FROM lcm_lexical_words w {of_sources} lcm_lexical_words MATCH :query
            ORDER BY w.rowid DESC LIMIT :budget
        ) m JOIN lcm_lexical_items i ON i.id = m.row WHERE i.owner = :owner ORDER BY m.score LIMIT :limit"""
    _of_all = text(_matching.format(of_sources="WHERE"))
    _of_some = text(
        _matching.format(
            of_sources="JOIN lcm_lexical_items o ON o.id = w.rowid WHERE o.source IN :sources AND"
        )
    ).bindparams(bindparam("sources", expanding=True))

    def insert(self, connection: Connection, prefix: str, rows: list[dict[str, Any]]) -> None:
        connection.execute(self._insert, rows)
        asked = {"owner": rows[0]["owner"], "keys": [row["key"] for row in rows]}
        number = {row.item_key: row.id for row in connection.execute(self._numbers, asked)}
        connection.execute(
            self._insert_words,
            [_words(number[row["key"]], prefix, row["own"], row["context"]) for row in rows],
        )

    def delete(self, connection: Connection, prefix: str, rows: Sequence[Row[Any]]) -> None:
        connection.execute(self._delete_words, [_words(row.id, prefix, row.own, row.context) for row in rows])

    def frequencies(self, connection: Connection, terms: list[str]) -> dict[str, int]:
        rows = connection.execute(self._frequencies, {"terms": terms})
        return {row[0]: row[1] for row in rows}

    def matching(
        self,
        connection: Connection,
        owner: int,
        weights: Mapping[str, float],
        sources: Collection[str] | None,
        budget: int,
        limit: int,
    ) -> Sequence[Row[Any]]:
        query = " OR ".join(f'"{term}"' for term in weights)
        values: dict[str, Any] = {"query": query, "owner": owner, "budget": budget, "limit": limit}
        if sources is None:
            return connection.execute(self._of_all, values).all()
        return connection.execute(self._of_some, {**values, "sources": sorted(sources)}).all()

    def compact(self, connection: Connection) -> None:
        # One segment is written of all, without what was deleted. (The option "secure-delete" would do it
        # with each deletion, but SQLite has it from 3.42 on only.)
        connection.exec_driver_sql("INSERT INTO lcm_lexical_words (lcm_lexical_words) VALUES ('optimize')")


def _words(row: int, prefix: str, own: str, context: str) -> dict[str, Any]:
    return {
        "row": row,
        "own": " ".join(prefix + term for term in own.split()),
        "context": " ".join(prefix + term for term in context.split()),
    }
