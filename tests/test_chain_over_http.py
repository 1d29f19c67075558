"""The whole chain through the real client against a server as strict as each service: turns with tools and
reasoning are saved, read back after a restart, and accepted again in the next request."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.tools import tool

from lc_memory import Memory, chat_model, with_memory
from tests.servers.chat import Answer, ChatServer, Fault, call

SERVICES = ["openai", "deepseek", "kimi", "qwen", "gemma"]
PROMPT = ChatPromptTemplate.from_messages(
    [("system", "你是一个有记忆的助手"), MessagesPlaceholder("history"), ("human", "{question}")]
)
CONFIG: Any = {"configurable": {"session_id": "s1", "user_id": "u1"}}


@pytest.fixture(params=SERVICES)
def server(request: pytest.FixtureRequest) -> Iterator[ChatServer]:
    with ChatServer(request.param) as running:
        yield running


def model_of(server: ChatServer) -> Any:
    return chat_model(base_url=server.url, api_key="k", model="m", profile=server.profile, max_retries=0)


@tool
def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"{city}：晴，26 度"


def with_tools(model: Any) -> Runnable[Any, Any]:
    bound = model.bind_tools([get_weather])

    def loop(prompt: Any, config: Any) -> Any:
        messages = prompt.to_messages()
        while (answer := bound.invoke(messages, config)).tool_calls:
            messages += [answer, *(get_weather.invoke(c, config) for c in answer.tool_calls)]
        return answer

    async def aloop(prompt: Any, config: Any) -> Any:
        messages = prompt.to_messages()
        while (answer := await bound.ainvoke(messages, config)).tool_calls:
            messages += [answer, *[await get_weather.ainvoke(c, config) for c in answer.tool_calls]]
        return answer

    return RunnableLambda(loop, afunc=aloop)


def opened(folder: Path, server: ChatServer, tools: bool = False) -> tuple[Memory, Runnable[Any, Any]]:
    memory = Memory.open(folder)
    model = model_of(server)
    middle: Any = with_tools(model) if tools else model
    return memory, with_memory(memory.load_mem | PROMPT | middle | StrOutputParser(), memory)


def said(request: dict[str, Any]) -> list[tuple[str, str]]:
    return [(m["role"], m.get("content") or "") for m in request["messages"]]


def test_the_three_questions_streamed_and_not(server: ChatServer, tmp_path: Path) -> None:
    memory, bot = opened(tmp_path, server)
    server.script("记住了，小明", "你喜欢打篮球", "你叫小明")
    answers = [
        bot.invoke({"question": "我叫小明，喜欢打篮球"}, CONFIG),
        "".join(bot.stream({"question": "我刚说的爱好是什么？"}, CONFIG)),
        asyncio.run(bot.ainvoke({"question": "我名字叫什么？"}, CONFIG)),
    ]
    assert answers == ["记住了，小明", "你喜欢打篮球", "你叫小明"]
    sent = said(server.requests[-1])
    for words in ("我叫小明，喜欢打篮球", "记住了，小明", "我刚说的爱好是什么？", "你喜欢打篮球"):
        assert any(words in content for _, content in sent)
    assert server.refusals == []
    memory.close()


@pytest.mark.parametrize("streamed", [False, True], ids=["invoke", "stream"])
def test_tools_and_reasoning_come_back_in_the_next_turn_after_a_restart(
    server: ChatServer, tmp_path: Path, streamed: bool
) -> None:
    thinks = server.profile in ("deepseek", "kimi")
    asked = Answer(tool_calls=[call("get_weather", city="杭州"), call("get_weather", city="北京")], reasoning="要查两地" if thinks else None)  # fmt: skip
    memory, bot = opened(tmp_path, server, tools=True)
    server.script(asked, Answer("两地都晴", reasoning="都晴" if thinks else None))
    question = {"question": "杭州和北京天气如何？"}
    answer = "".join(bot.stream(question, CONFIG)) if streamed else bot.invoke(question, CONFIG)
    assert answer == "两地都晴"
    memory.close()

    memory, bot = opened(tmp_path, server, tools=True)  # a new process would do just this
    kept = memory.session("s1", "u1").messages()
    assert [m.type for m in kept] == ["human", "ai", "tool", "tool", "ai"]
    server.script("不用带伞")
    assert bot.invoke({"question": "要带伞吗？"}, CONFIG) == "不用带伞"
    assert server.refusals == []
    messages = server.requests[-1]["messages"]
    calls = next(m for m in messages if m.get("tool_calls"))
    assert [c["function"]["arguments"] for c in calls["tool_calls"]] == ['{"city":"杭州"}', '{"city":"北京"}']
    assert [m["content"] for m in messages if m["role"] == "tool"] == ["杭州：晴，26 度", "北京：晴，26 度"]
    if thinks:
        assert calls["reasoning_content"] == "要查两地"
    memory.close()


def test_a_summary_and_core_facts_are_accepted_by_every_service(server: ChatServer, tmp_path: Path) -> None:
    memory = Memory.open(tmp_path, window=1, summarizer=_Fixed())
    bot = with_memory(memory.load_mem | PROMPT | model_of(server) | StrOutputParser(), memory)
    memory.core("u1").set("预算", "40万")
    for i in range(6):
        bot.invoke({"question": f"第{i}问"}, CONFIG)
        memory.flush()
    assert server.refusals == []
    whole = "\n".join(content for _, content in said(server.requests[-1]))
    assert "预算: 40万" in whole
    assert "此前聊过五件事" in whole
    memory.close()


class _Fixed:
    def summarize(self, text: str) -> str:
        return "此前聊过五件事"


@pytest.mark.parametrize(
    "fault", [Fault(429), Fault(500), Fault(garbage=True), Fault(cut=2)], ids=["429", "500", "garbage", "cut"]
)
def test_a_service_that_fails_leaves_nothing_behind_and_the_next_turn_works(
    fault: Fault, tmp_path: Path
) -> None:
    with ChatServer("openai") as server:
        memory, bot = opened(tmp_path, server)
        server.script(fault, "好的")
        with pytest.raises(Exception):  # noqa: B017, PT011 - whatever the client raises for it
            list(bot.stream({"question": "一"}, CONFIG))
        assert memory.session("s1", "u1").messages() == []
        assert bot.invoke({"question": "二"}, CONFIG) == "好的"
        assert [str(m.text) for m in memory.session("s1", "u1").messages()] == ["二", "好的"]
        memory.close()


def test_usage_is_kept_with_the_answer_streamed_or_not(tmp_path: Path) -> None:
    with ChatServer("openai") as server:
        memory, bot = opened(tmp_path, server)
        bot.invoke({"question": "一"}, CONFIG)
        list(bot.stream({"question": "二"}, CONFIG))
        answers = [m for m in memory.session("s1", "u1").messages() if m.type == "ai"]
        assert all(m.usage_metadata and m.usage_metadata["total_tokens"] > 0 for m in answers)
        memory.close()
