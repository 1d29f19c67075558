"""Connections to one database: how they are opened, shared, locked, and what their failures mean.

SQLite runs in WAL mode with ``synchronous=FULL``, so that a committed turn survives a power cut; a write
begins with BEGIN IMMEDIATE, because a transaction that starts reading and then wants to write can fail
without waiting. Threads of one process queue for the write at a lock of ours: SQLite's own waiting is
polling, meant for other processes.

A database file is never created in place. It is made under another name, as a valid empty database, and
then linked to its own; so a file of zero bytes is always one that lost its content, and is refused.
"""

from __future__ import annotations

import contextlib
import os
import select
import sqlite3
import threading
import uuid
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DisconnectionError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from lc_memory.errors import MemoryInputError, MissingExtraError, StoreError

from . import failures, schema
from .forks import ForkGate
from .rows import DATABASE_FILE
from .uninterrupted import staying_here, undisturbed

_MIGRATION_LOCK = 0x6C636D656D  # any constant that other programs on a shared server will hardly use

_SQLITE_URL = "sqlite:///"
_NO_TEMPORARY_FILES = "PRAGMA temp_store = MEMORY"
_RETURNING_SINCE = (3, 35)


class Database:
    """One database and the connections to it. Safe to use from any thread, and after a fork."""

    def __init__(self, engine: Engine, name: str, *, timeout: float, in_memory: bool = False) -> None:
        self.name = name
        """What error messages call the store; never holds a password."""
        self._engine = engine
        self._timeout = timeout
        self._in_memory = in_memory
        self._sqlite = engine.dialect.name == "sqlite"
        self._reader = engine if self._sqlite else engine.execution_options(isolation_level="AUTOCOMMIT")
        self._writer = threading.Lock()
        self._mine = threading.local()  # .connection: of the transaction that this thread is in
        weakref.finalize(self, engine.dispose)  # also at the program's end, for those who do not close it
        # A child must not use its parent's connections, nor may it close them. So none is open at the
        # moment of a fork. (What lies in memory alone is the child's own copy.)
        self._gate = ForkGate(before_fork=None if in_memory else engine.dispose)

    @classmethod
    @undisturbed
    def open(cls, where: str | os.PathLike[str], *, timeout: float) -> Database:
        """Open and, where needed, create or migrate. See :func:`lc_memory.store.open_store`."""
        database = _connect(os.fspath(where), timeout)
        try:
            database._migrate()
        except BaseException:
            database.close()
            raise
        return database

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection for reading: each statement by itself sees one state of the database. Inside a
        :meth:`write` of this thread it is that transaction's."""
        joined: Connection | None = getattr(self._mine, "connection", None)
        if joined is not None:
            yield joined
            return
        with self._gate, self._errors(), self._reader.connect() as connection:
            yield connection

    @contextlib.contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction, committed at the end of the block and rolled back where the block raises. Inside
        another one of this thread it is part of that; what it did there is undone alone."""
        joined: Connection | None = getattr(self._mine, "connection", None)
        if joined is not None:
            with joined.begin_nested():
                yield joined
            return
        with self._begun() as connection, staying_here():
            self._mine.connection = connection
            try:
                yield connection
            finally:
                self._mine.connection = None

    @contextlib.contextmanager
    def _begun(self) -> Iterator[Connection]:
        with self._gate, self._errors():
            if not self._sqlite:
                with self._engine.begin() as connection:
                    yield connection
                return
            if not self._writer.acquire(timeout=self._timeout):
                raise failures.locked(self.name, self._timeout)
            try:
                with self._engine.connect() as connection:
                    # To the driver itself: SQLAlchemy adds 25 us and nothing else to it.
                    connection.connection.cursor().execute("BEGIN IMMEDIATE")
                    yield connection
                    connection.commit()
            finally:
                self._writer.release()

    def serialize(self, connection: Connection, key: bytes) -> None:
        """Until the end of this transaction, let no other pass this line with the same key."""
        if not self._sqlite:  # there a write transaction is alone anyway
            number = int.from_bytes(key[:8], "big", signed=True)
            connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": number})

    def wipe(self) -> bool:
        """Write the tables anew without what was erased. See :meth:`lc_memory.store.Store.wipe`.

        SQLite's ``secure_delete`` alone does not do: it zeroes what is deleted, but not the copies that
        stayed behind where pages were split and merged earlier. After VACUUM only the write-ahead log
        holds old pages, until it is emptied. PostgreSQL's own write-ahead log cannot be emptied by a
        client: the server recycles those files in the course of its checkpoints, and archives of them
        are the administrator's.
        """
        if self._sqlite:
            with self._gate, self._errors(), self._writer, self._engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA temp_store = FILE")  # the copy may be large
                try:
                    connection.exec_driver_sql("VACUUM")
                finally:
                    connection.exec_driver_sql(_NO_TEMPORARY_FILES)
                busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()[0]
                return not busy
        with self.read() as connection:
            tables = connection.execute(
                text(
                    "SELECT oid::regclass::text FROM pg_class"
                    r" WHERE relkind = 'r' AND relname LIKE 'lcm\_%' AND pg_table_is_visible(oid)"
                )
            ).scalars()
            for table in tables.all():
                connection.exec_driver_sql(f"VACUUM (FULL, ANALYZE) {table}")
        return True

    @undisturbed
    def close(self) -> None:
        """Close the connections; a later call opens new ones. (What lies in memory goes with the object.)"""
        if not self._in_memory:
            with contextlib.suppress(SQLAlchemyError, sqlite3.Error):
                self._engine.dispose()

    def _migrate(self) -> None:
        with self.read() as connection:
            if not self._sqlite:
                encoding = connection.exec_driver_sql("SHOW server_encoding").scalar()
                if encoding != "UTF8":
                    raise StoreError(
                        f"{self.name}: its encoding is {encoding}, which cannot hold every language. Create "
                        "the database with: createdb -T template0 -E UTF8 NAME"
                    )
            if schema.stored_version(connection, self.name) == len(schema.STEPS):
                return
        with self.write() as connection:
            if not self._sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:n)"), {"n": _MIGRATION_LOCK})
            schema.migrate(connection, self.name)

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except (SQLAlchemyError, sqlite3.Error) as error:
            if self._sqlite and failures.is_lasting(error):
                self.close()
            raise failures.explain(error, self.name) from error


def _connect(where: str, timeout: float) -> Database:
    if where == ":memory:":
        return _memory(timeout)
    if "://" not in where:
        return _sqlite(Path(where).expanduser().absolute() / DATABASE_FILE, timeout)
    if where.startswith(_SQLITE_URL):
        path = where[len(_SQLITE_URL) :]  # as it is: SQLAlchemy 2.0 and 2.1 differ in what % means here
        return _memory(timeout) if path in ("", ":memory:") else _sqlite(Path(path).absolute(), timeout)
    try:
        url = make_url(where)
    except ArgumentError as error:
        raise MemoryInputError(f"this is not a database URL: {where.split('@')[-1]!r}") from error
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return _postgres(url.set(drivername="postgresql+psycopg"), timeout)
    raise MemoryInputError(
        f"{url.drivername}:// is no database that lc-memory can use. Give a folder, sqlite:///file, or "
        "postgresql://user:password@host/database"
    )


def _memory(timeout: float) -> Database:
    # One connection, which is the database: whoever uses it has it alone.
    engine = _sqlite_engine(lambda: _sqlite_connection(":memory:", timeout), timeout, size=1)
    return Database(engine, "the store in memory", timeout=timeout, in_memory=True)


def _sqlite(path: Path, timeout: float) -> Database:
    if sqlite3.sqlite_version_info < _RETURNING_SINCE:
        raise StoreError(
            f"SQLite {sqlite3.sqlite_version} is too old; lc-memory needs 3.35 (March 2021) or later"
        )
    try:
        _create(path)
        _refuse_empty(path)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be created or opened ({error.strerror}). Choose a folder that this user may "
            "write to, on a disk with space left"
        ) from error
    address = path.as_uri() + "?mode=rw"  # a file that was deleted is an error, not a new empty store

    def connection() -> sqlite3.Connection:
        with contextlib.suppress(OSError):
            _refuse_empty(path)  # again: SQLite would take it for a new database
        return _sqlite_connection(address, timeout)

    engine = _sqlite_engine(connection, timeout, size=16)

    @event.listens_for(engine, "connect")
    def _remember_file(connection: Any, record: Any) -> None:
        record.info["file"] = identity(path)

    @event.listens_for(engine, "checkout")
    def _check_file(connection: Any, record: Any, proxy: Any) -> None:
        if record.info.get("file") != identity(path):
            raise DisconnectionError(f"{path} was replaced")

    return Database(engine, str(path), timeout=timeout)


def _postgres(url: URL, timeout: float) -> Database:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise MissingExtraError("PostgreSQL", "postgres") from error
    arguments = {} if "connect_timeout" in url.query else {"connect_timeout": max(2, round(timeout))}
    engine = create_engine(
        url,
        connect_args=arguments,
        pool_size=5,
        max_overflow=3,
        pool_timeout=timeout,
        pool_use_lifo=True,
    )

    @event.listens_for(engine, "connect")
    def _limit_waiting(connection: Any, record: Any) -> None:
        connection.autocommit = True
        connection.execute(f"SET lock_timeout = {round(timeout * 1000)}")
        connection.autocommit = False

    @event.listens_for(engine, "checkout")
    def _check_alive(connection: Any, record: Any, proxy: Any) -> None:
        # Nobody has asked, so there is nothing to read: unless the server has closed the connection. It
        # costs no round trip, which `pool_pre_ping` does.
        if _is_readable(connection.fileno()):
            raise DisconnectionError("the server closed the connection")

    return Database(engine, url.render_as_string(hide_password=True), timeout=timeout)


def _sqlite_engine(creator: Any, timeout: float, *, size: int) -> Engine:
    return create_engine(
        "sqlite://",
        creator=creator,
        poolclass=QueuePool,
        pool_size=size,
        max_overflow=0,
        pool_timeout=timeout,
        pool_use_lifo=True,
    )


def _sqlite_connection(address: str, timeout: float) -> sqlite3.Connection:
    # isolation_level=None: the driver begins no transaction of its own accord.
    connection = sqlite3.connect(
        address, uri=True, timeout=timeout, isolation_level=None, check_same_thread=False
    )
    try:
        for pragma in (
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            "PRAGMA secure_delete = ON",
            _NO_TEMPORARY_FILES,
        ):
            connection.execute(pragma).close()
    except BaseException:
        connection.close()
        raise
    return connection


def _create(path: Path) -> None:
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL, 0o600))
        connection = sqlite3.connect(draft)
        try:
            connection.execute("PRAGMA journal_mode = WAL").close()
        finally:
            connection.close()
        with contextlib.suppress(FileExistsError):  # another process was first
            try:
                os.link(draft, path)
            except (PermissionError, NotImplementedError):  # a file system without links
                os.rename(draft, path)
    except sqlite3.Error as error:
        raise failures.explain(error, str(path)) from error
    finally:
        draft.unlink(missing_ok=True)


def _is_readable(socket: int) -> bool:
    if not hasattr(select, "poll"):
        return bool(select.select([socket], [], [], 0)[0])
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return bool(poll.poll(0))


def _refuse_empty(path: Path) -> None:
    if path.stat().st_size == 0:
        raise StoreError(
            f"{path} has lost its content (0 bytes). Restore it from a backup, or delete it to begin with an "
            "empty store"
        )


def identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one of the same name; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
