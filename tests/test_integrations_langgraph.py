"""LangGraph nodes: a graph that remembers, and one that is killed between its nodes and goes on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph

from lc_memory import Memory, with_memory
from lc_memory.integrations.langgraph import MemoryState, load_mem, memory_graph, save_mem
from tests.helpers import programs
from tests.helpers.models import Scripted
from tests.helpers.ways import WAYS

CONFIG: Any = {"configurable": {"thread_id": "t1", "user_id": "u1"}}


def asked(words: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(words)]}


def said(memory: Memory) -> list[str]:
    return [str(m.text) for m in memory.session("t1", "u1").messages()]


@pytest.mark.parametrize("saver", [None, InMemorySaver()], ids=["plain", "checkpointer"])
async def test_a_graph_remembers_with_and_without_a_checkpointer(saver: Any) -> None:
    with Memory.open(":memory:", recall=()) as memory:
        model = Scripted(answers=["你好小明", "你叫小明", "嗯"])
        graph = memory_graph(memory, model, system="SYS").compile(checkpointer=saver)
        graph.invoke(asked("我叫小明"), CONFIG)
        out = await graph.ainvoke(asked("我叫什么？"), CONFIG)
        assert [m.text for m in model.prompts[1]] == ["SYS", "我叫小明", "你好小明", "我叫什么？"]
        assert out["history"] == []  # what is remembered is not kept in the state
        assert len(list(graph.stream(asked("好"), CONFIG, stream_mode="messages"))) > 1
        assert said(memory) == ["我叫小明", "你好小明", "我叫什么？", "你叫小明", "好", "嗯"]


def test_print_ascii_shows_load_mem_before_the_model_and_save_mem_after_it() -> None:
    with Memory.open(":memory:", recall=()) as memory:
        drawn = memory_graph(memory, Scripted(answers=["a"])).compile().get_graph().draw_ascii()
    order = [drawn.index(name) for name in ("__start__", "load_mem", "| model |", "save_mem", "__end__")]
    assert order == sorted(order)


def test_a_model_that_raises_saves_nothing_and_the_run_can_be_resumed() -> None:
    with Memory.open(":memory:", recall=()) as memory:
        model = Scripted(answers=[ValueError("down"), "好"])
        graph = memory_graph(memory, model).compile(checkpointer=InMemorySaver())
        with pytest.raises(ValueError, match="down"):
            graph.invoke(asked("一"), CONFIG)
        assert said(memory) == []
        graph.invoke(None, CONFIG)
        assert said(memory) == ["一", "好"]


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream"])
def test_inside_with_memory_the_turn_is_saved_once(way: str) -> None:
    with Memory.open(":memory:", recall=()) as memory:
        graph = memory_graph(memory, Scripted(answers=["好"])).compile()
        bot = with_memory((lambda given: asked(given["question"])) | graph, memory)
        WAYS[way](bot, {"question": "一"}, CONFIG)
        WAYS[way](bot, {"question": "二"}, CONFIG)
        assert said(memory) == ["一", "好", "二", "好"]


def test_the_nodes_stand_in_a_graph_of_the_users_own() -> None:
    def shout(state: MemoryState) -> dict[str, Any]:
        return {"messages": [("ai", f"{len(state['history'])} {state['messages'][-1].text.upper()}")]}

    with Memory.open(":memory:", recall=()) as memory:
        graph: Any = StateGraph(MemoryState)
        graph.add_node("load", load_mem(memory))
        graph.add_node("shout", shout)
        graph.add_node("save", save_mem(memory))
        graph.add_edge(START, "load")
        graph.add_edge("load", "shout")
        graph.add_edge("shout", "save")
        graph.add_edge("save", END)
        compiled = graph.compile()
        compiled.invoke(asked("a"), CONFIG)
        compiled.invoke(asked("b"), CONFIG)
        assert said(memory) == ["a", "0 A", "b", "2 B"]


WORKER = '''
import os, sys, sqlite3
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from lc_memory import Memory, with_memory
from lc_memory.integrations import langgraph as nodes
from tests.helpers.models import Scripted
from tests.helpers.ways import WAYS

folder, dies, given = sys.argv[1:4]
memory = Memory.open(folder, recall=())
model = Scripted(answers=["答：" + given])

if dies == "in the model":
    Scripted._generate = lambda *a, **k: os._exit(9)
if dies == "before the save":
    nodes.save_turn = lambda *a, **k: os._exit(9)
if dies == "after the save":
    done = nodes.save_turn
    def save_and_die(*a, **k):
        done(*a, **k)
        os._exit(9)
    nodes.save_turn = save_and_die

saver = SqliteSaver(sqlite3.connect(os.path.join(folder, "checkpoints.sqlite3"), check_same_thread=False))
graph = nodes.memory_graph(memory, model).compile(checkpointer=saver)
config = {"configurable": {"thread_id": "t1", "user_id": "u1"}}
graph.invoke({"messages": [HumanMessage(given)]} if given != "go on" else None, config, durability="sync")
'''


def run(folder: Path, dies: str, given: str) -> int:
    done = programs.run("-c", WORKER, folder, dies, given)
    assert done.returncode in (0, 9), done.stderr
    return done.returncode


@pytest.mark.parametrize("dies", ["in the model", "before the save", "after the save"])
def test_killed_between_nodes_and_resumed_no_turn_is_lost_or_saved_twice(dies: str, tmp_path: Path) -> None:
    pytest.importorskip("langgraph.checkpoint.sqlite")
    assert run(tmp_path, "never", "一") == 0
    assert run(tmp_path, dies, "二") == 9
    assert run(tmp_path, "never", "go on") == 0
    assert run(tmp_path, "never", "三") == 0
    with Memory.open(tmp_path, recall=()) as memory:
        turns = said(memory)
    answer = "答：go on" if dies == "in the model" else "答：二"
    assert turns == ["一", "答：一", "二", answer, "三", "答：三"]
