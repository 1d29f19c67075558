"""The agent and the plain tool loop, through the real client, against services as strict as the real ones:
tools that are called wrongly, fail, hang or are never enough; and memory that holds whole turns only."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from pydantic import SecretStr

from lc_memory import Memory, MemoryInputError, chat_model, with_memory
from lc_memory.agent import CalculatorTool, WeatherTool, agent, default_tools, react, tool_loop, tool_records
from lc_memory.script import chat_prompt
from tests.helpers import programs
from tests.helpers.models import Scripted
from tests.helpers.ways import WAYS
from tests.servers.chat import Answer, ChatServer, Fault, call
from tests.servers.weather import WeatherServer

SERVICES = ["openai", "deepseek", "kimi", "qwen"]
CONFIG: Any = {"configurable": {"session_id": "s1", "user_id": "u1"}}
FORMS = ["agent", "lcel"]
ENDS = "还没有得到答案"


@pytest.fixture(params=SERVICES)
def server(request: pytest.FixtureRequest) -> Iterator[ChatServer]:
    with ChatServer(request.param) as running:
        yield running


@pytest.fixture
def openai() -> Iterator[ChatServer]:
    with ChatServer("openai") as running:
        yield running


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:", recall=()) as opened:
        yield opened


@pytest.fixture
def weather() -> Iterator[WeatherServer]:
    with WeatherServer() as running:
        yield running


def model_of(server: ChatServer) -> Any:
    return chat_model(base_url=server.url, api_key="k", model="m", profile=server.profile, max_retries=0)


def thought(server: ChatServer, words: str = "想一想") -> str | None:
    return words if server.profile in ("deepseek", "kimi") else None


def calls(server: ChatServer, *made: Any, words: str = "") -> Answer:
    return Answer(words, tool_calls=list(made), reasoning=thought(server))


def says(server: ChatServer, words: str) -> Answer:
    return Answer(words, reasoning=thought(server))


Ask = Callable[..., Any]


def asker(form: str, memory: Memory, model: Any, tools: Any, **given: Any) -> Ask:
    """A way to ask that gives ``answer`` and ``tool_records``, whichever form the loop has."""
    if form == "agent":
        bot = agent(memory, model, tools, **given)
        return lambda question, config=CONFIG: bot.invoke({"question": question}, config)
    loop = memory.load_mem | chat_prompt() | tool_loop(model, tools, **given) | StrOutputParser()
    chain = with_memory(loop, memory)

    def ask(question: str, config: Any = CONFIG) -> dict[str, Any]:
        answer = chain.invoke({"question": question}, config)
        kept = memory.session("s1", "u1").messages()
        last = max(i for i, m in enumerate(kept) if m.type == "human")
        return {"answer": answer, "tool_records": tool_records(kept[last:])}

    return ask


def kept(memory: Memory) -> list[str]:
    return [m.type for m in memory.session("s1", "u1").messages()]


@tool
def boom(x: int) -> str:
    """Raises."""
    raise ValueError(f"kaputt {x}")


@pytest.mark.parametrize("form", FORMS)
def test_the_whole_day_keep_a_preference_restart_recall_it_calculate_and_ask_for_the_weather(
    form: str, server: ChatServer, weather: WeatherServer, tmp_path: Path
) -> None:
    def opened() -> tuple[Memory, Ask]:
        memory = Memory.open(tmp_path, recall=())
        tools = [*default_tools(memory)[2:], CalculatorTool(), WeatherTool(forecast_url=weather.url, geocoding_url=weather.url)]  # fmt: skip
        return memory, asker(form, memory, model_of(server), tools)

    memory, ask = opened()
    server.script(calls(server, call("save_preference", user_fact="我喜欢喝茶")), says(server, "记住了"))
    out = ask("记一下：我喜欢喝茶")
    assert out["answer"] == "记住了"
    (record,) = out["tool_records"]
    assert (record["tool"], record["args"], record["asked"]) == ("save_preference", {"fact": "我喜欢喝茶"}, {"user_fact": "我喜欢喝茶"})  # fmt: skip
    assert record["error"] is None
    assert record["seconds"] >= 0
    memory.close()

    memory, ask = opened()  # a new process would do just this
    server.script(
        calls(server, call("recall_memory", keyword="喝什么"), call("calculator", expression="12×7")),
        calls(server, call("get_weather", city="杭州")),
        says(server, "你喜欢喝茶；84；杭州晴"),
    )
    out = ask("我爱喝什么？12×7？杭州天气？")
    assert out["answer"] == "你喜欢喝茶；84；杭州晴"
    results = {r["tool"]: r["result"] for r in out["tool_records"]}
    assert results["recall_memory"] == "- 我喜欢喝茶"
    assert results["calculator"] == "84"
    assert "晴" in results["get_weather"]
    assert server.refusals == []
    assert kept(memory) == ["human", "ai", "tool", "ai", "human", "ai", "tool", "tool", "ai", "tool", "ai"]
    memory.close()

    memory, ask = opened()  # and once more: the reasoning of both turns comes back from the memory
    server.script("不用")
    assert ask("要带伞吗？")["answer"] == "不用"
    assert server.refusals == []
    sent = server.requests[-1]["messages"]
    assert [c["function"]["name"] for m in sent for c in m.get("tool_calls", ())] == [
        "save_preference", "recall_memory", "calculator", "get_weather",
    ]  # fmt: skip
    assert sent[-1]["content"].endswith("要带伞吗？")
    if thought(server):
        assert all(m["reasoning_content"] == "想一想" for m in sent if m.get("tool_calls"))
    memory.close()


@pytest.mark.parametrize("form", FORMS)
def test_what_goes_wrong_with_calls_is_told_to_the_model_and_to_the_caller(
    form: str, server: ChatServer, memory: Memory
) -> None:
    ask = asker(form, memory, model_of(server), [CalculatorTool(), boom])
    server.script(
        calls(
            server,
            call("calculator", expr="1+1"),
            call("no_such_tool", a=1),
            call("calculator", arguments="{bad"),
            call("calculator", arguments="[1]"),
            call("calculator", expr="1", digits=3),
            call("boom", x=1),
            call("boom", x="much"),
            call("calculator", expr="import os"),
            words="我看看",
        ),
        calls(server, call("calculator", arguments="{bad again")),
        says(server, "是 2"),
    )
    out = ask("1+1？")
    assert out["answer"] == "是 2"
    outcomes = [(r["tool"], r["error"] or r["result"]) for r in out["tool_records"]]
    assert len(outcomes) == 9
    good = [text for _, text in outcomes if text == "2"]
    assert len(good) == 1
    told = "\n".join(f"{name} {text}" for name, text in outcomes)
    for words in ("no_such_tool", "no JSON object", "{bad", "no argument 'digits'", "ValueError: kaputt 1", "is no arithmetic expression"):  # fmt: skip
        assert words in told, words
    assert "much" in next(text for name, text in outcomes if name == "boom" and "kaputt" not in text)
    assert server.refusals == []
    results = [m["content"] for m in server.requests[1]["messages"] if m["role"] == "tool"]
    assert len(results) == 8  # the model was told all of it
    assert sum("Error" in r for r in results) == 7
    assert kept(memory) == ["human", "ai", *["tool"] * 8, "ai", "tool", "ai"]
    server.script("好")
    ask("继续")
    assert server.refusals == []  # what was kept is accepted again


@pytest.mark.parametrize("form", FORMS)
def test_a_model_that_never_stops_calling_ends_in_an_answer(
    form: str, server: ChatServer, memory: Memory
) -> None:
    ask = asker(form, memory, model_of(server), [CalculatorTool()])
    server.script(*[calls(server, call("calculator", expr=f"{i}+1")) for i in range(9)])
    out = ask("没完没了")
    assert ENDS in out["answer"]
    assert [r["result"] for r in out["tool_records"]] == ["1", "2", "3"]
    assert len(server.requests) == 4
    assert [bool(r.get("tools")) for r in server.requests] == [True, True, True, False]
    assert server.refusals == []
    messages = memory.session("s1", "u1").messages()
    assert kept(memory) == ["human", *["ai", "tool"] * 3, "ai"]
    assert messages[-1].text == out["answer"]
    assert all("工具的调用次数" not in str(m.text) for m in messages)  # what it was told at last is not kept


@pytest.mark.parametrize("form", FORMS)
def test_asked_without_tools_at_last_the_model_answers_with_what_it_has(
    form: str, openai: ChatServer, memory: Memory
) -> None:
    ask = asker(form, memory, model_of(openai), [CalculatorTool()], max_rounds=1)
    openai.script(calls(openai, call("calculator", expr="1+1")), "就是 2")
    assert ask("1+1 是多少？")["answer"] == "就是 2"
    last = openai.requests[-1]
    assert "tools" not in last
    assert "工具的调用次数已用完" in last["messages"][0]["content"]


@pytest.mark.parametrize("form", FORMS)
def test_words_beside_a_call_too_many_are_the_answer(form: str, openai: ChatServer, memory: Memory) -> None:
    ask = asker(form, memory, model_of(openai), [CalculatorTool()], max_rounds=0)
    openai.script(calls(openai, call("calculator", expr="1+1"), words="大约是 2"))
    out = ask("1+1？")
    assert (out["answer"], out["tool_records"]) == ("大约是 2", [])
    assert kept(memory) == ["human", "ai"]
    with pytest.raises(MemoryInputError, match="max_rounds"):
        asker(form, memory, model_of(openai), [], max_rounds=-1)


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("form", FORMS)
def test_a_tool_that_hangs_is_an_error_and_the_turn_goes_on(
    form: str, way: str, openai: ChatServer, memory: Memory
) -> None:
    released, runs = threading.Event(), []

    @tool
    def hang(x: int) -> str:
        """Hangs."""
        runs.append(x)
        released.wait()
        return "late"

    given: Any = {"tool_seconds": 0.2, "retries": 2}
    openai.script(calls(openai, call("hang", x=1)), "没有查到")
    try:
        if way == "invoke":
            out = asker(form, memory, model_of(openai), [hang], **given)("?")
            answer, records = out["answer"], out["tool_records"]
        else:
            if form == "agent":
                bot: Any = agent(memory, model_of(openai), [hang], **given)
            else:
                bot = with_memory(memory.load_mem | chat_prompt() | tool_loop(model_of(openai), [hang], **given) | StrOutputParser(), memory)  # fmt: skip

            out = asyncio.run(bot.ainvoke({"question": "?"}, CONFIG))  # the loop does not wait for it either
            answer = out["answer"] if form == "agent" else out
            records = tool_records(memory.session("s1", "u1").messages())
    finally:
        released.set()
    assert answer == "没有查到"
    assert "has not answered within 0.2 s" in str(records[0]["error"])
    assert runs == [1]  # it may still be at work: it is not tried again
    assert kept(memory) == ["human", "ai", "tool", "ai"]


async def test_many_hanging_tools_do_not_stop_what_else_runs_on_the_loop(openai: ChatServer, memory: Memory) -> None:
    released = threading.Event()

    @tool
    def hang(x: int) -> str:
        """Hangs."""
        released.wait()
        return "late"

    asked = [call("hang", x=i) for i in range(40)]  # more than the loop's pool has threads
    openai.script(calls(openai, *asked), "没有")
    try:
        out = await agent(memory, model_of(openai), [hang], tool_seconds=0.2, max_rounds=1).ainvoke("?", CONFIG)
        assert out["answer"] == "没有"
        assert len(out["tool_records"]) == 40
        assert await asyncio.to_thread(lambda: "free") == "free"
    finally:
        released.set()


HANGING = """
import asyncio, sys, threading
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from langchain_core.messages import AIMessage
from lc_memory import Memory
from lc_memory.agent import agent, tool_loop
from tests.helpers.models import Scripted
from tests.helpers.ways import WAYS

@tool
def hang(x: int) -> str:
    "Hangs."
    threading.Event().wait()

model = Scripted(answers=[AIMessage("", tool_calls=[{"name": "hang", "args": {"x": 1}, "id": "1"}]), "done"])
if sys.argv[1] == "agent":
    with Memory.open(":memory:", recall=()) as memory:
        bot = agent(memory, model, [hang], tool_seconds=0.2)
        out = bot.invoke("?") if sys.argv[2] == "invoke" else asyncio.run(bot.ainvoke("?"))
        print(out["answer"])
else:
    bot = tool_loop(model, [hang], tool_seconds=0.2)
    out = bot.invoke("?") if sys.argv[2] == "invoke" else asyncio.run(bot.ainvoke("?"))
    print(out.text)
"""


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("form", FORMS)
def test_a_tool_that_hangs_for_ever_does_not_keep_the_program_alive(form: str, way: str) -> None:
    done = programs.run("-c", HANGING, form, way)
    assert (done.returncode, done.stdout.strip()) == (0, "done"), done.stderr


async def test_an_async_tool_that_hangs_is_cancelled(openai: ChatServer, memory: Memory) -> None:
    cancelled = asyncio.Event()

    @tool
    async def hang(x: int) -> str:
        """Hangs."""
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        return ""

    openai.script(calls(openai, call("hang", x=1)), "没有")
    out = await agent(memory, model_of(openai), [hang], tool_seconds=0.2).ainvoke("?", CONFIG)
    assert out["answer"] == "没有"
    await cancelled.wait()


@pytest.mark.parametrize("form", FORMS)
def test_a_failure_that_may_pass_is_tried_again_and_another_is_not(
    form: str, openai: ChatServer, memory: Memory
) -> None:
    runs: list[str] = []

    @tool
    def flaky(x: int) -> str:
        """Fails once."""
        runs.append("flaky")
        if runs.count("flaky") == 1:
            raise httpx.ConnectError("down")
        return "up"

    @tool
    def down(x: int) -> str:
        """Fails always."""
        runs.append("down")
        raise ConnectionError("never there")

    @tool
    def broken(x: int) -> str:
        """A bug."""
        runs.append("broken")
        raise KeyError("bug")

    ask = asker(form, memory, model_of(openai), [flaky, down, broken], retries=1)
    openai.script(calls(openai, call("flaky", x=1), call("down", x=1), call("broken", x=1)), "好")
    records = {r["tool"]: r for r in ask("?")["tool_records"]}
    assert records["flaky"]["result"] == "up"
    assert "never there" in str(records["down"]["error"])
    assert "KeyError" in str(records["broken"]["error"])
    assert (runs.count("flaky"), runs.count("down"), runs.count("broken")) == (2, 2, 1)


@pytest.mark.parametrize("form", FORMS)
def test_calls_of_one_round_run_side_by_side(form: str, openai: ChatServer, memory: Memory) -> None:
    both = threading.Barrier(2)

    @tool
    def meet(x: int) -> str:
        """Waits for the other call."""
        both.wait()
        return f"met {x}"

    ask = asker(form, memory, model_of(openai), [meet])
    openai.script(calls(openai, call("meet", x=1), call("meet", x=2)), "好")
    assert [r["result"] for r in ask("?")["tool_records"]] == ["met 1", "met 2"]


def test_the_parts_of_a_stream_add_up_to_the_answer(server: ChatServer, memory: Memory) -> None:
    bot = agent(memory, model_of(server), [CalculatorTool()])
    server.script(calls(server, call("calculator", expr="1+1"), words="我算算"), says(server, "等于二"))
    parts = list(bot.stream({"question": "1+1？"}, CONFIG))
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert total["answer"] == "等于二"
    assert total["words"] == "我算算等于二"
    assert [r["result"] for r in total["tool_records"]] == ["2"]
    order = [next(iter(part)) for part in parts]
    assert order.index("tool_calls") < order.index("tool_records") < order.index("answer")
    assert kept(memory) == ["human", "ai", "tool", "ai"]

    async def run() -> list[Any]:
        return [part async for part in bot.astream("2+2？", CONFIG)]

    server.script(calls(server, call("calculator", expr="2+2")), says(server, "等于四"))
    assert asyncio.run(run())[-1]["answer"] == "等于四"
    assert server.refusals == []
    assert kept(memory) == ["human", "ai", "tool", "ai"] * 2


def test_the_plain_loop_streams_too(server: ChatServer, memory: Memory) -> None:
    chain = with_memory(react(memory, model_of(server), [CalculatorTool()]), memory)
    server.script(calls(server, call("calculator", expr="1+1")), says(server, "等于二"))
    chunks = list(chain.stream({"question": "1+1？"}, CONFIG))
    assert "".join(chunks) == "等于二"
    assert len(chunks) > 1
    messages = memory.session("s1", "u1").messages()
    assert [m.type for m in messages] == ["human", "ai", "tool", "ai"]
    assert tool_records(messages)[0]["result"] == "2"

    async def run() -> list[str]:
        return [c async for c in chain.astream({"question": "2+2？"}, CONFIG)]

    server.script(calls(server, call("calculator", expr="2+2")), says(server, "等于四"))
    assert "".join(asyncio.run(run())) == "等于四"
    server.script("嗯")
    chain.invoke({"question": "好"}, CONFIG)
    assert server.refusals == []


@pytest.mark.parametrize("form", FORMS)
def test_unreadable_calls_are_told_when_streamed_too(form: str, server: ChatServer, memory: Memory) -> None:
    tools = [CalculatorTool()]
    bot: Any = agent(memory, model_of(server), tools) if form == "agent" else with_memory(react(memory, model_of(server), tools), memory)  # fmt: skip
    server.script(
        calls(server, call("calculator", arguments='{"expr": "1+'), call("calculator", arguments="[1]"), call("calculator", arguments="")),
        calls(server, call("calculator", arguments='"1+1"')),
        says(server, "不行"),
    )  # fmt: skip
    parts = list(bot.stream({"question": "1+1？"}, CONFIG))
    assert (parts[-1]["answer"] if form == "agent" else "".join(parts)) == "不行"
    records = tool_records(memory.session("s1", "u1").messages())
    assert [r["error"] is not None for r in records] == [True] * 4
    assert sum("no JSON object" in str(r["error"]) for r in records) == 3
    assert "'expr' is missing" in next(str(r["error"]) for r in records if "no JSON" not in str(r["error"]))
    server.script("好")
    bot.invoke({"question": "再来"}, CONFIG)
    assert server.refusals == []


@pytest.mark.parametrize("form", FORMS)
def test_calls_without_an_id_or_with_the_same_one_are_answered_each(form: str, memory: Memory) -> None:
    def made(expr: str, id: str | None) -> Any:  # noqa: A002
        return {"name": "calculator", "args": {"expr": expr}, "id": id, "type": "tool_call"}

    asks = AIMessage("", tool_calls=[made("1", None), made("2", ""), made("3", "c"), made("4", "c")])
    model = Scripted(answers=[asks, "好"])
    out = asker(form, memory, model, [CalculatorTool()])("?")
    assert [(r["args"], r["result"]) for r in out["tool_records"]] == [({"expr": n}, n) for n in "1234"]
    assert kept(memory) == ["human", "ai", *["tool"] * 4, "ai"]


@pytest.mark.parametrize("reason", ["length", None])
@pytest.mark.parametrize("form", FORMS)
def test_a_call_that_broke_off_is_not_run_with_half_of_its_arguments(form: str, reason: str | None, memory: Memory) -> None:
    """LangChain completes the JSON of a streamed call that broke off. Any model may be cut at its limit."""
    runs: list[str] = []

    @tool
    def erase(folder: str) -> str:
        """Erases."""
        runs.append(folder)
        return "gone"

    with ChatServer("openai") as server:
        plain: Any = ChatOpenAI(base_url=server.url, api_key=SecretStr("k"), model="m", max_retries=0)
        model = plain if reason else model_of(server)
        bot: Any = agent(memory, model, [erase]) if form == "agent" else with_memory(react(memory, model, [erase]), memory)  # fmt: skip
        server.script(Answer(tool_calls=[call("erase", arguments='{"folder": "/home/me')], finish=reason), "没有删")
        list(bot.stream({"question": "删掉"}, CONFIG))
        assert runs == []
        (record,) = tool_records(memory.session("s1", "u1").messages())
        assert "no JSON object" in str(record["error"])


@pytest.mark.parametrize("form", FORMS)
def test_a_model_that_fails_in_the_second_round_leaves_nothing_behind(
    form: str, openai: ChatServer, memory: Memory
) -> None:
    ask = asker(form, memory, model_of(openai), [CalculatorTool()])
    openai.script(calls(openai, call("calculator", expr="1+1")), Fault(500), "好")
    with pytest.raises(Exception, match="500"):
        ask("一")
    assert kept(memory) == []
    assert ask("二")["answer"] == "好"
    assert [str(m.text) for m in memory.session("s1", "u1").messages()] == ["二", "好"]


def test_a_stream_closed_early_saves_nothing_and_lets_the_session_go(openai: ChatServer, memory: Memory) -> None:
    bot = agent(memory, model_of(openai), [CalculatorTool()])
    openai.script(calls(openai, call("calculator", expr="1+1"), words="我算算"), "等于二")
    stream: Any = bot.stream("1+1？", CONFIG)
    next(stream)
    stream.close()
    assert kept(memory) == []
    openai._script.clear()
    openai.script("好")
    assert bot.invoke("二", CONFIG)["answer"] == "好"


def test_inside_with_memory_the_turn_is_saved_once(openai: ChatServer, memory: Memory) -> None:
    bot = with_memory(agent(memory, model_of(openai), [CalculatorTool()]), memory)
    openai.script(calls(openai, call("calculator", expr="1+1")), "等于二", calls(openai, call("calculator", expr="1+1")), "等于二")
    assert bot.invoke({"question": "1+1？"}, CONFIG)["answer"] == "等于二"
    assert [str(m.text) for m in memory.session("s1", "u1").messages()] == ["1+1？", "", "2", "等于二"]
    assert list(bot.stream({"question": "1+1？"}, CONFIG))[-1]["answer"] == "等于二"
    assert kept(memory) == ["human", "ai", "tool", "ai"] * 2


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream"])
def test_an_agent_that_is_a_tool_of_another_is_part_of_its_turn(way: str, memory: Memory) -> None:
    inner = agent(memory, Scripted(answers=["六"]), [], system="inner")

    @tool
    def expert(question: str, config: RunnableConfig) -> str:
        """Asks an expert."""
        return str(inner.invoke(question, config)["answer"])

    model = Scripted(answers=[AIMessage("", tool_calls=[{"name": "expert", "args": {"question": "2*3"}, "id": "1"}]), "是六"])  # fmt: skip
    WAYS[way](agent(memory, model, [expert]), "二乘三？", CONFIG)
    assert [str(m.text) for m in memory.session("s1", "u1").messages()] == ["二乘三？", "", "六", "是六"]
    inner.invoke("又问", CONFIG)
    assert kept(memory)[-2:] == ["human", "ai"]


def test_with_a_checkpointer_the_thread_is_not_told_twice_and_each_turn_saved_once(
    server: ChatServer, memory: Memory
) -> None:
    bot = agent(memory, model_of(server), [CalculatorTool()], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t1", "user_id": "u1"}}
    for i in range(3):
        server.script(calls(server, call("calculator", expr=f"{i}+1")), says(server, f"第{i}答"))
        out = bot.invoke({"question": f"第{i}问"}, config)
        assert [r["result"] for r in out["tool_records"]] == [str(i + 1)]
    assert server.refusals == []
    session = memory.session("t1", "u1").messages()
    assert [str(m.text) for m in session if m.type == "human"] == ["第0问", "第1问", "第2问"]
    sent = "".join(str(m.get("content")) for m in server.requests[-1]["messages"])
    assert all(sent.count(words) == 1 for words in ("第0问", "第0答", "第1问", "第1答", "第2问"))


@pytest.mark.parametrize("form", FORMS)
def test_many_rounds_are_limited_by_their_number_alone(form: str, memory: Memory) -> None:
    asks = [AIMessage("", tool_calls=[{"name": "calculator", "args": {"expr": f"{i}"}, "id": f"c{i}"}]) for i in range(40)]
    out = asker(form, memory, Scripted(answers=asks), [CalculatorTool()], max_rounds=30)("没完没了")
    assert len(out["tool_records"]) == 30
    assert ENDS in out["answer"]


def test_sessions_do_not_see_each_other_and_turns_of_one_wait(openai: ChatServer, memory: Memory) -> None:
    bot = agent(memory, model_of(openai), [])
    openai.script("一", "二")
    bot.invoke("我叫小明", {"configurable": {"session_id": "a"}})
    bot.invoke("我叫什么？", {"configurable": {"session_id": "b"}})
    assert "小明" not in str(openai.requests[-1]["messages"])
    assert bot.batch(["甲", "乙"], {"configurable": {"session_id": "c"}})
    assert [m.type for m in memory.session("c").messages()] == ["human", "ai"] * 2


def test_print_ascii_shows_the_memory_first_and_last(memory: Memory) -> None:
    drawn = agent(memory, Scripted(answers=["a"]), [CalculatorTool()]).get_graph().draw_ascii()
    order = [drawn.index(name) for name in ("__start__", "load_mem", "| model |", "save_mem", "__end__")]
    assert order == sorted(order)


def test_records_are_read_from_any_messages() -> None:
    messages = [
        AIMessage("", tool_calls=[{"name": "f", "args": {"a": 1}, "id": "1"}]),
        ToolMessage("one", tool_call_id="1", name="f"),
        ToolMessage("orphan", tool_call_id="9", name="g", status="error"),
    ]
    assert tool_records(messages) == [
        {"tool": "f", "args": {"a": 1}, "result": "one", "error": None, "seconds": 0.0},
        {"tool": "g", "args": None, "result": None, "error": "orphan", "seconds": 0.0},
    ]
