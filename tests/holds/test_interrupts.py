"""Interrupts and cancellations at every moment: a turn is whole or absent, nothing stays held, order holds."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder

from lc_memory import Memory, with_memory
from lc_memory.store.sql import SqlStore
from tests.data import ROOT
from tests.helpers.longterm import opened
from tests.helpers.models import Scripted

PROMPT = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])
CONFIG: Any = {"configurable": {"session_id": "s", "user_id": "u"}}

# Runs in a process of its own, whose main thread is interrupted. Each operation is first done once undisturbed,
# to count the moments at which Python lets an interrupt through (the entry of a function, and the return from
# one written in C) while something of ours is on the stack; then it is interrupted at one of them after the
# other, and at random ones by a storm. Errors are kept, as a notebook keeps the last traceback.
SCRIPT = '''
import json, os, random, signal, sqlite3, sys, tempfile, threading, time, warnings, _thread, ctypes
warnings.simplefilter("ignore")
import logging; logging.disable(logging.CRITICAL)
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from lc_memory import Memory, with_memory
from lc_memory.store import SessionKey, open_store
from tests.helpers.longterm import Bags

folder, name, kind = sys.argv[1], sys.argv[2], sys.argv[3]
recall = ("facts", "turns") if "recall" in name else ()
memory = Memory.open(folder, embedding=Bags(), recall=recall, session_wait=30)
prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])
bot = with_memory(memory.load_mem | prompt | FakeListChatModel(responses=["an answer"]) | StrOutputParser(), memory)
config = {"configurable": {"session_id": "s", "user_id": "u"}}
store = open_store(folder)
key = SessionKey("s", "u")

def pair(n):
    return [{"role": "user", "content": f"q{n}"}, {"role": "assistant", "content": "a"}]

OPERATIONS = {
    "store.append": lambda n: store.append(key, pair(n)),
    "ledger.add": lambda n: store.ledger().add("user:u", f"fact number {n}", kind="k", supersede=True),
    "store.clear": lambda n: store.clear(SessionKey("none", "u")),
    "commit_summary": lambda n: store.commit_summary(key, f"sum {n}", 1, based_on=store.load(key)),
    "backlog.advance": lambda n: store.backlog().advance("notes", store.backlog().pending("notes")),
    "sessions": lambda n: store.sessions("u"),
    "session.add": lambda n: memory.session("s", "u").add(pair(n)),
    "session.add recall": lambda n: memory.session("s", "u").add(pair(n)),
    "remember": lambda n: memory.remember(f"fact number {n}", user_id="u"),
    "remember recall": lambda n: memory.remember(f"fact number {n}", user_id="u"),
    "forget": lambda n: memory.forget(user_id="nobody"),
    "forget recall": lambda n: memory.forget(user_id="nobody"),
    "history": lambda n: memory.history(f"q{n}", config),
    "history recall": lambda n: memory.history(f"fact number {n}", config),
    "invoke": lambda n: bot.invoke({"question": f"q{n}"}, config),
    "invoke recall": lambda n: bot.invoke({"question": f"q{n}"}, config),
    "stream": lambda n: list(bot.stream({"question": f"q{n}"}, config)),
    "health recall": lambda n: memory.health(),
}
do = OPERATIONS[name]
path = os.path.join(folder, "lc_memory.sqlite3")
kept, problems, interrupted = [], [], 0

def ours(frame):
    while frame is not None:
        if f"{os.sep}lc_memory{os.sep}" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False

def counted(at):
    """A profile function that interrupts at this moment (never: -1), and the moments so far."""
    seen = [0]
    def profile(frame, event, arg):
        if event in ("call", "c_return") and ours(frame):
            seen[0] += 1
            if seen[0] == at:
                raise KeyboardInterrupt(at)
    return profile, seen

def writable(when):
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.OperationalError as error:
        problems.append(f"{when}: {error}")
    finally:
        connection.close()

PATIENCE = 2.0 if recall else 0.5  # what is in the background writes, too
do(0)
do(1)
memory.flush()
if kind == "each":
    profile, seen = counted(-1)
    sys.setprofile(profile)
    do(2)
    sys.setprofile(None)
    moments = seen[0]
    step = max(1, moments // MOST)
    for at in range(1, moments + 1, step):
        profile, seen = counted(at)
        try:
            sys.setprofile(profile)
            do(2 + at)
        except KeyboardInterrupt as error:
            kept.append(error)
            interrupted += 1
        finally:
            sys.setprofile(None)
        writable(f"moment {at} of {moments}")
        if len(problems) > 3:
            break
else:
    go, over = threading.Event(), False
    main = threading.main_thread().ident
    WAYS = [
        lambda: os.kill(os.getpid(), signal.SIGINT),
        _thread.interrupt_main,
        lambda: ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(main), ctypes.py_object(KeyboardInterrupt)),
    ]
    def storm():
        chance = random.Random(7)
        while True:
            go.wait()
            if over:
                return
            time.sleep(chance.random() * 0.004)
            for _ in range(chance.choice((1, 1, 2, 5, 10))):
                if go.is_set():
                    WAYS[chance.randrange(3 if kind == "any" else 2)]()
                    time.sleep(chance.random() * 0.0003)
    thread = threading.Thread(target=storm, daemon=True)
    thread.start()
    for n in range(2, 2 + STORMS):
        for attempt in (1, 2, 3, 4, 5):  # an interrupt may come late
            try:
                if attempt == 1:
                    go.set()
                    do(n)
                go.clear()
                time.sleep(0.002)
                writable(f"storm {n}")
                break
            except KeyboardInterrupt as error:
                go.clear()
                interrupted += 1
                kept.append(error)
        if len(problems) > 3:
            break
    for attempt in (1, 2, 3, 4, 5):
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            over = True
            go.set()
            thread.join()
            break
        except KeyboardInterrupt:
            pass
    for attempt in (1, 2, 3, 4, 5):
        try:
            time.sleep(0.05)
            break
        except KeyboardInterrupt:
            pass
try:
    bot.invoke({"question": "the last one"}, config)  # the session is free
    said = [str(m.content) for m in memory.session("s", "u").messages() if m.type == "human"]
    if said[-1] != "the last one":
        problems.append(f"last is {said[-1]}")
    if len(said) != len(set(said)):
        problems.append("a turn stands twice")
    numbers = [int(q[1:]) for q in said if q[1:].isdigit()]
    if numbers != sorted(numbers):
        problems.append("the order is not that of the turns")
    if any(len(turn.messages) != 2 for turn in store.turns(key)):
        problems.append("half a turn")
    memory.flush()
    memory.forget(user_id="u")
    memory.close()
except Exception as error:
    problems.append(f"afterwards: {type(error).__name__}: {error}"[:300])
print(json.dumps({"interrupted": interrupted, "problems": problems}))
sys.stdout.flush()
os._exit(0)
'''

EACH = [
    "store.append", "ledger.add", "store.clear", "commit_summary", "backlog.advance", "session.add", "remember",
    "remember recall", "forget", "invoke", "stream",
]  # fmt: skip
STORM = ["store.append", "session.add recall", "remember recall", "forget recall", "invoke", "invoke recall"]
READS = ["sessions", "history", "history recall", "health recall"]


def run(folder: Path, operation: str, kind: str, most: int = 150, storms: int = 60) -> dict[str, Any]:
    code = SCRIPT.replace("MOST", str(most)).replace("STORMS", str(storms))
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder), operation, kind],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.stdout, done.stderr[-2000:]
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert told["interrupted"] > 3
    return told


@pytest.mark.parametrize("operation", EACH)
def test_interrupted_at_any_moment_the_store_can_be_written_at_once(tmp_path: Path, operation: str) -> None:
    assert run(tmp_path / "m", operation, "each")["problems"] == []


@pytest.mark.parametrize("operation", STORM)
def test_a_storm_of_interrupts_leaves_nothing_held(tmp_path: Path, operation: str) -> None:
    assert run(tmp_path / "m", operation, "signals")["problems"] == []


@pytest.mark.parametrize("operation", ["invoke", "session.add"])
def test_a_storm_of_errors_set_from_another_thread_leaves_nothing_held(tmp_path: Path, operation: str) -> None:
    assert run(tmp_path / "m", operation, "any")["problems"] == []


@pytest.mark.parametrize("operation", READS)
def test_reads_that_are_interrupted_use_up_no_connections(tmp_path: Path, operation: str) -> None:
    assert run(tmp_path / "m", operation, "each")["problems"] == []


# ------------------------------------------------------------ cancelled while it is saved


def bot_of(memory: Memory, answer: str = "an answer") -> Any:
    return with_memory(memory.load_mem | PROMPT | Scripted(answers=[answer]) | StrOutputParser(), memory)


class Slow:
    """Saves stand still from when they begin until they are let go on: those of the question "first"."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        append = SqlStore.append

        def slow(store: Any, key: Any, messages: Any, **options: Any) -> Any:
            if messages[0].get("content") == "first":
                self.begun.set()
                self.go_on.wait()
            return append(store, key, messages, **options)

        monkeypatch.setattr(SqlStore, "append", slow)


async def reached(condition: Callable[[], bool], most: int = 20_000) -> None:
    for _ in range(most):
        if condition():
            return
        await asyncio.sleep(0.0005)


def said(memory: Memory) -> list[str]:
    return [str(m.content) for m in memory.session("s", "u").messages() if m.type == "human"]


async def _ainvoke(memory: Memory, question: str) -> Any:
    return await bot_of(memory).ainvoke({"question": question}, CONFIG)


async def _astream(memory: Memory, question: str) -> Any:
    return [chunk async for chunk in bot_of(memory).astream({"question": question}, CONFIG)]


async def _abatch(memory: Memory, question: str) -> Any:
    return await bot_of(memory).abatch([{"question": question}], CONFIG)


async def _agent(memory: Memory, question: str) -> Any:
    from lc_memory.agent import agent

    return await agent(memory, Scripted(answers=["an answer"]), []).ainvoke({"question": question}, CONFIG)


WAYS = {"ainvoke": _ainvoke, "astream": _astream, "abatch": _abatch, "agent": _agent}


@pytest.mark.parametrize("times", [1, 2, 3, 7])
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
async def test_however_often_it_is_cancelled_a_turn_is_saved_before_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Any, times: int
) -> None:
    memory = opened(tmp_path / "m", recall=())
    memory.sessions()
    slow = Slow(monkeypatch)
    first = asyncio.create_task(way(memory, "first"))
    await reached(slow.begun.is_set)
    for _ in range(times):
        first.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
    second = asyncio.create_task(_ainvoke(memory, "second"))
    await reached(second.done, 200)  # it would be, if the session were free
    slow.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await first
    await second
    assert said(memory) == ["first", "second"]
    memory.close()


@pytest.mark.parametrize("times", [2, 4])
async def test_a_langgraph_node_that_is_cancelled_ends_when_its_save_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    from langchain_core.messages import HumanMessage

    from lc_memory.integrations.langgraph import memory_graph

    memory = opened(tmp_path / "m", recall=())
    memory.sessions()
    slow = Slow(monkeypatch)
    graph = memory_graph(memory, Scripted(answers=["an answer"])).compile()
    first = asyncio.create_task(graph.ainvoke({"messages": [HumanMessage("first")]}, CONFIG))
    await reached(slow.begun.is_set)
    for _ in range(times):
        first.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
    await reached(first.done, 100)
    ended_before_its_save = first.done()
    slow.go_on.set()
    await asyncio.wait([first])
    assert not ended_before_its_save
    assert said(memory) == ["first"]
    memory.close()


def test_a_program_that_is_stopped_during_a_save_ends_with_the_turn_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(tmp_path / "m", recall=())
    memory.sessions()
    slow = Slow(monkeypatch)

    async def main() -> None:
        turn = asyncio.create_task(_ainvoke(memory, "first"))
        await reached(slow.begun.is_set)
        turn.cancel()
        await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.05, slow.go_on.set)
        # main ends here, and asyncio.run cancels all that is left, again

    asyncio.run(main())
    assert said(memory) == ["first"]
    memory.close()


async def test_a_timeout_within_a_timeout_does_not_free_the_session_before_the_save_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(tmp_path / "m", recall=())
    memory.sessions()
    slow = Slow(monkeypatch)

    async def inner() -> None:
        await asyncio.wait_for(_ainvoke(memory, "first"), None)

    first = asyncio.create_task(inner())
    await reached(slow.begun.is_set)
    first.cancel()
    await asyncio.sleep(0)
    first.cancel()
    second = asyncio.create_task(_astream(memory, "second"))
    await reached(second.done, 200)
    slow.go_on.set()
    await asyncio.wait([first, second])
    assert said(memory) == ["first", "second"]
    memory.close()


async def test_cancelled_in_line_nobody_is_left_holding_the_session(tmp_path: Path) -> None:
    memory = opened(tmp_path / "m", recall=())
    async with memory.turns.ahold(memory._key(CONFIG)):
        tasks = [asyncio.create_task(_ainvoke(memory, f"q{n}")) for n in range(6)]
        await asyncio.sleep(0.01)
        for task in tasks[::2]:
            task.cancel()
            task.cancel()
    await asyncio.wait(tasks)
    assert said(memory) == ["q1", "q3", "q5"]
    await _ainvoke(memory, "last")
    memory.close()
