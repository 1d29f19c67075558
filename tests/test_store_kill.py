"""A process that is killed while it saves turns loses none that it was told were saved.

``LC_MEMORY_KILLS`` sets how many processes are killed in each database by the slow ones of these tests (20
unless set).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import random
import signal
from pathlib import Path
from typing import Any

import pytest

from lc_memory.store import SessionKey, open_store

KILLS = int(os.environ.get("LC_MEMORY_KILLS", "20"))
some_kills = pytest.mark.parametrize("kills", [5, pytest.param(KILLS, marks=pytest.mark.slow)])
SESSIONS = 3

context: Any = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["lc_memory.store.sql"])  # or each life begins with a second of imports


def _write(where: str, life: int, told: Any) -> None:
    """Save turns for ever; tell of each once append() has returned. Now and then commit a summary."""
    store = open_store(where)
    n = 0
    while True:
        key = SessionKey(f"s{n % SESSIONS}", "u")
        said = f"{life}.{n}"
        messages: list[dict[str, Any]] = [{"role": "user", "content": said}]
        messages += [{"role": "tool", "tool_call_id": str(i), "content": said * 200} for i in range(n % 7)]
        messages.append({"role": "assistant", "content": said})
        told.send((said, store.append(key, messages, turn_id=said).seq))
        if n % 5 == 0:
            based_on = store.load(key)
            covers = based_on.turns[-1].seq if based_on.turns else based_on.covers
            store.commit_summary(key, f"up to {covers}", covers, based_on=based_on)
        n += 1


def _kill_while_writing(where: str, life: int, rng: random.Random) -> list[tuple[str, int]]:
    """Let a process write, kill it after a random number of turns; what it was told was saved."""
    mine, its = context.Pipe(duplex=False)
    process = context.Process(target=_write, args=(where, life, its))
    process.start()
    its.close()
    told = [mine.recv() for _ in range(rng.randrange(1, 60))]
    for _ in range(rng.randrange(200_000)):  # somewhere within the next turn
        pass
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    with contextlib.suppress(EOFError, OSError):
        while True:
            told.append(mine.recv())
    return told


def _check(where: str, acknowledged: list[list[tuple[str, int]]]) -> int:
    """Every acknowledged turn is there under its number, whole; of each life at most one more."""
    store = open_store(where)
    found: dict[str, int] = {}
    for session in range(SESSIONS):
        key = SessionKey(f"s{session}", "u")
        turns = list(store.turns(key))
        assert [turn.seq for turn in turns] == list(range(1, len(turns) + 1))
        for turn in turns:
            said = turn.turn_id
            n = int(said.split(".")[1])
            assert n % SESSIONS == session
            assert len(turn.messages) == 2 + n % 7
            assert {message["content"] for message in turn.messages} <= {said, said * 200}
            found[said] = turn.seq
        order = [[int(part) for part in turn.turn_id.split(".")] for turn in turns]
        assert order == sorted(order)
        snapshot = store.load(key)
        assert snapshot.summary in (None, f"up to {snapshot.covers}")
        assert [turn.seq for turn in snapshot.turns] == list(range(snapshot.covers + 1, len(turns) + 1))
    store.close()
    for told in acknowledged:
        for said, seq in told:
            assert found.pop(said) == seq
    unacknowledged = [said.split(".")[0] for said in found]
    assert len(unacknowledged) == len(set(unacknowledged))
    return sum(map(len, acknowledged))


def _run(where: str, kills: int) -> None:
    rng = random.Random(0)
    acknowledged = []
    for life in range(kills):
        acknowledged.append(_kill_while_writing(where, life, rng))
        if life % 10 == 9:
            _check(where, acknowledged)
    print(f"{_check(where, acknowledged)} turns acknowledged by {kills} killed processes")


@some_kills
@pytest.mark.timeout(120 + 5 * KILLS)
def test_sqlite_every_acknowledged_turn_survives_the_kill(tmp_path: Path, kills: int) -> None:
    _run(str(tmp_path / "store"), kills)


@some_kills
@pytest.mark.timeout(120 + 5 * KILLS)
def test_postgres_every_acknowledged_turn_survives_the_kill(postgres_url: str, kills: int) -> None:
    _run(postgres_url, kills)


def _open(where: str, ready: Any) -> None:
    ready.send(None)
    open_store(where)


@some_kills
def test_a_process_killed_while_it_creates_the_store_leaves_none_that_is_broken(
    tmp_path: Path, kills: int
) -> None:
    rng = random.Random(1)
    for n in range(kills):
        where = str(tmp_path / f"store{n}")
        mine, its = context.Pipe(duplex=False)
        process = context.Process(target=_open, args=(where, its))
        process.start()
        mine.recv()
        for _ in range(rng.randrange(500_000)):  # somewhere within the opening
            pass
        process.kill()
        process.join()
        assert open_store(where).append(SessionKey("s"), [{"role": "user", "content": "x"}]).seq == 1
