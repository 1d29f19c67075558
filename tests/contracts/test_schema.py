"""How a store comes into being, grows older, and is read: schema versions and query plans."""

from __future__ import annotations

import multiprocessing
import re
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, inspect

from lc_memory.errors import StoreError
from lc_memory.store import DATABASE_FILE, SessionKey, Snapshot, open_store, schema
from lc_memory.store.sql import SqlStore
from tests.helpers.homes import Home

KEY = SessionKey("s1", "u1")
TURN = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]


def _make_version_1(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store as the first version wrote it: sessions and turns, no facts."""
    with monkeypatch.context() as patch:
        patch.setattr(schema, "STEPS", schema.STEPS[:1])
        old = home.open()
        assert isinstance(old, SqlStore)
        old.append(KEY, TURN, turn_id="old")
        with old.database.write() as connection:  # as it was written then
            connection.exec_driver_sql("UPDATE lcm_sessions SET summary = 'sum', covers = 1, changes = 2")
        old.append(KEY, TURN)
        old.close()


def _tables(home: Home) -> dict[str, object]:
    store = home.open()
    assert isinstance(store, SqlStore)
    with store.database.read() as connection:
        found = inspect(connection)
        return {
            table: (
                [(c["name"], str(c["type"]), c["nullable"]) for c in found.get_columns(table)],
                sorted((str(i["name"]), i["column_names"]) for i in found.get_indexes(table)),
            )
            for table in sorted(found.get_table_names())
        }


def test_a_store_of_an_older_version_opens_with_all_it_holds(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    _make_version_1(home, monkeypatch)
    assert "lcm_facts" not in str(_old_tables(home, monkeypatch))
    store = home.open()
    assert store.load(KEY).summary == "sum"
    assert [turn.seq for turn in store.turns(KEY)] == [1, 2]
    assert store.append(KEY, TURN, turn_id="old").seq == 1
    assert store.append(KEY, TURN).seq == 3
    assert store.ledger().add("o", "a fact").count == 1


def _old_tables(home: Home, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    with monkeypatch.context() as patch:
        patch.setattr(schema, "STEPS", schema.STEPS[:1])
        return _tables(home)


def test_a_step_that_fails_leaves_the_old_store_as_it_was(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    _make_version_1(home, monkeypatch)
    before = _old_tables(home, monkeypatch)

    def breaks(connection: Connection) -> None:
        schema.ddl(connection, "CREATE TABLE lcm_half (x {int})", "DROP TABLE lcm_turns", "SELECT nonsense")

    with monkeypatch.context() as patch:
        patch.setattr(schema, "STEPS", (schema.STEPS[0], breaks))
        with pytest.raises(StoreError, match="nonsense"):
            home.open()
    assert _old_tables(home, monkeypatch) == before
    assert len(home.open().load(KEY).turns) == 1


def test_a_store_of_a_newer_version_is_refused_with_the_way_out(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(schema, "STEPS", (*schema.STEPS, lambda connection: None))
        home.open().append(KEY, TURN)
    with pytest.raises(StoreError, match=r"newer lc-memory.*pip install -U lc-memory"):
        home.open()
    with monkeypatch.context() as patch:
        patch.setattr(schema, "STEPS", (*schema.STEPS, lambda connection: None))
        assert len(home.open().load(KEY).turns) == 1


def _open_and_save(where: str, barrier: object, name: str) -> None:
    barrier.wait()  # type: ignore[attr-defined]
    store = open_store(where)
    store.append(SessionKey("shared"), [{"role": "user", "content": name}])
    store.close()


def test_eight_processes_may_open_a_new_store_at_once(home: Home) -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lc_memory.store.sql"])
    barrier = context.Barrier(8)
    processes = [context.Process(target=_open_and_save, args=(home.where, barrier, str(n))) for n in range(8)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 8
    turns = list(home.open().turns(SessionKey("shared")))
    assert [turn.seq for turn in turns] == list(range(1, 9))
    assert sorted(turn.messages[0]["content"] for turn in turns) == sorted("01234567")


def test_the_folder_and_the_file_are_for_their_owner_only(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "store"
    store = open_store(folder)
    store.append(KEY, TURN)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / DATABASE_FILE).stat().st_mode) == 0o600
    assert sorted(path.name for path in folder.iterdir()) == [
        DATABASE_FILE + end for end in ("", "-shm", "-wal")
    ]
    store.close()
    assert [path.name for path in folder.iterdir()] == [DATABASE_FILE]


def test_a_file_can_be_named_by_url_and_a_database_of_others_keeps_its_tables(tmp_path: Path) -> None:
    path = tmp_path / "其他 data%20.db"
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE sessions (mine TEXT)")
    connection.close()
    store = open_store(f"sqlite:///{path}")
    store.append(KEY, TURN)
    store.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT * FROM sessions").fetchall() == []
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    connection.close()


@contextmanager
def _statements(store: SqlStore) -> Iterator[list[tuple[str, object]]]:
    seen: list[tuple[str, object]] = []

    def remember(conn, cursor, statement, parameters, context, executemany):  # type: ignore[no-untyped-def]
        seen.append((statement, parameters[0] if executemany else parameters))

    event.listen(store.database._engine, "before_cursor_execute", remember)
    yield seen
    event.remove(store.database._engine, "before_cursor_execute", remember)


def test_no_call_that_a_turn_makes_walks_a_table(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    assert isinstance(store, SqlStore)
    ledger, backlog = store.ledger(), store.backlog()
    with _statements(store) as seen:
        store.append(KEY, TURN, turn_id="t")
        store.append(KEY, TURN, turn_id="t")
        store.version(KEY)
        store.load(KEY, after=1)
        store.commit_summary(KEY, "sum", 1, based_on=Snapshot(1, None, 0, ()))
        list(store.turns(KEY))
        store.sessions("u1")
        backlog.advance("index", backlog.pending("index"))
        backlog.pending("notes")
        backlog.pending("notes", key=KEY)
        backlog.by_row([1, 2])
        fact = ledger.add("o", "x", kind="k", supersede=True)
        ledger.add("o", "x", fact_id="y", kind="k", subject="s", supersede=True)
        ledger.mark_indexed(ledger.unindexed())
        ledger.current("o", core=True)
        ledger.current("o", kinds=["k"])
        ledger.history("o", "k")
        ledger.by_row([fact.row])
        ledger.get("o", [fact.id])
        ledger.prune(now=0.0)
        ledger.remove("o", [fact.id])
        ledger.iterate(after=3)
        store.forget(user_id="u1")
        store.forget(session_id="s1")
    explained = 0
    connection = sqlite3.connect(tmp_path / DATABASE_FILE)
    for statement, parameters in seen:
        if re.match("PRAGMA|ROLLBACK", statement):
            continue
        for _, _, _, detail in connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall():
            # A scan over one of the *_to_* indexes visits what is left to do, nothing else.
            assert not re.match(r"SCAN (?!.*USING (COVERING )?INDEX lcm_\w+_to_)", detail), (
                statement,
                detail,
            )
            explained += 1
    connection.close()
    assert explained > 25


def test_the_core_facts_are_found_without_walking_the_owners_others(tmp_path: Path) -> None:
    """They are read for every prompt, and an owner may have 100,000 others."""
    store = open_store(tmp_path)
    assert isinstance(store, SqlStore)
    with _statements(store) as seen:
        store.ledger().current("o", core=True)
    ((statement, parameters),) = [s for s in seen if s[0].startswith("SELECT")]
    connection = sqlite3.connect(tmp_path / DATABASE_FILE)
    plan = connection.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall()  # type: ignore[arg-type]
    connection.close()
    assert [detail for *_, detail in plan] == ["SEARCH lcm_facts USING INDEX lcm_facts_core (owner_key=?)"]
