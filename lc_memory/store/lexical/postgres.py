"""The words of the lexical index in PostgreSQL: a tsvector under a GIN index (see lexical_sql)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Row, text


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
    # "id + 0": or the planner walks all items by their ids to save a sort of the few that match.
    _matching = """SELECT item_id, source, own, context FROM (
            SELECT * FROM lcm_lexical_items
            WHERE words @@ CAST(:query AS tsquery) AND owner = :owner {of_sources}
            ORDER BY id + 0 DESC LIMIT :budget
        ) m ORDER BY {weight} DESC, length(own) + length(context), id DESC LIMIT :limit"""

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
        values: dict[str, Any] = {"owner": owner, "budget": budget, "limit": limit}
        values["query"] = " | ".join(f"'{term}'" for term in weights)
        of_term = []  # parameters of their own, so that each is parsed once and not for every row
        for i, (term, weight) in enumerate(weights.items()):
            of_term.append(f"CASE WHEN words @@ CAST(:t{i} AS tsquery) THEN CAST(:w{i} AS float8) ELSE 0 END")
            values |= {f"t{i}": f"'{term}'", f"w{i}": weight}
        of_sources = "" if sources is None else "AND source = ANY(CAST(:sources AS text[]))"
        values |= {} if sources is None else {"sources": sorted(sources)}
        statement = self._matching.format(of_sources=of_sources, weight=" + ".join(of_term))
        return connection.execute(text(statement), values).all()

    def compact(self, connection: Connection) -> None:
        pass  # VACUUM, which cannot run in a transaction
