"""Many processes with many threads on one store.

``LC_MEMORY_TURNS`` sets how many turns they save in all (2,000 unless set).
"""

from __future__ import annotations

import multiprocessing
import os
import random
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from lc_memory.store import SessionKey, Store, open_store

TURNS = int(os.environ.get("LC_MEMORY_TURNS", "2000"))
PROCESSES, THREADS, SESSIONS = 8, 4, 50
EACH = -(-TURNS // (PROCESSES * THREADS))
LIMIT = 120 + TURNS // 20


def _key(n: int) -> SessionKey:
    return SessionKey(f"s{n % 10}", f"u{n // 10}")


def _write(where: str, process: int) -> None:
    store = open_store(where, timeout=120)
    failures: list[BaseException] = []

    def talk(thread: int) -> None:
        rng = random.Random(process * 100 + thread)
        try:
            for n in range(EACH):
                key = _key(rng.randrange(SESSIONS))
                said = f"{key.user_id}/{key.session_id} {process}.{thread}.{n}"
                store.append(
                    key,
                    [{"role": "user", "content": said}, {"role": "assistant", "content": said}],
                    turn_id=said,
                )
                if n % 10 == 0:
                    snapshot = store.load(key)
                    assert all(
                        turn.messages[0]["content"].startswith(f"{key.user_id}/") for turn in snapshot.turns
                    )
                    covers = snapshot.covers + len(snapshot.turns) // 2
                    store.commit_summary(key, f"{key.user_id}: {covers}", covers, based_on=snapshot)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=talk, args=(thread,)) for thread in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.close()
    os._exit(1 if failures else 0)


def _check(store: Store) -> None:
    seen: Counter[str] = Counter()
    for n in range(SESSIONS):
        key = _key(n)
        by_writer: dict[str, list[int]] = defaultdict(list)
        turns = list(store.turns(key))
        assert [turn.seq for turn in turns] == list(range(1, len(turns) + 1))
        for turn in turns:
            said = turn.messages[0]["content"]
            assert [message["content"] for message in turn.messages] == [said, said]
            where, who = said.split(" ")
            assert where == f"{key.user_id}/{key.session_id}"
            writer, _, number = who.rpartition(".")
            by_writer[writer].append(int(number))
            seen[said] += 1
        for numbers in by_writer.values():
            assert numbers == sorted(numbers)
        snapshot = store.load(key)
        assert snapshot.summary is None or snapshot.summary == f"{key.user_id}: {snapshot.covers}"
    assert len(seen) == PROCESSES * THREADS * EACH
    assert set(seen.values()) == {1}


def _run(where: str) -> None:
    store = open_store(where)
    context: Any = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["lc_memory.store.sql"])
    begun = time.perf_counter()
    processes = [context.Process(target=_write, args=(where, n)) for n in range(PROCESSES)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    took = time.perf_counter() - begun
    assert [process.exitcode for process in processes] == [0] * PROCESSES
    _check(store)
    store.close()
    print(f"{PROCESSES * THREADS * EACH} turns in {took:.1f} s")


@pytest.mark.timeout(LIMIT)
def test_sqlite_processes_and_threads_lose_and_double_no_turn(tmp_path: Path) -> None:
    _run(str(tmp_path / "store"))


@pytest.mark.timeout(LIMIT)
def test_postgres_processes_and_threads_lose_and_double_no_turn(postgres_url: str) -> None:
    _run(postgres_url)


def _child(store: Store, name: str) -> None:
    for n in range(20):
        store.append(SessionKey("shared"), [{"role": "user", "content": f"{name}.{n}"}])
        store.load(SessionKey("shared"))
    os._exit(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_a_store_that_was_open_before_a_fork_is_used_by_parent_and_children(
    database: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    where = str(tmp_path) if database == "sqlite" else str(request.getfixturevalue("postgres_url"))
    store = open_store(where)
    stop = threading.Event()
    written = 0

    def keep_writing() -> None:
        nonlocal written
        while not stop.is_set():
            store.append(SessionKey("shared"), [{"role": "user", "content": f"parent.{written}"}])
            written += 1

    writer = threading.Thread(target=keep_writing)
    writer.start()
    context: Any = multiprocessing.get_context("fork")
    children = [context.Process(target=_child, args=(store, f"child{n}")) for n in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    stop.set()
    writer.join()
    assert [child.exitcode for child in children] == [0] * 4
    turns = list(store.turns(SessionKey("shared")))
    assert [turn.seq for turn in turns] == list(range(1, written + 81))
    assert len({turn.messages[0]["content"] for turn in turns}) == written + 80
    store.close()


def test_the_parents_end_does_not_take_the_log_from_a_forked_child(tmp_path: Path) -> None:
    """SQLite removes its log with the last connection: a child must count as one."""
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    store = open_store(tmp_path)
    store.append(SessionKey("s"), [{"role": "user", "content": "parent"}])
    to_child, to_parent = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        store.append(SessionKey("s"), [{"role": "user", "content": "child, parent open"}])
        os.write(to_parent[1], b"x")
        os.read(to_child[0], 1)
        store.append(SessionKey("s"), [{"role": "user", "content": "child, parent closed"}])
        os._exit(0)  # as if killed: nothing is closed
    os.read(to_parent[0], 1)
    store.close()
    os.write(to_child[1], b"x")
    os.waitpid(pid, 0)
    for end in (*to_child, *to_parent):
        os.close(end)
    said = [turn.messages[0]["content"] for turn in open_store(tmp_path).turns(SessionKey("s"))]
    assert said == ["parent", "child, parent open", "child, parent closed"]
