"""load_mem and with_memory among other parts: nested, in parallel, retried, from threads and one loop."""

from __future__ import annotations

import asyncio
import copy
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda, RunnableParallel, RunnablePassthrough
from pydantic import BaseModel

from lc_memory import Memory, with_memory
from lc_memory.errors import MemoryInputError, SessionBusyError
from tests.helpers.managers import NoFacts, Words, manager, plain
from tests.helpers.models import USAGE, Scripted

PROMPT = ChatPromptTemplate.from_messages(
    [("system", "s"), ("placeholder", "{history}"), ("human", "{question}")]
)
ASK = {"question": "我叫什么？"}


def make(model: Scripted, mm: Any = None) -> tuple[Any, Memory, Runnable[Any, Any], Runnable[Any, Any]]:
    mm = Words() if mm is None else mm
    memory = Memory(mm)
    chain = memory.load_mem | PROMPT | model | StrOutputParser()
    return mm, memory, chain, with_memory(chain, memory)


def config(session: str, user: str | None = None) -> Any:
    return {"configurable": {"session_id": session, **({"user_id": user} if user else {})}}


def turns(said: list[dict[str, Any]]) -> list[tuple[Any, Any]]:
    return [(said[i]["content"], said[i + 1]["content"]) for i in range(0, len(said), 2)]


# ---- load_mem alone


def test_load_mem_gives_a_new_dict_with_all_keys_and_the_history() -> None:
    mm, memory, _, _ = make(Scripted(answers=["a"]))
    mm.add_user("我叫小明")
    given = {"question": "q", "topic": [1]}
    before = copy.deepcopy(given)
    out = memory.load_mem.invoke(given)
    assert out == {"question": "q", "topic": [1], "history": [HumanMessage("我叫小明")]}
    assert given == before
    assert len(mm.said) == 1  # nothing is written


async def test_load_mem_answers_alike_in_all_ways() -> None:
    mm, memory, _, _ = make(Scripted(answers=["a"]))
    mm.add_user("我叫小明")
    expected = {**ASK, "history": [HumanMessage("我叫小明")]}
    load = memory.load_mem
    assert load.invoke(ASK) == await load.ainvoke(ASK) == expected
    assert list(load.stream(ASK)) == [c async for c in load.astream(ASK)] == [expected]
    assert load.batch([ASK, ASK]) == await load.abatch([ASK, ASK]) == [expected] * 2
    assert list(load.transform(iter([ASK]))) == [expected]


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("我叫什么？", "expected a dict like {'question': …}"),
        (None, "expected a dict"),
        ({}, "no 'question'"),
        ({"input": "q"}, "its keys: 'input'"),
        ({"question": None}, "must be text"),
        ({"question": 3}, "must be text"),
        ({"question": []}, "must be text"),
        ({"question": [AIMessage("a")]}, "must be text"),
    ],
)
def test_an_input_without_a_question_is_an_error_that_says_what_was_expected(given: Any, says: str) -> None:
    _, memory, _, _ = make(Scripted(answers=["a"]))
    with pytest.raises(MemoryInputError) as caught:
        memory.load_mem.invoke(given)
    assert says in str(caught.value)


def test_the_keys_can_be_chosen() -> None:
    mm = Words()
    memory = Memory(mm, question_key="input", history_key="chat")
    prompt = ChatPromptTemplate.from_messages([("placeholder", "{chat}"), ("human", "{input}")])
    bot = with_memory(memory.load_mem | prompt | Scripted(answers=["a"]) | StrOutputParser(), memory)
    bot.invoke({"input": "q"})
    bot.invoke({"input": "q2"})
    assert turns(mm.said) == [("q", "a"), ("q2", "a")]


def test_a_question_may_be_a_message_or_a_list_of_parts() -> None:
    mm = manager()
    memory = Memory(mm)
    prompt = ChatPromptTemplate.from_messages([("placeholder", "{history}"), ("placeholder", "{question}")])
    bot = with_memory(memory.load_mem | prompt | Scripted(answers=["a"]) | StrOutputParser(), memory)
    parts = [{"type": "text", "text": "这是什么"}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    bot.invoke({"question": [HumanMessage(parts)]})
    assert mm.stm.buffer[2] == {"role": "user", "content": parts}


def test_braces_in_the_history_pass_as_they_are() -> None:
    mm, _, chain, _ = make(Scripted(answers=["a"]))
    mm.add_user("{question} {x} ignore {{this}}")
    assert chain.invoke(ASK) == "a"


# ---- managers


def test_a_manager_that_lacks_a_call_is_refused_at_once() -> None:
    with pytest.raises(MemoryInputError, match=r"get_context\(query=None\), add\(msg\)"):
        Memory(object())
    with pytest.raises(MemoryInputError, match="not its class"):
        Memory(Words)


def test_a_context_that_is_no_list_is_an_error_that_names_the_manager() -> None:
    class Odd(Words):
        def get_context(self, query: str | None = None) -> Any:
            return {"role": "user", "content": "not a list"}

    with pytest.raises(MemoryInputError, match=r"Odd.get_context\(\) gave dict"):
        Memory(Odd()).load_mem.invoke(ASK)


def test_the_question_is_the_query_of_the_recall() -> None:
    class Asked(Words):
        def get_context(self, query: str | None = None) -> list[dict[str, str]]:
            return [{"role": "system", "content": f"asked: {query}"}]

    assert Memory(Asked()).load_mem.invoke(ASK)["history"] == [SystemMessage("asked: 我叫什么？")]


def test_a_broken_long_term_part_is_one_warning_and_the_window_goes_on() -> None:
    class Broken(NoFacts):
        def recall(self, query: str, k: int = 3, include_private: bool = False) -> list[str]:
            raise ConnectionError("no route to the model hub")

    mm = manager()
    mm.ltm = Broken()  # type: ignore[assignment]
    memory = Memory(mm)
    bot = with_memory(memory.load_mem | PROMPT | Scripted(answers=["a"]) | StrOutputParser(), memory)
    with pytest.warns(RuntimeWarning, match="no route to the model hub") as caught:
        assert [bot.invoke(ASK) for _ in range(3)] == ["a"] * 3
    assert len(caught) == 1
    assert len(mm.stm.buffer) == 8


def test_orphans_in_the_managers_window_never_reach_the_model() -> None:
    mm = manager()
    mm.stm.buffer.insert(0, {"role": "tool", "tool_call_id": "x", "content": "orphan"})
    mm.stm.buffer.append({"role": "assistant", "content": None, "tool_calls": [{"id": "y", "type": "function", "function": {"name": "f", "arguments": "{}"}}]})  # fmt: skip
    history = Memory(mm).load_mem.invoke(ASK)["history"]
    assert [type(m).__name__ for m in history] == ["HumanMessage", "AIMessage"]


def test_one_manager_is_one_conversation_and_a_second_session_is_refused() -> None:
    mm, _, _, bot = make(Scripted(answers=["a"]))
    bot.invoke(ASK, config("s1", "u1"))
    for other in (config("s2", "u1"), config("s1", "u2"), config("s1"), {}):  # who names nobody is another one
        with pytest.raises(MemoryInputError, match="per_session"):
            bot.invoke(ASK, other)
    assert len(mm.said) == 2


def test_a_manager_per_session_keeps_users_and_sessions_apart() -> None:
    made: dict[Any, Words] = {}
    memory = Memory.per_session(lambda key: made.setdefault(key, Words()))
    model = Scripted(answers=["a"])
    bot = with_memory(memory.load_mem | PROMPT | model | StrOutputParser(), memory)
    for session, user in [("s1", "u1"), ("s1", "u2"), ("s2", "u1"), ("s1", None)]:
        bot.invoke({"question": f"{session} {user}"}, config(session, user))
    assert [[m["content"] for m in w.said] for w in made.values()] == [
        [f"{k.session_id} {k.user_id}", "a"] for k in made
    ]
    assert all(len(p) == 2 for p in model.prompts)


def test_a_thread_id_names_the_session_where_no_session_id_does() -> None:
    made: dict[Any, Words] = {}
    memory = Memory.per_session(lambda key: made.setdefault(key, Words()))
    memory.load_mem.invoke(ASK, {"configurable": {"thread_id": "t"}})
    memory.load_mem.invoke(ASK, {"configurable": {"thread_id": "t", "session_id": "s"}})
    memory.load_mem.invoke(ASK, {"configurable": {"session_id": 7}})
    assert [k.session_id for k in made] == ["t", "s", "7"]
    with pytest.raises(MemoryInputError, match="session_id"):
        memory.load_mem.invoke(ASK, {"configurable": {"session_id": ["s"]}})


# ---- what is saved


def test_what_a_router_and_a_judge_said_is_not_the_conversation() -> None:
    mm = manager()
    memory = Memory(mm)
    router = Scripted(answers=["sport"])
    judge = Scripted(answers=['{"score": 1}'])
    route = ChatPromptTemplate.from_template("Which topic: {question}") | router | StrOutputParser()
    grade = RunnableLambda(lambda text: f"Grade: {text}") | judge | JsonOutputParser()
    answer = PROMPT | Scripted(answers=["你叫 小明"]) | StrOutputParser()
    chain = (
        memory.load_mem
        | RunnablePassthrough.assign(topic=route)
        | RunnablePassthrough.assign(answer=answer)
        | RunnablePassthrough.assign(grade=RunnableLambda(lambda x: x["answer"]) | grade)
        | RunnableLambda(lambda x: x["answer"])
    )
    with_memory(chain, memory).invoke(ASK)
    assert mm.stm.buffer[2:] == [
        {"role": "user", "content": "我叫什么？"},
        {"role": "assistant", "content": "你叫 小明", "usage_metadata": USAGE},
    ]


def test_with_a_judge_behind_a_json_answer_the_answering_model_is_the_one_that_was_asked() -> None:
    mm = manager()
    memory = Memory(mm)
    judge = RunnableLambda(lambda x: f"Grade {x}") | Scripted(answers=["bad"]) | StrOutputParser()
    chain = (
        memory.load_mem
        | PROMPT
        | Scripted(answers=['{"name": "小明"}'])
        | JsonOutputParser()
        | RunnableParallel(parsed=RunnablePassthrough(), grade=judge)
    )
    assert with_memory(chain, memory).invoke(ASK) == {"parsed": {"name": "小明"}, "grade": "bad"}
    assert mm.stm.buffer[-1]["content"] == '{"name": "小明"}'


def test_a_structured_output_by_tool_call_is_saved_as_its_arguments() -> None:
    class Name(BaseModel):
        name: str

    mm = manager()
    memory = Memory(mm)
    called = AIMessage(
        "", tool_calls=[{"name": "Name", "args": {"name": "小明"}, "id": "c", "type": "tool_call"}]
    )
    parse = RunnableLambda(lambda m: Name(**m.tool_calls[0]["args"]))
    bot = with_memory(memory.load_mem | PROMPT | Scripted(answers=[called]) | parse, memory)
    assert bot.invoke(ASK) == Name(name="小明")
    assert mm.stm.buffer[-1] == {"role": "assistant", "content": '{"name": "小明"}'}


def test_reasoning_and_metadata_stay_with_the_answer() -> None:
    mm = manager()
    memory = Memory(mm)
    said = AIMessage(
        "小明", additional_kwargs={"reasoning_content": "他说过"}, response_metadata={"model_name": "m"}
    )
    bot = with_memory(memory.load_mem | PROMPT | Scripted(answers=[said]) | StrOutputParser(), memory)
    bot.invoke(ASK)
    assert mm.stm.buffer[-1] == {
        "role": "assistant", "content": "小明", "reasoning_content": "他说过", "response_metadata": {"model_name": "m"},
    }  # fmt: skip


def test_a_chain_that_hands_out_an_agents_messages_saves_those_of_the_turn() -> None:
    mm = manager()
    memory = Memory(mm)
    chain = memory.load_mem | RunnableLambda(
        lambda x: {
            "messages": [SystemMessage("s"), *x["history"], HumanMessage(x["question"]), AIMessage("小明")]
        }
    )
    with_memory(chain, memory).invoke(ASK)
    assert mm.stm.buffer[2:] == [
        {"role": "user", "content": "我叫什么？"},
        {"role": "assistant", "content": "小明"},
    ]


def test_the_smallest_manager_gets_the_words() -> None:
    mm, _, _, bot = make(Scripted(answers=["a1", "a2"]))
    assert bot.batch([{"question": "q1"}, {"question": "q2"}]) == ["a1", "a2"]
    assert turns(mm.said) == [("q1", "a1"), ("q2", "a2")]


# ---- among other parts


def test_a_bot_inside_a_bot_saves_once() -> None:
    mm, memory, _, inner = make(Scripted(answers=["a"]))
    outer = with_memory(RunnablePassthrough() | inner, memory)
    outer.invoke(ASK, config("s"))
    assert turns(mm.said) == [("我叫什么？", "a")]
    assert "".join(outer.stream(ASK, config("s"))) == "a"
    assert turns(mm.said) == [("我叫什么？", "a")] * 2


async def test_a_bot_inside_a_bot_saves_once_in_async() -> None:
    mm, memory, _, inner = make(Scripted(answers=["a b"]))
    outer = with_memory(RunnablePassthrough() | inner, memory)
    await outer.ainvoke(ASK, config("s"))
    assert [c async for c in outer.astream(ASK, config("s"))]
    assert turns(mm.said) == [("我叫什么？", "a b")] * 2


def test_a_bot_called_by_a_step_that_names_the_session_anew_saves_once() -> None:
    mm, memory, _, inner = make(Scripted(answers=["a"]))
    outer = with_memory(RunnableLambda(lambda x: inner.invoke(x, config("s"))), memory)
    outer.invoke(ASK, config("s"))
    assert turns(mm.said) == [("我叫什么？", "a")]


def test_two_memories_nested_save_one_turn_each() -> None:
    mm1, _, _, inner = make(Scripted(answers=["a"]))
    mm2 = Words()
    with_memory(inner, Memory(mm2)).invoke(ASK)
    assert turns(mm1.said) == turns(mm2.said) == [("我叫什么？", "a")]


def test_a_turn_begun_after_the_outer_one_ended_is_saved() -> None:
    mm, memory, _, inner = make(Scripted(answers=["a"]))
    later: list[Any] = []

    def step(x: Any, config: Any) -> str:
        later.append(config)
        return "outer"

    with_memory(RunnableLambda(step), memory).invoke(ASK)
    inner.invoke({"question": "later"}, later[0])
    assert turns(mm.said) == [("我叫什么？", "outer"), ("later", "a")]


def test_a_session_that_calls_itself_without_its_config_is_an_error_and_no_deadlock() -> None:
    mm = Words()
    memory = Memory(mm, session_wait=0.05)
    inner = with_memory(memory.load_mem | PROMPT | Scripted(answers=["a"]) | StrOutputParser(), memory)
    found: list[BaseException] = []

    def step(_: Any) -> str:
        def elsewhere() -> None:
            try:
                inner.invoke(ASK)
            except SessionBusyError as error:
                found.append(error)

        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return "outer"

    with_memory(RunnableLambda(step), memory).invoke(ASK)
    assert [type(e) for e in found] == [SessionBusyError]
    assert turns(mm.said) == [("我叫什么？", "outer")]


def test_in_a_parallel_both_branches_run_one_after_the_other_and_both_are_saved() -> None:
    mm, _, _, bot = make(Scripted(answers=["a"]))
    both = RunnableParallel(one=bot, two=bot)
    assert both.invoke(ASK) == {"one": "a", "two": "a"}
    assert turns(mm.said) == [("我叫什么？", "a")] * 2


def test_behind_with_retry_only_the_attempt_that_finished_is_saved() -> None:
    mm, _, _, bot = make(Scripted(answers=[ValueError("429"), "a"]))
    assert bot.with_retry(stop_after_attempt=2, wait_exponential_jitter=False).invoke(ASK) == "a"
    assert turns(mm.said) == [("我叫什么？", "a")]


def test_retries_inside_the_chain_are_one_turn() -> None:
    mm = Words()
    memory = Memory(mm)
    model = Scripted(answers=[ValueError("429"), "a"]).with_retry(
        stop_after_attempt=2, wait_exponential_jitter=False
    )
    assert with_memory(memory.load_mem | PROMPT | model | StrOutputParser(), memory).invoke(ASK) == "a"
    assert turns(mm.said) == [("我叫什么？", "a")]


@pytest.mark.parametrize("where", ["inside", "outside"])
def test_with_fallbacks_the_answer_that_was_given_is_saved(where: str) -> None:
    mm = Words()
    memory = Memory(mm)
    bad, good = (PROMPT | Scripted(answers=a) | StrOutputParser() for a in ([ValueError("500")], ["a"]))
    if where == "inside":
        bot: Runnable[Any, Any] = with_memory(memory.load_mem | bad.with_fallbacks([good]), memory)
    else:
        bot = with_memory(memory.load_mem | bad, memory).with_fallbacks(
            [with_memory(memory.load_mem | good, memory)]
        )
    assert bot.invoke(ASK) == "a"
    assert turns(mm.said) == [("我叫什么？", "a")]


def test_behind_with_config_the_session_is_the_bound_one() -> None:
    made: dict[Any, Words] = {}
    memory = Memory.per_session(lambda key: made.setdefault(key, Words()))
    bot = with_memory(memory.load_mem | PROMPT | Scripted(answers=["a"]) | StrOutputParser(), memory)
    bot.with_config(configurable={"session_id": "bound", "user_id": "u"}).invoke(ASK)
    assert [(k.session_id, k.user_id) for k in made] == [("bound", "u")]


def test_the_chains_callbacks_and_tags_still_arrive() -> None:
    from langchain_core.callbacks import BaseCallbackHandler

    class Names(BaseCallbackHandler):
        def __init__(self) -> None:
            self.names: list[Any] = []

        def on_chain_start(self, serialized: Any, inputs: Any, **kwargs: Any) -> None:
            self.names.append((kwargs["name"], kwargs["tags"]))

    seen = Names()
    _, _, _, bot = make(Scripted(answers=["a"]))
    bot.invoke(ASK, {"callbacks": [seen], "tags": ["mine"]})
    assert [name for name, _ in seen.names] == [
        "RunnableSequence", "RunnableSequence", "load_mem", "ChatPromptTemplate", "StrOutputParser",
    ]  # fmt: skip
    assert all("mine" in tags for _, tags in seen.names)


# ---- many at once


def test_from_eight_threads_the_turns_of_one_session_are_whole_and_each_saw_the_one_before() -> None:
    mm = manager()
    memory = Memory(mm)
    model = Scripted(answers=["好 的"])
    bot = with_memory(memory.load_mem | PROMPT | model | StrOutputParser(), memory)
    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(bot.invoke, {"question": f"q{i}"}, config("s")) for i in range(64)]:
            future.result()
    said = plain(mm.stm.buffer)[2:]
    assert [m["role"] for m in said] == ["user", "assistant"] * 64
    assert sorted(m["content"] for m in said[::2]) == sorted(f"q{i}" for i in range(64))
    order = [m["content"] for m in said[::2]]
    assert [p[-1].content for p in model.prompts] == order
    assert all(p[-3].content == before for p, before in zip(model.prompts[1:], order, strict=False))


async def test_on_one_loop_sessions_run_side_by_side_and_each_is_in_order() -> None:
    made: dict[Any, Words] = {}
    memory = Memory.per_session(lambda key: made.setdefault(key, Words()))
    bot = with_memory(memory.load_mem | PROMPT | Scripted(answers=["a"]) | StrOutputParser(), memory)
    await asyncio.gather(
        *(bot.ainvoke({"question": f"q{i}"}, config(f"s{i % 5}")) for i in range(50)),
    )
    for key, words in made.items():
        number = int(key.session_id[1:])
        assert turns(words.said) == [(f"q{i}", "a") for i in range(number, 50, 5)]


@pytest.mark.parametrize("kind", ["batch", "abatch"])
def test_a_batch_keeps_the_order_within_each_session(kind: str) -> None:
    made: dict[Any, Words] = {}
    memory = Memory.per_session(lambda key: made.setdefault(key, Words()))
    bot = with_memory(memory.load_mem | PROMPT | Scripted(answers=["a"]) | StrOutputParser(), memory)
    inputs = [{"question": f"q{i}"} for i in range(40)]
    configs = [config(f"s{i % 3}") for i in range(40)]
    answers = bot.batch(inputs, configs) if kind == "batch" else asyncio.run(bot.abatch(inputs, configs))
    assert answers == ["a"] * 40
    for key, words in made.items():
        number = int(key.session_id[1:])
        assert [q for q, _ in turns(words.said)] == [f"q{i}" for i in range(number, 40, 3)]


def test_a_batch_can_return_its_exceptions() -> None:
    mm, _, _, bot = make(Scripted(answers=["a", ValueError("429"), "c"]))
    out = bot.batch([{"question": q} for q in "xyz"], return_exceptions=True)
    assert out[::2] == ["a", "c"]
    assert isinstance(out[1], ValueError)
    assert turns(mm.said) == [("x", "a"), ("z", "c")]
    assert bot.batch([]) == []


async def test_a_cancellation_that_comes_during_the_save_finds_the_turn_saved_whole() -> None:
    saving, go_on = threading.Event(), threading.Event()

    class Slow(Words):
        def add_user(self, text: str) -> None:
            saving.set()
            assert go_on.wait(30)
            super().add_user(text)

    mm, memory, _, bot = make(Scripted(answers=["a"]), Slow())
    task = asyncio.create_task(bot.ainvoke(ASK))
    await asyncio.to_thread(saving.wait)
    task.cancel()
    await asyncio.sleep(0)
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert turns(mm.said) == [("我叫什么？", "a")]
    assert memory.turns._lines == {}


# ---- what it looks like


def test_the_graph_needs_no_config_and_shows_load_mem_first_and_save_mem_last() -> None:
    _, _, chain, bot = make(Scripted(answers=["a"]))
    plain_nodes = [n.name for n in chain.get_graph().nodes.values()]
    nodes = [n.name for n in bot.get_graph().nodes.values()]
    assert plain_nodes[1] == nodes[1] == "load_mem"
    assert "save_mem" in nodes
    art = bot.get_graph().draw_ascii()
    assert art.index("load_mem") < art.index("Scripted") < art.index("save_mem")
    mermaid = bot.get_graph().draw_mermaid()
    assert "load_mem --> ChatPromptTemplate" in mermaid
    assert "StrOutputParser --> save_mem" in mermaid
    assert "save_mem --> StrOutputParserOutput" in mermaid


def test_the_config_a_chain_understands_is_listed() -> None:
    _, _, chain, bot = make(Scripted(answers=["a"]))
    assert [s.id for s in chain.config_specs] == [s.id for s in bot.config_specs] == ["session_id", "user_id"]


def test_wrong_arguments_are_errors_that_say_what_is_wrong() -> None:
    _, memory, chain, _ = make(Scripted(answers=["a"]))
    with pytest.raises(MemoryInputError, match="not a Memory"):
        with_memory(chain, Words())  # type: ignore[arg-type]
    with pytest.raises(MemoryInputError, match="not a Runnable"):
        with_memory(lambda x: x, memory)  # type: ignore[arg-type]
    with pytest.raises(MemoryInputError, match="on_save_error"):
        with_memory(chain, memory, on_save_error="ignore")  # type: ignore[arg-type]
