"""MemoryMiddleware in an agent of the user's own: what each request gets, and what is saved of a run."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command, interrupt

from lc_memory import Memory, MemoryInputError, StoreError, with_memory
from lc_memory.integrations.middleware import MemoryMiddleware
from tests.helpers.models import Scripted

S1: Any = {"configurable": {"session_id": "s1", "user_id": "u1"}}
T1: Any = {"configurable": {"thread_id": "t1"}}


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:", recall=()) as opened:
        yield opened


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


def calling(**args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "add", "args": args, "id": f"c{args['a']}"}])


def agent_of(memory: Memory, *answers: Any, middleware: Any = (), **given: Any) -> tuple[Any, Scripted]:
    model = Scripted(answers=list(answers))
    parts = [MemoryMiddleware(memory), *middleware]
    return create_agent(model, [add], system_prompt="SYS", middleware=parts, **given), model


def ask(graph: Any, words: str, config: Any, way: str = "invoke") -> Any:
    given = {"messages": [HumanMessage(words)]}
    return graph.invoke(given, config) if way == "invoke" else asyncio.run(graph.ainvoke(given, config))


def texts(messages: Any) -> list[str]:
    return [str(m.text) for m in messages]


def said(memory: Memory, session: str = "s1", user: str | None = "u1") -> list[str]:
    return texts(memory.session(session, user).messages())


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_the_history_is_in_each_request_and_never_in_the_state(memory: Memory, way: str) -> None:
    memory.session("s1", "u1").add([{"role": "user", "content": "我叫小明"}, {"role": "assistant", "content": "你好"}])
    graph, model = agent_of(memory, calling(a=1, b=2), "三")
    state = ask(graph, "1+2？", S1, way)
    assert texts(state["messages"]) == ["1+2？", "", "3", "三"]
    assert texts(model.prompts[0]) == ["SYS", "我叫小明", "你好", "1+2？"]
    assert texts(model.prompts[1]) == ["SYS", "我叫小明", "你好", "1+2？", "", "3"]
    assert said(memory) == ["我叫小明", "你好", "1+2？", "", "3", "三"]
    assert set(state) == {"messages"}


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_with_a_checkpointer_each_turn_is_sent_and_saved_once(memory: Memory, way: str) -> None:
    graph, model = agent_of(memory, "答0", "答1", "答2", checkpointer=InMemorySaver())
    for i in range(3):
        ask(graph, f"问{i}", T1, way)
    assert said(memory, "t1", None) == ["问0", "答0", "问1", "答1", "问2", "答2"]
    assert texts(model.prompts[2]) == ["SYS", "问0", "答0", "问1", "答1", "问2"]


def test_the_window_holds_for_a_thread_with_a_checkpointer_too() -> None:
    with Memory.open(":memory:", recall=(), window=1) as memory:
        graph, model = agent_of(memory, "嗯", checkpointer=InMemorySaver())
        for i in range(5):
            ask(graph, f"问{i}", T1)
            memory.flush()
        assert len(model.prompts[4]) < 2 * 4 + 2
        assert "问0" not in texts(model.prompts[4])
        assert len(said(memory, "t1", None)) == 10


def test_a_thread_from_before_the_memory_is_still_told(memory: Memory) -> None:
    saver = InMemorySaver()
    before = create_agent(Scripted(answers=["旧答"]), [add], checkpointer=saver)
    ask(before, "旧问", T1)
    graph, model = agent_of(memory, "新答", "再答", checkpointer=saver)
    ask(graph, "新问", T1)
    assert texts(model.prompts[0]) == ["SYS", "旧问", "旧答", "新问"]
    ask(graph, "再问", T1)
    assert texts(model.prompts[1]) == ["SYS", "新问", "新答", "再问"]
    assert said(memory, "t1", None) == ["新问", "新答", "再问", "再答"]


def test_a_caller_that_sends_the_whole_conversation_is_not_doubled(memory: Memory) -> None:
    graph, model = agent_of(memory, "一", "二")
    ask(graph, "问一", S1)
    whole = [SystemMessage("caller"), HumanMessage("问一"), AIMessage("一"), HumanMessage("问二")]
    graph.invoke({"messages": whole}, S1)
    assert texts(model.prompts[1]) == ["SYS", "问一", "一", "caller", "问二"]
    assert said(memory) == ["问一", "一", "问二", "二"]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_run_that_raises_saves_nothing_and_what_it_left_behind_does_no_harm(memory: Memory, way: str) -> None:
    graph, model = agent_of(memory, calling(a=1, b=2), ValueError("down"), "好", checkpointer=InMemorySaver())
    with pytest.raises(ValueError, match="down"):
        ask(graph, "一", T1, way)
    assert said(memory, "t1", None) == []
    ask(graph, "二", T1, way)
    assert said(memory, "t1", None) == ["二", "好"]
    assert texts(model.prompts[2]) == ["SYS", "一", "", "3", "二"]  # whole groups


def test_a_stream_that_is_left_saves_nothing(memory: Memory) -> None:
    graph, _ = agent_of(memory, calling(a=1, b=2), "三")
    stream = graph.stream({"messages": [HumanMessage("一")]}, S1, stream_mode="updates")
    next(stream)
    stream.close()
    assert said(memory) == []


def test_an_interrupted_run_is_saved_once_when_it_has_been_resumed(memory: Memory) -> None:
    class Asks(AgentMiddleware[Any, Any, Any]):
        def after_model(self, state: Any, runtime: Any) -> None:
            if not state["messages"][-1].tool_calls:
                interrupt("all right?")

    saver = InMemorySaver()
    graph, model = agent_of(memory, "答", middleware=[Asks()], checkpointer=saver)
    ask(graph, "问", T1)
    assert said(memory, "t1", None) == []
    graph.invoke(Command(resume=True), T1)
    assert said(memory, "t1", None) == ["问", "答"]
    assert len(model.prompts) == 1


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_a_run_resumed_after_its_save_saves_nothing_more(memory: Memory, way: str) -> None:
    dies = [True]

    class Dies(MemoryMiddleware):
        """Saves, and dies before the checkpoint of it is written."""

        def after_agent(self, state: Any, runtime: Any) -> Any:
            done = super().after_agent(state, runtime)
            if dies and dies.pop():
                raise RuntimeError("killed")
            return done

    graph = create_agent(Scripted(answers=["答"]), [add], middleware=[Dies(memory)], checkpointer=InMemorySaver())
    with pytest.raises(RuntimeError, match="killed"):
        ask(graph, "问", T1, way)
    assert said(memory, "t1", None) == ["问", "答"]
    graph.invoke(None, T1)
    assert said(memory, "t1", None) == ["问", "答"]


def test_inside_with_memory_the_chain_saves(memory: Memory) -> None:
    graph, _ = agent_of(memory, calling(a=1, b=2), "三")
    chain = with_memory((lambda q: {"messages": [HumanMessage(q["question"])]}) | graph, memory)
    chain.invoke({"question": "1+2？"}, S1)
    assert said(memory) == ["1+2？", "", "3", "三"]


class _Unwritable:
    def get_context(self, query: Any = None) -> list[Any]:
        return [{"role": "system", "content": "of the manager"}]

    def add(self, msg: Any) -> None:
        raise OSError("disk full")


def test_a_failed_save_raises_unless_only_a_warning_is_wanted() -> None:
    for on_save_error in ("raise", "warn"):
        memory = Memory(_Unwritable())
        model = Scripted(answers=["答"])
        graph = create_agent(model, [add], middleware=[MemoryMiddleware(memory, on_save_error=on_save_error)])  # type: ignore[arg-type]
        if on_save_error == "raise":
            with pytest.raises(StoreError, match="disk full"):
                ask(graph, "问", {})
        else:
            with pytest.warns(RuntimeWarning, match="not saved"):
                assert texts(ask(graph, "问", {})["messages"]) == ["问", "答"]
        assert texts(model.prompts[0]) == ["of the manager", "问"]


def test_an_input_without_a_question_is_refused(memory: Memory) -> None:
    graph, _ = agent_of(memory, "答")
    with pytest.raises(MemoryInputError, match="no message of the user"):
        graph.invoke({"messages": [SystemMessage("x")]}, S1)


def test_sessions_and_users_are_kept_apart(memory: Memory) -> None:
    graph, model = agent_of(memory, "答")
    ask(graph, "我叫小明", S1)
    ask(graph, "我叫什么", {"configurable": {"session_id": "s1", "user_id": "u2"}})
    assert texts(model.prompts[1]) == ["SYS", "我叫什么"]
