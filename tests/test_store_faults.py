"""Faults, each made for real: one clear error, what was stored is intact, and the store works again after."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import sqlite3
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from lc_memory.errors import MissingExtraError, StoreError
from lc_memory.store import DATABASE_FILE, SessionKey, Store, open_store
from lc_memory.store.sql import SqlStore
from tests.servers.postgres import NOBODY, PostgresServer, own_server

KEY = SessionKey("s", "u")


def say(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}, {"role": "assistant", "content": text}]


def said(store: Store) -> list[str]:
    turns = list(store.turns(KEY))
    assert [turn.seq for turn in turns] == list(range(1, len(turns) + 1))
    assert all(len(turn.messages) == 2 for turn in turns)
    return [turn.messages[0]["content"] for turn in turns]


def fill(store: Store, size: int) -> tuple[list[str], StoreError]:
    """Save turns until one cannot be saved."""
    saved: list[str] = []
    for n in range(10_000):
        text = f"{n}:" + "x" * size
        try:
            store.append(KEY, say(text))
        except StoreError as error:
            return saved, error
        saved.append(text)
    raise AssertionError("the disk never was full")


# The disk is full


def test_sqlite_on_a_full_disk_says_so_keeps_what_it_has_and_goes_on_when_there_is_space(
    small_disk: Path,
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 12 * 2**20)
    store = open_store(small_disk / "store")
    saved, error = fill(store, 50_000)
    assert "the disk is full" in str(error) or "the disk reported an error (or is full)" in str(error)
    assert isinstance(error.__cause__, Exception)
    assert saved
    assert said(store) == said(open_store(small_disk / "store")) == saved
    with pytest.raises(StoreError, match="disk"):
        store.append(KEY, say("y" * 4_000_000))
    ballast.unlink()
    store.append(KEY, say("after"))
    assert said(store) == [*saved, "after"]


def test_sqlite_at_its_own_size_limit_says_the_disk_is_full(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert isinstance(store, SqlStore)
    store.close()

    def limit(connection: sqlite3.Connection, record: object) -> None:
        connection.execute("PRAGMA max_page_count = 100")

    event.listen(store.database._engine, "connect", limit)
    saved, error = fill(store, 10_000)
    assert "the disk is full" in str(error)
    assert said(store) == saved
    event.remove(store.database._engine, "connect", limit)
    store.close()
    store.append(KEY, say("after"))
    assert said(store) == [*saved, "after"]


def test_postgres_on_a_full_disk_says_so_and_goes_on_when_there_is_space(small_disk: Path) -> None:
    with own_server() as server:
        space = small_disk / "space"
        space.mkdir()
        os.chown(space, NOBODY, NOBODY)
        small_disk.chmod(0o755)
        server.sql(f"CREATE TABLESPACE small LOCATION '{space}'")
        server.sql("CREATE DATABASE full_soon TABLESPACE small")
        ballast = small_disk / "ballast"
        free = shutil.disk_usage(small_disk).free
        ballast.write_bytes(b"x" * (free - 2 * 2**20))
        store = open_store(server.url("full_soon"))
        saved, error = fill(store, 50_000)
        assert "server's disk is full" in str(error)
        assert said(store) == saved
        ballast.unlink()
        store.append(KEY, say("after"))
        assert said(store) == [*saved, "after"]
        store.close()


# The database goes away


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_postgres_gone_in_the_middle_of_turns_and_back_later_loses_and_doubles_none(
    mode: str, mortal_postgres: PostgresServer
) -> None:
    server = mortal_postgres
    with server.database() as url:
        store = open_store(url, timeout=5)
        saved: list[str] = []
        errors: list[StoreError] = []
        many, failed, back, stop = (threading.Event() for _ in range(4))

        def talk() -> None:
            n = 0
            while not stop.is_set():
                try:
                    store.append(KEY, say(str(n)), turn_id=str(n))
                except StoreError as error:
                    errors.append(error)
                    failed.set()
                    back.wait()
                    continue  # the same turn again: perhaps it was saved and only the answer was lost
                saved.append(str(n))
                n += 1
                if n == 50 or errors:
                    many.set()

        talker = threading.Thread(target=talk)
        talker.start()
        many.wait()
        server.stop(mode)
        with pytest.raises(StoreError, match="cannot be reached|went away"):
            store.version(KEY)
        failed.wait()
        many.clear()
        server.start()
        back.set()
        many.wait()
        stop.set()
        talker.join()
        assert errors
        assert all("cannot be reached" in str(e) or "went away" in str(e) for e in errors), errors
        assert said(store) == saved
        assert len(saved) > 50
        store.close()


def test_postgres_not_there_at_all_is_one_clear_error_without_the_password() -> None:
    with pytest.raises(StoreError, match=r"cannot be reached.*URL") as caught:
        open_store("postgresql://me:hunter2@127.0.0.1:1/db", timeout=2)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is not None


def test_postgres_without_the_database_says_how_to_create_it(postgres: PostgresServer) -> None:
    with pytest.raises(StoreError, match="no database of that name.*createdb"):
        open_store(postgres.url("missing"))


def test_postgres_in_an_encoding_that_cannot_hold_chinese_is_refused(postgres: PostgresServer) -> None:
    postgres.sql("CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'")
    with pytest.raises(StoreError, match="encoding is LATIN1.*createdb -T template0 -E UTF8"):
        open_store(postgres.url("latin"))


def test_postgres_without_its_driver_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lc-memory\[postgres\]'"):
        open_store("postgresql://localhost/db")


# Somebody else holds it


def test_sqlite_locked_for_longer_than_the_timeout_says_so(tmp_path: Path) -> None:
    store = open_store(tmp_path, timeout=0.05)
    store.append(KEY, say("before"))
    other = sqlite3.connect(tmp_path / DATABASE_FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another process kept it locked"):
        store.append(KEY, say("x"))
    assert said(store) == ["before"]  # reading goes on
    other.execute("ROLLBACK")
    store.append(KEY, say("after"))
    assert said(store) == ["before", "after"]
    other.close()


def test_postgres_locked_for_longer_than_the_timeout_says_so(postgres_url: str) -> None:
    import psycopg

    store = open_store(postgres_url, timeout=0.05)
    store.append(KEY, say("before"))
    with psycopg.connect(postgres_url) as other:
        other.execute("SELECT * FROM lcm_sessions FOR UPDATE")
        with pytest.raises(StoreError, match="kept rows locked"):
            store.append(KEY, say("x"))
        assert said(store) == ["before"]
    store.append(KEY, say("after"))
    assert said(store) == ["before", "after"]
    store.close()


# The file is not what it was


def _closed_store(folder: Path, turns: int = 40) -> Path:
    store = open_store(folder)
    for n in range(turns):
        store.append(KEY, say(f"{n}:" + "x" * 3000))
    store.close()
    return folder / DATABASE_FILE


@pytest.mark.parametrize("damage", ["text", "header", "middle", "cut"])
def test_a_damaged_file_is_one_clear_error_and_its_backup_works_in_the_same_store(
    tmp_path: Path, damage: str
) -> None:
    path = _closed_store(tmp_path)
    good = path.read_bytes()
    store = open_store(tmp_path)
    store.close()
    path.write_bytes(
        {
            "text": b"this is a diary, not a database\n" * 200,
            "header": b"\xff" * 100 + good[100:],
            "middle": good[:8192] + b"\xff" * (len(good) - 8192),
            "cut": good[: len(good) // 8192 * 4096],
        }[damage]
    )
    with pytest.raises(StoreError, match=r"lc_memory\.sqlite3: the file is damaged.*backup"):
        said(open_store(tmp_path))
    with pytest.raises(StoreError, match="damaged"):
        said(store)
    path.unlink()
    path.write_bytes(good)
    assert len(said(store)) == 40
    assert store.append(KEY, say("after")).seq == 41


def test_a_file_of_zero_bytes_is_refused_and_not_taken_for_a_new_store(tmp_path: Path) -> None:
    _closed_store(tmp_path).write_bytes(b"")
    with pytest.raises(StoreError, match=r"lost its content \(0 bytes\).*backup"):
        open_store(tmp_path)
    assert (tmp_path / DATABASE_FILE).read_bytes() == b""


def test_a_file_deleted_under_an_open_store_is_an_error_and_no_turn_goes_into_the_void(
    tmp_path: Path,
) -> None:
    path = _closed_store(tmp_path)
    store = open_store(tmp_path)
    assert len(said(store)) == 40
    moved = tmp_path / "elsewhere"
    moved.mkdir()
    store.close()
    store.version(KEY)
    for file in list(tmp_path.glob(DATABASE_FILE + "*")):
        file.rename(moved / file.name)
    with pytest.raises(StoreError, match="deleted or moved"):
        store.append(KEY, say("x"))
    with pytest.raises(StoreError, match="deleted or moved"):
        store.load(KEY)
    assert not path.exists()
    for file in moved.iterdir():
        file.rename(tmp_path / file.name)
    assert store.append(KEY, say("after")).seq == 41


# Nothing may be written


def _as_a_stranger(folder: str, told: Any) -> None:
    """What a user sees who may read but not write."""
    open_store(":memory:").append(KEY, say("x"))  # imports all there is to import, while it can be read
    if os.geteuid() == 0:
        os.setgid(NOBODY)
        os.setuid(NOBODY)
    for name in ("store", "none/below", "file/below"):
        try:
            store = open_store(os.path.join(folder, name))
            told.send(f"opened {len(said(store))}")
            store.append(KEY, say("x"))
            told.send("appended")
        except StoreError as error:
            told.send(str(error))
    told.close()


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such permissions there")
def test_a_folder_that_cannot_be_written_is_one_clear_error(open_folder: Path) -> None:
    _closed_store(open_folder / "store", turns=1)
    (open_folder / "file").write_text("")
    (open_folder / "store" / DATABASE_FILE).chmod(0o444)
    (open_folder / "store").chmod(0o555)
    open_folder.chmod(0o555)
    context: Any = multiprocessing.get_context("spawn")
    mine, its = context.Pipe(duplex=False)
    process = context.Process(target=_as_a_stranger, args=(str(open_folder), its))
    process.start()
    its.close()
    heard = []
    try:
        while True:
            heard.append(mine.recv())
    except EOFError:
        pass
    process.join()
    open_folder.chmod(0o755)
    (open_folder / "store").chmod(0o755)
    (open_folder / "store" / DATABASE_FILE).chmod(0o644)
    assert not any("appended" in line for line in heard)
    refused = [line for line in heard if not line.startswith("opened")]
    assert len(refused) == 3, heard
    assert all("permission" in line or "may write to" in line for line in refused), refused
    assert len(said(open_store(open_folder / "store"))) == 1
