"""The tables, and how a store of an older version becomes one of this version.

A store is built by its history: each step in :data:`STEPS` leads from one schema version to the next, and a
new store walks all of them, so a fresh store and a migrated one cannot differ. A step that has been
released is never edited; a change of the tables is a new step at the end. All steps that an open needs
run in one transaction.

The SQL is the same for both databases but for the types in braces:

========== ======================================= ==========================================
name       SQLite                                  PostgreSQL
========== ======================================= ==========================================
``{id}``   INTEGER PRIMARY KEY AUTOINCREMENT       BIGINT identity, primary key
``{int}``  INTEGER                                 BIGINT
``{real}`` REAL                                    DOUBLE PRECISION
``{bytes}`` BLOB                                   BYTEA
========== ======================================= ==========================================

Neither kind of id is ever given twice, so an index entry left behind by an erased row can never come to
stand for another row. Table names begin with ``lcm_``: a PostgreSQL database may be shared with others.
A step that one database alone needs (a full-text table, triggers) asks ``conn.dialect.name``.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, text

from lc_memory.errors import StoreError

from .ddl import ddl
from .lexical.index import create_lexical


def _sessions_and_turns(conn: Connection) -> None:
    ddl(
        conn,
        # *_key columns are digests of the ids beside them (text.digest). `indexed` and `noted` say up to
        # which turn the turn index and the write filter have come; the partial indexes over them are
        # empty when nothing is left to do.
        """CREATE TABLE lcm_sessions (
            id {id},
            name_key {bytes} NOT NULL,
            user_key {bytes} NOT NULL,
            session_id TEXT NOT NULL,
            user_id TEXT,
            last_seq {int} NOT NULL,
            changes {int} NOT NULL,
            summary TEXT,
            covers {int} NOT NULL,
            indexed {int} NOT NULL,
            noted {int} NOT NULL,
            created_at {real} NOT NULL,
            updated_at {real} NOT NULL,
            UNIQUE (name_key, user_key)
        )""",
        "CREATE INDEX lcm_sessions_user ON lcm_sessions (user_key)",
        "CREATE INDEX lcm_sessions_to_index ON lcm_sessions (id) WHERE indexed < last_seq",
        "CREATE INDEX lcm_sessions_to_note ON lcm_sessions (id) WHERE noted < last_seq",
        """CREATE TABLE lcm_turns (
            id {id},
            session {int} NOT NULL,
            seq {int} NOT NULL,
            turn_key {bytes} NOT NULL,
            turn_id TEXT NOT NULL,
            messages TEXT NOT NULL,
            created_at {real} NOT NULL,
            UNIQUE (session, seq),
            UNIQUE (session, turn_key)
        )""",
    )


def _facts(conn: Connection) -> None:
    ddl(
        conn,
        """CREATE TABLE lcm_facts (
            id {id},
            owner_key {bytes} NOT NULL,
            owner TEXT NOT NULL,
            fact_key {bytes} NOT NULL,
            fact_id TEXT NOT NULL,
            same_key {bytes} NOT NULL,
            kind_key {bytes} NOT NULL,
            kind TEXT,
            subject TEXT,
            text TEXT NOT NULL,
            private {int} NOT NULL,
            core {int} NOT NULL,
            source_key {bytes},
            source TEXT NOT NULL,
            noted_at {real} NOT NULL,
            expires_at {real},
            superseded_by TEXT,
            superseded_at {real},
            times {int} NOT NULL,
            revision {int} NOT NULL,
            indexed {int} NOT NULL,
            UNIQUE (owner_key, fact_key)
        )""",
        "CREATE INDEX lcm_facts_same ON lcm_facts (owner_key, same_key)",
        "CREATE INDEX lcm_facts_kind ON lcm_facts (owner_key, kind_key)",
        "CREATE INDEX lcm_facts_core ON lcm_facts (owner_key) WHERE core = 1 AND superseded_by IS NULL",
        "CREATE INDEX lcm_facts_source ON lcm_facts (source_key) WHERE source_key IS NOT NULL",
        "CREATE INDEX lcm_facts_expiry ON lcm_facts (expires_at) WHERE expires_at IS NOT NULL",
        "CREATE INDEX lcm_facts_to_index ON lcm_facts (id) WHERE indexed = 0",
    )


def _words(conn: Connection) -> None:
    create_lexical(conn)


def _to_vectors(conn: Connection) -> None:
    # What the vector index has still to follow: see items.py.
    ddl(conn, "CREATE TABLE lcm_to_vectors (id {id}, item TEXT NOT NULL)")


def _kept(conn: Connection) -> None:
    # Messages of covered turns that no summary may replace, as JSON.
    ddl(conn, "ALTER TABLE lcm_sessions ADD COLUMN kept TEXT")


def _attempts(conn: Connection) -> None:
    # What is under way to the indexes, or was and failed: see facts/attempts.py. Ids alone, no words.
    ddl(
        conn,
        """CREATE TABLE lcm_attempts (
            item VARCHAR(40) PRIMARY KEY,
            revision {int} NOT NULL,
            tries {int} NOT NULL
        )""",
    )


STEPS: tuple[Callable[[Connection], None], ...] = (
    _sessions_and_turns,  # 0 -> 1
    _facts,  # 1 -> 2
    _words,  # 2 -> 3
    _to_vectors,  # 3 -> 4
    _kept,  # 4 -> 5
    _attempts,  # 5 -> 6
)
"""``STEPS[v]`` turns a store of version ``v`` into one of version ``v + 1``."""


def stored_version(conn: Connection, name: str = "the store") -> int:
    """The schema version of the store; 0 where there is none yet. ``name`` is the store's, for the error."""
    if conn.dialect.name == "sqlite":
        exists = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'lcm_meta'"
    else:
        # Not to_regclass(): it may answer from a cache older than the lock that migrate() waited for.
        exists = "SELECT 1 FROM pg_class WHERE relname = 'lcm_meta' AND pg_table_is_visible(oid)"
    if conn.execute(text(exists)).first() is None:
        return 0
    found = conn.execute(text("SELECT value FROM lcm_meta WHERE name = 'schema'")).scalar()
    try:
        version = int(found or 0)
    except ValueError:
        version = -1
    if version < 0:
        raise StoreError(
            f"{name}: its schema version is {found!r:.40}, which is no version (a whole number from 1 to "
            f"{len(STEPS)}). Something else wrote to lcm_meta: restore the store from a backup"
        )
    return version


def migrate(conn: Connection, name: str) -> None:
    """Bring the store up to this version, within the transaction that ``conn`` is in.

    The caller sees to it that one process does this at a time. ``name`` is the store's, for the error.
    """
    version, newest = stored_version(conn, name), len(STEPS)
    if version > newest:
        raise StoreError(
            f"{name} was written by a newer lc-memory (its schema is version {version}, this one knows "
            f"{newest}). Run: pip install -U lc-memory"
        )
    if version == newest:
        return
    if version == 0:
        ddl(conn, "CREATE TABLE IF NOT EXISTS lcm_meta (name VARCHAR(40) PRIMARY KEY, value TEXT NOT NULL)")
    for step in STEPS[version:]:
        step(conn)
    conn.execute(
        text(
            "INSERT INTO lcm_meta (name, value) VALUES ('schema', :value) "
            "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        ),
        {"value": str(newest)},
    )
