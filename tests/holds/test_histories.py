"""Conversations that were held elsewhere: in which forms they come in, what becomes of them, and what is refused."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    messages_to_dict,
)
from typer.testing import CliRunner

from lc_memory import Memory
from lc_memory.cli import app
from lc_memory.errors import MemoryInputError
from lc_memory.messages import _to_lc, from_lc
from lc_memory.store import SessionKey, open_store
from tests.data import data_dir
from tests.test_recorded_requests import EXCERPT, _conversations

Message = dict[str, Any]
U = {"role": "user", "content": "我叫小明"}
A = {"role": "assistant", "content": "你好，小明"}
U2 = {"role": "user", "content": "天气怎样？"}
A2 = {"role": "assistant", "content": "晴"}
PLAIN = [U, A, U2, A2]
CALL = {"id": "call_3", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
CALLED = [U, A, U2, {"role": "assistant", "content": None, "tool_calls": [CALL]},
          {"role": "tool", "tool_call_id": "call_3", "content": "sunny"}, A2]  # fmt: skip
LC = [HumanMessage("我叫小明"), AIMessage("你好，小明"), HumanMessage("天气怎样？"), AIMessage("晴")]
LC_CALLED = [*LC[:3], AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Oslo"}, "id": "call_3"}]),
             ToolMessage("sunny", tool_call_id="call_3"), LC[3]]  # fmt: skip
ARGS = {"city": "Oslo"}


def words(messages: list[BaseMessage]) -> list[tuple[str, str, Any, Any]]:
    """Who said what, called what, and answered which call."""
    return [
        (m.type, str(m.text).strip(), [(c["name"], c["args"]) for c in getattr(m, "tool_calls", [])],
         getattr(m, "tool_call_id", None) and "answered")
        for m in messages
    ]  # fmt: skip


def as_words(dicts: list[Message]) -> list[tuple[str, str, Any, Any]]:
    return words([_to_lc(m) for m in dicts])


def responses(kind: str) -> list[Message]:
    return [
        {"role": "user", "content": [{"type": "input_text", "text": "我叫小明"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "你好，小明", "annotations": []}]},
        {"type": "message", "role": "user", "content": "天气怎样？"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": kind, "id": "fc_1", "call_id": "call_3", "name": "weather", "arguments": '{"city": "Oslo"}', "status": "completed"},
        {"type": f"{kind}_output", "call_id": "call_3", "output": "sunny"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "晴"}]},
    ]  # fmt: skip


FORMS: list[tuple[str, Any, list[Message]]] = [
    ("OpenAI dicts", PLAIN, PLAIN),
    ("OpenAI dicts with tools", CALLED, CALLED),
    ("a tuple of them", tuple(PLAIN), PLAIN),
    ("capital roles and human/ai", [{"role": "Human", "content": "我叫小明"}, {"role": "AI", "content": "你好，小明"}], PLAIN[:2]),
    ("a fine-tuning line", {"messages": CALLED, "tools": [], "parallel_tool_calls": False}, CALLED),
    ("a line of a batch", {"custom_id": "1", "method": "POST", "url": "/v1", "body": {"model": "m", "messages": PLAIN}}, PLAIN),
    ("a recorded request with its answer", {"model": "m", "messages": PLAIN[:3], "response_message": A2}, PLAIN),
    ("a request with choices", {"messages": PLAIN[:3], "choices": [{"index": 0, "message": A2}]}, PLAIN),
    ("a prompt and its completion", {"prompt": "我叫小明", "completion": "你好，小明"}, PLAIN[:2]),
    ("Alpaca", {"instruction": "天气怎样？", "input": "", "output": "晴", "history": [["我叫小明", "你好，小明"]]}, PLAIN),
    ("LangChain messages", LC, PLAIN),
    ("LangChain messages with tools", LC_CALLED, CALLED),
    ("messages_to_dict", messages_to_dict(LC), PLAIN),
    ("messages_to_dict with tools", messages_to_dict(LC_CALLED), CALLED),
    ("dumpd", [dumpd(m) for m in LC_CALLED], CALLED),
    ("model_dump", [m.model_dump() for m in LC_CALLED], CALLED),
    ("a LangGraph state", {"messages": LC_CALLED}, CALLED),
    ("LangGraph's SDK", [{"type": "human", "content": "我叫小明", "id": "1"}, {"type": "ai", "content": "你好，小明", "tool_calls": []}],
     PLAIN[:2]),
    ("pairs", [("user", "我叫小明"), ("assistant", "你好，小明"), ("human", "天气怎样？"), ("ai", "晴")], PLAIN),
    ("pairs as lists", [["user", "我叫小明"], ["assistant", "你好，小明"]], PLAIN[:2]),
    ("ShareGPT", [{"from": "human", "value": "我叫小明"}, {"from": "gpt", "value": "你好，小明"}], PLAIN[:2]),
    ("ShareGPT with tools", {"conversations": [
        {"from": "human", "value": "我叫小明"}, {"from": "gpt", "value": "你好，小明"}, {"from": "human", "value": "天气怎样？"},
        {"from": "function_call", "value": '{"name": "weather", "arguments": {"city": "Oslo"}}'},
        {"from": "observation", "value": "sunny"}, {"from": "gpt", "value": "晴"}], "tools": "[]"}, CALLED),
    ("ShareGPT with a system", {"system": "s", "conversations": [{"from": "user", "value": "我叫小明"}, {"from": "chatgpt", "value": "你好，小明"}]},
     [{"role": "system", "content": "s"}, U, A]),
    ("Gemini", {"contents": [{"role": "user", "parts": [{"text": "我叫小明"}]}, {"role": "model", "parts": [{"text": "你好，"}, {"text": "小明"}]}]},
     PLAIN[:2]),
    ("Gemini as a list", [{"role": "user", "parts": ["我叫小明"]}, {"role": "model", "parts": ["你好，小明"]}], PLAIN[:2]),
    ("Gemini with tools", {"contents": [
        {"role": "user", "parts": [{"text": "我叫小明"}]}, {"role": "model", "parts": [{"text": "你好，小明"}]},
        {"role": "user", "parts": [{"text": "天气怎样？"}]}, {"role": "model", "parts": [{"functionCall": {"name": "weather", "args": ARGS}}]},
        {"role": "user", "parts": [{"functionResponse": {"name": "weather", "response": {"sky": "sunny"}}}]},
        {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "晴"}]}]},
     [*CALLED[:4], {"role": "tool", "tool_call_id": "call_3", "content": '{"sky": "sunny"}'}, A2]),
    ("Gemini with an instruction", {"systemInstruction": {"parts": [{"text": "s"}]}, "contents": [{"parts": [{"text": "我叫小明"}]}]},
     [{"role": "system", "content": "s"}, U]),
    ("Responses items", responses("function_call"), CALLED),
    ("a Responses request with its answer", {"instructions": "s", "input": responses("function_call")[:6], "output": responses("function_call")[6:]},
     [{"role": "system", "content": "s"}, *CALLED]),
    ("a Responses request of bare text", {"input": "我叫小明", "output": responses("function_call")[1:2]}, PLAIN[:2]),
    ("Anthropic", {"system": "s", "messages": [
        U, A, U2, {"role": "assistant", "content": [{"type": "tool_use", "id": "call_3", "name": "weather", "input": ARGS}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_3", "content": [{"type": "text", "text": "sunny"}]}]},
        {"role": "assistant", "content": [{"type": "text", "text": "晴"}]}]}, [{"role": "system", "content": "s"}, *CALLED]),
    ("Bedrock", {"messages": [
        {"role": "user", "content": [{"text": "我叫小明"}]}, {"role": "assistant", "content": [{"text": "你好，小明"}]},
        {"role": "user", "content": [{"text": "天气怎样？"}]}, {"role": "assistant", "content": [{"toolUse": {"toolUseId": "call_3", "name": "weather", "input": ARGS}}]},
        {"role": "user", "content": [{"toolResult": {"toolUseId": "call_3", "content": [{"text": "sunny"}]}}]},
        {"role": "assistant", "content": [{"text": "晴"}]}]}, CALLED),
    ("the AI SDK", [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "我叫小明"}]},
                    {"id": "2", "role": "assistant", "parts": [{"type": "step-start"}, {"type": "text", "text": "你好，小明"}]}], PLAIN[:2]),
    ("the AI SDK with tools", [U, A, U2, {"role": "assistant", "parts": [
        {"type": "tool-weather", "toolCallId": "call_3", "state": "output-available", "input": ARGS, "output": "sunny"}, {"type": "text", "text": "晴"}]}], CALLED),
    ("role and text", [{"role": "user", "text": "我叫小明"}, {"role": "assistant", "text": "你好，小明"}], PLAIN[:2]),
    ("Cohere", [{"role": "USER", "message": "我叫小明"}, {"role": "CHATBOT", "message": "你好，小明"}], PLAIN[:2]),
    ("rows of message_store", [{"id": i, "session_id": "s", "message": json.dumps(d)} for i, d in enumerate(messages_to_dict(LC_CALLED))], CALLED),
    ("strings of JSON", [json.dumps(d) for d in messages_to_dict(LC_CALLED)], CALLED),
    ("bytes of JSON", [json.dumps(d).encode() for d in PLAIN], PLAIN),
    ("all mixed", [LC[0], A, ("user", "天气怎样？"), messages_to_dict(LC[3:])[0]], PLAIN),
]  # fmt: skip


@pytest.mark.parametrize(("history", "expected"), [f[1:] for f in FORMS], ids=[f[0] for f in FORMS])
def test_a_history_in_a_known_form_comes_in_turn_by_turn_and_is_read_back(history: Any, expected: list[Message]) -> None:
    with Memory.open(":memory:", recall=()) as memory:
        session = memory.session("s", "u")
        session.add(history)
        assert words(session.messages()) == as_words(expected)
        turns = list(memory._stored("test").store.turns(SessionKey("s", "u")))
        assert len(turns) == sum(m["role"] == "user" for m in expected)
        assert [m["role"] for t in turns for m in t.messages][:1] == [expected[0]["role"]]
        shown = session.context("and?")
        assert not any(isinstance(m, AIMessage) and not m.content and not m.tool_calls for m in shown)
        assert [c["name"] for m in shown if isinstance(m, AIMessage) for c in m.tool_calls] == ["weather"] * ("tool" in {m["role"] for m in expected})


class Sent:
    """An object of a vendor's package, as openai's ChatCompletionMessage is."""

    role = "assistant"

    def model_dump(self, **_: Any) -> Message:
        return dict(A)


def test_a_vendors_message_object_is_a_message() -> None:
    with Memory.open(":memory:", recall=()) as memory:
        memory.session().add([U, Sent()])
        assert [m.text for m in memory.session().messages()] == ["我叫小明", "你好，小明"]


def test_pictures_sounds_and_files_come_along() -> None:
    data = base64.b64encode(b"x").decode()
    parts = [{"text": "看"}, {"inlineData": {"mimeType": "image/png", "data": data}}, {"fileData": {"mimeType": "application/pdf", "fileUri": "gs://a.pdf"}},
             {"inline_data": {"mime_type": "audio/wav", "data": data}}]  # fmt: skip
    with Memory.open(":memory:", recall=()) as memory:
        memory.session().add({"contents": [{"role": "user", "parts": parts}]})
        (message,) = memory.session().messages()
        assert [p["type"] for p in message.content] == ["text", "image_url", "file", "input_audio"]
        memory.session("2").add([{"role": "user", "content": [{"type": "input_image", "image_url": "https://e.com/a.png"}]}])
        assert memory.session("2").messages()[0].content == [{"type": "image_url", "image_url": {"url": "https://e.com/a.png"}}]


UNKNOWN: list[tuple[str, Any, str]] = [
    ("keys nobody knows", [U, A, {"who": "user", "says": "hi"}], "messages[2]"),
    ("a role and no content", [U, {"role": "user", "body": "hi"}], "messages[1]"),
    ("a role alone", [{"role": "user"}], "messages[0]"),
    ("an empty content and no role", [{"content": None, "words": "hi"}], "messages[0]"),
    ("a content of an unknown form", [{"role": "user", "content": [{"foo": 1}]}], "messages[0]['content'][0]"),
    ("a text part without text", [U, {"role": "user", "content": [{"type": "text"}]}], "messages[1]['content'][0]"),
    ("a part of Gemini's of an unknown form", {"contents": [{"role": "user", "parts": [{"videoMetadata": {}}]}]}, "contents[0]['parts'][0]"),
    ("no parts", {"contents": [{"role": "user", "parts": []}]}, "contents[0]['parts']"),
    ("a ShareGPT speaker nobody knows", {"conversations": [{"from": "narrator", "value": "x"}]}, "conversations[0]"),
    ("a ShareGPT value that is no text", [{"from": "human", "value": None}], "messages[0]"),
    ("a call that is no JSON", [{"from": "human", "value": "q"}, {"from": "function_call", "value": "weather(Oslo)"}], "messages[1]"),
    ("bare text, for nobody says whose it is", ["hi", "hello"], "messages[0]"),
    ("pairs of question and answer", [["hi", "hello"], ["how?", "well"]], "messages[0]"),
    ("numbers", [1, 2], "messages[0]"),
    ("null", [U, None], "messages[1]"),
    ("a LangChain type nobody knows", [{"type": "alien", "data": {"content": "x"}}], "messages[0]"),
    ("LangChain data without content", [{"type": "human", "data": {}}], "messages[0]"),
    ("an item that lies at the service", [{"type": "item_reference", "id": "msg_1"}], "messages[0]"),
    ("a user's message that says nothing", [U, A, {"role": "user", "content": ""}], "messages[2]"),
    ("a user's null", [{"role": "user", "content": None}], "messages[0]"),
    ("a user's empty text in another form", [{"type": "human", "data": {"content": ""}}], "messages[0]"),
    ("a role that is a number", [{"role": 7, "content": "x"}], "messages[0]"),
    ("nested too deeply", [{"role": "user", "content": [{"type": "text", "text": "x", "more": json.loads("[" * 500 + "]" * 500)}]}], "100 levels"),
    ("an object without messages", {"model": "m", "temperature": 0}, "'model', 'temperature'"),
    ("text", "user: hi", "list of messages"),
    ("nothing", [], "no message"),
]  # fmt: skip


@pytest.mark.parametrize(("history", "says"), [u[1:] for u in UNKNOWN], ids=[u[0] for u in UNKNOWN])
def test_what_is_in_no_known_form_is_refused_with_the_first_place_and_nothing_is_saved(history: Any, says: str) -> None:
    with Memory.open(":memory:", recall=()) as memory:
        with pytest.raises(MemoryInputError) as caught:
            memory.session().add(history)
        assert says in str(caught.value)
        assert memory.session().messages() == []
        assert memory.sessions() == []


# ---------------------------------------------------------------- of any length


def talk(turns: int, start: int = 0) -> list[Message]:
    return [m for n in range(start, start + turns) for m in (
        {"role": "user", "content": f"question number {n}"}, {"role": "assistant", "content": f"answer number {n}"})]  # fmt: skip


class Summing:
    def __init__(self) -> None:
        self.read: list[str] = []

    def summarize(self, text: str) -> str:
        self.read.append(text)
        return f"summary {len(self.read)}"


@pytest.mark.parametrize("summing", [False, True], ids=["without a summariser", "with one"])
@pytest.mark.parametrize("budget", [None, 8000, 500])
@pytest.mark.parametrize("messages", [50, 400, 1000, 6000])
def test_of_a_long_history_the_window_shows_the_last_turns(messages: int, budget: int | None, summing: bool) -> None:
    with Memory.open(":memory:", recall=(), max_context_tokens=budget, window=6, summarizer=Summing() if summing else None) as memory:
        memory.session().add(talk(messages // 2))
        memory.flush()
        history = [str(m.text) for m in memory.history("and?") if m.type in ("human", "ai")]
        last = messages // 2 - 1
        assert history[-2:] == [f"question number {last}", f"answer number {last}"]
        assert 2 <= len(history) <= 24
        assert len(memory.session().messages()) == messages
        assert (memory.session().summary is not None) == summing


def test_a_history_that_waits_for_its_summary_does_not_stand_in_the_prompt_meanwhile() -> None:
    class Down:
        def summarize(self, text: str) -> str:
            raise RuntimeError("down")

    with Memory.open(":memory:", recall=(), max_context_tokens=None, summarizer=Down()) as memory:
        memory.session().add(talk(400))
        memory.flush()
        assert len(memory.history("and?")) <= 48
        assert memory.history("and?")[-1].content == "answer number 399"


def test_what_has_left_the_window_is_recalled() -> None:
    with Memory.open(":memory:") as memory:
        told = [{"role": "user", "content": "My cat is called Ottilie."}, {"role": "assistant", "content": "A fine name."}]
        memory.session("s", "u").add([*told, *talk(200)])
        memory.flush()
        history = memory.history("What is my cat called?", {"configurable": {"session_id": "s", "user_id": "u"}})
        assert any("Ottilie" in str(m.text) for m in history)


def test_all_of_a_history_is_summarised_old_first() -> None:
    summing = Summing()
    with Memory.open(":memory:", recall=(), window=4, summarizer=summing) as memory:
        memory.session().add(talk(1500))
        memory.flush()
        read = "\n".join(summing.read)
        assert len(summing.read) > 2
        assert all(f"question number {n}\n" in read for n in range(1490))
        assert "question number 1499" not in read


def test_a_turn_of_many_messages_is_never_lost_from_a_prompt_as_a_whole() -> None:
    said = [{"role": "assistant", "content": f"step {n}: " + "something was done here, and then more of it " * 3} for n in range(900)]
    with Memory.open(":memory:", recall=(), max_context_tokens=2000) as memory:
        memory.session().add([U, *said, A2])
        history = [str(m.text) for m in memory.history("and?")]
        assert history[0] == "我叫小明"
        assert history[-1] == "晴"


def test_what_was_to_be_remembered_in_a_history_is() -> None:
    with Memory.open(":memory:") as memory:
        memory.session("s", "u").add([{"role": "user", "content": "记住：我喜欢打篮球"}, A, *talk(3)])
        memory.flush()
        assert any("篮球" in d.page_content for d in memory.retriever().invoke("我喜欢什么运动？", {"configurable": {"user_id": "u"}}))


def test_leading_system_messages_are_the_sessions_and_later_ones_belong_to_their_place() -> None:
    system = {"role": "system", "content": "Be brief."}
    with Memory.open(":memory:", recall=(), window=2) as memory:
        memory.session().add([system, *talk(30), {"role": "system", "content": "It is noon."}, *talk(1, 30)])
        memory.flush()
        history = memory.history("and?")
        assert history[0] == SystemMessage("Be brief.")
        assert [str(m.text) for m in history].count("It is noon.") <= 1
        memory.session().add(talk(30, 31))
        memory.flush()
        shown = [str(m.text) for m in memory.history("and?")]
        assert shown[0] == "Be brief."
        assert "It is noon." not in shown


def test_many_different_system_messages_do_not_fill_the_prompt() -> None:
    said = [m for n in range(300) for m in (*talk(1, n), {"role": "system", "content": f"It is {n} o'clock. " * 10})]
    with Memory.open(":memory:", recall=(), max_context_tokens=2000) as memory:
        memory.session().add(said)
        assert any("answer number 299" in str(m.text) for m in memory.history("and?"))


def test_a_hundred_thousand_messages_come_in_and_a_prompt_costs_no_more_than_with_a_thousand() -> None:
    with Memory.open(":memory:", recall=()) as memory:
        memory.session("large").add(talk(50_000))
        memory.session("small").add(talk(500))
        memory.flush()

        def cost(session: str) -> float:
            config = {"configurable": {"session_id": session}}
            memory.history("and?", config)
            spent = []
            for _ in range(5):
                began = time.thread_time()
                for _ in range(10):
                    memory.history("and?", config)
                spent.append(time.thread_time() - began)
            return min(spent)

        assert [m.text for m in memory.history("and?", {"configurable": {"session_id": "large"}})][-1] == "answer number 49999"
        assert cost("large") < 5 * cost("small")
        assert sum(1 for _ in memory._stored("t").store.turns(SessionKey("large"))) == 50_000


def test_a_history_that_cannot_be_stored_to_its_end_is_not_there_at_all() -> None:
    with Memory.open(":memory:", recall=()) as memory:
        memory.session().add(talk(2))
        with pytest.raises(MemoryInputError):
            memory.session().add([*talk(600, 2), {"role": "assistant", "content": "x", "score": {1: float("nan")}, "tool_calls": 3}])
        broken = [*talk(600, 2), {"role": "user", "content": [{"type": "text", "text": "x", "n": float("nan")}]}]
        with pytest.raises(MemoryInputError):
            memory.session().add(broken)
        assert len(memory.session().messages()) == 4


async def test_the_same_off_the_event_loop() -> None:
    with Memory.open(":memory:", recall=()) as memory:
        await memory.session().aadd(talk(30))
        assert len(memory.session().messages()) == 60


@pytest.mark.parametrize("where", ["excerpt", "all"])
def test_every_recorded_conversation_goes_in_and_comes_back_with_no_loss(where: str) -> None:
    paths = [EXCERPT]
    if where == "all":
        data = data_dir()
        if data is None:
            pytest.skip("the recorded sets are not here (see tests/data.py)")
        paths = sorted((data / "messages").glob("*.jsonl"))
    brought = 0
    with Memory.open(":memory:", recall=()) as memory:
        for path in paths:
            for line, expected in zip(path.read_text("utf-8").splitlines(), _conversations([path]), strict=True):
                brought += 1
                session = memory.session(f"s{brought}")
                session.add(json.loads(line))
                assert [from_lc(m) for m in session.messages()] == [from_lc(_to_lc(m)) for m in expected]
                assert session.context("and?")
    assert brought == (402 if where == "all" else brought) > 0


# ---------------------------------------------------------------- from files

FILES: list[tuple[str, str, dict[str, int]]] = [
    ("a conversation a line", "\n".join(json.dumps({"messages": PLAIN}) for _ in range(3)), {"talk-1": 2, "talk-2": 2, "talk-3": 2}),
    ("one line with one conversation", json.dumps({"messages": CALLED}), {"talk": 2}),
    ("a list a line", json.dumps(PLAIN) + "\n" + json.dumps(CALLED), {"talk-1": 2, "talk-2": 2}),
    ("a message a line", "\n".join(map(json.dumps, CALLED)), {"talk": 2}),
    ("LangChain's messages a line", "\n".join(map(json.dumps, messages_to_dict(LC_CALLED))), {"talk": 2}),
    ("FileChatMessageHistory", json.dumps(messages_to_dict(LC)), {"talk": 2}),
    ("JSON over several lines", json.dumps({"messages": PLAIN}, indent=2), {"talk": 2}),
    ("a list over several lines", json.dumps(PLAIN, indent=2), {"talk": 2}),
    ("a list of conversations", json.dumps([{"messages": PLAIN}, {"conversations": [{"from": "human", "value": "q"}]}]), {"talk-1": 2, "talk-2": 1}),
    ("ShareGPT lines", "\n".join(json.dumps({"conversations": [{"from": "human", "value": "q"}, {"from": "gpt", "value": "a"}]}) for _ in range(2)),
     {"talk-1": 1, "talk-2": 1}),
    ("rows of message_store", "\n".join(json.dumps({"id": i, "session_id": f"s{i // 2}", "message": json.dumps(d)})
                                        for i, d in enumerate(messages_to_dict(LC))), {"s0": 1, "s1": 1}),
    ("conversations that have a name", "\n".join(json.dumps({"session_id": f"n{i}", "messages": PLAIN}) for i in range(2)), {"n0": 2, "n1": 2}),
    ("with a byte order mark and blank lines", "\ufeff" + "\n\n".join(map(json.dumps, PLAIN)) + "\n\n", {"talk": 2}),
    ("Redis's list of strings", json.dumps([json.dumps(d) for d in messages_to_dict(LC)]), {"talk": 2}),
]  # fmt: skip


def run(*args: str) -> Any:
    return CliRunner().invoke(app, list(args))


@pytest.mark.parametrize(("text", "sessions"), [f[1:] for f in FILES], ids=[f[0] for f in FILES])
def test_a_file_of_conversations_is_imported_by_the_command_line_once(text: str, sessions: dict[str, int], tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    file.write_text(text, "utf-8")
    where = str(tmp_path / "memory")
    for _ in range(2):
        result = run("import", str(file), "--memory", where, "--user", "u1")
        assert result.exit_code == 0, result.output
    store = open_store(where)
    try:
        assert {i.key: i.turns for i in store.sessions()} == {SessionKey(name, "u1"): n for name, n in sessions.items()}
    finally:
        store.close()


def test_the_session_of_an_import_can_be_named(tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps({"session_id": "old", "messages": PLAIN}), "utf-8")
    assert run("import", str(file), "--memory", str(tmp_path / "m"), "--session", "new").exit_code == 0
    with Memory.open(tmp_path / "m", recall=()) as memory:
        assert words(memory.session("new").messages()) == as_words(PLAIN)


BAD_FILES: list[tuple[str, str, str]] = [
    ("a line that is no message", json.dumps(U) + "\n" + json.dumps({"foo": 1}), "line 2"),
    ("a conversation with one", json.dumps({"messages": PLAIN}) + "\n" + json.dumps({"messages": [U, {"role": "user"}]}), "line 2: messages[1]"),
    ("a line that is no JSON", json.dumps(U) + "\nhello", "line 2"),
    ("NaN", json.dumps(U) + '\n{"role": "user", "content": "x", "score": NaN}', "line 2"),
    ("nesting", json.dumps(U) + '\n{"role": "user", "content": ' + "[" * 5000 + "]" * 5000 + "}", "line 2"),
]


@pytest.mark.parametrize(("text", "says"), [f[1:] for f in BAD_FILES], ids=[f[0] for f in BAD_FILES])
def test_of_a_file_with_a_bad_line_nothing_comes_in_unless_it_is_left_out(text: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "talk.jsonl"
    file.write_text(text, "utf-8")
    where = str(tmp_path / "memory")
    result = run("import", str(file), "--memory", where)
    assert result.exit_code != 0
    assert says in " ".join((result.output + str(result.exception)).split())
    store = open_store(where)
    try:
        assert store.sessions() == []
    finally:
        store.close()
    result = run("import", str(file), "--memory", where, "--skip-bad")
    assert result.exit_code == 0, result.output
    store = open_store(where)
    try:
        assert sum(i.turns for i in store.sessions()) in (1, 2)
    finally:
        store.close()


# ---------------------------------------------------------------- the store's part


def test_many_turns_are_saved_in_one_commit_and_known_ones_once(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    key = SessionKey("s")
    turns = [[{"role": "user", "content": str(n)}] for n in range(1200)]
    ids = [f"t{n}" for n in range(1200)]
    try:
        assert store.append_all(key, turns[:5], turn_ids=ids[:5]) == 5
        before = store.version(key)
        assert store.append_all(key, turns, turn_ids=ids) == 1195
        assert store.version(key) > before
        store.append(key, [U])
        assert [t.seq for t in store.turns(key)] == list(range(1, 1202))
        assert [t.messages[0]["content"] for t in store.turns(key)][:1200] == [str(n) for n in range(1200)]
        assert [t.seq for t in store.load(key, last=3).turns] == [1199, 1200, 1201]
        assert len(store.backlog().pending("index", key=key, limit=5000)) == 1201
        with pytest.raises(MemoryInputError):
            store.append_all(key, [[U], [{"role": "user", "content": float("nan")}]])
        assert len(list(store.turns(key))) == 1201
    finally:
        store.close()
