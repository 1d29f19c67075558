"""{way of calling} x {how it ends} x {what stands behind the model}: what each saved, message by message."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import tool

from lc_memory import Memory, with_memory
from lc_memory.errors import StoreError
from legacy_memory import MemoryManager
from tests.helpers.managers import EARLIER, NoFacts, manager, plain
from tests.helpers.models import USAGE, Scripted
from tests.helpers.ways import ASYNC, CLOSED, WAYS, cancelled

QUESTION = "我刚说的爱好是什么？"
ASKED = {"role": "user", "content": QUESTION}
PROMPT = ChatPromptTemplate.from_messages(
    [("system", "你是一个有记忆的助手"), ("placeholder", "{history}"), ("human", "{question}")]
)
CONFIG: Any = {"configurable": {"session_id": "s1"}}


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}晴"


CALLS = AIMessage("", tool_calls=[{"name": "weather", "args": {"city": c}, "id": f"c{i}", "type": "tool_call"} for i, c in enumerate(["北京", "杭州"])])  # fmt: skip


def with_tools(model: Scripted) -> Runnable[Any, Any]:
    def loop(prompt: Any, config: Any) -> Any:
        messages = prompt.to_messages()
        while (answer := model.invoke(messages, config)).tool_calls:
            messages += [answer, *(weather.invoke(c, config) for c in answer.tool_calls)]
        return answer

    async def aloop(prompt: Any, config: Any) -> Any:
        messages = prompt.to_messages()
        while (answer := await model.ainvoke(messages, config)).tool_calls:
            messages += [answer, *[await weather.ainvoke(c, config) for c in answer.tool_calls]]
        return answer

    return RunnableLambda(loop, afunc=aloop)


def openai_call(i: int, city: str) -> dict[str, Any]:
    return {
        "id": f"c{i}",
        "type": "function",
        "function": {"name": "weather", "arguments": f'{{"city": "{city}"}}'},
    }


# what stands behind the model -> (the chain's tail, the script, what is saved after the question)
ENDINGS: dict[str, tuple[Any, list[Any], list[dict[str, Any]]]] = {
    "text": (lambda m: m | StrOutputParser(), ["你喜欢 打篮球"],
             [{"role": "assistant", "content": "你喜欢 打篮球", "usage_metadata": USAGE}]),
    "two keys of json": (lambda m: m | JsonOutputParser(), ['{"answer": "篮球", "sure": true}'],
             [{"role": "assistant", "content": '{"answer": "篮球", "sure": true}', "usage_metadata": USAGE}]),
    "no parser": (lambda m: m, ["你喜欢 打篮球"],
             [{"role": "assistant", "content": "你喜欢 打篮球", "usage_metadata": USAGE}]),
    "cleaned": (lambda m: m | StrOutputParser() | RunnableLambda(lambda t: t.replace("打", "")), ["你喜欢 打篮球"],
             [{"role": "assistant", "content": "你喜欢 篮球"}]),
    "tools": (lambda m: with_tools(m) | StrOutputParser(), [CALLS, "都是 晴天"],
             [{"role": "assistant", "content": "", "tool_calls": [openai_call(0, "北京"), openai_call(1, "杭州")]},
              {"role": "tool", "content": "北京晴", "name": "weather", "tool_call_id": "c0"},
              {"role": "tool", "content": "杭州晴", "name": "weather", "tool_call_id": "c1"},
              {"role": "assistant", "content": "都是 晴天", "usage_metadata": USAGE}]),
}  # fmt: skip


def chain(memory: Memory, model: Scripted, ending: str) -> Runnable[Any, Any]:
    return memory.load_mem | PROMPT | ENDINGS[ending][0](model)


ways = pytest.mark.parametrize("way", WAYS)
endings = pytest.mark.parametrize("ending", ENDINGS)


@ways
@endings
def test_a_finished_turn_is_saved_once_and_whole(way: str, ending: str) -> None:
    _, script, saved = ENDINGS[ending]
    mm, model = manager(), Scripted(answers=script)
    memory = Memory(mm)
    bot = with_memory(chain(memory, model, ending), memory)
    WAYS[way](bot, {"question": QUESTION}, CONFIG)
    assert plain(mm.stm.buffer) == [*EARLIER, ASKED, *saved]
    assert [m.content for m in model.prompts[0]] == [
        "你是一个有记忆的助手",
        *(m["content"] for m in EARLIER),
        QUESTION,
    ]
    # and the next turn reads it back
    WAYS[way](bot, {"question": QUESTION}, CONFIG)
    assert plain(mm.stm.buffer) == [*EARLIER, ASKED, *saved, ASKED, *saved]


# An interrupt ends the loop or the pool itself: it is tried where the turn runs in the caller's thread.
RAISING = [
    pytest.param(way, error, id=f"{way}-{type(error).__name__}")
    for way in WAYS
    for error in (ValueError("429"), KeyboardInterrupt())
    if isinstance(error, ValueError) or way not in (*ASYNC, "batch", "batch_as_completed")
]


@endings
@pytest.mark.parametrize(("way", "error"), RAISING)
def test_a_turn_whose_model_raises_is_not_saved(way: str, ending: str, error: BaseException) -> None:
    mm = manager()
    memory = Memory(mm)
    bot = with_memory(chain(memory, Scripted(answers=[error, *ENDINGS[ending][1]]), ending), memory)
    with pytest.raises(type(error)):
        WAYS[way](bot, {"question": QUESTION}, CONFIG)
    assert mm.stm.buffer == EARLIER
    # the session is free again, and works
    WAYS[way](bot, {"question": QUESTION}, CONFIG)
    assert plain(mm.stm.buffer) == [*EARLIER, ASKED, *ENDINGS[ending][2]]


@endings
@pytest.mark.parametrize("way", ASYNC)
def test_a_cancelled_turn_is_not_saved(way: str, ending: str) -> None:
    mm, model = manager(), Scripted(answers=ENDINGS[ending][1], hang=True)
    memory = Memory(mm)
    bot = with_memory(chain(memory, model, ending), memory)
    cancelled(way, bot, {"question": QUESTION}, CONFIG, model.hanging)
    assert mm.stm.buffer == EARLIER
    assert memory.turns._lines == {}


@pytest.mark.parametrize("ending", [e for e in ENDINGS if e != "tools"])  # with tools one chunk is the answer
@pytest.mark.parametrize("way", CLOSED)
def test_a_stream_closed_after_one_chunk_saves_nothing(way: str, ending: str) -> None:
    mm = manager()
    memory = Memory(mm)
    bot = with_memory(chain(memory, Scripted(answers=ENDINGS[ending][1]), ending), memory)
    CLOSED[way](bot, {"question": QUESTION}, CONFIG)
    assert mm.stm.buffer == EARLIER
    assert memory.turns._lines == {}


class FailingManager(MemoryManager):
    def add(self, msg: dict[str, Any], persist: bool = False) -> None:
        raise OSError("no space left on device")


def failing() -> FailingManager:
    mm = FailingManager()
    mm.ltm = NoFacts()  # type: ignore[assignment]
    mm.stm.buffer = [dict(m) for m in EARLIER]
    return mm


@ways
@endings
def test_a_failed_save_raises(way: str, ending: str) -> None:
    mm = failing()
    memory = Memory(mm)
    bot = with_memory(chain(memory, Scripted(answers=ENDINGS[ending][1]), ending), memory)
    with pytest.raises(StoreError, match="no space left"):
        WAYS[way](bot, {"question": QUESTION}, CONFIG)
    assert mm.stm.buffer == EARLIER
    assert memory.turns._lines == {}


@ways
@endings
def test_a_failed_save_can_be_a_warning_and_the_answer_goes_out_all_the_same(way: str, ending: str) -> None:
    mm = failing()
    memory = Memory(mm)
    bot = with_memory(
        chain(memory, Scripted(answers=ENDINGS[ending][1]), ending), memory, on_save_error="warn"
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        answer = WAYS[way](bot, {"question": QUESTION}, CONFIG)
    assert answer
    assert [w for w in caught if w.category is RuntimeWarning and "was not saved" in str(w.message)]
    assert mm.stm.buffer == EARLIER


class BadSummariser:
    def __init__(self, summary: str | Exception) -> None:
        self.summary = summary
        self.asked = 0

    def summarize(self, text: str) -> str:
        self.asked += 1
        if isinstance(self.summary, Exception):
            raise self.summary
        return self.summary


@ways
@endings
@pytest.mark.parametrize("summary", [TimeoutError("429"), "", "  \n"], ids=["raises", "empty", "blank"])
def test_a_failed_summary_changes_nothing_and_the_turn_stays_saved(
    way: str, ending: str, summary: Any
) -> None:
    llm = BadSummariser(summary)
    mm = manager(llm=llm, max_tokens=1, keep=1)
    memory = Memory(mm)
    bot = with_memory(chain(memory, Scripted(answers=ENDINGS[ending][1]), ending), memory)
    assert WAYS[way](bot, {"question": QUESTION}, CONFIG)
    assert llm.asked == 1
    assert plain(mm.stm.buffer) == [*EARLIER, ASKED, *ENDINGS[ending][2]]


@ways
def test_a_summary_is_made_when_the_manager_wants_one(way: str) -> None:
    mm = manager(llm=BadSummariser("小明喜欢打篮球"), max_tokens=1, keep=2)
    memory = Memory(mm)
    bot = with_memory(chain(memory, Scripted(answers=["好 的"]), "text"), memory)
    WAYS[way](bot, {"question": QUESTION}, CONFIG)
    assert mm.stm.buffer[0] == {"role": "system", "content": "历史摘要：小明喜欢打篮球", "is_summary": True}
    assert len(mm.stm.buffer) == 3
