"""What is asked: a whole conversation under the question key, a bare question, deep nesting, and chains through
which nothing that is remembered can reach a model."""

from __future__ import annotations

import json
import warnings
from operator import itemgetter
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder, PromptTemplate
from langchain_core.runnables import (
    RunnableBranch,
    RunnableGenerator,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
)

from lc_memory import Memory, from_lc, with_memory
from lc_memory.errors import MemoryInputError
from lc_memory.messages import _to_lc
from tests.helpers.models import Scripted

Message = dict[str, Any]
ASKING = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), MessagesPlaceholder("question")])
PROMPT = ChatPromptTemplate.from_messages([("system", "s"), ("placeholder", "{history}"), ("human", "{question}")])


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def told(text: Any, **more: Any) -> Message:
    return {"role": "assistant", "content": text, **more}


CALL = told(None, tool_calls=[{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}])
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "r"}
SYSTEM = {"role": "system", "content": "Be brief."}
STORED = [user("u1"), told("a1"), user("u2"), told("a2")]
Q = user("and now?")

# name, what is stored, what is sent, what must stand in the prompt, in order
SENT: list[tuple[str, list[Message], list[Message], list[str]]] = [
    ("the question alone", STORED, [Q], ["u1", "a1", "u2", "a2", "and now?"]),
    ("what is stored, and the question", STORED, [*STORED, Q], ["u1", "a1", "u2", "a2", "and now?"]),
    ("nothing is stored yet", [], [user("u1"), told("a1"), Q], ["u1", "a1", "and now?"]),
    ("a beginning that was edited", STORED, [user("u1, edited"), told("a1"), user("u2"), told("a2"), Q], ["u1", "a1", "u2", "a2", "and now?"]),
    ("an answer that was edited", STORED, [*STORED[:3], told("a2, edited"), Q], ["u1", "a1", "u2", "a2", "and now?"]),
    ("other white space", STORED, [*STORED[:3], told(" a2\n"), Q], ["u1", "a1", "u2", "a2", "and now?"]),
    ("a beginning that was cut off", STORED, [told("a1"), user("u2"), told("a2"), Q], ["u1", "a1", "u2", "a2", "and now?"]),
    ("the last turn alone", STORED, [user("u2"), told("a2"), Q], ["u1", "a1", "u2", "a2", "and now?"]),
    ("a turn that was never saved", STORED, [*STORED, user("u3"), told("a3"), Q], ["u1", "a1", "u2", "a2", "u3", "a3", "and now?"]),
    ("a question that nobody answered", STORED, [*STORED, user("u3"), Q], ["u1", "a1", "u2", "a2", "u3", "and now?"]),
    ("with a system message", STORED, [SYSTEM, *STORED, Q], ["Be brief.", "u1", "a1", "u2", "a2", "and now?"]),
    ("with tool traffic, which was saved", [user("u1"), CALL, RESULT, told("a1")], [user("u1"), CALL, RESULT, told("a1"), Q],
     ["u1", "", "r", "a1", "and now?"]),
    ("with tool traffic, which was not", STORED[:2], [*STORED[:2], user("u3"), CALL, RESULT, told("a3"), Q],
     ["u1", "a1", "u3", "", "r", "a3", "and now?"]),
    ("with the words of a turn that called tools", [user("u1"), CALL, RESULT, told("a1")], [user("u1"), told("a1"), Q],
     ["u1", "", "r", "a1", "and now?"]),
    ("the same question again", STORED, [*STORED, user("u2")], ["u1", "a1", "u2", "a2", "u2"]),
    ("the last answer once more", STORED, STORED[:3], ["u1", "a1", "u2", "a2", "u2"]),
    ("an answer with thoughts, shown without", [user("u1"), told("<think>t</think>a1")], [user("u1"), told("a1"), Q], ["u1", "a1", "and now?"]),
]  # fmt: skip

SHAPES: dict[str, Any] = {
    "messages": lambda ms: [_to_lc(m) for m in ms],
    "dicts": lambda ms: [dict(m) for m in ms],
    "pairs": lambda ms: [(m["role"], m["content"]) if m.keys() == {"role", "content"} else m for m in ms],
    "mixed": lambda ms: [_to_lc(m) if i % 2 else m for i, m in enumerate(ms)],
}


def said(prompt: list[BaseMessage]) -> list[str]:
    return [str(m.text) for m in prompt]


def _stored(memory: Memory, turn: list[Message]) -> None:
    if turn:
        memory.session("s").add(turn)


CONFIG: Any = {"configurable": {"session_id": "s"}}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("stored", "sent", "prompt"), [s[1:] for s in SENT], ids=[s[0] for s in SENT])
def test_of_a_whole_conversation_only_what_is_new_is_the_question(
    stored: list[Message], sent: list[Message], prompt: list[str], shape: str
) -> None:
    given = SHAPES[shape](sent)
    with Memory.open(":memory:", recall=()) as memory:
        _stored(memory, stored)
        out = memory.load_mem.invoke({"question": given, "more": 1}, CONFIG)
        assert out["more"] == 1
        assert said(ASKING.invoke(out).to_messages()) == prompt
        assert said(memory.history(given, CONFIG)) == prompt[:-1]
        assert said(memory.session("s").context(given)) == prompt[:-1]
        model = Scripted(answers=["told"])
        bot = with_memory(memory.load_mem | ASKING | model | StrOutputParser(), memory)
        assert bot.invoke({"question": given}, CONFIG) == "told"
        assert said(model.prompts[0]) == prompt
        kept = said(memory.session("s").messages())
        assert kept == [*said([_to_lc(m) for m in stored]), sent[-1]["content"], "told"]


@pytest.mark.parametrize(("stored", "sent", "prompt"), [s[1:] for s in SENT], ids=[s[0] for s in SENT])
def test_nodes_of_a_graph_see_the_same(stored: list[Message], sent: list[Message], prompt: list[str]) -> None:
    pytest.importorskip("langgraph")
    from lc_memory.integrations.langgraph import memory_graph

    with Memory.open(":memory:", recall=()) as memory:
        _stored(memory, stored)
        model = Scripted(answers=["told"])
        graph = memory_graph(memory, model, system="first").compile()
        graph.invoke({"messages": [_to_lc(m) for m in sent]}, CONFIG)
        assert said(model.prompts[0]) == ["first", *prompt]
        assert said(memory.session("s").messages())[len(stored) :] == [sent[-1]["content"], "told"]


def test_a_front_end_that_sends_everything_each_time_does_not_double_the_history() -> None:
    with Memory.open(":memory:", recall=(), window=4) as memory:
        model = Scripted(answers=[f"a{n}" for n in range(40)])
        bot = with_memory(memory.load_mem | ASKING | model | StrOutputParser(), memory)
        shown: list[Message] = []
        for n in range(40):
            shown.append(user(f"q{n}"))
            shown.append(told(bot.invoke({"question": list(shown)}, CONFIG)))
        memory.flush()
        assert said(memory.session("s").messages()) == [m["content"] for m in shown]
        assert max(len(prompt) for prompt in model.prompts) <= 4 * 2 * 2 + 3
        assert all(len(set(said(prompt))) == len(prompt) for prompt in model.prompts)


def test_what_a_caller_sends_along_is_held_to_the_budget() -> None:
    sent = [m for n in range(400) for m in (user(f"question number {n}"), told(f"answer number {n}"))]
    with Memory.open(":memory:", recall=(), max_context_tokens=600) as memory:
        history = said(memory.history([*sent, Q], CONFIG))
        assert history[-1] == "answer number 399"
        assert 2 <= len(history) < 100


ENDS: list[tuple[str, Any]] = [
    ("an answer", [user("u1"), told("a1")]),
    ("an answer, as messages", [HumanMessage("u1"), AIMessage("a1")]),
    ("a call", [user("u1"), CALL]),
    ("a tool's result", [user("u1"), CALL, RESULT]),
    ("a tool's result, as messages", [HumanMessage("u1"), _to_lc(CALL), ToolMessage("r", tool_call_id="c1")]),
    ("a system message", [user("u1"), SYSTEM]),
    ("an answer, as pairs", [("user", "u1"), ("assistant", "a1")]),
]


@pytest.mark.parametrize("given", [e[1] for e in ENDS], ids=[e[0] for e in ENDS])
def test_a_conversation_that_does_not_end_with_a_question_is_a_clear_error(given: Any) -> None:
    with Memory.open(":memory:", recall=()) as memory:
        model = Scripted(answers=["never"])
        bot = with_memory(memory.load_mem | ASKING | model, memory)
        for call in (
            lambda: memory.load_mem.invoke({"question": given}),
            lambda: bot.invoke({"question": given}),
            lambda: memory.history(given),
            lambda: memory.explain(given),
        ):
            with pytest.raises(MemoryInputError, match="last message is the user's"):
                call()
        assert model.prompts == []


def test_a_graph_whose_messages_end_with_an_answer_is_told_so() -> None:
    pytest.importorskip("langgraph")
    from lc_memory.integrations.langgraph import memory_graph

    with Memory.open(":memory:", recall=()) as memory:
        graph = memory_graph(memory, Scripted(answers=["never"])).compile()
        with pytest.raises(MemoryInputError, match="no question"):
            graph.invoke({"messages": [HumanMessage("u1"), AIMessage("a1")]}, CONFIG)


@pytest.mark.parametrize(
    "question",
    [{"role": "user", "content": "q"}, ("human", "q"), {"messages": [user("u1"), told("a1"), user("q")]},
     [["user", "u1"], ["assistant", "a1"], ["user", "q"]], {"contents": [{"role": "user", "parts": [{"text": "q"}]}]},
     [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "q"}]}]],
    ids=["a dict", "a pair", "an object", "pairs as lists", "Gemini's", "the AI SDK's"],
)  # fmt: skip
def test_a_question_may_come_in_any_form_of_a_message(question: Any) -> None:
    from lc_memory.messages import asked

    found = asked(question)
    assert found is not None
    assert _to_lc(found.question).text == "q"


def test_guard_parts_of_a_content_are_no_conversation() -> None:
    from lc_memory.messages import asked

    parts = [{"type": "text", "text": "what is this"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    for given in (parts, ["one", "two"]):
        found = asked(given)
        assert found is not None
        assert found.question == {"role": "user", "content": given}
        assert not found.is_conversation


def test_unknown_is_what_stands_behind_the_last_known_message() -> None:
    from lc_memory.messages import unknown

    assert unknown(STORED, []) == STORED
    assert unknown(STORED, STORED) == []
    assert unknown([*STORED, user("u3")], STORED[2:]) == [user("u3")]
    assert unknown([SYSTEM, *STORED], STORED) == [SYSTEM]
    assert unknown([SYSTEM, *STORED], [SYSTEM, *STORED]) == []


# ---------------------------------------------------------------- a bare question


def _bot(memory: Memory, prompt: Any = PROMPT) -> tuple[Any, Scripted]:
    model = Scripted(answers=["told"])
    return with_memory(memory.load_mem | prompt | model | StrOutputParser(), memory), model


BARE: dict[str, Any] = {"text": "hi", "a message": HumanMessage("hi"), "a conversation": [HumanMessage("u1"), AIMessage("a1"), HumanMessage("hi")]}


@pytest.mark.parametrize("bare", BARE.values(), ids=list(BARE))
@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream", "batch", "abatch"])
async def test_a_bare_question_is_taken_as_the_docstring_says(bare: Any, way: str) -> None:
    with Memory.open(":memory:", recall=()) as memory:
        bot, _ = _bot(memory, PROMPT if isinstance(bare, str) else RunnableLambda(lambda x: [HumanMessage("x")]))
        if way == "invoke":
            out = bot.invoke(bare, CONFIG)
        elif way == "ainvoke":
            out = await bot.ainvoke(bare, CONFIG)
        elif way == "stream":
            out = "".join(bot.stream(bare, CONFIG))
        elif way == "astream":
            out = "".join([c async for c in bot.astream(bare, CONFIG)])
        elif way == "batch":
            (out,) = bot.batch([bare], CONFIG)
        else:
            (out,) = await bot.abatch([bare], CONFIG)
        assert out == "told"
        assert said(memory.session("s").messages()) == ["hi", "told"]


@pytest.mark.parametrize(
    "around",
    [lambda c: c.with_retry(), lambda c: c.with_config(tags=["t"]), lambda c: c.with_fallbacks([c]), lambda c: c.bind()],
    ids=["with_retry", "with_config", "with_fallbacks", "bind"],
)
def test_a_bare_question_is_taken_through_what_is_put_around_a_chain(around: Any) -> None:
    with Memory.open(":memory:", recall=(), question_key="ask") as memory:
        prompt = ChatPromptTemplate.from_messages([("placeholder", "{history}"), ("human", "{ask}")])
        bot = with_memory(around(memory.load_mem | prompt | Scripted(answers=["told"]) | StrOutputParser()), memory)
        assert bot.invoke("hi") == "told"


def test_guard_a_chain_that_takes_text_itself_gets_text() -> None:
    with Memory.open(":memory:", recall=()) as memory:
        got: list[Any] = []

        def note(given: Any) -> Any:
            got.append(given)
            return {"question": given}

        bot = with_memory(RunnableLambda(note) | memory.load_mem | PROMPT | Scripted(answers=["told"]), memory)
        bot.invoke("hi")
        assert got == ["hi"]
        with pytest.raises(MemoryInputError, match="expected a dict"):
            memory.load_mem.invoke("hi")  # type: ignore[arg-type]


# ---------------------------------------------------------------- nesting


def deep(levels: int) -> Any:
    return json.loads("[" * levels + "]" * levels)


def deep_dict(levels: int) -> Any:
    out: Any = {}
    for _ in range(levels):
        out = {"a": out}
    return out


DEEP: dict[str, Any] = {
    "a part": lambda: {"role": "user", "content": [{"type": "x", "x": deep(900)}]},
    "a key": lambda: {"role": "user", "content": "q", "extra": deep(900)},
    "objects": lambda: {"role": "user", "content": "q", "extra": deep_dict(900)},
    "arguments": lambda: {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "name": "f", "args": deep_dict(900)}]},
    "far deeper": lambda: {"role": "user", "content": "q", "extra": deep_dict(5000)},
    "just too deep": lambda: {"role": "user", "content": "q", "extra": deep_dict(101)},
}


@pytest.mark.parametrize("make", DEEP.values(), ids=list(DEEP))
def test_deep_nesting_in_a_message_is_one_clear_error(make: Any) -> None:
    message = make()
    with pytest.raises(MemoryInputError, match="nested more than"):
        _to_lc(message)
    with Memory.open(":memory:", recall=()) as memory:
        with pytest.raises(MemoryInputError, match="nested"):
            memory.session().add([user("q"), message])
        assert memory.session().messages() == []


def test_deep_nesting_in_a_message_object_is_the_same_error() -> None:
    for message in (
        HumanMessage("q", additional_kwargs={"x": deep_dict(900)}),
        AIMessage("a", response_metadata={"x": deep_dict(900)}),
        HumanMessage([{"type": "x", "x": deep_dict(200)}]),
        AIMessage("", tool_calls=[{"name": "f", "id": "c", "args": deep_dict(200)}]),
    ):
        with pytest.raises(MemoryInputError, match="nested more than"):
            from_lc(message)


def test_a_deep_question_is_refused_before_a_model_is_asked() -> None:
    with Memory.open(":memory:", recall=()) as memory:
        bot, model = _bot(memory)
        for question in ([{"type": "x", "x": deep(900)}], HumanMessage("q", additional_kwargs={"x": deep_dict(900)})):
            with pytest.raises(MemoryInputError, match="nested more than"):
                bot.invoke({"question": question})
        assert model.prompts == []


def test_a_tools_deep_artifact_loses_no_turn() -> None:
    with Memory.open(":memory:", recall=()) as memory:
        made = AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "c1"}])
        state = RunnableLambda(lambda x: {"messages": [
            HumanMessage(x["question"]), made, ToolMessage("r", tool_call_id="c1", artifact=deep_dict(900)), AIMessage("done")]})  # fmt: skip
        with_memory(memory.load_mem | state, memory).invoke({"question": "q"})
        assert said(memory.session().messages()) == ["q", "", "r", "done"]


def test_guard_what_programs_write_is_not_too_deep() -> None:
    message = {"role": "user", "content": "q", "extra": deep_dict(60)}
    assert from_lc(_to_lc(message)) == message


# ---------------------------------------------------------------- chains that remember nothing

MODEL = Scripted(answers=["told"])
NO_PLACE = ChatPromptTemplate.from_messages([("system", "s"), ("human", "{question}")])
OTHER_PLACE = ChatPromptTemplate.from_messages([MessagesPlaceholder("chat_history", optional=True), ("human", "{question}")])
FIRST = RunnablePassthrough.assign(topic=lambda x: x["question"].lower())

FORGETFUL: dict[str, tuple[Any, str]] = {
    "no load_mem": (lambda m: PROMPT | MODEL, "no memory.load_mem"),
    "no load_mem, with a parser": (lambda m: NO_PLACE | MODEL | StrOutputParser(), "no memory.load_mem"),
    "no load_mem, a model alone": (lambda m: MODEL, "no memory.load_mem"),
    "no load_mem, retried": (lambda m: (PROMPT | MODEL).with_retry(), "no memory.load_mem"),
    "no load_mem, with fallbacks": (lambda m: (PROMPT | MODEL).with_fallbacks([NO_PLACE | MODEL]), "no memory.load_mem"),
    "no load_mem, with a getter": (lambda m: {"question": itemgetter("question")} | NO_PLACE | MODEL, "no memory.load_mem"),
    "no load_mem, with a plain function": (lambda m: FIRST | NO_PLACE | MODEL, "no memory.load_mem"),
    "load_mem of another memory": (lambda m: Memory.open(":memory:").load_mem | PROMPT | MODEL, "no memory.load_mem"),
    "no place": (lambda m: m.load_mem | NO_PLACE | MODEL, "no prompt of this chain has a place for 'history'"),
    "no place, with a parser": (lambda m: m.load_mem | NO_PLACE | MODEL | StrOutputParser(), "MessagesPlaceholder(\"history\")"),
    "another place": (lambda m: m.load_mem | OTHER_PLACE | MODEL, "'chat_history'"),
    "a prompt of text without a place": (lambda m: m.load_mem | PromptTemplate.from_template("{question}") | MODEL, "no prompt"),
    "no place, retried": (lambda m: (m.load_mem | NO_PLACE | MODEL).with_retry(), "no prompt"),
    "no place, bound": (lambda m: m.load_mem | NO_PLACE | MODEL.bind(stop=["x"]), "no prompt"),
    "no place, with assign": (lambda m: m.load_mem | FIRST | NO_PLACE | MODEL, "no prompt"),
    "no place on either branch": (lambda m: m.load_mem | RunnableBranch((itemgetter("x"), NO_PLACE | MODEL), NO_PLACE | MODEL), "no prompt"),
    "no place in parallel": (lambda m: m.load_mem | RunnableParallel(a=NO_PLACE | MODEL, b=NO_PLACE | MODEL), "no prompt"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "says"), FORGETFUL.values(), ids=list(FORGETFUL))
def test_who_builds_a_chain_that_can_remember_nothing_is_told_once(make: Any, says: str) -> None:
    with Memory.open(":memory:", recall=()) as memory:
        with pytest.warns(RuntimeWarning) as caught:
            bot = with_memory(make(memory), memory)
        ours = [w for w in caught if issubclass(w.category, RuntimeWarning)]
        assert len(ours) == 1
        assert says in str(ours[0].message)
        assert ours[0].filename == __file__
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            if isinstance(bot.bound, Scripted):
                return
            bot.invoke({"question": "q", "x": 1})


class Retrieving:
    """A step of somebody's own that holds the memory."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory

    def __call__(self, given: Any) -> Any:
        return {**given, "history": self.memory.history(given["question"])}


def _reading(memory: Memory) -> Any:
    def load(given: Any) -> Any:
        return {**given, "history": memory.history(given["question"])}

    return load


def _helped(memory: Memory) -> Any:
    load = _reading(memory)
    return lambda given: load(given)


def _graph(memory: Memory) -> Any:
    from lc_memory.integrations.langgraph import memory_graph

    return memory_graph(memory, MODEL).compile()


def _agent(memory: Memory) -> Any:
    from langchain.agents import create_agent

    from lc_memory.integrations.middleware import MemoryMiddleware

    return create_agent(MODEL, [], middleware=[MemoryMiddleware(memory)])


def _stream(given: Any) -> Any:
    yield from given


MINDFUL: dict[str, Any] = {
    "the five lines": lambda m: m.load_mem | PROMPT | MODEL | StrOutputParser(),
    "a placeholder that is needed": lambda m: m.load_mem | ASKING | MODEL,
    "history in a text prompt": lambda m: m.load_mem | PromptTemplate.from_template("{history} {question}") | MODEL,
    "a prompt with a default history": lambda m: m.load_mem | ASKING.partial(history=[]) | MODEL,
    "a function that reads the memory": lambda m: RunnableLambda(_reading(m)) | PROMPT | MODEL,
    "a function that calls one": lambda m: RunnableLambda(_helped(m)) | PROMPT | MODEL,
    "an object that reads the memory": lambda m: RunnableLambda(Retrieving(m)) | PROMPT | MODEL,
    "assign with a function": lambda m: RunnablePassthrough.assign(history=lambda x: m.history(x["question"])) | PROMPT | MODEL,
    "a chain inside a function": lambda m: RunnableLambda(lambda x: (m.load_mem | PROMPT | MODEL).invoke(x)),
    "a function that makes the prompt": lambda m: m.load_mem | RunnableLambda(lambda x: [*x["history"], HumanMessage(x["question"])]) | MODEL,
    "a function that takes all": lambda m: m.load_mem | RunnableLambda(lambda x: "\n".join(map(str, x.values()))) | MODEL,
    "a function between, and no other place": lambda m: m.load_mem | RunnableLambda(lambda x: NO_PLACE.invoke({"question": str(x["history"])})) | MODEL,
    "inside with_retry": lambda m: (m.load_mem | PROMPT | MODEL).with_retry(),
    "inside with_fallbacks": lambda m: (NO_PLACE | MODEL).with_fallbacks([m.load_mem | PROMPT | MODEL]),
    "on one branch": lambda m: RunnableBranch((itemgetter("x"), m.load_mem | PROMPT | MODEL), NO_PLACE | MODEL),
    "in parallel": lambda m: RunnableParallel(a=m.load_mem | PROMPT | MODEL, b=NO_PLACE | MODEL),
    "inside parallel, then a prompt": lambda m: m.load_mem | {"history": itemgetter("history"), "question": itemgetter("question")} | PROMPT | MODEL,
    "bound": lambda m: (m.load_mem | PROMPT | MODEL.bind(stop=["x"])).with_config(tags=["t"]),
    "configurable": lambda m: m.load_mem | PROMPT.configurable_alternatives(
        __import__("langchain_core.runnables").runnables.ConfigurableField(id="p"), other=NO_PLACE) | MODEL,
    "each": lambda m: (m.load_mem | PROMPT | MODEL).map(),
    "nested": lambda m: with_memory(m.load_mem | PROMPT | MODEL, m),
    "a retriever of the memory": lambda m: {"found": itemgetter("question") | m.retriever(), "question": itemgetter("question")} | NO_PLACE | MODEL,
    "a generator": lambda m: NO_PLACE | MODEL | RunnableGenerator(_stream),
    "a graph with the nodes": _graph,
    "an agent with the middleware": _agent,
}  # fmt: skip


@pytest.mark.parametrize("make", MINDFUL.values(), ids=list(MINDFUL))
def test_guard_no_chain_that_may_remember_is_warned_about(make: Any) -> None:
    with Memory.open(":memory:") as memory:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            with_memory(make(memory), memory)


def test_guard_a_system_message_in_a_conversation_is_no_memory_text() -> None:
    with Memory.open(":memory:", recall=()) as memory:
        assert memory.history([SYSTEM, Q], CONFIG) == [SystemMessage("Be brief.")]
