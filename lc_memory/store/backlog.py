"""The turns as the indexes see them: by row, and what is still to be done with them.

Two jobs follow the conversation at their own pace: the turn index (``"index"``) and the write filter of
the long-term facts (``"notes"``). For each, a session remembers the last turn that is done. A mark for the
whole store would not do, since on PostgreSQL a lower row may be committed after a higher one; within a
session turns are committed in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import bindparam, text

from .database import Database
from .rows import SessionKey, Turn
from .text import digest, from_column, from_moment, load_messages
from .uninterrupted import undisturbed_calls

Job = Literal["index", "notes"]

_MARK: dict[Job, str] = {"index": "indexed", "notes": "noted"}

_STORED_TURN = (
    "SELECT t.id, t.session, s.session_id, s.user_id, t.seq, t.messages, t.created_at, t.turn_id"
    " FROM lcm_turns t JOIN lcm_sessions s ON s.id = t.session"
)
_SCAN = text(_STORED_TURN + " WHERE t.id > :after ORDER BY t.id LIMIT :limit")
_BY_ROW = text(_STORED_TURN + " WHERE t.id IN :rows").bindparams(bindparam("rows", expanding=True))
_ROWS_AT_ONCE = 500


@dataclass(frozen=True)
class StoredTurn:
    """A turn, with the conversation it belongs to and its row."""

    row: int
    """Unique in the store and never given twice: the id under which an index knows the turn."""
    key: SessionKey
    turn: Turn
    session_row: int


@undisturbed_calls()
class Backlog:
    """What is left to do for each :data:`Job`. Got by :meth:`Store.backlog`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def newest(self) -> int:
        """The row of the turn that was saved last; 0 where there is none."""
        with self._database.read() as connection:
            return int(connection.execute(text("SELECT COALESCE(MAX(id), 0) FROM lcm_turns")).scalar_one())

    def pending(
        self,
        job: Job,
        *,
        key: SessionKey | None = None,
        user_id: str | None = None,
        limit: int = 200,
        upto: int | None = None,
    ) -> list[StoredTurn]:
        """Up to ``limit`` turns that are still to be done, session by session, in order within each.

        With ``key`` only those of that session, with ``user_id`` those of that user; with ``upto`` (a row)
        none that was saved after that one.
        """
        mark = _MARK[job]
        bound: dict[str, Any] = {"limit": limit}
        # The conditions on the session repeat those of a partial index, which holds just these sessions.
        sql = f"{_STORED_TURN} AND t.seq > s.{mark} WHERE s.{mark} < s.last_seq"
        if key is not None:
            sql += " AND s.name_key = :name_key AND s.user_key = :user_key"
            bound |= {"name_key": digest(key.session_id), "user_key": digest(key.user_id)}
        elif user_id is not None:
            sql += " AND s.user_key = :user_key"
            bound["user_key"] = digest(user_id)
        if upto is not None:
            sql += " AND t.id <= :upto"
            bound["upto"] = upto
        with self._database.read() as connection:
            rows = connection.execute(text(sql + " ORDER BY s.id, t.seq LIMIT :limit"), bound).all()
        return [_stored_turn(row) for row in rows]

    def advance(self, job: Job, turns: Iterable[StoredTurn]) -> bool:
        """Mark turns as done that :meth:`pending` gave.

        False, and nothing marked, where another worker did some of them first or a session is gone.
        Called after the work it makes sure that a turn is done at least once; in one
        :meth:`~lc_memory.store.Store.transaction` with it, exactly once.
        """
        spans: dict[int, tuple[int, int]] = {}
        for stored in turns:
            first, last = spans.get(stored.session_row, (stored.turn.seq, stored.turn.seq))
            spans[stored.session_row] = min(first, stored.turn.seq), max(last, stored.turn.seq)
        mark = _MARK[job]
        move = text(f"UPDATE lcm_sessions SET {mark} = :last WHERE id = :session AND {mark} = :before")
        with self._database.write() as connection, connection.begin_nested() as marked:
            for session, (first, last) in sorted(spans.items()):
                moved = connection.execute(move, {"last": last, "session": session, "before": first - 1})
                if not moved.rowcount:
                    marked.rollback()
                    return False
        return True

    def rewind(self, job: Job) -> None:
        """All turns are to be done again: the index was lost, or is built anew."""
        mark = _MARK[job]
        with self._database.write() as connection:
            connection.execute(text(f"UPDATE lcm_sessions SET {mark} = 0 WHERE {mark} <> 0"))

    def counts(self, job: Job) -> tuple[int, int]:
        """How many turns there are, and how many of them are still to be done."""
        mark = _MARK[job]
        with self._database.read() as connection:
            total, left = connection.execute(
                text(
                    f"SELECT COALESCE(SUM(last_seq), 0), COALESCE(SUM(last_seq - {mark}), 0)"
                    " FROM lcm_sessions"
                )
            ).one()
        return int(total), int(left)

    def scan(self, *, after: int = 0, limit: int = 500) -> list[StoredTurn]:
        """All turns by row, a page at a time: those behind the row ``after``."""
        with self._database.read() as connection:
            rows = connection.execute(_SCAN, {"after": after, "limit": limit}).all()
        return [_stored_turn(row) for row in rows]

    def by_row(self, rows: Sequence[int]) -> dict[int, StoredTurn]:
        """The turns of these rows; those that were erased are missing."""
        found: dict[int, StoredTurn] = {}
        with self._database.read() as connection:
            for start in range(0, len(rows), _ROWS_AT_ONCE):
                some = {"rows": list(rows[start : start + _ROWS_AT_ONCE])}
                found |= {row.id: _stored_turn(row) for row in connection.execute(_BY_ROW, some)}
        return found


def _stored_turn(row: Any) -> StoredTurn:
    return StoredTurn(
        row=row.id,
        key=SessionKey(
            from_column(row.session_id), None if row.user_id is None else from_column(row.user_id)
        ),
        turn=Turn(
            row.seq, load_messages(row.messages), from_moment(row.created_at), from_column(row.turn_id)
        ),
        session_row=row.session,
    )
