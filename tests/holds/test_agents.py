"""An agent's middle does not change what is saved: middleware, streams, and runs that wait for somebody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents import middleware as built_in
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableGenerator, RunnableLambda, RunnablePassthrough
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt

from lc_memory import Memory, with_memory
from lc_memory.agent import by_mode, cot, few_shot, react, tot
from lc_memory.agent.lcel import tool_loop
from lc_memory.agent.loop import agent
from lc_memory.integrations.middleware import MemoryMiddleware
from tests.helpers.models import Scripted
from tests.helpers.ways import WAYS

T1: Any = {"configurable": {"thread_id": "t1", "user_id": "u1"}}
PROMPT = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:", recall=()) as opened:
        yield opened


@tool
def add(a: int, b: int) -> int:
    """Adds."""
    return a + b


@tool
def ask_human(question: str) -> str:
    """Asks somebody."""
    return str(interrupt(question))


def calls(*args: tuple[int, int], words: str = "") -> AIMessage:
    return AIMessage(
        words, tool_calls=[{"name": "add", "args": {"a": a, "b": b}, "id": f"c{a}-{b}"} for a, b in args]
    )


def asks(question: str, words: str = "") -> AIMessage:
    return AIMessage(
        words, tool_calls=[{"name": "ask_human", "args": {"question": question}, "id": f"h-{question}"}]
    )


def said(memory: Memory, session: str = "t1", user: str | None = "u1") -> list[tuple[str, str]]:
    """Who said what, tool calls as their arguments."""
    told = []
    for m in memory.session(session, user).messages():
        called = " ".join(str(sorted(c["args"].items())) for c in m.tool_calls) if isinstance(m, AIMessage) else ""
        told.append((m.type, str(m.text) or called))
    return told


def run(bot: Any, given: Any, config: Any, way: str) -> Any:
    """The output of a run, the parts of a stream added."""
    output = WAYS[way](bot, given, config)
    if way in ("stream", "astream") and output:
        total = output[0]
        for part in output[1:]:
            total = total + part
        return total
    return output


# ---------------------------------------------------------------- B6: what the middle does to messages


class Middle(AgentMiddleware[Any, Any, Any]):
    """Changes the messages as ``change`` says, before the model or after it."""

    def __init__(self, change: Callable[[list[Any]], Any], when: str = "before_model") -> None:
        super().__init__()
        self.tools = []
        self._change = change
        self._when = when

    def before_model(self, state: Any, runtime: Any) -> Any:
        return self._change(state["messages"]) if self._when == "before_model" else None

    def after_model(self, state: Any, runtime: Any) -> Any:
        return self._change(state["messages"]) if self._when == "after_model" else None

    @property
    def name(self) -> str:
        return f"Middle{id(self)}"


def summed_up(messages: list[Any]) -> Any:
    new = HumanMessage("Here is a summary of the conversation to date: ...")
    return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), new, *_tail(messages)]}


def summed_up_by_system(messages: list[Any]) -> Any:
    new = SystemMessage("summary: ...")
    return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), new, *_tail(messages)]}


def emptied_to_a_reminder(messages: list[Any]) -> Any:
    if any(str(m.text) == "reminder" for m in messages):
        return None
    return {"messages": [RemoveMessage(REMOVE_ALL_MESSAGES), HumanMessage("reminder"), *_tail(messages)]}


def question_removed(messages: list[Any]) -> Any:
    gone = [RemoveMessage(m.id) for m in messages if isinstance(m, HumanMessage) and m.text != "go on"]
    return {"messages": [*gone, HumanMessage("go on")]} if gone else None


def question_reworded(messages: list[Any]) -> Any:
    last = [m for m in messages if isinstance(m, HumanMessage)][-1]
    return {"messages": [HumanMessage("Please add: " + str(last.text), id=last.id)]}


def question_put_in_another_message(messages: list[Any]) -> Any:
    last = [m for m in messages if isinstance(m, HumanMessage)][-1]
    if str(last.text).startswith("Rewritten"):
        return None
    return {"messages": [RemoveMessage(last.id), HumanMessage("Rewritten: " + str(last.text))]}


def reminded(messages: list[Any]) -> Any:
    return {"messages": [HumanMessage("Remember to be polite.")]}


def earlier_turns_removed(messages: list[Any]) -> Any:
    last = max(i for i, m in enumerate(messages) if isinstance(m, HumanMessage))
    return {"messages": [RemoveMessage(m.id) for m in messages[:last]]} if last else None


def drafts_added(messages: list[Any]) -> Any:
    if isinstance(messages[-1], HumanMessage):
        return {"messages": [AIMessage("draft"), HumanMessage("Do better than that.")]}
    return None


def _tail(messages: list[Any]) -> list[Any]:
    """What came after the last question."""
    last = max((i for i, m in enumerate(messages) if isinstance(m, (HumanMessage, SystemMessage))), default=-1)
    return list(messages[last + 1 :])


CHANGES = [
    summed_up, summed_up_by_system, emptied_to_a_reminder, question_removed, question_reworded,
    question_put_in_another_message, reminded, drafts_added,
]  # fmt: skip
TURN = [("human", "1+2?"), ("ai", "[('a', 1), ('b', 2)]"), ("tool", "3"), ("ai", "It is 3.")]
AGAIN = [("human", "remember: I like tea"), ("ai", "Noted.")]
ASYNC_STREAM = ["invoke", "ainvoke", "stream", "astream", "astream_events"]


def scripted() -> Scripted:
    return Scripted(answers=[calls((1, 2)), "It is 3.", "Noted."])


@pytest.mark.parametrize("order", ["memory first", "memory last"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda c: c.__name__)
@pytest.mark.parametrize("kept", [True, False], ids=["checkpointer", "no checkpointer"])
def test_what_a_middleware_does_to_the_messages_is_not_saved(
    memory: Memory, change: Any, kept: bool, order: str
) -> None:
    parts: list[Any] = [MemoryMiddleware(memory), Middle(change)]
    graph = create_agent(
        scripted(), [add], middleware=parts if order == "memory first" else parts[::-1],
        checkpointer=InMemorySaver() if kept else None,
    )  # fmt: skip
    for question in ("1+2?", "remember: I like tea"):
        graph.invoke({"messages": [HumanMessage(question)]}, T1)
    assert said(memory) == TURN + AGAIN
    assert [fact.text for fact in memory._stored("").store.ledger().current("user:u1")] == ["I like tea"]


@pytest.mark.parametrize("kept", [True, False], ids=["checkpointer", "no checkpointer"])
def test_guard_earlier_turns_may_be_removed_from_the_state(memory: Memory, kept: bool) -> None:
    test_what_a_middleware_does_to_the_messages_is_not_saved(memory, earlier_turns_removed, kept, "memory first")


@pytest.mark.parametrize("way", ASYNC_STREAM)
@pytest.mark.parametrize("change", [summed_up, question_removed, question_reworded], ids=lambda c: c.__name__)
@pytest.mark.parametrize("made", ["create_agent", "agent()"])
def test_nor_is_it_in_another_form_of_the_call(memory: Memory, change: Any, way: str, made: str) -> None:
    if made == "agent()":
        bot: Any = agent(memory, scripted(), [add], middleware=[Middle(change)], checkpointer=InMemorySaver())
        given = ["1+2?", "remember: I like tea"]
    else:
        parts = [MemoryMiddleware(memory), Middle(change)]
        bot = create_agent(scripted(), [add], middleware=parts, checkpointer=InMemorySaver())
        given: Any = [{"messages": [HumanMessage(q)]} for q in ("1+2?", "remember: I like tea")]
    for one in given:
        WAYS[way](bot, one, T1)
    assert said(memory) == TURN + AGAIN


@pytest.mark.parametrize("made", ["create_agent", "agent()"])
def test_guard_the_answer_is_what_went_out(memory: Memory, made: str) -> None:
    def polished(messages: list[Any]) -> Any:
        last = messages[-1]
        return {"messages": [AIMessage("Polished.", id=last.id)]} if last.text == "Noted." else None

    middle = Middle(polished, "after_model")
    if made == "agent()":
        agent(memory, Scripted(answers=["Noted."]), [], middleware=[middle]).invoke("hi", T1)
    else:
        graph = create_agent(Scripted(answers=["Noted."]), [], middleware=[MemoryMiddleware(memory), middle])
        graph.invoke({"messages": [HumanMessage("hi")]}, T1)
    assert said(memory) == [("human", "hi"), ("ai", "Polished.")]


def test_history_is_recalled_for_the_question_and_not_for_its_summary(memory: Memory) -> None:
    asked: list[str] = []

    class Listening(MemoryMiddleware):
        def _history(self, turn: Any, question: Any) -> Any:
            asked.append(str(question["content"] if isinstance(question, dict) else question.text))
            return super()._history(turn, question)

    graph = create_agent(scripted(), [add], middleware=[Listening(memory), Middle(summed_up)])
    graph.invoke({"messages": [HumanMessage("1+2?")]}, T1)
    assert set(asked) == {"1+2?"}


def test_guard_what_was_taken_out_of_a_question_for_privacys_sake_stays_out(memory: Memory) -> None:
    parts = [MemoryMiddleware(memory), built_in.PIIMiddleware("email", strategy="redact")]
    create_agent(Scripted(answers=["ok"]), [], middleware=parts).invoke(
        {"messages": [HumanMessage("write to a.b@example.com please")]}, T1
    )
    assert said(memory)[0] == ("human", "write to [REDACTED_EMAIL] please")


# Every middleware that LangChain ships, as it is set up for work on the turn "1+2?".


class Decides:
    """A decision model that lets everything through."""

    def invoke(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    ainvoke = invoke


def spare() -> Scripted:
    return Scripted(answers=["Here is what was said."])


BUILT_IN: dict[str, Callable[[Path], Any]] = {
    "SummarizationMiddleware": lambda p: built_in.SummarizationMiddleware(
        model=spare(), trigger=("messages", 2), keep=("messages", 1)
    ),
    "SummarizationMiddleware, all": lambda p: built_in.SummarizationMiddleware(
        model=spare(), trigger=("messages", 3), keep=("messages", 2)
    ),
    "ContextEditingMiddleware": lambda p: built_in.ContextEditingMiddleware(
        edits=[built_in.ClearToolUsesEdit(trigger=1, keep=0)]
    ),
    "TodoListMiddleware": lambda p: built_in.TodoListMiddleware(),
    "HumanInTheLoopMiddleware": lambda p: HumanInTheLoopMiddleware(interrupt_on={"add": False}),
    "LLMToolSelectorMiddleware": lambda p: built_in.LLMToolSelectorMiddleware(
        model=Selecting(answers=["unused"]), max_tools=1
    ),
    "ModelCallLimitMiddleware": lambda p: built_in.ModelCallLimitMiddleware(run_limit=5),
    "ToolCallLimitMiddleware": lambda p: built_in.ToolCallLimitMiddleware(run_limit=5),
    "ModelFallbackMiddleware": lambda p: built_in.ModelFallbackMiddleware(spare()),
    "ModelRetryMiddleware": lambda p: built_in.ModelRetryMiddleware(),
    "ToolRetryMiddleware": lambda p: built_in.ToolRetryMiddleware(),
    "ToolErrorMiddleware": lambda p: built_in.ToolErrorMiddleware(lambda error, request: "failed"),
    "ModelRefusalMiddleware": lambda p: built_in.ModelRefusalMiddleware(),
    "PIIMiddleware": lambda p: built_in.PIIMiddleware("credit_card", strategy="mask"),
    "FilesystemFileSearchMiddleware": lambda p: built_in.FilesystemFileSearchMiddleware(root_path=str(p)),
    "ShellToolMiddleware": lambda p: built_in.ShellToolMiddleware(workspace_root=str(p)),
    "LLMToolEmulator": lambda p: built_in.LLMToolEmulator(tools=["add"], model=Scripted(answers=["3"])),
}  # fmt: skip
NEEDS_A_SERVICE = {
    "AutoModeMiddleware",  # a decision model of a service
    "ModelRouterMiddleware",  # the same
    "ProviderToolSearchMiddleware",  # a provider's own tool search
}


class Selecting(Scripted):
    """Chooses the one tool there is."""

    def with_structured_output(self, schema: Any, **_: Any) -> Any:
        return RunnableLambda(lambda _: {"tools": ["add"]})


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("order", ["memory first", "memory last"])
@pytest.mark.parametrize("name", BUILT_IN)
def test_guard_each_middleware_of_langchain_leaves_the_turn_as_it_was(
    memory: Memory, tmp_path: Path, name: str, order: str, way: str
) -> None:
    """Only the summaries failed before."""
    parts = [MemoryMiddleware(memory), BUILT_IN[name](tmp_path)]
    graph = create_agent(
        scripted(), [add], middleware=parts if order == "memory first" else parts[::-1],
        checkpointer=InMemorySaver(),
    )  # fmt: skip
    for question in ("1+2?", "remember: I like tea"):
        WAYS[way](graph, {"messages": [HumanMessage(question)]}, T1)
    assert said(memory) == TURN + AGAIN


@pytest.mark.parametrize("name", [n for n in BUILT_IN if n.startswith("Summarization")])
@pytest.mark.parametrize("order", ["memory first", "memory last"])
@pytest.mark.parametrize("way", ASYNC_STREAM)
def test_a_summary_by_langchains_own_middleware_is_nobodys_words(
    memory: Memory, tmp_path: Path, name: str, order: str, way: str
) -> None:
    parts = [MemoryMiddleware(memory), BUILT_IN[name](tmp_path)]
    graph = create_agent(scripted(), [add], middleware=parts if order == "memory first" else parts[::-1])
    for question in ("1+2?", "remember: I like tea"):
        WAYS[way](graph, {"messages": [HumanMessage(question)]}, T1)
    assert said(memory) == TURN + AGAIN


def test_guard_every_middleware_of_langchain_is_tried() -> None:
    shipped = {
        name
        for name in built_in.__all__
        if isinstance(getattr(built_in, name), type)
        and issubclass(getattr(built_in, name), AgentMiddleware)
        and name != "AgentMiddleware"
    }
    assert shipped == {name.split(",")[0] for name in BUILT_IN} | NEEDS_A_SERVICE


# ---------------------------------------------------------------- B7: the same text in every form

def _shouting(chunks: Iterator[str]) -> Iterator[str]:
    for chunk in chunks:
        yield chunk.upper()


async def _ashouting(chunks: Any) -> Any:
    async for chunk in chunks:
        yield chunk.upper()


shouted: Any = RunnableGenerator(_shouting, _ashouting)


TALKING = [calls((6, 7), words="Let me compute. "), "It is 42."]
TWICE = [calls((1, 2), words="First this, "), calls((3, 4), words="then that. "), "It is 42."]
LAST = [calls((1, 2), words="Let me. "), calls((3, 4), words="I give up. ")]
LOOPS: dict[str, Callable[[Memory, Any], Any]] = {
    "tool_loop": lambda m, model: m.load_mem | PROMPT | tool_loop(model, [add]),
    "tool_loop, text": lambda m, model: m.load_mem | PROMPT | tool_loop(model, [add]) | StrOutputParser(),
    "tool_loop, function": lambda m, model: m.load_mem | PROMPT | tool_loop(model, [add]) | (lambda x: x.text),
    "tool_loop, shouted in pieces": lambda m, model: (
        m.load_mem | PROMPT | tool_loop(model, [add]) | StrOutputParser() | shouted
    ),
    "tool_loop, assigned": lambda m, model: m.load_mem | RunnablePassthrough.assign(
        answer=PROMPT | tool_loop(model, [add]) | StrOutputParser()
    ),
    "react": lambda m, model: react(m, model, [add]),
    "by_mode": lambda m, model: by_mode({"react": react(m, model, [add])}),
    "fallbacks": lambda m, model: m.load_mem | PROMPT | tool_loop(model, [add]).with_fallbacks(
        [RunnableLambda(lambda _: "spare")]
    ) | StrOutputParser(),
    "retry": lambda m, model: m.load_mem | PROMPT | tool_loop(model, [add]).with_retry() | StrOutputParser(),
    "agent()": lambda m, model: agent(m, model, [add]),
}  # fmt: skip


RIGHT_BEFORE = ["tool_loop, assigned", "agent()"]


def saved_of(memory: Memory, chain: Any, way: str) -> list[tuple[str, str]]:
    WAYS[way](with_memory(chain, memory), {"question": "1 2 3 计算"}, T1)
    return said(memory)


@pytest.mark.parametrize("way", ["stream", "astream", "transform", "atransform", "astream_events"])
@pytest.mark.parametrize("loop", [name for name in LOOPS if name not in RIGHT_BEFORE])
@pytest.mark.parametrize("script", [TALKING, TWICE], ids=["one round", "two rounds"])
def test_a_streamed_loop_saves_the_answer_that_invoke_saves(loop: str, way: str, script: list[Any]) -> None:
    with Memory.open(":memory:", recall=()) as one, Memory.open(":memory:", recall=()) as two:
        invoked = saved_of(one, LOOPS[loop](one, Scripted(answers=script)), "invoke")
        assert saved_of(two, LOOPS[loop](two, Scripted(answers=script)), way) == invoked
    assert invoked[-1][1].casefold() == "it is 42."


@pytest.mark.parametrize("way", ["stream", "astream"])
@pytest.mark.parametrize("loop", RIGHT_BEFORE)
def test_guard_so_does_one_whose_output_is_no_text(loop: str, way: str) -> None:
    test_a_streamed_loop_saves_the_answer_that_invoke_saves(loop, way, TWICE)


@pytest.mark.parametrize("way", [w for w in WAYS if w != "invoke"])
@pytest.mark.parametrize("loop", ["tool_loop", "tool_loop, text", "agent()"])
def test_a_loop_that_runs_out_of_rounds_saves_the_same_in_every_form(loop: str, way: str) -> None:
    made: dict[str, Callable[[Memory], Any]] = {
        "tool_loop": lambda m: m.load_mem | PROMPT | tool_loop(Scripted(answers=LAST), [add], max_rounds=1),
        "tool_loop, text": lambda m: (
            m.load_mem | PROMPT | tool_loop(Scripted(answers=LAST), [add], max_rounds=1) | StrOutputParser()
        ),
        "agent()": lambda m: agent(m, Scripted(answers=LAST), [add], max_rounds=1),
    }
    with Memory.open(":memory:", recall=()) as one, Memory.open(":memory:", recall=()) as two:
        invoked = saved_of(one, made[loop](one), "invoke")
        assert saved_of(two, made[loop](two), way) == invoked
    assert invoked[-1] == ("ai", "I give up. ")


def test_the_parts_of_a_streamed_loop_add_up_to_its_answer() -> None:
    parts = list(tool_loop(Scripted(answers=TWICE), [add]).stream("q"))
    assert "".join(str(p.text) for p in parts) == "First this, then that. It is 42."
    total: Any = parts[0]
    for part in parts[1:]:
        total = total + part
    assert total.text == "It is 42."


def down(prompt: Any) -> Any:
    raise ValueError("down")


MODES: dict[str, Callable[[Memory], Any]] = {
    "cot": lambda m: cot(m, Scripted(answers=["Step one. So 42."])),
    "few_shot": lambda m: few_shot(m, Scripted(answers=["It is 42."])),
    "tot": lambda m: tot(m, Scripted(answers=["a, b", "b is best", "It is 42."])),
    "fallbacks": lambda m: m.load_mem | PROMPT | RunnableLambda(down).with_fallbacks(
        [Scripted(answers=["It is 42."])]
    ),
    "json": lambda m: m.load_mem | PROMPT | Scripted(answers=['{"answer": "it is 42"}']) | JsonOutputParser(),
}  # fmt: skip


@pytest.mark.parametrize("way", [w for w in WAYS if w != "invoke"])
@pytest.mark.parametrize("mode", MODES)
def test_guard_a_way_of_thinking_saves_the_same_in_every_form(mode: str, way: str) -> None:
    with Memory.open(":memory:", recall=()) as one, Memory.open(":memory:", recall=()) as two:
        invoked = saved_of(one, MODES[mode](one), "invoke")
        assert saved_of(two, MODES[mode](two), way) == invoked


# ---------------------------------------------------------------- C9: runs that wait for somebody


HITL = {"interrupt_on": {"add": True}}
DECIDED = {
    "approve": ([{"type": "approve"}], ("ai", "[('a', 1), ('b', 2)]"), "3"),
    "edit": (
        [{"type": "edit", "edited_action": {"name": "add", "args": {"a": 5, "b": 5}}}],
        ("ai", "[('a', 1), ('b', 2)]"),  # LangChain tells of the edit in the result
        "10",
    ),
    "reject": ([{"type": "reject", "message": "no"}], ("ai", "[('a', 1), ('b', 2)]"), "no"),
}


def paused_agent(memory: Memory, saver: Any, *answers: Any) -> Any:
    return agent(
        memory, Scripted(answers=list(answers)), [add, ask_human],
        middleware=[HumanInTheLoopMiddleware(**HITL)], checkpointer=saver,
    )  # fmt: skip


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize("decision", DECIDED)
def test_an_agent_shows_what_it_waits_for_and_saves_the_turn_once_it_is_whole(
    memory: Memory, decision: str, way: str
) -> None:
    decisions, called, result = DECIDED[decision]
    bot = paused_agent(memory, InMemorySaver(), calls((1, 2)), "Done.")
    paused = run(bot, {"question": "1+2?"}, T1, way)
    (waits,) = paused["__interrupt__"]
    assert waits.value["action_requests"][0]["args"] == {"a": 1, "b": 2}
    assert paused["answer"] == ""
    assert said(memory) == []
    done = run(bot, Command(resume={"decisions": decisions}), T1, way)
    assert done["answer"] == "Done."
    assert "__interrupt__" not in done
    told = said(memory)
    assert told[0] == ("human", "1+2?")
    assert called in told
    assert any(kind == "tool" and result in text for kind, text in told)
    assert told[-1] == ("ai", "Done.")
    assert len(told) == 4


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
def test_two_interrupts_in_a_turn_are_one_turn(memory: Memory, way: str) -> None:
    bot = agent(
        memory, Scripted(answers=[asks("one?"), asks("two?"), "Done."]), [ask_human], checkpointer=InMemorySaver()
    )
    assert run(bot, "go", T1, way)["__interrupt__"][0].value == "one?"
    assert run(bot, Command(resume="1"), T1, way)["__interrupt__"][0].value == "two?"
    assert said(memory) == []
    assert run(bot, Command(resume="2"), T1, way)["answer"] == "Done."
    assert [t for t in said(memory) if t[0] in ("human", "tool")] == [("human", "go"), ("tool", "1"), ("tool", "2")]


def test_a_paused_turn_that_is_left_for_a_new_question_is_never_saved(memory: Memory) -> None:
    bot = agent(memory, Scripted(answers=[asks("one?"), "Fine."]), [ask_human], checkpointer=InMemorySaver())
    assert bot.invoke("go", T1)["__interrupt__"]
    assert bot.invoke("never mind", T1)["answer"] == "Fine."
    assert said(memory) == [("human", "never mind"), ("ai", "Fine.")]


@pytest.mark.parametrize("outside", [False, True], ids=["alone", "with_memory"])
def test_a_paused_agent_goes_on_in_another_process(tmp_path: Path, outside: bool) -> None:
    """Another memory, agent and checkpointer over the same files; the window's middle was summed up."""

    def ask(given: Any, *answers: Any) -> Any:
        with Memory.open(tmp_path / "m", recall=()) as memory, SqliteSaver.from_conn_string(
            str(tmp_path / "c.db")
        ) as saver:
            bot: Any = agent(
                memory, Scripted(answers=list(answers)), [ask_human], checkpointer=saver,
                middleware=[Middle(summed_up)],
            )  # fmt: skip
            output = (with_memory(bot, memory) if outside else bot).invoke(given, T1)
            return output, said(memory)

    paused, saved = ask({"question": "remember: I like tea"}, asks("sure?"))
    assert paused["__interrupt__"]
    assert saved == []
    done, saved = ask(Command(resume="yes"), "Done.")
    assert done["answer"] == "Done."
    assert saved[0] == ("human", "remember: I like tea")
    assert saved[-1] == ("ai", "Done.")
    with Memory.open(tmp_path / "m", recall=()) as memory:
        assert [f.text for f in memory._stored("").store.ledger().current("user:u1")] == ["I like tea"]


@pytest.mark.parametrize("began", ["alone", "with_memory"])
def test_who_is_around_at_the_end_saves_the_resumed_turn_and_nobody_else(memory: Memory, began: str) -> None:
    bot: Any = agent(
        memory, Scripted(answers=[asks("one?"), "Done."]), [ask_human], checkpointer=InMemorySaver()
    )
    around = with_memory(bot, memory)
    first, then = (bot, around) if began == "alone" else (around, bot)
    assert first.invoke({"question": "go"}, T1)["__interrupt__"]
    then.invoke(Command(resume="1"), T1)
    assert [t for t in said(memory) if t[0] in ("human", "tool")] == [("human", "go"), ("tool", "1")]
    assert said(memory)[-1] == ("ai", "Done.")


def test_guard_an_agent_that_waits_for_nobody_says_nothing_of_it(memory: Memory) -> None:
    done = agent(memory, Scripted(answers=["Hello."]), [add], checkpointer=InMemorySaver()).invoke("hi", T1)
    assert set(done) == {"answer", "tool_records", "messages"}


