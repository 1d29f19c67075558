"""The store over a SQL database, SQLite or PostgreSQL.

The row of a session is the lock and the counter of its turns: saving one moves ``last_seq`` by an upsert
that returns the new number, and holds the row until the commit. So numbers have no gaps and order is that
of the commits. Whatever must be consistent is read by one statement, which needs no transaction. The SQL
is plain text, the same for both databases, because it has to be: upserts and RETURNING are the point of it.
"""

from __future__ import annotations

import logging
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, bindparam, text

from lc_memory.errors import MemoryInputError, StoreError

from .backlog import Backlog
from .database import Database
from .items import compact_words, erased_turns
from .ledger import Ledger, erase_facts
from .rows import Forgotten, Message, SessionInfo, SessionKey, Snapshot, Turn
from .text import (
    check_text,
    digest,
    dump_messages,
    from_column,
    from_moment,
    load_messages,
    moment,
    to_column,
)
from .uninterrupted import undisturbed, undisturbed_calls

_log = logging.getLogger(__name__)

_PAGE = 200
_ERASE_AT_ONCE = 500
_SAVED_AT_ONCE = 500
_ALL = 1 << 53

_NEXT_SEQ = text(
    "INSERT INTO lcm_sessions (name_key, user_key, session_id, user_id, last_seq, changes, covers, indexed,"
    " noted, created_at, updated_at)"
    " VALUES (:name_key, :user_key, :session_id, :user_id, 1, 1, 0, 0, 0, :now, :now)"
    " ON CONFLICT (name_key, user_key) DO UPDATE SET last_seq = lcm_sessions.last_seq + 1,"
    " changes = lcm_sessions.changes + 1, updated_at = excluded.updated_at RETURNING id, last_seq"
)
_ADD_TURN = text(
    "INSERT INTO lcm_turns (session, seq, turn_key, turn_id, messages, created_at)"
    " VALUES (:session, :seq, :turn_key, :turn_id, :messages, :created_at)"
    " ON CONFLICT (session, turn_key) DO NOTHING"
)
_TURN_BY_ID = text(
    "SELECT seq, messages, created_at, turn_id FROM lcm_turns"
    " WHERE session = :session AND turn_key = :turn_key"
)
_NO_SEQ_YET = text(
    "INSERT INTO lcm_sessions (name_key, user_key, session_id, user_id, last_seq, changes, covers, indexed,"
    " noted, created_at, updated_at)"
    " VALUES (:name_key, :user_key, :session_id, :user_id, 0, 1, 0, 0, 0, :now, :now)"
    " ON CONFLICT (name_key, user_key) DO UPDATE SET changes = lcm_sessions.changes + 1,"
    " updated_at = excluded.updated_at RETURNING id, last_seq"
)
_TURN_KEYS = text("SELECT turn_key FROM lcm_turns WHERE session = :session")
_INSERT_TURN = text(
    "INSERT INTO lcm_turns (session, seq, turn_key, turn_id, messages, created_at)"
    " VALUES (:session, :seq, :turn_key, :turn_id, :messages, :created_at)"
)
_SET_SEQ = text("UPDATE lcm_sessions SET last_seq = :last WHERE id = :session")
_VERSION = text("SELECT id, changes FROM lcm_sessions WHERE name_key = :name_key AND user_key = :user_key")
_LOAD = text(
    "SELECT s.id, s.changes, s.summary, s.covers, s.kept, t.seq, t.messages, t.created_at, t.turn_id"
    " FROM lcm_sessions s LEFT JOIN lcm_turns t ON t.session = s.id"
    " AND t.seq > CASE WHEN s.covers > :after THEN s.covers ELSE :after END AND t.seq > s.last_seq - :last"
    " WHERE s.name_key = :name_key AND s.user_key = :user_key ORDER BY t.seq"
)
_SUMMARIZE = text(
    "UPDATE lcm_sessions SET summary = :summary, covers = :covers, kept = :kept, changes = changes + 1"
    " WHERE name_key = :name_key AND user_key = :user_key"
    " AND id = :incarnation AND covers = :expected AND last_seq >= :covers"
)
_PAGE_OF_TURNS = text(
    "SELECT seq, messages, created_at, turn_id FROM lcm_turns"
    " WHERE session = :session AND seq >= :start ORDER BY seq LIMIT :page"
)
_LIST = "SELECT session_id, user_id, last_seq, created_at, updated_at FROM lcm_sessions"
_NEWEST_FIRST = " ORDER BY updated_at DESC, id DESC"
_LIST_ALL = text(_LIST + _NEWEST_FIRST)
_LIST_OF_USER = text(_LIST + " WHERE user_key = :user_key" + _NEWEST_FIRST)

_TURNS_OF = text("SELECT id FROM lcm_turns WHERE session IN :sessions").bindparams(
    bindparam("sessions", expanding=True)
)
_ERASE_TURNS = text("DELETE FROM lcm_turns WHERE session IN :sessions").bindparams(
    bindparam("sessions", expanding=True)
)
_ERASE_SESSIONS = text("DELETE FROM lcm_sessions WHERE id IN :sessions").bindparams(
    bindparam("sessions", expanding=True)
)


class _Known(Exception):
    """A turn that is there already."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn


@undisturbed_calls("transaction", "ledger", "backlog")
class SqlStore:
    """The :class:`~lc_memory.store.Store` in a SQL database. Made by :func:`lc_memory.store.open_store`."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def append(
        self,
        key: SessionKey,
        messages: Sequence[Message],
        *,
        turn_id: str | None = None,
        created_at: float | None = None,
    ) -> Turn:
        try:
            return self._append(key, messages, turn_id, created_at)
        except _Known as known:  # its transaction is undone, and with it the number that was drawn
            return known.turn

    def _append(
        self, key: SessionKey, messages: Sequence[Message], turn_id: str | None, created_at: float | None
    ) -> Turn:
        session = _keys(key)
        if turn_id is None:
            turn_id = uuid.uuid4().hex
        else:
            check_text("turn_id", turn_id)
        column, stored = dump_messages(messages)
        now = time.time()
        created_at = now if created_at is None else moment("created_at", created_at)
        turn_key = digest(turn_id)
        with self.database.write() as connection:
            row = connection.execute(
                _NEXT_SEQ,
                {
                    **session,
                    "session_id": to_column(key.session_id),
                    "user_id": None if key.user_id is None else to_column(key.user_id),
                    "now": now,
                },
            ).one()
            added = connection.execute(
                _ADD_TURN,
                {
                    "session": row.id,
                    "seq": row.last_seq,
                    "turn_key": turn_key,
                    "turn_id": to_column(turn_id),
                    "messages": column,
                    "created_at": created_at,
                },
            )
            if not added.rowcount:
                first = connection.execute(_TURN_BY_ID, {"session": row.id, "turn_key": turn_key}).one()
                raise _Known(_turn(first))
        return Turn(row.last_seq, stored, created_at, turn_id)

    def append_all(
        self,
        key: SessionKey,
        turns: Sequence[Sequence[Message]],
        *,
        turn_ids: Sequence[str] | None = None,
        created_at: float | None = None,
    ) -> int:
        session = _keys(key)
        ids = [uuid.uuid4().hex for _ in turns] if turn_ids is None else list(turn_ids)
        if len(ids) != len(turns):
            raise MemoryInputError(f"{len(turns)} turns have {len(ids)} turn_ids")
        for turn_id in ids:
            check_text("turn_id", turn_id)
        now = time.time()
        rows = {
            digest(turn_id): {
                "turn_key": digest(turn_id),
                "turn_id": to_column(turn_id),
                "messages": dump_messages(messages)[0],
                "created_at": now if created_at is None else float(created_at),
            }
            for turn_id, messages in zip(ids, turns, strict=True)
        }
        if not rows:
            return 0
        who = {
            "session_id": to_column(key.session_id),
            "user_id": None if key.user_id is None else to_column(key.user_id),
        }
        with self.database.write() as connection:
            row = connection.execute(_NO_SEQ_YET, {**session, **who, "now": now}).one()
            if row.last_seq:
                for known in connection.execute(_TURN_KEYS, {"session": row.id}).scalars():
                    rows.pop(bytes(known), None)
            new = [
                {"session": row.id, "seq": seq, **columns}
                for seq, columns in enumerate(rows.values(), row.last_seq + 1)
            ]
            for start in range(0, len(new), _SAVED_AT_ONCE):
                connection.execute(_INSERT_TURN, new[start : start + _SAVED_AT_ONCE])
            connection.execute(_SET_SEQ, {"session": row.id, "last": row.last_seq + len(new)})
        return len(new)

    def version(self, key: SessionKey) -> int:
        with self.database.read() as connection:
            row = connection.execute(_VERSION, _keys(key)).first()
        return 0 if row is None else _version(row)

    def load(self, key: SessionKey, *, after: int = 0, last: int | None = None) -> Snapshot:
        bounds = {"after": after, "last": _ALL if last is None else last}
        with self.database.read() as connection:
            rows = connection.execute(_LOAD, {**_keys(key), **bounds}).all()
        if not rows:
            return Snapshot(0, None, 0, ())
        first = rows[0]
        return Snapshot(
            _version(first),
            None if first.summary is None else from_column(first.summary),
            first.covers,
            () if first.seq is None else tuple(_turn(row[5:]) for row in rows),
            () if first.kept is None else load_messages(first.kept),
        )

    def commit_summary(
        self,
        key: SessionKey,
        summary: str | None,
        covers: int,
        *,
        based_on: Snapshot,
        kept: Sequence[Message] = (),
    ) -> bool:
        if summary is not None:
            check_text("summary", summary)
        if covers < 0:
            raise MemoryInputError(f"covers must be the number of a turn, or 0, not {covers}")
        with self.database.write() as connection:
            done = connection.execute(
                _SUMMARIZE,
                {
                    **_keys(key),
                    "summary": None if summary is None else to_column(summary),
                    "covers": covers,
                    "kept": dump_messages(kept)[0] if kept else None,
                    "incarnation": based_on.version >> _CHANGE_BITS,
                    "expected": based_on.covers,
                },
            )
        return bool(done.rowcount)

    def turns(self, key: SessionKey, *, start: int = 1, limit: int | None = None) -> Iterator[Turn]:
        session = self._row(key)
        left = limit
        while session is not None and (left is None or left > 0):
            page = _PAGE if left is None else min(_PAGE, left)
            rows = self._page(session, start, page)
            yield from map(_turn, rows)
            if len(rows) < page:
                return
            start = rows[-1].seq + 1
            left = None if left is None else left - page

    @undisturbed
    def _row(self, key: SessionKey) -> int | None:
        with self.database.read() as connection:
            row = connection.execute(_VERSION, _keys(key)).first()
        return None if row is None else int(row.id)

    @undisturbed
    def _page(self, session: int, start: int, page: int) -> Sequence[Any]:
        with self.database.read() as connection:
            bound = {"session": session, "start": start, "page": page}
            return connection.execute(_PAGE_OF_TURNS, bound).all()

    def sessions(self, user_id: str | None = None) -> list[SessionInfo]:
        with self.database.read() as connection:
            if user_id is None:
                rows = connection.execute(_LIST_ALL).all()
            else:
                check_text("user_id", user_id)
                rows = connection.execute(_LIST_OF_USER, {"user_key": digest(user_id)}).all()
        return [SessionInfo(_key(row), row.last_seq, row.created_at, row.updated_at) for row in rows]

    def clear(self, key: SessionKey) -> Forgotten:
        with self.database.write() as connection:
            return _erase(connection, _keys(key))

    def forget(
        self, *, user_id: str | None = None, session_id: str | None = None, wipe: bool = True
    ) -> Forgotten:
        keys: dict[str, Any] = {}
        if user_id is not None:
            check_text("user_id", user_id)
            keys["user_key"] = digest(user_id)
        if session_id is not None:
            check_text("session_id", session_id)
            keys["name_key"] = digest(session_id)
        if not keys:
            raise MemoryInputError("forget() needs a user_id, a session_id, or both")
        with self.database.write() as connection:
            erased = _erase(connection, keys)
            erased = replace(erased, facts=erase_facts(connection, user_id, session_id))
        if not wipe:
            return erased
        try:
            return replace(erased, wiped=self.wipe())
        except StoreError as error:  # the erasure is done, and whoever asked for it needs to know of what
            _log.warning("erased, but not yet wiped from the files; call wipe() again: %s", error)
            return erased

    def wipe(self) -> bool:
        with self.database.write() as connection:
            compact_words(connection)
        return self.database.wipe()

    def transaction(self) -> AbstractContextManager[object]:
        return self.database.write()

    def ledger(self) -> Ledger:
        return Ledger(self.database)

    def backlog(self) -> Backlog:
        return Backlog(self.database)

    def close(self) -> None:
        self.database.close()


_CHANGE_BITS = 32


def _version(row: Any) -> int:
    # The id of the row is never given twice and later ones are larger: with it in front, the version of
    # a session that was erased and begun anew cannot be one that somebody still remembers.
    return (int(row.id) << _CHANGE_BITS) + int(row.changes)


def _keys(key: SessionKey) -> dict[str, Any]:
    check_text("session_id", key.session_id)
    if key.user_id is not None:
        check_text("user_id", key.user_id)
    return {"name_key": digest(key.session_id), "user_key": digest(key.user_id)}


def _key(row: Any) -> SessionKey:
    return SessionKey(from_column(row.session_id), None if row.user_id is None else from_column(row.user_id))


def _turn(row: Sequence[Any]) -> Turn:
    seq, messages, created_at, turn_id = row  # by position: half of the time of reading a window
    return Turn(seq, load_messages(messages), from_moment(created_at), from_column(turn_id))


def _erase(connection: Connection, keys: dict[str, Any]) -> Forgotten:
    where = " AND ".join(f"{name} = :{name}" for name in keys)
    # On PostgreSQL the rows are locked, in one order, so that no turn slips in between the deletes.
    lock = "" if connection.dialect.name == "sqlite" else " FOR UPDATE"
    found = connection.execute(
        text(f"SELECT id, session_id, user_id FROM lcm_sessions WHERE {where} ORDER BY id{lock}"), keys
    ).all()
    turns: list[int] = []
    for start in range(0, len(found), _ERASE_AT_ONCE):
        some = {"sessions": [row.id for row in found[start : start + _ERASE_AT_ONCE]]}
        turns += connection.execute(_TURNS_OF, some).scalars()
        connection.execute(_ERASE_TURNS, some)
        connection.execute(_ERASE_SESSIONS, some)
    sessions = tuple(_key(row) for row in found)
    erased_turns(connection, sessions, turns)
    return Forgotten(sessions=sessions, turns=tuple(turns))
