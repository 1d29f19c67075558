"""Into another process and into copies: what can go does, and what cannot says what to do. The names of
``lc_memory.integrations``, with and without what they need."""

from __future__ import annotations

import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda

from lc_memory import Memory, MemoryInputError, with_memory
from lc_memory.agent.loop import agent
from lc_memory.agent.memory_tools import memory_tools
from lc_memory.integrations.middleware import MemoryMiddleware
from lc_memory.models.offline import OfflineChatModel
from tests.helpers.longterm import Bags
from tests.helpers.models import Scripted

PROMPT = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])
U1: Any = {"configurable": {"session_id": "s1", "user_id": "u1"}}


def bot_of(memory: Memory) -> Any:
    return with_memory(memory.load_mem | PROMPT | OfflineChatModel() | StrOutputParser(), memory)


def turns_of(bot: Any, questions: list[str]) -> tuple[int, list[str]]:
    """What a worker does with the bot it was sent."""
    for question in questions:
        bot.invoke({"question": question}, U1)
    with bot.memory as memory:
        return os.getpid(), [str(m.content) for m in memory.session("s1", "u1").messages()[::2]]


def told(memory: Memory, session: str = "s1") -> list[str]:
    return [str(m.content) for m in memory.session(session, "u1").messages()[::2]]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "m", recall=()) as opened:
        yield opened


@pytest.mark.parametrize("recall", [(), ("facts", "turns")], ids=["no recall", "recall"])
def test_a_bot_works_in_another_process_on_the_same_store(tmp_path: Path, recall: Any) -> None:
    memory = Memory.open(tmp_path / "m", recall=recall, summarizer=OfflineChatModel(), window=3)
    bot = bot_of(memory)
    bot.invoke({"question": "here"}, U1)
    memory.close()
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as workers:
        there, seen = workers.submit(turns_of, bot, ["there"]).result()
    assert there != os.getpid()
    assert seen == ["here", "there"]
    assert told(memory) == ["here", "there"]
    memory.close()


def test_it_finds_the_store_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Memory.open("m", recall=()) as memory:
        bot_of(memory).invoke({"question": "here"}, U1)
        pickled = pickle.dumps(bot_of(memory))
        (tmp_path / "elsewhere").mkdir()
        code = (
            "import pickle, sys\n"
            "bot = pickle.load(sys.stdin.buffer)\n"
            "print(bot.memory.session('s1', 'u1').messages()[0].content)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code], input=pickled, capture_output=True, cwd=tmp_path / "elsewhere",
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}, check=True,
        )  # fmt: skip
    assert done.stdout.decode().strip() == "here"


def test_twenty_copies_in_one_process_are_one_memory(memory: Memory) -> None:
    pickled = pickle.dumps(bot_of(memory))
    code = (
        "import pickle, sys\n"
        "data = sys.stdin.buffer.read()\n"
        "print(len({id(bot.memory) for bot in [pickle.loads(data) for _ in range(20)]}))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickled, capture_output=True, check=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    assert done.stdout.decode().strip() == "1"


COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "cloudpickle": lambda x: pickle.loads(cloudpickle.dumps(x)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}
HOLDERS: dict[str, Callable[[Memory], Any]] = {
    "memory": lambda m: m,
    "load_mem": lambda m: m.load_mem,
    "bot": bot_of,
    "bot of a bot": lambda m: with_memory(bot_of(m), m),
    "retriever": lambda m: m.retriever(),
    "tools": lambda m: memory_tools(m)[1],
    "middleware": lambda m: MemoryMiddleware(m, on_save_error="warn"),
}


@pytest.mark.parametrize("way", ["pickle", "cloudpickle", "deepcopy"])
@pytest.mark.parametrize("holder", HOLDERS)
def test_a_copy_in_this_process_is_of_the_same_memory(tmp_path: Path, holder: str, way: str) -> None:
    with Memory.open(tmp_path / "m", embedding=Bags()) as memory:
        copied = COPIES[way](HOLDERS[holder](memory))
        assert type(copied) is type(HOLDERS[holder](memory))
        assert (copied if holder == "memory" else copied.memory) is memory


@pytest.mark.parametrize("holder", HOLDERS)
def test_guard_a_shallow_copy_is_of_the_same_memory(tmp_path: Path, holder: str) -> None:
    """Of the memory itself it was another one before."""
    test_a_copy_in_this_process_is_of_the_same_memory(tmp_path, holder, "copy")


@pytest.mark.parametrize("way", ["pickle", "cloudpickle", "deepcopy"])
def test_a_copied_bot_saves_where_the_first_one_does(memory: Memory, way: str) -> None:
    bot = bot_of(memory)
    COPIES[way](bot).invoke({"question": "copied"}, U1)
    bot.invoke({"question": "first"}, U1)
    assert told(memory) == ["copied", "first"]


def test_cloudpickle_takes_functions_without_a_name_along(memory: Memory) -> None:
    bot = with_memory(memory.load_mem | (lambda x: f"heard {x['question']}"), memory)
    assert pickle.loads(cloudpickle.dumps(bot)).invoke({"question": "q"}, U1) == "heard q"


def test_cloudpickle_takes_settings_without_a_name_along(tmp_path: Path) -> None:
    with Memory.open(tmp_path / "m", recall=(), token_counter=lambda messages: 7) as memory:
        assert pickle.loads(cloudpickle.dumps(memory)) is memory


class Words:
    def add(self, message: Any) -> None: ...

    def get_context(self, query: Any = None) -> list[Any]:
        return []


class Live:
    """A summarizer with a connection."""

    def __init__(self) -> None:
        self.lines = iter(())
        self.lock = __import__("threading").Lock()

    def summarize(self, text: str) -> str:
        return text

    def invoke(self, given: Any) -> str:
        return str(given)


def live_chain(memory: Memory) -> Any:
    return with_memory(memory.load_mem | RunnableLambda(Live().invoke), memory)


STAYS: dict[str, Callable[[Path], Any]] = {
    "a manager": lambda p: bot_of(Memory(Words())),
    "a manager, load_mem alone": lambda p: Memory(Words()).load_mem,
    "managers": lambda p: bot_of(Memory.per_session(lambda key: Words())),
    ":memory:": lambda p: bot_of(Memory.open(":memory:", recall=())),
    "sqlite in memory": lambda p: Memory.open("sqlite://", recall=()),
    "a live summarizer": lambda p: bot_of(Memory.open(p / "m", recall=(), summarizer=Live())),
    "a live model of notes": lambda p: Memory.open(p / "m", notes=RunnableLambda(Live().invoke)),
    "a live chain": lambda p: live_chain(Memory.open(p / "m", recall=())),
    "an agent": lambda p: agent(Memory.open(p / "m", recall=()), Scripted(answers=["a"]), []),
    "an agent in a bot": lambda p: with_memory(
        agent(m := Memory.open(p / "m", recall=()), Scripted(answers=["a"]), []), m
    ),
}


@pytest.mark.parametrize("way", ["pickle", "cloudpickle"])
@pytest.mark.parametrize("what", STAYS)
def test_what_cannot_go_says_what_to_do(tmp_path: Path, what: str, way: str) -> None:
    held = STAYS[what](tmp_path)
    with pytest.raises(MemoryInputError, match="Build it in the process that uses it"):
        COPIES[way](held)


def test_a_chain_that_cannot_be_copied_in_depth_says_so(memory: Memory) -> None:
    with pytest.raises(MemoryInputError, match=r"copy\.copy"):
        copy.deepcopy(live_chain(memory))


def test_what_lives_here_alone_is_still_copied_here() -> None:
    way = "deepcopy"
    with Memory.open(":memory:", recall=()) as memory:
        COPIES[way](bot_of(memory)).invoke({"question": "q"}, U1)
        assert told(memory) == ["q"]


# ---------------------------------------------------------------- the names of lc_memory.integrations

NAMES = ["MemoryMiddleware", "load_mem", "save_mem", "memory_graph", "MemoryState", "FactStore", "namespace_of"]


def touched(without: tuple[str, ...] = ()) -> dict[str, str]:
    """What each name is, or the error of touching it, in one fresh process."""
    done = run(
        "import lc_memory.integrations as i\n"
        "from lc_memory import MissingExtraError\n"
        f"for name in {NAMES!r}:\n"
        "    try:\n        print(name, getattr(i, name).__name__, sep='\\t')\n"
        "    except MissingExtraError as error:\n        print(name, error, sep='\\t')\n",
        without,
    )
    assert done.returncode == 0, done.stderr
    return dict(line.split("\t") for line in done.stdout.splitlines())


@pytest.fixture(scope="module")
def with_extra() -> dict[str, str]:
    return touched()


@pytest.fixture(scope="module")
def without_extra() -> dict[str, str]:
    return touched(without=("langchain", "langgraph"))


@pytest.mark.parametrize("name", NAMES)
def test_integrations_give_their_names(with_extra: dict[str, str], name: str) -> None:
    assert with_extra[name] == name


@pytest.mark.parametrize("name", NAMES)
def test_without_the_extra_a_name_says_what_to_install(without_extra: dict[str, str], name: str) -> None:
    assert "pip install 'lc-memory[agent]'" in without_extra[name]


def test_the_core_runs_without_langgraph() -> None:
    done = run(
        "from lc_memory import Memory, with_memory\n"
        "m = Memory.open(':memory:', recall=())\n"
        "bot = with_memory(m.load_mem | (lambda x: 'a'), m)\n"
        "bot.invoke({'question': 'q'}, {'configurable': {'user_id': 'u1'}})\n"
        "try:\n    bot.invoke({'question': 'q'}, {'configurable': {'userId': 'u1'}})\n"
        "except ValueError as error:\n    print(error)\n",
        without=("langchain", "langgraph"),
    )
    assert "user_id" in done.stdout, done.stderr


def run(code: str, without: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """``code`` in a fresh process where packages of these names cannot be imported."""
    gone = f"import sys\nfor name in {without!r}:\n    sys.modules[name] = None\n"
    return subprocess.run(
        [sys.executable, "-c", gone + code], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
