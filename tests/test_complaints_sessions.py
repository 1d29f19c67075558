"""What people reported of other memory libraries, where it concerns sessions: none of it happens here.

Each test names the report: the project, the number, and what was seen there.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda

from lc_memory import Memory, with_memory
from lc_memory.errors import MemoryInputError
from lc_memory.models.offline import OfflineChatModel
from tests.helpers.models import Scripted

PROMPT = ChatPromptTemplate.from_messages([("placeholder", "{history}"), ("human", "{question}")])
CONFIG: Any = {"configurable": {"session_id": "s1", "user_id": "u1"}}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    opened = Memory.open(tmp_path, window=2, recall=())
    yield opened
    opened.close()


def bot_of(memory: Memory, model: Runnable[Any, Any]) -> Runnable[Any, Any]:
    return with_memory(memory.load_mem | PROMPT | model, memory)


def call(*ids: str) -> dict[str, Any]:
    calls = [{"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": "", "tool_calls": calls}


def result(call_id: str, text: str = "r") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def answer(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def assert_no_orphans(prompt: list[BaseMessage]) -> None:
    """As a chat service checks it: each result directly behind its call, each call answered."""
    open_ids: list[str] = []
    for message in prompt:
        if isinstance(message, ToolMessage):
            assert message.tool_call_id in open_ids
            open_ids.remove(message.tool_call_id)
            continue
        assert open_ids == []
        if isinstance(message, AIMessage):
            open_ids = [str(c["id"]) for c in message.tool_calls]
    assert open_ids == []


def test_01_langchain_33245_a_cut_window_does_not_begin_with_orphan_results(tmp_path: Path) -> None:
    turn = [user("天气？"), call("a", "b"), result("a", "x" * 400), result("b", "y" * 400), answer("晴")]
    for budget in range(40, 700, 20):
        memory = Memory.open(":memory:", window=2, max_context_tokens=budget, recall=())
        for _ in range(3):
            memory.session("s1", "u1").add([*turn, user("然后？"), answer("好")])
        memory.flush()
        assert_no_orphans(memory.history("x", CONFIG))
        memory.close()


def test_02_langchain_34282_38352_ten_results_and_one_of_no_call_are_never_cut_apart() -> None:
    ids = [f"c{n}" for n in range(10)]
    turn = [user("q"), call(*ids), *(result(i, "z" * 100) for i in ids), result("never"), answer("a")]
    for budget in range(50, 900, 50):
        memory = Memory.open(":memory:", max_context_tokens=budget, recall=())
        memory.session("s1", "u1").add(turn)
        prompt = memory.history("x", CONFIG)
        assert_no_orphans(prompt)
        assert all(getattr(m, "tool_call_id", "") != "never" for m in prompt)
        assert sum(isinstance(m, ToolMessage) for m in prompt) in (0, 10)
        memory.close()


def test_03_langmem_111_77_the_question_is_not_swallowed_by_a_summary_or_a_tiny_budget(
    tmp_path: Path,
) -> None:
    model = Scripted(answers=["ok"])
    memory = Memory.open(
        tmp_path, window=1, max_context_tokens=90, summarizer=Scripted(answers=["s"]), recall=()
    )
    bot = bot_of(memory, model)
    for n in range(8):
        memory.session("s1", "u1").add([user("q"), call("a"), result("a"), answer("a")])
        bot.invoke({"question": f"question {n}"}, CONFIG)
        memory.flush()
        assert model.prompts[-1][-1].content == f"question {n}"
    with pytest.raises(MemoryInputError, match="max_context_tokens"):
        bot.invoke({"question": "long " * 100}, CONFIG)
    memory.close()


def test_04_langchain_38867_a_summariser_that_answers_429_does_not_replace_the_history(
    tmp_path: Path,
) -> None:
    failing = Scripted(answers=[RuntimeError("429 Too Many Requests")])
    memory = Memory.open(tmp_path, window=1, summarizer=failing, recall=())
    bot = bot_of(memory, Scripted(answers=["好"]))
    for n in range(6):
        bot.invoke({"question": f"问题{n}"}, CONFIG)
        memory.flush()
    assert failing.prompts
    assert memory.session("s1", "u1").summary is None
    assert [m.content for m in memory.history("?", CONFIG)][::2] == [f"问题{n}" for n in range(6)]
    assert "429" not in str(memory.history("?", CONFIG))
    memory.close()


def test_05_langmem_118_the_second_summary_holds_the_first(tmp_path: Path) -> None:
    model = Scripted(answers=["小明预算40万", "小明预算40万，养猫"])
    memory = Memory.open(tmp_path, window=1, summarizer=model, recall=())
    for n in range(5):
        memory.session("s1", "u1").add([user(f"问题{n}"), answer("好")])
        memory.flush()
    assert len(model.prompts) == 2
    assert "已有摘要：小明预算40万" in str(model.prompts[1][0].content)
    prompt = memory.history("?", CONFIG)
    assert sum("小明预算40万" in str(m.content) for m in prompt) == 1
    assert "养猫" in str(prompt[0].content)
    memory.close()


def test_06_langchain_3072_10078_a_reopened_session_is_pruned_and_has_its_summary(tmp_path: Path) -> None:
    first = Memory.open(tmp_path, window=2, summarizer=Scripted(answers=["摘要在此"]), recall=())
    for n in range(30):
        first.session("s1", "u1").add([user(f"问题{n}"), answer("好")])
        first.flush()
    before = [m.model_dump() for m in first.history("?", CONFIG)]
    first.close()
    second = Memory.open(tmp_path, window=2, recall=())
    assert [m.model_dump() for m in second.history("?", CONFIG)] == before
    assert len(before) <= 1 + 2 * 4
    assert "摘要在此" in before[0]["content"]
    second.close()


def test_07_langchain_24713_a_chain_that_ends_in_a_json_parser_with_two_keys_is_saved(memory: Memory) -> None:
    said = '{"answer": "篮球", "sure": true}'
    bot = with_memory(memory.load_mem | PROMPT | Scripted(answers=[said]) | JsonOutputParser(), memory)
    assert bot.invoke({"question": "爱好？"}, CONFIG) == {"answer": "篮球", "sure": True}
    assert [m.content for m in memory.session("s1", "u1").messages()] == ["爱好？", said]


def test_08_langchain_14511_21664_streams_are_merged_and_a_closed_one_saves_nothing(memory: Memory) -> None:
    bot = bot_of(memory, Scripted(answers=["one two three"]))
    for _ in range(2):
        list(bot.stream({"question": "q"}, CONFIG))
    chunks = bot.stream({"question": "closed"}, CONFIG)
    next(chunks)
    chunks.close()  # type: ignore[attr-defined]
    kept = memory.session("s1", "u1").messages()
    assert [(type(m).__name__, m.content) for m in kept] == [
        ("HumanMessage", "q"),
        ("AIMessage", "one two three"),
    ] * 2


def test_09_langchain_20255_the_chain_works_inside_another_and_without_any_config(memory: Memory) -> None:
    bot = bot_of(memory, Scripted(answers=["ok"])) | StrOutputParser()
    outer: Runnable[Any, Any] = RunnableLambda(lambda q: {"question": q}) | bot
    assert outer.invoke("bare") == "ok"
    assert outer.invoke("named", CONFIG) == "ok"
    assert [m.content for m in memory.session().messages()] == ["bare", "ok"]
    assert [m.content for m in memory.session("s1", "u1").messages()] == ["named", "ok"]
    assert "load_mem" in str(bot.get_graph().nodes)


def test_16_llama_index_22701_one_memory_used_for_two_sessions_shows_neither_the_others(
    memory: Memory,
) -> None:
    bot = bot_of(memory, Scripted(answers=["ok"]))
    for session in ("s1", "s2", "s1", "s2"):
        bot.invoke({"question": f"secret of {session}"}, {"configurable": {"session_id": session}})
    for session, other in (("s1", "s2"), ("s2", "s1")):
        prompt = str(memory.history("?", {"configurable": {"session_id": session}}))
        assert prompt.count(f"secret of {session}") == 2
        assert f"secret of {other}" not in prompt


def test_17_mem0_7201_5245_what_was_said_in_chinese_is_kept_in_chinese(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path, window=1, summarizer=OfflineChatModel(), recall=())
    said = ["我叫小张", "我住在杭州", "我养了一只猫", "我的预算是40万"]
    for text in said:
        memory.session("s1", "u1").add([user(text), answer("好的")])
    memory.session("s1", "u1").add([user("记住：我对花生过敏"), answer("记住了")])
    memory.flush()
    assert "我叫小张" in (memory.session("s1", "u1").summary or "")
    assert [f.text for f in memory._stored("test").store.ledger().current("user:u1")] == ["我对花生过敏"]
    memory.close()


def test_18_chinese_takes_more_than_a_quarter_token_a_character() -> None:
    """Elsewhere "你好世界" * 100 was counted as 104 tokens."""
    memory = Memory.open(":memory:", max_context_tokens=8000, recall=())
    assert memory.explain("你好世界" * 100).tokens >= 200
    memory.close()
