"""What a memory has open goes with it; a cold process imports where the caller is; errors are of our tree."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings

from lc_memory import Memory
from lc_memory.errors import EmbeddingMismatchError, LCMemoryError, MemoryInputError, StoreError
from tests.data import ROOT
from tests.helpers.longterm import Bags, in_order, opened, recalled, say, with_facts
from tests.servers.chat import ChatServer

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def run(code: str, *arguments: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


# ------------------------------------------------------------ opened and closed, or dropped

LIVES = """
import gc, json, os, sys, threading, warnings
from pathlib import Path
warnings.simplefilter("ignore")
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from lc_memory import Memory
from tests.helpers.longterm import Bags
folder, end, kind, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])

def held():
    gc.collect()
    return {
        "files": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "memory": int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20,
    }

def life(n):
    options = {"embedding": Bags()}
    where = f"{folder}/m{n}"
    if kind == "recall off":
        options["recall"] = ()
    if kind == "in memory":
        where = ":memory:"
    if kind == "the same folder":
        where = f"{folder}/m"
    if kind == "notes":
        options |= {"notes": RunnableLambda(lambda _: AIMessage('{"notes": []}')), "notes_every": 1}
    if kind == "never used":
        return Memory.open(where, **options)
    memory = Memory.open(where, **options)
    session = memory.session("s", "u")
    session.add([{"role": "user", "content": f"My parking space is B{n}"}, {"role": "assistant", "content": "Noted"}])
    session.context("Where do I park?")
    if kind == "waited for":
        memory.flush()
    if kind == "a part is kept":
        memory.facts_for("u").recall("parking")
    if end == "closed":
        memory.close()

def settled(limit):
    # What was dropped is let go of by a thread, in its own time.
    for _ in range(40):
        now = held()
        if now["files"] <= limit["files"] and now["threads"] <= limit["threads"]:
            break
        threading.Event().wait(0.02)
    return now

def rest():
    before = None
    for _ in range(100):
        now = held()
        if before is not None and (now["files"], now["threads"]) == (before["files"], before["threads"]):
            return now
        before = now
        threading.Event().wait(0.1)
    return now

life(0)
if end == "dropped" and kind != "never used":
    m = Memory.open(f"{folder}/closed", embedding=Bags()); m.session("s").add({"role": "user", "content": "q"}); m.close()
    gc.collect()
# A memory that is closed shows what stays open of the libraries themselves; the allocator takes longer.
warm = 25 if end == "closed" else 4
for n in range(1, warm):
    life(n)
if end == "dropped":
    for _ in range(8):
        gc.collect()
        threading.Event().wait(0.2)
first = rest()
for n in range(warm, warm + count):
    life(n)
last = settled(first)
print(json.dumps([first, last]))
"""


@linux
@pytest.mark.parametrize(
    "kind", ["default", "waited for", "the same folder", "notes", "a part is kept", "recall off", "never used"]
)
def test_memories_that_are_dropped_leave_no_file_and_no_thread(tmp_path: Path, kind: str) -> None:
    before, after = run(LIVES, str(tmp_path), "dropped", kind, "10")
    assert after["files"] <= before["files"] <= 20
    assert after["threads"] <= before["threads"] <= 12


@linux
def test_memories_in_memory_that_are_dropped_leave_no_thread(tmp_path: Path) -> None:
    before, after = run(LIVES, str(tmp_path), "dropped", "in memory", "10")
    assert after["files"] <= before["files"]
    assert after["threads"] <= before["threads"]


@linux
@pytest.mark.parametrize("kind", ["default", "notes"])
def test_memories_that_are_closed_leave_nothing(tmp_path: Path, kind: str) -> None:
    before, after = run(LIVES, str(tmp_path), "closed", kind, "40")
    assert after["files"] <= before["files"]
    assert after["threads"] <= before["threads"]
    assert after["memory"] - before["memory"] < 30


@linux
def test_memories_in_memory_that_are_closed_give_their_vectors_back(tmp_path: Path) -> None:
    before, after = run(LIVES, str(tmp_path), "closed", "in memory", "50")
    assert after["memory"] - before["memory"] < 75  # Chroma keeps 2.5 MB of a collection that is deleted, 125


def test_a_folder_whose_memory_was_dropped_can_be_used_by_another_process(tmp_path: Path) -> None:
    import gc

    memory: Memory | None = with_facts(tmp_path / "m")
    memory.flush()  # type: ignore[union-attr]
    del memory
    code = """
import json, sys, warnings
warnings.simplefilter("error")
from tests.helpers.longterm import opened, recalled
memory = opened(sys.argv[1])
print(json.dumps(recalled(memory, "Who plays the violin?")))
"""
    found = ""
    for _ in range(8):  # it is let go of by a thread
        gc.collect()
        try:
            found = run(code, str(tmp_path / "m"))
            break
        except AssertionError:
            continue
    assert "Vienna" in found


def test_a_memory_whose_turns_are_under_way_when_it_is_dropped_loses_none(tmp_path: Path) -> None:
    for n in range(5):
        memory = opened(tmp_path / "m")
        say(memory, f"Question {n}", "Noted")
        del memory
    memory = opened(tmp_path / "m")
    assert len(memory.session("s1", "u1").messages()) == 10
    memory.close()


# ------------------------------------------------------------ a cold process

SPY = """
import sys, threading
first = {}
class Spy:
    def find_spec(self, name, path=None, target=None):
        if threading.current_thread() is not threading.main_thread():
            first[name] = threading.current_thread().name
        return None
"""

# Modules that import nothing, and that nobody but the one who imports them imports.
LEAVES = ("encodings.", "phonenumbers.data")

COLD = (
    SPY
    + """
import asyncio, json, warnings
warnings.simplefilter("ignore")
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda
from lc_memory import Memory, chat_model, with_memory
url, folder, kind = sys.argv[1:4]
model = chat_model(base_url=url, api_key="k", model="m", profile="openai", max_retries=0)
options = {}
if kind == "recall off":
    options["recall"] = ()
if kind == "notes and summaries":
    options = {"notes": model, "notes_every": 1, "summarizer": model, "window": 1}
memory = Memory.open(":memory:" if kind == "in memory" else folder, **options)
prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])
chain = memory.load_mem | prompt | model | StrOutputParser()
bot = chain if kind == "load_mem alone" else with_memory(chain, memory)
turns = 3 if kind == "notes and summaries" else 1
sys.meta_path.insert(0, Spy())

async def ask(n, turn):
    question = f"记住：我的预算是 {n} 万. My number is 13912345678, call me." if n % 2 else f"question {n} {turn}"
    config = {"configurable": {"session_id": f"s{n}", "user_id": f"u{n}"}}
    return await bot.ainvoke({"question": question}, config)

async def main():
    out = []
    for turn in range(turns):
        out += await asyncio.gather(*(ask(n, turn) for n in range(20)), return_exceptions=True)
    return out

def threads():
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(20) as pool:
        return list(pool.map(lambda n: asyncio.run(ask(n, 0)), range(20)))

out = asyncio.run(main())
memory.flush()
failed = [f"{type(o).__name__}: {o}" for o in out if isinstance(o, BaseException)]
print(json.dumps({"failed": failed, "first": sorted(n for n in first if n in sys.modules)}))
memory.close()
"""
)


@pytest.mark.parametrize("kind", ["default", "load_mem alone", "notes and summaries", "recall off", "in memory"])
def test_nothing_is_imported_first_in_a_thread_that_the_caller_may_import_too(tmp_path: Path, kind: str) -> None:
    with ChatServer() as server:
        told = run(COLD, server.url, str(tmp_path / "m"), kind)
    assert told["failed"] == []
    assert [name for name in told["first"] if not name.startswith(LEAVES)] == []


def test_the_first_requests_of_cold_processes_all_succeed(tmp_path: Path) -> None:
    with ChatServer() as server:
        failed = [run(COLD, server.url, str(tmp_path / f"m{n}"), "default")["failed"] for n in range(4)]
    assert failed == [[]] * 4


# ------------------------------------------------------------ errors of our tree


class Numbered:
    def __init__(self) -> None:
        self.said: list[Any] = []

    def add(self, msg: dict[str, Any]) -> None:
        self.said.append(msg)

    def get_context(self, query: str | None = None) -> list[dict[str, Any]]:
        return self.said


def _two(a: Any, b: Any) -> Numbered:
    return Numbered()


async def _later(key: Any) -> Numbered:
    return Numbered()


def _named_only(*, key: Any) -> Numbered:
    return Numbered()


def _fails(key: Any) -> Numbered:
    raise TypeError("no such thing")


WRONG = {
    "a class that takes nothing": (Numbered, "lambda key"),
    "a function that takes nothing": (lambda: Numbered(), "one argument"),
    "a function that wants two": (_two, "one argument"),
    "a function that wants a name": (_named_only, "one argument"),
    "an async function": (_later, "async"),
    "one that fails": (_fails, "no such thing"),
    "one that gives nothing": (lambda key: None, "NoneType"),
    "one that gives a class": (lambda key: Numbered, "Numbered"),
}


@pytest.mark.parametrize(("make", "said"), WRONG.values(), ids=WRONG.keys())
def test_a_wrong_make_says_what_is_wrong_with_it(make: Any, said: str) -> None:
    with pytest.raises(MemoryInputError, match=said):
        Memory.per_session(make).history("q", {"configurable": {"session_id": "s"}})


def _meta(folder: Path, name: str, value: str) -> None:
    with sqlite3.connect(folder / "lc_memory.sqlite3") as connection:
        connection.execute("UPDATE lcm_meta SET value = ? WHERE name = ?", (value, name))
    connection.close()


@pytest.mark.parametrize("value", ["abc", "", "-1", "5.5", "１２x", "1e3", "None", "NaN"])
def test_a_schema_version_that_is_none_is_an_error_that_names_the_store(tmp_path: Path, value: str) -> None:
    with opened(tmp_path / "m", recall=()) as memory:
        say(memory, "q", "a")
    _meta(tmp_path / "m", "schema", value)
    with opened(tmp_path / "m", recall=()) as memory, pytest.raises(StoreError, match="version") as told:
        memory.sessions()
    assert "lc_memory.sqlite3" in str(told.value)


@pytest.mark.parametrize(
    "value",
    ["abc", "", "null", "[]", "{}", "7", '{"collection": 1, "fingerprint": 2, "mean": 0, "spread": 1}',
     '{"collection": "c", "fingerprint": "nothing", "mean": 0, "spread": 1}',
     '{"collection": "c", "fingerprint": "Bags/bags/64/fc7be7ae", "mean": NaN, "spread": 1}'],
)  # fmt: skip
def test_a_note_of_the_index_that_cannot_be_read_is_replaced_and_the_index_built_anew(
    tmp_path: Path, value: str
) -> None:
    with with_facts(tmp_path / "m") as memory:
        in_order(memory)
    _meta(tmp_path / "m", "index", value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with opened(tmp_path / "m") as memory:
            assert "Vienna" in recalled(memory, "Who plays the violin?")
            in_order(memory)


# ------------------------------------------------------------ health and history agree


class Swapped(Embeddings):
    """A service that changes its model under the same name."""

    model = "service"

    def __init__(self) -> None:
        self.now: Embeddings = Bags()

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.now.embed_documents(texts)

    def embed_query(self, text: str) -> list[float]:
        return self.now.embed_query(text)


def _broken() -> Bags:
    broken = Bags()
    broken.fails = RuntimeError("no model here")
    return broken


@pytest.mark.parametrize("first", ["health", "history"])
@pytest.mark.parametrize(
    "other", [Bags("other"), Bags("other", 32), _broken()], ids=["another", "another size", "broken"]
)
def test_after_an_embedding_was_swapped_while_open_health_says_what_history_does(
    tmp_path: Path, other: Embeddings, first: str
) -> None:
    embedding = Swapped()
    with with_facts(tmp_path / "m", embedding=embedding) as memory, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        in_order(memory)
        embedding.now = other
        if first == "history":
            recalled(memory, "Who plays the violin?")
        for _ in range(3):
            health = memory.health()
            assert health.degraded
            assert not health.ok
            assert "by words alone" in str(health)
            assert "Vienna" in recalled(memory, "Who plays the violin?")
            memory.flush()
        embedding.now = Bags()
        memory.flush()
        in_order(memory)


@pytest.mark.parametrize("first", ["health", "history"])
@pytest.mark.parametrize("other", [Bags("other"), Bags("other", 32)], ids=["another", "another size"])
def test_opened_with_another_embedding_health_says_that_questions_are_refused(
    tmp_path: Path, other: Embeddings, first: str
) -> None:
    with with_facts(tmp_path / "m") as memory:
        in_order(memory)
    with opened(tmp_path / "m", embedding=other) as memory, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if first == "history":
            with pytest.raises(EmbeddingMismatchError):
                recalled(memory, "Who plays the violin?")
        for _ in range(2):
            health = memory.health()
            assert not health.ok
            assert "refused" in str(health)
            assert "by words alone" not in str(health)
            assert "lc-memory reindex" in str(health)
            with pytest.raises(EmbeddingMismatchError):
                recalled(memory, "Who plays the violin?")
        assert isinstance(LCMemoryError(), Exception)
        memory.reindex()
        in_order(memory)
