"""The contract of a conversation: a session of the store, the original manager, and the smallest there is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda

from lc_memory import Memory, with_memory
from legacy_memory import MemoryManager
from tests.helpers.managers import NoFacts, Words
from tests.helpers.models import Scripted
from tests.helpers.ways import WAYS

CONFIG: Any = {"configurable": {"session_id": "s", "user_id": "u"}}
PROMPT = ChatPromptTemplate.from_messages([("placeholder", "{history}"), ("human", "{question}")])


def original() -> MemoryManager:
    manager = MemoryManager(window=8)
    manager.ltm = NoFacts()  # type: ignore[assignment]
    return manager


KINDS: dict[str, Callable[[Path], Memory]] = {
    "a session in memory": lambda _: Memory.open(":memory:", recall=(), window=4),
    "a session in a folder": lambda folder: Memory.open(folder, recall=(), window=4),
    "the original manager": lambda _: Memory(original()),
    "the smallest manager": lambda _: Memory(Words()),
    "a manager for each session": lambda _: Memory.per_session(lambda key: original()),
}


@pytest.fixture(params=KINDS)
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Memory]:
    with KINDS[request.param](tmp_path) as opened:
        yield opened


def bot_of(memory: Memory, model: Runnable[Any, Any] | None = None) -> Runnable[Any, Any]:
    model = model or RunnableLambda(lambda prompt: AIMessage(f"答 {prompt.messages[-1].text}"))
    return with_memory(memory.load_mem | PROMPT | model | StrOutputParser(), memory)


def told(messages: list[BaseMessage]) -> list[tuple[str, str]]:
    return [(m.type, str(m.text)) for m in messages]


def pair(question: str) -> list[tuple[str, str]]:
    return [("human", question), ("ai", f"答 {question}")]


def test_a_new_one_has_nothing_to_say(memory: Memory) -> None:
    assert memory.history("你好", CONFIG) == []


def test_what_was_said_stands_in_order_before_the_next_question(memory: Memory) -> None:
    bot = bot_of(memory)
    for question in ("一", "二", "三"):
        bot.invoke({"question": question}, CONFIG)
    assert told(memory.history("四", CONFIG)) == [*pair("一"), *pair("二"), *pair("三")]


def test_a_look_writes_nothing_and_looks_alike_each_time(memory: Memory) -> None:
    bot_of(memory).invoke({"question": "一"}, CONFIG)
    first = memory.history("二", CONFIG)
    memory.explain("二", CONFIG)
    assert memory.load_mem.invoke({"question": "二"}, CONFIG)["history"] == first
    assert memory.history("二", CONFIG) == first
    assert told(first) == pair("一")


def test_what_a_caller_does_to_a_history_list_is_not_done_to_the_memory(memory: Memory) -> None:
    bot_of(memory).invoke({"question": "一"}, CONFIG)
    memory.history("二", CONFIG).clear()
    assert told(memory.history("二", CONFIG)) == pair("一")


@pytest.mark.parametrize("text", ["{braces} {{x}}", "😀 \ud83d half", "<b>&amp;</b>", "a\nb\tc", "  spaces  "])
def test_any_text_comes_back_as_it_was_said(memory: Memory, text: str) -> None:
    bot_of(memory, Scripted(answers=["好 的"])).invoke({"question": text}, CONFIG)
    (question, answer) = memory.history("二", CONFIG)
    assert str(question.text).encode("utf-16", "surrogatepass").decode("utf-16", "replace") == text.encode(
        "utf-16", "surrogatepass"
    ).decode("utf-16", "replace")
    assert answer.text == "好 的"


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_calling_saves_one_turn(memory: Memory, way: str) -> None:
    bot = bot_of(memory, Scripted(answers=["好 的"]))
    WAYS[way](bot, {"question": "一"}, CONFIG)
    assert told(memory.history("二", CONFIG)) == [("human", "一"), ("ai", "好 的")]


@pytest.mark.parametrize("way", WAYS)
def test_a_turn_whose_model_fails_is_not_saved_and_the_next_is(memory: Memory, way: str) -> None:
    bot = bot_of(memory, Scripted(answers=[RuntimeError("no model"), "好 的"]))
    with pytest.raises(RuntimeError, match="no model"):
        WAYS[way](bot, {"question": "一"}, CONFIG)
    assert memory.history("二", CONFIG) == []
    WAYS[way](bot, {"question": "二"}, CONFIG)
    assert told(memory.history("三", CONFIG)) == [("human", "二"), ("ai", "好 的")]


def test_from_many_threads_each_turn_is_whole_and_none_is_lost(memory: Memory) -> None:
    bot = bot_of(memory)
    seen: list[list[tuple[str, str]]] = []

    def talk(n: int) -> None:
        bot.invoke({"question": str(n)}, CONFIG)
        seen.append(told(memory.history("?", CONFIG)))

    threads = [threading.Thread(target=talk, args=(n,)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last = told(memory.history("?", CONFIG))
    assert sorted(last[::2]) == [("human", str(n)) for n in range(3)]
    for history in [*seen, last]:
        assert history == [message for _, question in history[::2] for message in pair(question)]


def test_half_a_tool_call_never_reaches_a_model(memory: Memory) -> None:
    calls = [{"name": "f", "args": {"x": n}, "id": f"c{n}", "type": "tool_call"} for n in range(2)]
    broken = Scripted(answers=[AIMessage("", tool_calls=calls), "好 的"])
    chain = memory.load_mem | PROMPT | broken
    bot = with_memory(chain, memory)
    bot.invoke({"question": "一"}, CONFIG)  # ends with calls that nobody answered
    bot.invoke({"question": "二"}, CONFIG)
    history = memory.history("三", CONFIG)
    asked = {call["id"] for m in history if isinstance(m, AIMessage) for call in m.tool_calls}
    answered = {m.tool_call_id for m in history if m.type == "tool"}  # type: ignore[attr-defined]
    assert asked == answered
    assert told(history)[-2:] == [("human", "二"), ("ai", "好 的")]


def test_explain_names_each_part_of_the_prompt_and_the_question_last(memory: Memory) -> None:
    bot = bot_of(memory)
    for question in ("一", "二"):
        bot.invoke({"question": question}, CONFIG)
    explained = memory.explain("三", CONFIG)
    assert (explained.parts[-1].kind, explained.parts[-1].text) == ("question", "三")
    shown = " / ".join(part.text for part in explained.parts[:-1] if part.included)
    assert shown == " / ".join(text for _, text in told(memory.history("三", CONFIG)))
    assert all(part.tokens > 0 and part.why for part in explained.parts)


def test_a_long_conversation_ends_with_its_latest_turn_and_stays_bounded(memory: Memory) -> None:
    bot = bot_of(memory)
    for n in range(40):
        bot.invoke({"question": f"{n}"}, CONFIG)
        if hasattr(memory, "flush"):
            memory.flush()
    history = told(memory.history("?", CONFIG))
    assert history[-2:] == pair("39")
    assert len(history) < 40
