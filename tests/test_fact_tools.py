"""The memory's tools: LangChain's own tests of tools, whose memory they touch, and what they refuse."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from lc_memory import Memory, chat_model
from lc_memory.agent.memory_tools import ForgetMemory, RecallMemory, SavePreference, memory_tools
from lc_memory.store import SessionKey
from tests.servers.chat import Answer, ChatServer, call

U1: Any = {"configurable": {"user_id": "u1", "session_id": "s1"}}
U2: Any = {"configurable": {"user_id": "u2", "session_id": "s1"}}


class _Standard:
    example: dict[str, Any]
    made: type[BaseTool]

    @property
    def tool_constructor(self) -> type[BaseTool]:
        return self.made

    @property
    def tool_constructor_params(self) -> dict[str, Any]:
        return {"memory": Memory.open(":memory:")}

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return self.example


class TestSavePreference(_Standard, ToolsUnitTests):
    made, example = SavePreference, {"fact": "我喜欢打篮球"}


class TestRecallMemory(_Standard, ToolsUnitTests):
    made, example = RecallMemory, {"query": "喜欢什么运动"}


class TestForgetMemory(_Standard, ToolsUnitTests):
    made, example = ForgetMemory, {"fact": "我喜欢打篮球"}


class TestSavePreferenceAtWork(_Standard, ToolsIntegrationTests):
    made, example = SavePreference, {"fact": "我喜欢打篮球"}


class TestRecallMemoryAtWork(_Standard, ToolsIntegrationTests):
    made, example = RecallMemory, {"query": "喜欢什么运动"}


class TestForgetMemoryAtWork(_Standard, ToolsIntegrationTests):
    made, example = ForgetMemory, {"fact": "我喜欢打篮球"}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path) as opened:
        yield opened


@pytest.fixture
def tools(memory: Memory) -> dict[str, BaseTool]:
    return {tool.name: tool for tool in memory_tools(memory)}


def facts_of(memory: Memory, user: str) -> list[str]:
    ledger = memory._stored("a test").store.ledger()
    return [fact.text for fact in ledger.current(SessionKey("", user).owner, include_private=True)]


def test_no_tool_lets_the_model_say_whose_memory_it_is(tools: dict[str, BaseTool]) -> None:
    assert {name: list(tool.args) for name, tool in tools.items()} == {
        "save_preference": ["fact"],
        "recall_memory": ["query"],
        "forget_memory": ["fact"],
    }


def test_a_preference_is_saved_recalled_and_forgotten_for_the_user_of_the_config_alone(
    memory: Memory, tools: dict[str, BaseTool]
) -> None:
    assert tools["save_preference"].invoke({"fact": "我喜欢打篮球"}, U1) == "Saved: 我喜欢打篮球"
    memory.flush()
    assert "我喜欢打篮球" in tools["recall_memory"].invoke({"query": "我喜欢打什么球？"}, U1)
    assert tools["recall_memory"].invoke({"query": "我喜欢打什么球？"}, U2) == "Nothing is remembered about that."
    assert "no such fact" in tools["forget_memory"].invoke({"fact": "我喜欢打篮球"}, U2)
    assert facts_of(memory, "u1") == ["我喜欢打篮球"]
    assert tools["forget_memory"].invoke({"fact": "我喜欢打篮球。"}, U1) == "Forgotten: 我喜欢打篮球"
    assert facts_of(memory, "u1") == []


def test_the_async_way_is_bound_to_the_same_user(memory: Memory, tools: dict[str, BaseTool]) -> None:
    asyncio.run(tools["save_preference"].ainvoke({"fact": "I prefer tea"}, U1))
    assert facts_of(memory, "u1") == ["I prefer tea"]
    assert facts_of(memory, "u2") == []


def test_liking_and_then_hating_a_thing_leaves_the_last_word(memory: Memory, tools: dict[str, BaseTool]) -> None:
    for fact in ("I love Chinese food", "I like jazz", "I hate Chinese food now"):
        tools["save_preference"].invoke({"fact": fact}, U1)
    assert facts_of(memory, "u1") == ["I like jazz", "I hate Chinese food now"]


def test_private_data_is_refused_and_named_by_kind_only(memory: Memory, tools: dict[str, BaseTool]) -> None:
    said = tools["save_preference"].invoke({"fact": "我的手机是13812345678"}, U1)
    assert said == "Not saved: it holds a phone number, and such things are not kept."
    assert facts_of(memory, "u1") == []
    redacting = SavePreference(memory=memory, privacy="redact")
    assert redacting.invoke({"fact": "我的手机是13812345678，下午打"}, U1) == (
        "Saved without a phone number: 我的手机是[电话号码]，下午打"
    )


def test_an_unclear_wish_to_forget_forgets_nothing(memory: Memory, tools: dict[str, BaseTool]) -> None:
    for fact in ("我喜欢打篮球", "我喜欢打排球"):
        tools["save_preference"].invoke({"fact": fact}, U1)
    assert "several facts" in tools["forget_memory"].invoke({"fact": "喜欢打"}, U1)
    assert tools["forget_memory"].invoke({"fact": " "}, U1).startswith("Nothing was forgotten")
    assert len(facts_of(memory, "u1")) == 2


@pytest.mark.parametrize("profile", ["openai", "deepseek", "kimi", "qwen", "gemma"])
def test_every_service_takes_the_tools_and_a_call_of_the_model_saves(
    profile: str, memory: Memory, tools: dict[str, BaseTool]
) -> None:
    with ChatServer(profile) as server:
        model = chat_model(base_url=server.url, api_key="k", model="m", profile=profile, max_retries=0)
        server.script(Answer(tool_calls=[call("save_preference", fact="我喜欢打篮球")]))
        answer = model.bind_tools(list(tools.values())).invoke("记一下，我喜欢打篮球")
        assert server.refusals == []
        said = tools["save_preference"].invoke(answer.tool_calls[0], U1)
    assert said.tool_call_id == answer.tool_calls[0]["id"]
    assert facts_of(memory, "u1") == ["我喜欢打篮球"]
