"""Graphs of LangGraph: nodes in the middle change nothing that is saved; a paused run is saved once, when whole."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from lc_memory import Memory, MemoryInputError, with_memory
from lc_memory.integrations.langgraph import MemoryState, load_mem, save_mem
from tests.helpers.models import Scripted
from tests.helpers.ways import WAYS

T1: Any = {"configurable": {"thread_id": "t1", "user_id": "u1"}}


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:", recall=()) as opened:
        yield opened


def said(memory: Memory, session: str = "t1", user: str | None = "u1") -> list[tuple[str, str]]:
    return [(m.type, str(m.text)) for m in memory.session(session, user).messages()]


def facts(memory: Memory) -> list[str]:
    return [fact.text for fact in memory._stored("").store.ledger().current("user:u1")]


# ---------------------------------------------------------------- B6: nodes between load_mem and save_mem


def shortened(state: Any) -> Any:
    return {"messages": [RemoveMessage(m.id) for m in state["messages"]] + [HumanMessage("Here is a summary: ...")]}


def reworded(state: Any) -> Any:
    return {"messages": [HumanMessage("What they want: " + str(m.text), id=m.id) for m in state["messages"][-1:]]}


def reminded(state: Any) -> Any:
    return {"messages": [SystemMessage("be kind"), HumanMessage("Remember to be kind.")]}


def drafted(state: Any) -> Any:
    return {"messages": [AIMessage("a draft"), HumanMessage("Do better.")]}


def forgotten(state: Any) -> Any:
    return {"messages": [RemoveMessage(m.id) for m in state["messages"][:-1]]}


NODES = [shortened, reworded, reminded, drafted, forgotten]


def graph_of(memory: Memory, node: Any, kept: bool, state: Any = MemoryState) -> Any:
    model = Scripted(answers=["one", "two"])
    graph = StateGraph(state)
    graph.add_node("load_mem", load_mem(memory))
    graph.add_node("middle", node)
    graph.add_node("model", lambda s: {"messages": [model.invoke(s["messages"])]})
    graph.add_node("save_mem", save_mem(memory))
    for a, b in zip([START, "load_mem", "middle", "model"], ["load_mem", "middle", "model", "save_mem"], strict=True):
        graph.add_edge(a, b)
    return graph.compile(checkpointer=InMemorySaver() if kept else None)


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize("kept", [True, False], ids=["checkpointer", "no checkpointer"])
@pytest.mark.parametrize("node", [n for n in NODES if n is not forgotten], ids=lambda n: n.__name__)
def test_what_a_node_does_to_the_messages_is_not_saved(memory: Memory, node: Any, kept: bool, way: str) -> None:
    graph = graph_of(memory, node, kept)
    for question in ("remember: I like tea", "and then?"):
        WAYS[way](graph, {"messages": [HumanMessage(question)]}, T1)
    assert said(memory) == [
        ("human", "remember: I like tea"), ("ai", "one"), ("human", "and then?"), ("ai", "two")
    ]  # fmt: skip
    assert facts(memory) == ["I like tea"]


@pytest.mark.parametrize("node", [shortened, reworded], ids=lambda n: n.__name__)
def test_nor_is_it_where_the_state_is_the_programs_own(memory: Memory, node: Any) -> None:
    class State(MessagesState):
        history: list[Any]

    graph_of(memory, node, True, State).invoke({"messages": [HumanMessage("remember: I like tea")]}, T1)
    assert said(memory) == [("human", "remember: I like tea"), ("ai", "one")]
    assert facts(memory) == ["I like tea"]


def test_guard_a_node_that_forgets_earlier_turns_changes_nothing(memory: Memory) -> None:
    graph = graph_of(memory, forgotten, True)
    for question in ("one?", "two?"):
        graph.invoke({"messages": [HumanMessage(question)]}, T1)
    assert [text for _, text in said(memory)] == ["one?", "one", "two?", "two"]


# ---------------------------------------------------------------- C9: with_memory around a graph


def asking(*questions: str, model: Any = None) -> Callable[..., Any]:
    """A graph that takes the question, asks somebody for each of ``questions``, and answers with all."""
    model = model or Scripted(answers=["the answer"])

    class State(MessagesState):
        question: str
        told: str

    def took(state: Any) -> Any:
        return {"messages": [HumanMessage(state["question"])]}

    def asks(question: str) -> Any:
        def ask(state: Any) -> Any:
            return {"told": state.get("told", "") + str(interrupt(question)), "question": "changed on the way"}

        return ask

    def answers(state: Any) -> Any:
        return {"messages": [model.invoke([HumanMessage(state["told"])])]}

    graph = StateGraph(State)
    names = ["took", *questions, "answers"]
    graph.add_node("took", took)
    for question in questions:
        graph.add_node(question, asks(question))
    graph.add_node("answers", answers)
    for a, b in zip([START, *names], [*names, END], strict=True):
        graph.add_edge(a, b)
    return graph.compile


TURN = [("human", "may I?"), ("ai", "the answer")]


def waits(output: Any) -> bool:
    return "__interrupt__" in str(output)


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream", "transform", "atransform"])
def test_a_paused_graph_is_saved_once_when_it_is_whole(memory: Memory, way: str) -> None:
    bot = with_memory(asking("sure?")(checkpointer=InMemorySaver()), memory)
    assert waits(WAYS[way](bot, {"question": "may I?"}, T1))
    assert said(memory) == []
    assert not waits(WAYS[way](bot, Command(resume="yes"), T1))
    assert said(memory) == TURN


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "batch", "abatch", "astream_events"])
def test_two_interrupts_are_one_turn(memory: Memory, way: str) -> None:
    bot = with_memory(asking("sure?", "really?")(checkpointer=InMemorySaver()), memory)
    WAYS[way](bot, {"question": "may I?"}, T1)
    WAYS[way](bot, Command(resume="yes"), T1)
    assert said(memory) == []
    WAYS[way](bot, Command(resume="yes"), T1)
    assert said(memory) == TURN


@pytest.mark.parametrize("mode", ["updates", "values", "messages", "custom", "debug", ["updates", "values"]], ids=str)
def test_in_every_mode_of_streaming(memory: Memory, mode: Any) -> None:
    bot = with_memory(asking("sure?")(checkpointer=InMemorySaver()), memory)
    list(bot.stream({"question": "may I?"}, T1, stream_mode=mode))
    assert said(memory) == []
    list(bot.stream(Command(resume="yes"), T1, stream_mode=mode))
    assert said(memory) == TURN


@pytest.mark.parametrize("mode", ["updates", "messages", ["updates", "values"]], ids=str)
@pytest.mark.parametrize("kept", [True, False], ids=["checkpointer", "no checkpointer"])
def test_a_streamed_graph_saves_what_an_invoked_one_saves(memory: Memory, mode: Any, kept: bool) -> None:
    def polished(state: Any) -> Any:
        return {"messages": [AIMessage("polished", id=state["messages"][-1].id)]}

    model = Scripted(answers=["raw"])
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda s: {"messages": [model.invoke(s["messages"])]})
    graph.add_node("polish", polished)
    graph.add_edge(START, "model")
    graph.add_edge("model", "polish")
    opened = Memory.open(":memory:", recall=(), question_key="messages")
    bot = with_memory(graph.compile(checkpointer=InMemorySaver() if kept else None), opened)
    list(bot.stream({"messages": [HumanMessage("hi")]}, T1, stream_mode=mode))
    assert said(opened) == [("human", "hi"), ("ai", "polished")]
    opened.close()


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_a_graph_behind_load_mem_is_resumed_through_it(memory: Memory, way: str) -> None:
    chain = memory.load_mem | RunnableLambda(lambda x: x, name="prepare") | asking("sure?")(
        checkpointer=InMemorySaver()
    )
    bot = with_memory(chain, memory)
    WAYS[way](bot, {"question": "may I?"}, T1)
    WAYS[way](bot, Command(resume="yes"), T1)
    assert said(memory) == TURN


def test_a_graph_with_a_step_behind_it_is_resumed_too(memory: Memory) -> None:
    def last(state: Any) -> Any:
        return state if "__interrupt__" in state else str(state["messages"][-1].text)

    bot = with_memory(asking("sure?")(checkpointer=InMemorySaver()) | RunnableLambda(last), memory)
    bot.invoke({"question": "may I?"}, T1)
    assert said(memory) == []
    assert bot.invoke(Command(resume="yes"), T1) == "the answer"
    assert said(memory) == TURN


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_another_process_resumes_with_what_was_asked(tmp_path: Path, asynchronous: bool) -> None:
    def ask(given: Any) -> list[tuple[str, str]]:
        with Memory.open(tmp_path / "m", recall=()) as memory:
            if not asynchronous:
                with SqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
                    with_memory(asking("sure?")(checkpointer=saver), memory).invoke(given, T1)
            else:

                async def run() -> None:
                    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "c.db")) as saver:
                        await with_memory(asking("sure?")(checkpointer=saver), memory).ainvoke(given, T1)

                asyncio.run(run())
            return said(memory)

    assert ask({"question": "may I?"}) == []
    assert ask(Command(resume="yes")) == TURN
    assert ask({"question": "may I?"}) == TURN
    assert ask(Command(resume="yes")) == TURN + TURN


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_however_checkpoints_are_written(memory: Memory, durability: Any) -> None:
    graph = asking("sure?")(checkpointer=InMemorySaver())
    bot = with_memory(graph, memory)
    for question in ("first", "second"):
        bot.invoke({"question": question}, T1, durability=durability)
        bot.invoke(Command(resume="yes"), T1, durability=durability)
    assert [kind for kind, _ in said(memory)] == ["human", "ai"] * 2
    if durability != "exit":  # there the first checkpoint of a run is not kept
        assert [text for kind, text in said(memory) if kind == "human"] == ["first", "second"]


def test_a_paused_run_that_is_left_is_never_saved(memory: Memory) -> None:
    bot = with_memory(asking("sure?")(checkpointer=InMemorySaver()), memory)
    bot.invoke({"question": "left alone"}, T1)
    bot.invoke({"question": "may I?"}, T1)
    bot.invoke(Command(resume="yes"), T1)
    assert said(memory) == TURN


def test_a_breakpoint_pauses_as_well(memory: Memory) -> None:
    graph = asking()(checkpointer=InMemorySaver(), interrupt_before=["answers"])
    model_bot = with_memory(graph, memory)
    model_bot.invoke({"question": "may I?"}, T1)
    assert said(memory) == []
    graph.update_state(T1, {"told": "yes"})
    model_bot.invoke(None, T1)
    assert said(memory) == TURN


def test_a_run_that_failed_goes_on_and_is_saved_once(memory: Memory) -> None:
    graph = asking("sure?", model=Scripted(answers=[RuntimeError("down"), "the answer"]))
    bot = with_memory(graph(checkpointer=InMemorySaver()), memory)
    bot.invoke({"question": "may I?"}, T1)
    with pytest.raises(RuntimeError, match="down"):
        bot.invoke(Command(resume="yes"), T1)
    assert said(memory) == []
    bot.invoke(None, T1)
    assert said(memory) == TURN


@pytest.mark.parametrize("again", [Command(resume="yes"), None], ids=["a command", "nothing"])
def test_a_run_that_is_over_is_not_saved_again(memory: Memory, again: Any) -> None:
    bot = with_memory(asking("sure?")(checkpointer=InMemorySaver()), memory)
    bot.invoke({"question": "may I?"}, T1)
    bot.invoke(Command(resume="yes"), T1)
    bot.invoke(again, T1)
    assert said(memory) == TURN


def test_create_agent_in_with_memory_is_resumed_with_the_question_its_middle_has_changed(memory: Memory) -> None:
    @tool
    def ask_human(question: str) -> str:
        """Asks."""
        return str(interrupt(question))

    call = AIMessage("", tool_calls=[{"name": "ask_human", "args": {"question": "?"}, "id": "c1"}])
    with Memory.open(":memory:", recall=(), question_key="messages") as opened:
        graph = create_agent(Scripted(answers=[call, "done"]), [ask_human], checkpointer=InMemorySaver())
        bot = with_memory(graph, opened)
        bot.invoke({"messages": [HumanMessage("go")]}, T1)
        changed = graph.get_state(T1).values["messages"][0].id
        graph.update_state(T1, {"messages": [HumanMessage("changed", id=changed)]}, as_node="model")
        bot.invoke(Command(resume="yes"), T1)
        assert said(opened)[0] == ("human", "go")
        assert said(opened)[-1] == ("ai", "done")
        assert sum(kind == "human" for kind, _ in said(opened)) == 1


@pytest.mark.parametrize("chain", [RunnableLambda(lambda x: "a"), asking("sure?")()], ids=["no graph", "no checkpointer"])
def test_a_chain_that_has_nothing_to_resume_says_what_is_missing(memory: Memory, chain: Any) -> None:
    with pytest.raises(MemoryInputError, match="checkpointer"):
        with_memory(chain, memory).invoke(Command(resume="yes"), T1)


@pytest.mark.parametrize("way", ["invoke", "stream"])
def test_a_pause_without_a_checkpointer_is_not_saved_either(memory: Memory, way: str) -> None:
    bot = with_memory(asking("sure?")(), memory)
    assert waits(WAYS[way](bot, {"question": "may I?"}, T1))
    assert said(memory) == []


def test_guard_a_graph_inside_a_graph_is_saved_when_the_outer_one_goes_on(memory: Memory) -> None:
    inner = with_memory(asking("sure?")(checkpointer=True), memory)

    def node(state: Any, config: RunnableConfig) -> Any:
        return {"messages": [inner.invoke({"question": "may I?"}, config)["messages"][-1]]}

    outer = StateGraph(MessagesState)
    outer.add_node("node", node)
    outer.add_edge(START, "node")
    compiled = outer.compile(checkpointer=InMemorySaver())
    assert waits(compiled.invoke({"messages": [HumanMessage("x")]}, T1))
    assert said(memory) == []
    compiled.invoke(Command(resume="yes"), T1)
    assert said(memory) == TURN


def test_guard_a_graph_that_does_not_pause_is_saved_as_it_was(memory: Memory) -> None:
    graph = asking()(checkpointer=InMemorySaver())
    graph.update_state({**T1}, {"told": "x"})
    with_memory(graph, memory).invoke({"question": "may I?"}, T1)
    assert said(memory) == TURN
