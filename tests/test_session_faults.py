"""Faults under a whole chain, each made for real: it answers or raises one clear error, nothing is lost."""

from __future__ import annotations

import os
import sqlite3
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda

from lc_memory import Memory, with_memory
from lc_memory.errors import StoreError
from lc_memory.store import DATABASE_FILE, SessionKey, open_store
from tests.helpers import programs
from tests.helpers.models import Scripted
from tests.helpers.ways import WAYS
from tests.servers.postgres import NOBODY, PostgresServer

CONFIG: Any = {"configurable": {"session_id": "s", "user_id": "u"}}
PROMPT = ChatPromptTemplate.from_messages([("placeholder", "{history}"), ("human", "{question}")])
SHORT_WAYS = pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])


def bot_of(memory: Memory, model: Runnable[Any, Any] | None = None, **options: Any) -> Runnable[Any, Any]:
    model = model or Scripted(answers=["好 的"])
    return with_memory(memory.load_mem | PROMPT | model | StrOutputParser(), memory, **options)


def said(where: Any) -> list[str]:
    """The questions in the store, seen by somebody who opens it anew; each turn whole and in its place."""
    store = open_store(where)
    turns = list(store.turns(SessionKey("s", "u")))
    store.close()
    assert [t.seq for t in turns] == list(range(1, len(turns) + 1))
    assert all([m["role"] for m in t.messages] == ["user", "assistant"] for t in turns)
    return [t.messages[0]["content"] for t in turns]


def fill(bot: Runnable[Any, Any], size: int) -> tuple[list[str], StoreError]:
    """Talk until a turn cannot be saved."""
    saved: list[str] = []
    for n in range(5000):
        question = f"{n}:" + "x" * size
        try:
            bot.invoke({"question": question}, CONFIG)
        except StoreError as error:
            return saved, error
        saved.append(question)
    raise AssertionError("the disk never was full")


# The disk is full


def test_on_a_full_disk_the_chain_says_so_and_goes_on_when_there_is_space(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 12 * 2**20)
    memory = Memory.open(small_disk / "store", recall=(), max_context_tokens=None)
    bot = bot_of(memory)
    saved, error = fill(bot, 50_000)
    assert "disk" in str(error)
    assert error.__cause__ is not None
    assert said(small_disk / "store") == saved
    # Reading goes on, and who prefers the answer gets it with a warning.
    assert str(memory.history("?", CONFIG)[-2].content) == saved[-1]
    with pytest.warns(RuntimeWarning, match="was not saved.*disk"):
        answer = bot_of(memory, on_save_error="warn").invoke({"question": "y" * 4_000_000}, CONFIG)
    assert answer == "好 的"
    ballast.unlink()
    bot.invoke({"question": "after"}, CONFIG)
    assert said(small_disk / "store") == [*saved, "after"]
    assert str(memory.history("?", CONFIG)[-2].content) == "after"
    memory.close()


# The database goes away


@SHORT_WAYS
def test_a_database_that_goes_away_in_the_middle_of_a_turn_is_one_error_and_comes_back(
    way: str, mortal_postgres: PostgresServer
) -> None:
    server = mortal_postgres
    with server.database() as url:
        memory = Memory.open(url, recall=())
        down = False

        def go_away(prompt: Any) -> Any:
            if down:
                server.stop("immediate")
            return prompt

        bot = bot_of(memory, RunnableLambda(go_away) | Scripted(answers=["好 的"]))
        WAYS[way](bot, {"question": "before"}, CONFIG)
        down = True
        with pytest.raises(StoreError, match="cannot be reached|went away"):
            WAYS[way](bot, {"question": "during"}, CONFIG)
        down = False
        # And while it is away: an error before any model is asked.
        with pytest.raises(StoreError, match="cannot be reached|went away"):
            WAYS[way](bot, {"question": "while"}, CONFIG)
        with warnings.catch_warnings(record=True):
            warnings.simplefilter("always")
            with pytest.raises(StoreError):
                WAYS[way](bot_of(memory, on_save_error="warn"), {"question": "while"}, CONFIG)
        assert memory.turns._lines == {}
        server.start()
        WAYS[way](bot, {"question": "after"}, CONFIG)
        assert said(url) == ["before", "after"]
        assert [m.content for m in memory.history("?", CONFIG)] == ["before", "好 的", "after", "好 的"]
        memory.close()


def test_a_database_that_goes_away_while_a_summary_is_made_leaves_the_old_one(
    mortal_postgres: PostgresServer,
) -> None:
    server = mortal_postgres
    with server.database() as url:
        model = Scripted(answers=["第一份摘要", "第二份摘要", "第三份摘要"])

        def go_away(text: Any) -> Any:
            if len(model.prompts) == 1:
                server.stop("immediate")
            return text

        memory = Memory.open(url, recall=(), window=1, summarizer=RunnableLambda(go_away) | model)
        bot = bot_of(memory)
        for n in range(3):
            bot.invoke({"question": f"{n}"}, CONFIG)
            memory.flush()
        assert memory.session("s", "u").summary == "第一份摘要"
        bot.invoke({"question": "3"}, CONFIG)
        bot.invoke({"question": "4"}, CONFIG)
        memory.flush()
        server.start()
        assert memory.session("s", "u").summary == "第一份摘要"
        assert said(url) == ["0", "1", "2", "3", "4"][: len(said(url))]
        bot.invoke({"question": "5"}, CONFIG)
        memory.flush()
        assert memory.session("s", "u").summary == "第三份摘要"
        memory.close()


# Nothing may be written

READ_ONLY = """
import os, sys
from langchain_core.language_models import FakeListChatModel
from lc_memory import Memory, with_memory
from lc_memory.errors import StoreError
from lc_memory.store import open_store
open_store(":memory:").sessions()  # imports all there is to import, while it can be read
config = {"configurable": {"session_id": "s", "user_id": "u"}}
asked = []
def model(given):
    asked.append(given["question"])
    return "fine"
def chain(memory, **options):
    from langchain_core.runnables import RunnableLambda
    return with_memory(memory.load_mem | RunnableLambda(model), memory, **options)
chain(Memory.open(":memory:", recall=())).invoke({"question": "warm up"}, config)
asked.clear()
if os.geteuid() == 0:
    os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
try:
    chain(Memory.open(sys.argv[1], recall=())).invoke({"question": "x"}, config)
    print("SAVED")
except StoreError as error:
    print("REFUSED", error)
print("ASKED", asked)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such permissions there")
@pytest.mark.parametrize("place", ["store", "new"])
def test_a_folder_that_cannot_be_written_is_one_clear_error(open_folder: Path, place: str) -> None:
    memory = Memory.open(open_folder / "store")
    bot_of(memory).invoke({"question": "before"}, CONFIG)
    memory.close()
    (open_folder / "store" / DATABASE_FILE).chmod(0o444)
    (open_folder / "store").chmod(0o555)
    open_folder.chmod(0o555)
    try:
        done = programs.run("-c", READ_ONLY, open_folder / place, NOBODY)
    finally:
        open_folder.chmod(0o755)
        (open_folder / "store").chmod(0o755)
        (open_folder / "store" / DATABASE_FILE).chmod(0o644)
    assert "SAVED" not in done.stdout, done
    assert "REFUSED" in done.stdout, done
    assert "permission" in done.stdout or "may write to" in done.stdout, done.stdout
    assert said(open_folder / "store") == ["before"]


# The file is not what it was


@SHORT_WAYS
@pytest.mark.parametrize("damage", ["text", "middle", "empty", "gone"])
def test_a_corrupt_file_is_one_clear_error_before_a_model_is_asked(
    tmp_path: Path, damage: str, way: str
) -> None:
    memory = Memory.open(tmp_path, recall=(), max_context_tokens=None)
    bot = bot_of(memory)
    for n in range(20):
        bot.invoke({"question": f"{n}:" + "x" * 3000}, CONFIG)
    memory.close()
    path = tmp_path / DATABASE_FILE
    good = path.read_bytes()
    bad = {"text": b"a diary\n" * 900, "middle": good[:8192] + b"\xff" * (len(good) - 8192), "empty": b""}
    if damage == "gone":
        path.rename(tmp_path / "elsewhere")
    else:
        path.write_bytes(bad[damage])
    model = Scripted(answers=["x"])
    # The memory that was open before, and, but for a missing file, which is a new store, one opened anew.
    for broken in (memory, Memory.open(tmp_path, recall=())):
        if damage == "gone" and broken is not memory:
            continue
        with pytest.raises(StoreError, match="damaged|lost its content|deleted or moved"):
            WAYS[way](bot_of(broken, model), {"question": "x"}, CONFIG)
    assert model.prompts == []
    path.unlink(missing_ok=True)
    path.write_bytes(good)
    assert WAYS[way](bot, {"question": "after"}, CONFIG)
    assert [q[:3] for q in said(tmp_path)] == [*(f"{n}:x"[:3] for n in range(20)), "aft"]
    memory.close()


# Somebody else holds it


def test_a_store_that_is_locked_for_too_long_is_one_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lc_memory.memory as module

    monkeypatch.setattr(module, "open_store", lambda where: open_store(where, timeout=0.05))
    memory = Memory.open(tmp_path, recall=())
    bot = bot_of(memory)
    bot.invoke({"question": "before"}, CONFIG)
    other = sqlite3.connect(tmp_path / DATABASE_FILE, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked"):
        bot.invoke({"question": "during"}, CONFIG)
    other.execute("ROLLBACK")
    other.close()
    bot.invoke({"question": "after"}, CONFIG)
    assert said(tmp_path) == ["before", "after"]
    memory.close()


# The clock


@pytest.mark.parametrize("jump", [-3600.0, -20 * 365 * 86_400.0, +10 * 365 * 86_400.0])
def test_a_clock_that_jumps_changes_no_order_and_forgets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    memory = Memory.open(tmp_path, recall=(), window=2, summarizer=Scripted(answers=["摘要"]))
    bot = bot_of(memory)
    memory.core("u").set("city", "上海")
    real = time.time
    for n in range(12):
        if n == 6:
            monkeypatch.setattr(time, "time", lambda: real() + jump)
            memory.core("u").set("city", "杭州")
        bot.invoke({"question": f"{n}"}, CONFIG)
        memory.flush()
    assert said(tmp_path) == [f"{n}" for n in range(12)]
    history = [str(m.content) for m in memory.history("?", CONFIG)]
    assert "杭州" in history[0]
    assert "上海" not in history[0]
    assert "摘要" in history[1]
    assert history[-2:] == ["11", "好 的"]
    (listed,) = memory.sessions("u")
    assert listed.turns == 12
    memory.close()
    monkeypatch.undo()
    again = Memory.open(tmp_path, recall=(), window=2)
    assert [str(m.content) for m in again.history("?", CONFIG)] == history
    again.close()


# Killed


TALKER = """
import os, sys
from langchain_core.runnables import RunnableLambda
from lc_memory import Memory, with_memory

class Summaries:
    def summarize(self, text):
        return "a summary of what was said"

memory = Memory.open(sys.argv[1], recall=(), window=2, summarizer=Summaries())
bot = with_memory(memory.load_mem | RunnableLambda(lambda given: "answer to " + given["question"]), memory)
config = {"configurable": {"session_id": "s", "user_id": "u"}}
n = int(sys.argv[2])
while True:
    bot.invoke({"question": str(n)}, config)
    os.write(1, b"%d\\n" % n)
    n += 1
"""


@pytest.mark.skipif(sys.platform == "win32", reason="kill -9")
def test_a_program_that_is_killed_while_it_talks_and_summarises_keeps_every_acknowledged_turn(
    tmp_path: Path,
) -> None:
    acknowledged = 0
    for _ in range(5):
        talker = programs.start("-c", TALKER, tmp_path, acknowledged)
        assert talker.stdout is not None
        lines = 0
        while lines < 15 and (line := talker.stdout.readline()):
            acknowledged, lines = int(line) + 1, lines + 1
        talker.kill()
        rest, _ = talker.communicate()
        acknowledged += len(rest.split())
        turns = said(tmp_path)
        assert turns[:acknowledged] == [str(n) for n in range(acknowledged)]
        acknowledged = len(turns)  # one more may have been saved, and its word not got out
        snapshot = open_store(tmp_path).load(SessionKey("s", "u"))
        assert snapshot.summary == "a summary of what was said"
        assert snapshot.covers + len(snapshot.turns) == len(turns)
    assert os.path.exists(tmp_path / DATABASE_FILE)
