"""What sessions that last cost: a turn, many at once, long histories, many sessions, memory held. One run.

    python benchmarks/sessions.py [--full] [--turns 200] [--folder DIR]

The chain is prompt | model | StrOutputParser() with a model that answers at once; what it costs by itself
is taken off. Sessions lie in SQLite, a file in ``--folder`` (a temporary one), with the default settings but
without recall; each turn is on the disk when it has been answered. Medians, taken round by round, so that a
noisy machine is noisy to all; what counts are the ratios. Large stores are filled with SQL.

Without ``--full`` the largest store has 100,000 sessions, with it 1,000,000 (a gigabyte, some minutes).
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import sqlite3
import statistics
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableWithMessageHistory

from lc_memory import Memory, with_memory
from lc_memory.store import DATABASE_FILE, SessionKey, open_store
from lc_memory.store.text import digest

warnings.simplefilter("ignore")
PROMPT = ChatPromptTemplate.from_messages(
    [("system", "You remember."), ("placeholder", "{history}"), ("human", "{question}")]
)
MODEL = FakeListChatModel(responses=["an answer of some words"])
WINDOW = 10  # the default: 10 to 20 turns, 30 messages on average
HISTORY: list[BaseMessage] = [
    (HumanMessage, AIMessage)[i % 2](f"message {i} of some words") for i in range(30)
]


def config(session: str) -> Any:
    return {"configurable": {"session_id": session, "user_id": "u"}}


def open_memory(folder: Path, **settings: Any) -> Memory:
    return Memory.open(folder, window=WINDOW, recall=(), **settings)


def chain() -> Runnable[Any, Any]:
    return PROMPT | MODEL | StrOutputParser()


def bot_of(memory: Memory) -> Runnable[Any, Any]:
    return with_memory(memory.load_mem | chain(), memory)


def fill(folder: Path, sessions: int, turns: int, *, covers: int = 0) -> None:
    """A store of ``sessions`` sessions of ``turns`` turns each, as if they had been talked."""
    open_store(folder).close()
    messages = json.dumps(
        [{"role": "user", "content": "a question of some words"},
         {"role": "assistant", "content": "an answer of some words"}]
    )  # fmt: skip
    user_key, now = digest("u"), time.time()
    connection = sqlite3.connect(folder / DATABASE_FILE)
    connection.execute("PRAGMA synchronous = OFF")
    connection.executemany(
        "INSERT INTO lcm_sessions (id, name_key, user_key, session_id, user_id, last_seq, changes, covers,"
        " indexed, noted, created_at, updated_at) VALUES (?, ?, ?, ?, 'u', ?, ?, ?, ?, ?, ?, ?)",
        ((n + 1, digest(f"s{n}"), user_key, f"s{n}", turns, turns, covers, turns, turns, now, now)
         for n in range(sessions)),
    )  # fmt: skip
    connection.executemany(
        "INSERT INTO lcm_turns (session, seq, turn_key, turn_id, messages, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        ((n + 1, seq, digest(f"t{seq}"), f"t{seq}", messages, now)
         for n in range(sessions) for seq in range(1, turns + 1)),
    )  # fmt: skip
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def medians(
    cases: dict[str, Callable[[], Any]], turns: int, warm: int = 25
) -> dict[str, tuple[float, float]]:
    """Wall and CPU microseconds of each case."""
    spent: dict[str, list[tuple[float, float]]] = {name: [] for name in cases}
    for i in range(turns + warm):
        for name, turn in cases.items():
            wall, cpu = time.perf_counter(), time.process_time()
            turn()
            if i >= warm:
                spent[name].append((time.perf_counter() - wall, time.process_time() - cpu))
    return {
        name: (statistics.median(w for w, _ in times) * 1e6, statistics.median(c for _, c in times) * 1e6)
        for name, times in spent.items()
    }


# ---------------------------------------------------------------- one turn


def a_turn(folder: Path, turns: int) -> None:
    memory = open_memory(folder)
    bot, bare, asked = bot_of(memory), chain(), config("s")
    history = InMemoryChatMessageHistory()
    theirs = RunnableWithMessageHistory(
        chain(), lambda session_id: history, input_messages_key="question", history_messages_key="history"
    )
    in_session = {"configurable": {"session_id": "s"}}

    def their_turn() -> None:
        history.messages = list(HISTORY)  # it has no window: kept at what ours has on average
        theirs.invoke({"question": "a question of some words"}, in_session)

    found = medians(
        {
            "bare chain": lambda: bare.invoke({"question": "a question of some words", "history": HISTORY}),
            "RunnableWithMessageHistory, in memory": their_turn,
            "ours, on disk": lambda: bot.invoke({"question": "a question of some words"}, asked),
            "    of that the store's commit": _commit(folder / "plain"),
        },
        turns,
    )
    memory.close()
    print(f"{'one turn, 30 messages of history':40} {'wall µs':>9} {'adds':>7} {'CPU µs':>9} {'adds':>7}")
    base = found["bare chain"]
    for name, (wall, cpu) in found.items():
        if name == "bare chain" or name.startswith(" "):
            print(f"{name:40} {wall:9.0f} {'':7} {cpu:9.0f}")
        else:
            print(f"{name:40} {wall:9.0f} {wall - base[0]:7.0f} {cpu:9.0f} {cpu - base[1]:7.0f}")
    mine, other = found["ours, on disk"], found["RunnableWithMessageHistory, in memory"]
    print(
        f"ours adds {(mine[0] - base[0]) / (other[0] - base[0]):.2f} of what RunnableWithMessageHistory adds "
        f"in wall time, {(mine[1] - base[1]) / (other[1] - base[1]):.2f} in CPU time (target: below 1)\n"
    )


def _commit(folder: Path) -> Callable[[], Any]:
    store = open_store(folder)
    messages = [{"role": "user", "content": "a question"}, {"role": "assistant", "content": "an answer"}]
    return lambda: store.append(SessionKey("s"), messages)


# ---------------------------------------------------------------- many at once


def _talk(folder: str, first: int, threads: int, turns: int, ready: Any, go: Any) -> None:
    memory = open_memory(Path(folder))
    bot = bot_of(memory)

    def talk(n: int) -> None:
        for _ in range(turns):
            bot.invoke({"question": "a question of some words"}, config(f"s{first + n}"))

    bot.invoke({"question": "warm"}, config(f"warm{first}"))
    running = [threading.Thread(target=talk, args=(n,)) for n in range(threads)]
    ready.release()
    go.wait()
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    memory.close()


def at_once(folder: Path, turns: int) -> None:
    context = multiprocessing.get_context("spawn")
    print(f"{'turns a second, each thread in a session of its own':58} {'turns/s':>8}")
    for processes, threads in ((1, 1), (1, 8), (1, 64), (4, 1), (4, 8)):
        each = max(4, turns * 4 // (processes * threads))
        ready, go = context.Semaphore(0), context.Event()
        where = str(folder / f"{processes}x{threads}")
        running = [
            context.Process(target=_talk, args=(where, p * threads, threads, each, ready, go))
            for p in range(processes)
        ]
        for process in running:
            process.start()
        for _ in running:
            ready.acquire()
        begun = time.perf_counter()
        go.set()
        for process in running:
            process.join()
        took = time.perf_counter() - begun
        name = f"processes: {processes}, threads in each: {threads}"
        print(f"{name:58} {processes * threads * each / took:8.0f}")
    print()


# ---------------------------------------------------------------- long histories, many sessions


def by_length(folder: Path, lengths: list[int], turns: int) -> None:
    cases: dict[str, Callable[[], Any]] = {}
    memories = []
    for length in lengths:
        where = folder / f"length{length}"
        fill(where, 2, length, covers=max(0, length - WINDOW))  # one for each case
        memories.append(open_memory(where))
        cases[f"{length:,}"] = _asking(memories[-1], lambda: "s0")
        memories.append(open_memory(where, cached_sessions=0))
        cases[f"{length:,}, read anew"] = _asking(memories[-1], lambda: "s1")
    _ratios("turns behind the session", medians(cases, turns), 1.3)
    for memory in memories:
        memory.close()


def by_sessions(folder: Path, counts: list[int], turns: int) -> None:
    cases: dict[str, Callable[[], Any]] = {}
    memories = []
    rng = random.Random(7)
    for count in counts:
        where = folder / f"sessions{count}"
        fill(where, count + 1, 2)  # the last one is talked to all the time
        memories.append(open_memory(where))
        cases[f"{count:,}"] = _asking(memories[-1], lambda count=count: f"s{count}")
        memories.append(open_memory(where, cached_sessions=0))
        cases[f"{count:,}, another one each turn"] = _asking(
            memories[-1], lambda count=count: f"s{rng.randrange(count)}"
        )
    _ratios("sessions in the file", medians(cases, turns), 1.5)
    for memory in memories:
        memory.close()


def _asking(memory: Memory, session: Callable[[], str]) -> Callable[[], Any]:
    bot = bot_of(memory)
    return lambda: bot.invoke({"question": "a question of some words"}, config(session()))


def _ratios(title: str, found: dict[str, tuple[float, float]], target: float) -> None:
    print(f"{title:40} {'wall µs':>9} {'ratio':>7} {'CPU µs':>9} {'ratio':>7}   (target: {target})")
    first: dict[str, tuple[float, float]] = {}
    for name, (wall, cpu) in found.items():
        base = first.setdefault(name.partition(",  ")[0].lstrip("0123456789,"), (wall, cpu))
        print(f"{name:40} {wall:9.0f} {wall / base[0]:7.2f} {cpu:9.0f} {cpu / base[1]:7.2f}")
    print()


# ---------------------------------------------------------------- memory


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _held(folder: str, touched: int, cached: int, out: Any) -> None:
    memory = open_memory(Path(folder), cached_sessions=cached)
    bot_of(memory).invoke({"question": "warm"}, config("warm"))
    for n in range(50):
        memory.history("q", config(f"s{n}"))
    before = _resident()
    for n in range(50, 50 + touched):
        memory.history("q", config(f"s{n}"))
    out.put((before, _resident()))
    memory.close()


def held(folder: Path, known: int) -> None:
    if not Path("/proc/self/statm").exists():
        print("resident memory: needs /proc")
        return
    fill(folder, known, 0)
    few = folder / "few"
    fill(few, 2100, 15)
    context = multiprocessing.get_context("spawn")
    results = []
    for where, touched, cached in ((few, 2000, 10_000), (folder, 10_000, 1024)):
        out = context.Queue()
        process = context.Process(target=_held, args=(str(where), touched, cached, out))
        process.start()
        results.append(out.get())
        process.join()
    (before, after), (start, end) = results
    print(f"resident memory of an open session with 15 turns: {(after - before) / 2000 / 1024:.1f} kB")
    print(
        f"of a process with {known:,} sessions known, 10,000 of them visited, 1,024 kept at hand: "
        f"{start / 2**20:.0f} MB before, {end / 2**20:.0f} MB after"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--turns", type=int, default=200, help="rounds each median is taken over")
    parser.add_argument("--full", action="store_true", help="up to 1,000,000 sessions")
    parser.add_argument("--only", choices=["turn", "at-once", "length", "sessions", "memory"])
    parser.add_argument("--folder", type=Path, help="on the disk to be measured; emptied afterwards")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="lc-memory-", dir=chosen.folder))
    counts = [1, 1000, 100_000, *([1_000_000] if chosen.full else [])]
    parts: dict[str, Callable[[], None]] = {
        "turn": lambda: a_turn(folder / "turn", chosen.turns),
        "at-once": lambda: at_once(folder, chosen.turns),
        "length": lambda: by_length(folder, [10, 1000, 100_000], chosen.turns),
        "sessions": lambda: by_sessions(folder, counts, chosen.turns),
        "memory": lambda: held(folder / "held", 100_000),
    }
    try:
        for name, part in parts.items():
            if chosen.only in (None, name):
                part()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
