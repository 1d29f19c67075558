"""The words of the lexical index in PostgreSQL: a tsvector under a GIN index (see lexical_sql)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, bindparam, text


class PostgresWords:
    """See the module."""

    # No position is ever asked for, so the vectors hold none. Without fastupdate no search has to read a
    # list of entries that wait to be sorted in.
    tables = (
        "ALTER TABLE lcm_lexical_items ADD COLUMN words TSVECTOR NOT NULL",
        "CREATE INDEX lcm_lexical_words ON lcm_lexical_items USING gin (words) WITH (fastupdate = off)",
    )
    _insert = text(
        """INSERT INTO lcm_lexical_items (owner, item_key, item_id, source, own, context, words)
        VALUES (:owner, :key, :id, :source, :own, :context, array_to_tsvector(CAST(:words AS text[])))"""
    )
    _frequencies = text(
        """SELECT term, (
            SELECT count(*) FROM lcm_lexical_items WHERE words @@ CAST(quote_literal(term) AS tsquery)
        ) FROM unnest(CAST(:terms AS text[])) AS term"""
    )
    _matching = """SELECT item_id, source, own, context FROM (
            SELECT * FROM lcm_lexical_items
            WHERE words @@ CAST(:query AS tsquery) AND owner = :owner {sources}
            ORDER BY id DESC LIMIT :budget
        ) m ORDER BY (
            SELECT sum(weight)
            FROM unnest(CAST(:terms AS text[]), CAST(:weights AS float8[])) AS t (term, weight)
            WHERE m.words @@ CAST(quote_literal(term) AS tsquery)
        ) DESC, length(own) + length(context), id DESC LIMIT :limit"""

    def insert(self, connection: Connection, prefix: str, rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row["words"] = [prefix + term for term in {*row["own"].split(), *row["context"].split()}]
        connection.execute(self._insert, rows)

    def delete(self, connection: Connection, prefix: str, rows: Sequence[Row[Any]]) -> None:
        pass  # the words are in the row itself

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
        statement = text(self._matching.format(sources="" if sources is None else "AND source IN :sources"))
        values: dict[str, Any] = {"owner": owner, "budget": budget, "limit": limit}
        if sources is not None:
            statement = statement.bindparams(bindparam("sources", expanding=True))
            values["sources"] = sorted(sources)
        values["query"] = " | ".join(f"'{term}'" for term in weights)
        values |= {"terms": list(weights), "weights": list(weights.values())}
        return connection.execute(statement, values).all()

    def compact(self, connection: Connection) -> None:
        pass  # VACUUM, which cannot run in a transaction
