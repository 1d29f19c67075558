"""Four ways of thinking with the memory at the head of each, and the router that picks one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.language_models import FakeListChatModel
from langchain_core.runnables import RunnableLambda

from lc_memory import Memory, MemoryInputError, chat_model, with_memory
from lc_memory.agent import (
    MODES,
    CalculatorTool,
    auto_select,
    by_mode,
    cot,
    few_shot,
    react,
    route_model,
    tot,
)
from tests.helpers.models import Scripted
from tests.helpers.ways import WAYS
from tests.servers.chat import Answer, ChatServer, Fault, call

CONFIG: Any = {"configurable": {"session_id": "s1", "user_id": "u1"}}


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:", recall=()) as opened:
        yield opened


def said(memory: Memory) -> list[str]:
    return [str(m.text) for m in memory.session("s1", "u1").messages()]


def built(mode: str, memory: Memory, model: Any) -> Any:
    return react(memory, model, [CalculatorTool()]) if mode == "react" else MODES[mode](memory, model)  # type: ignore[operator]


@pytest.mark.parametrize("mode", MODES)
def test_print_ascii_shows_load_mem_first_and_save_mem_last(mode: str, memory: Memory) -> None:
    chain = built(mode, memory, Scripted(answers=["a"]))
    bot = with_memory(chain, memory)
    for graph, last in ((chain.get_graph(), None), (bot.get_graph(), "save_mem")):
        steps = [graph.nodes[e.target].name for e in graph.edges if e.source == graph.first_node().id]  # type: ignore[union-attr]
        assert steps == ["load_mem"]
        drawn = graph.draw_ascii()
        first = "propose" if mode == "tot" else "ChatPromptTemplate"
        assert drawn.index("load_mem") < drawn.index(first)
        assert last is None or drawn.index(last) > drawn.index("decide" if mode == "tot" else first)


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream", "batch"])
@pytest.mark.parametrize("mode", ["cot", "few_shot", "react"])
def test_a_mode_remembers_and_saves_the_answer(mode: str, way: str, memory: Memory) -> None:
    model = Scripted(answers=["你好，小明", "你叫小明"])
    bot = with_memory(built(mode, memory, model), memory)
    WAYS[way](bot, {"question": "我叫小明 {x}"}, CONFIG)
    WAYS[way](bot, {"question": "我叫什么？"}, CONFIG)
    assert said(memory) == ["我叫小明 {x}", "你好，小明", "我叫什么？", "你叫小明"]
    assert [m.text for m in model.prompts[1]][-3:] == ["我叫小明 {x}", "你好，小明", "我叫什么？"]


def test_the_examples_can_be_replaced_and_are_no_part_of_the_conversation(memory: Memory) -> None:
    model = Scripted(answers=["颜色：红"])
    bot = with_memory(few_shot(memory, model, examples=[{"question": "绿树 {a}", "answer": "颜色：绿"}]), memory)
    assert bot.invoke({"question": "红花"}, CONFIG) == "颜色：红"
    assert [m.type for m in model.prompts[0]] == ["system", "human", "ai", "human"]
    assert [m.text for m in model.prompts[0]][1:] == ["绿树 {a}", "颜色：绿", "红花"]
    assert said(memory) == ["红花", "颜色：红"]
    with pytest.raises(MemoryInputError, match=r"examples\[0\]"):
        few_shot(memory, model, examples=[{"question": "?"}])


@pytest.mark.parametrize("way", ["invoke", "stream", "ainvoke", "astream"])
def test_a_tree_of_thought_gives_its_texts_and_saves_the_decision(way: str, memory: Memory) -> None:
    model = Scripted(answers=["1. 坐火车 {b}\n2. 开车", "火车 9 分，开车 6 分", "坐火车：先买票"])
    bot = with_memory(tot(memory, model, n=2), memory)
    memory.session("s1", "u1").add([{"role": "user", "content": "我怕堵车"}, {"role": "assistant", "content": "好"}])
    out = WAYS[way](bot, {"question": "怎么去北京 {c}？"}, CONFIG)
    if isinstance(out, list):
        total = out[0]
        for part in out[1:]:
            total = total + part
        out = total
    assert out == {"proposals": "1. 坐火车 {b}\n2. 开车", "scores": "火车 9 分，开车 6 分", "answer": "坐火车：先买票"}
    assert said(memory) == ["我怕堵车", "好", "怎么去北京 {c}？", "坐火车：先买票"]
    propose, judge, decide = ("\n".join(str(m.text) for m in prompt) for prompt in model.prompts)
    assert "我怕堵车" in propose
    assert "我怕堵车" not in judge
    assert "2 个不同的方案" in propose
    assert "坐火车 {b}" in judge
    assert "火车 9 分" in decide
    assert "我怕堵车" in decide


def test_a_tree_of_thought_that_breaks_half_way_saves_nothing(memory: Memory) -> None:
    bot = with_memory(tot(memory, Scripted(answers=["1", ValueError("down")])), memory)
    with pytest.raises(ValueError, match="down"):
        bot.invoke({"question": "?"}, CONFIG)
    assert said(memory) == []
    with pytest.raises(MemoryInputError, match="two proposals"):
        tot(memory, Scripted(answers=["a"]), n=1)


# ---------------------------------------------------------------- the router


@pytest.mark.parametrize(
    ("question", "model"),
    [
        ("用 Kimi 回答我", "kimi"),
        ("ask DeepSeek please", "deepseek"),
        ("通义千问怎么看？", "qwen"),
        ("let GPT-5 do it", "openai"),
        ("qwen 还是 kimi？", "qwen"),
        ("an egpt is no model", "deepseek"),
        ("你好", "deepseek"),
        ("", "deepseek"),
    ],
)
def test_the_model_is_the_one_that_is_named(question: str, model: str) -> None:
    assert route_model(question) == model


def test_without_a_name_the_default_answers() -> None:
    assert route_model("你好", default="ollama") == "ollama"


QUESTIONS = {
    "帮我查一下杭州的天气": "react",
    "12*7 是多少": "react",
    "Search the web for it": "react",
    "what's the weather like": "react",
    "如果下雨，这个方案还行吗": "tot",
    "Should I change my job?": "tot",
    "make a plan for the weekend": "tot",
    "对比一下这两款手机": "few_shot",
    "Extract the names from this text": "few_shot",
    "为什么天是蓝色的": "cot",
    "Why is the sky blue?": "cot",
    "the planet is explained": "cot",  # no plan in it
    "": "cot",
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_without_a_model_key_words_decide(question: str) -> None:
    assert auto_select(question) == QUESTIONS[question]


@pytest.mark.parametrize("profile", ["openai", "deepseek", "kimi", "qwen"])
def test_a_model_chooses_by_a_structured_answer(profile: str) -> None:
    with ChatServer(profile) as server:
        model = chat_model(base_url=server.url, api_key="k", model="m", profile=profile, max_retries=0)

        def choose(body: dict[str, Any]) -> Answer:
            if body.get("tools"):
                return Answer(tool_calls=[call(body["tools"][0]["function"]["name"], mode="tot")])
            return Answer('{"mode": "tot"}')

        server.script(choose)
        assert auto_select("为什么天是蓝色的", model) == "tot"
        assert len(server.requests) == 1
        assert server.refusals == []


@pytest.mark.parametrize(
    ("answers", "mode"),
    [
        (["不知道", "The best is few-shot."], "few_shot"),
        (["{}", "TOT"], "tot"),
        (["x", "react or tot"], "cot"),
        (["x", "protocol"], "cot"),
        (["", ""], "cot"),
        (["null", "null"], "cot"),
        ([Fault(500), Fault(500)], "cot"),
        ([Fault(garbage=True), Fault(cut=1)], "cot"),
        ([Answer(tool_calls=[call("elsewhere", mode="dance")]), "react"], "react"),
    ],
)
def test_an_odd_answer_never_ends_in_an_error(answers: list[Any], mode: str) -> None:
    with ChatServer("openai") as server:
        model = chat_model(base_url=server.url, api_key="k", model="m", profile="openai", max_retries=0)
        server.script(*answers)
        assert auto_select("为什么天是蓝色的", model) == mode


def test_a_model_without_structured_output_is_asked_in_words() -> None:
    assert auto_select("为什么", FakeListChatModel(responses=["tot"])) == "tot"
    assert auto_select("为什么", RunnableLambda(lambda prompt: "few_shot")) == "few_shot"
    assert auto_select("为什么", object()) == "cot"


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream"])
def test_each_question_goes_to_its_mode_and_what_the_router_says_is_not_kept(way: str, memory: Memory) -> None:
    chains = {name: memory.load_mem | RunnableLambda(_Says(name).answer) for name in ("cot", "react", "tot")}
    router = Scripted(answers=["react", "tot", "few_shot", "nonsense"])
    bot = with_memory(by_mode(chains, RunnableLambda(lambda p, config: router.invoke(p, config))), memory)
    for question in ("一", "二", "三", "四"):
        WAYS[way](bot, {"question": question}, CONFIG)
    assert said(memory) == ["一", "react: 一", "二", "tot: 二", "三", "cot: 三", "四", "cot: 四"]
    with pytest.raises(MemoryInputError, match="at least one"):
        by_mode({})


class _Says:
    def __init__(self, name: str) -> None:
        self.name = name

    def answer(self, given: dict[str, Any]) -> str:
        return f"{self.name}: {given['question']}"


def test_the_router_is_drawn_before_the_modes_and_each_of_them_with_its_memory(memory: Memory) -> None:
    model = Scripted(answers=["a"])
    chains = {"cot": cot(memory, model), "react": react(memory, model, [CalculatorTool()])}
    graph = with_memory(by_mode(chains, model), memory).get_graph()
    drawn = graph.draw_ascii()
    assert drawn.index("select_mode") < drawn.index("load_mem") < drawn.index("tool_loop") < drawn.index("save_mem")
    assert [node.name for node in graph.nodes.values()].count("load_mem") == 2
    assert {edge.data for edge in graph.edges if edge.conditional} == {"cot", "react"}
