"""Answers that are no plain words, thoughts in them, and calls whose results are missing: what is stored, what
is recalled, and what goes back into the next prompt."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langchain_openai import ChatOpenAI

from lc_memory import Memory, with_memory
from lc_memory.messages import from_lc, messages_to_lc
from lc_memory.messages.tool_groups import valid_groups
from lc_memory.models import PROFILES, ServiceChatModel
from tests.helpers.models import Scripted
from tests.servers.others import OtherServer
from tests.servers.rules import PROFILES as SERVICES
from tests.servers.rules import refusal

Message = dict[str, Any]
PROMPT = ChatPromptTemplate.from_messages([("system", "s"), ("placeholder", "{history}"), ("human", "{question}")])
U1 = {"configurable": {"session_id": "s1", "user_id": "u"}}
U2 = {"configurable": {"session_id": "s2", "user_id": "u"}}


def call(call_id: str, args: str = '{"city": "Oslo"}', name: str = "report") -> Message:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": args}}


def tool(call_id: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def assistant(content: Any, **more: Any) -> Message:
    return {"role": "assistant", "content": content, **more}


URL = "https://example.com/chart-of-oslo.png"

# name, what the turn holds behind the question, words of it that must come back (None: nothing was said)
ANSWERS: list[tuple[str, list[Message], str | None]] = [
    ("a structured answer by tool call, and its result",
     [assistant("", tool_calls=[call("c1")]), tool("c1", "Returning structured response: city='Oslo'")], "Oslo"),
    ("a structured answer by tool call that nobody answered", [assistant("", tool_calls=[call("c1")])], "Oslo"),
    ("the same with content null", [assistant(None, tool_calls=[call("c1")])], "Oslo"),
    ("a call in the content alone",
     [assistant([{"type": "tool_use", "id": "t1", "name": "report", "input": {"city": "Oslo"}}])], "Oslo"),
    ("an answer that ends in a tool's result",
     [assistant("One moment.", tool_calls=[call("c1", "{}")]), tool("c1", "Oslo has snow today.")], "Oslo has snow today."),
    ("parallel results end it", [assistant(None, tool_calls=[call("c1", "{}"), call("c2", "{}")]), tool("c1", "first"),
                                 tool("c2", "Oslo second")], "Oslo second"),
    ("an empty answer behind a tool's result",
     [assistant(None, tool_calls=[call("c1", "{}")]), tool("c1", "Oslo has snow."), assistant("")], "Oslo has snow."),
    ("a refusal beside the content", [assistant("", refusal="I will not talk about Oslo.")], "I will not talk about Oslo."),
    ("a refusal beside content null", [assistant(None, refusal="Not about Oslo.")], "Not about Oslo."),
    ("a refusal part", [assistant([{"type": "refusal", "refusal": "Not about Oslo."}])], "Not about Oslo."),
    ("a picture alone", [assistant([{"type": "image_url", "image_url": {"url": URL}}])], "chart-of-oslo"),
    ("a picture in LangChain's form", [assistant([{"type": "image", "url": URL}])], "chart-of-oslo"),
    ("a sound with its transcript",
     [assistant(None, audio={"id": "a1", "data": "UklGRg==", "transcript": "Oslo has snow."})], "Oslo has snow."),
    ("a sound part", [assistant([{"type": "audio", "id": "a1", "transcript": "Oslo has snow."}])], "Oslo has snow."),
    ("a file part", [assistant([{"type": "file", "file": {"filename": "oslo.pdf", "file_id": "f1"}}])], "oslo.pdf"),
    ("text of the Responses API", [assistant([{"type": "output_text", "text": "Oslo it is.", "annotations": []}])], "Oslo it is."),
    ("reasoning alone", [assistant([{"type": "reasoning", "summary": [], "id": "rs1"}])], None),
    ("reasoning with a text", [assistant([{"type": "reasoning", "text": "hm"}])], None),
    ("thinking alone", [assistant([{"type": "thinking", "thinking": "hm", "signature": "x"}])], None),
    ("null", [assistant(None)], None),
    ("nothing", [assistant("")], None),
    ("spaces", [assistant("  \n")], None),
    ("no parts", [assistant([])], None),
    ("an empty part", [assistant([{"type": "text", "text": ""}])], None),
    ("a thought and nothing else", [assistant("<think>hm</think>")], None),
]  # fmt: skip


class Words:
    """A manager of the user's own."""

    def __init__(self) -> None:
        self.said: list[Message] = []

    def add(self, message: Message) -> None:
        self.said.append(message)

    def get_context(self, query: str | None = None) -> list[Message]:
        return list(self.said)


def _memory() -> Memory:
    return Memory.open(":memory:", embedding="local", recall=("facts", "turns"))


def _saved(memory: Memory, answer: list[Message], question: str = "What about the capital?") -> list[Message]:
    turn = [{"role": "user", "content": question}, *answer]
    memory._stored("test").conversation(memory._key(U1)).save(turn)
    return turn


def _is_empty(message: BaseMessage) -> bool:
    if not isinstance(message, AIMessage):
        return False
    text = message.content if isinstance(message.content, str) else "".join(str(p.get("text", "")) for p in message.content)
    return not text.strip() and not message.tool_calls


def _sent(service: str, messages: list[BaseMessage]) -> dict[str, Any]:
    model = ServiceChatModel(base_url="http://127.0.0.1:9/v1", api_key="k", model="m", service=PROFILES[service],
                             use_responses_api=False)  # fmt: skip
    return model._get_request_payload([SystemMessage("s"), *messages, HumanMessage("And now?")])


@pytest.mark.parametrize(("answer", "words"), [a[1:] for a in ANSWERS], ids=[a[0] for a in ANSWERS])
def test_an_answer_of_any_kind_goes_back_into_the_prompt_and_never_as_an_empty_message(
    answer: list[Message], words: str | None
) -> None:
    with _memory() as memory:
        turn = _saved(memory, answer)
        history = memory.history("And now?", U1)
        assert [from_lc(m) for m in memory.session("s1", "u").messages()] == [from_lc(m) for m in messages_to_lc(turn)]
        assert isinstance(history[-1], AIMessage)
        assert not any(map(_is_empty, history))
        if words is not None:
            assert words in str(history[-1].text)
        for service in SERVICES:
            body = _sent(service, history)
            assert refusal(body, service) is None
            said = [m for m in body["messages"] if m["role"] == "assistant"]
            assert all(m.get("content") or m.get("tool_calls") for m in said)
            plain = ChatOpenAI(base_url="http://127.0.0.1:9/v1", api_key="k", model="m")
            wire = plain._get_request_payload([*history, HumanMessage("And now?")])["messages"]
            assert all(m.get("content") or m.get("tool_calls") for m in wire if m["role"] == "assistant")


RECALLED = [a for a in ANSWERS if a[2] is not None and not a[0].startswith(("a picture", "a file", "a refusal"))]


@pytest.mark.parametrize(("answer", "words"), [a[1:] for a in RECALLED], ids=[a[0] for a in RECALLED])
def test_an_answer_of_any_kind_can_be_recalled_by_its_own_words(answer: list[Message], words: str) -> None:
    with _memory() as memory:
        _saved(memory, answer, "Tell me, please, what you found out")
        memory.flush()
        found = memory.retriever(k=3).invoke("Oslo", U2)
        assert any("Oslo" in document.page_content for document in found)


# ---------------------------------------------------------------- saved from a run


def _agent(**options: Any) -> Any:
    agents = pytest.importorskip("langchain.agents")
    return agents.create_agent(**options)


def _structured(memory: Memory, around: str, told: str | None) -> Any:
    from langchain.agents.structured_output import ToolStrategy
    from pydantic import BaseModel

    from lc_memory.integrations.middleware import MemoryMiddleware

    class Weather(BaseModel):
        """The weather."""

        city: str
        degrees: int

    made = AIMessage("", tool_calls=[{"name": "Weather", "args": {"city": "Oslo", "degrees": -3}, "id": "w1"}])
    strategy = ToolStrategy(Weather, **({"tool_message_content": told} if told else {}))
    middleware = [MemoryMiddleware(memory)] if around == "middleware" else []
    agent = _agent(model=Scripted(answers=[made]), tools=[], response_format=strategy, middleware=middleware)
    if around == "middleware":
        return agent
    asking = RunnableLambda(lambda x: {"messages": [*x["history"], HumanMessage(x["question"])]})
    return with_memory(memory.load_mem | asking | agent, memory)


@pytest.mark.parametrize("told", [None, "Done."])
@pytest.mark.parametrize("around", ["with_memory", "middleware"])
def test_a_structured_answer_of_create_agent_is_saved_recalled_and_given_back(around: str, told: str | None) -> None:
    with _memory() as memory:
        agent = _structured(memory, around, told)
        given: Any = {"messages": [HumanMessage("How is it there?")]} if around == "middleware" else {"question": "How is it there?"}
        agent.invoke(given, U1)
        history = memory.history("And now?", U1)
        assert not any(map(_is_empty, history))
        assert "Oslo" in json.dumps([from_lc(m) for m in history])
        assert isinstance(history[-1], AIMessage)
        for service in SERVICES:
            assert refusal(_sent(service, history), service) is None
        memory.flush()
        assert any("Oslo" in d.page_content for d in memory.retriever().invoke("Oslo", U2))


@pytest.mark.parametrize("said", ["", "I will write it down."])
def test_an_object_that_came_by_a_tool_call_is_the_answer_whatever_was_said_beside_it(said: str) -> None:
    blocks: Any = [
        *([{"type": "text", "text": said}] if said else []),
        {"type": "tool_use", "id": "t1", "name": "report", "input": {"city": "Oslo"}},
    ]
    made = AIMessage(blocks, tool_calls=[{"name": "report", "args": {"city": "Oslo"}, "id": "t1"}])
    with _memory() as memory:
        parsed = RunnableLambda(lambda m: m.tool_calls[0]["args"])
        bot = with_memory(memory.load_mem | PROMPT | Scripted(answers=[made]) | parsed, memory)
        assert bot.invoke({"question": "q"}, U1) == {"city": "Oslo"}
        last = memory.history("And now?", U1)[-1]
        assert isinstance(last, AIMessage)
        assert not last.tool_calls
        assert '"city": "Oslo"' in str(last.text)
        assert said in str(last.text)


# ---------------------------------------------------------------- thoughts

THOUGHTS: list[tuple[str, str, str]] = [
    ("closed", "<think>a secret</think>the answer", "the answer"),
    ("with line ends", "<think>\na secret\n\n</think>\n\nthe answer", "the answer"),
    ("the opening stands in the prompt", "a secret</think>the answer", "the answer"),
    ("never closed", "the answer<think>a secret", "the answer"),
    ("several", "the <think>a secret</think>ans<think>secret</think>wer", "the answer"),
    ("nested", "<think>a <think>secret</think> secret</think>the answer", "the answer"),
    ("a thought about the mark", "<think>what is a <think> secret</think>the answer", "the answer"),
    ("closed, then one that is not", "<think>secret</think>the answer<think>secret", "the answer"),
    ("closed twice", "<think>secret</think>secret</think>the answer", "the answer"),
    ("upper case", "<THINK>a secret</THINK>the answer", "the answer"),
    ("thinking", "<thinking>a secret</thinking>the answer", "the answer"),
    ("mixed names", "<thinking>a secret</think>the answer", "the answer"),
    ("thought", "<thought>a secret</thought>the answer", "the answer"),
    ("reasoning", "<reasoning>a secret</reasoning>the answer", "the answer"),
    ("with spaces in the mark", "< think >a secret</ think >the answer", "the answer"),
    ("with attributes", '<think effort="high">a secret</think>the answer', "the answer"),
    ("with a prefix", "<seed:think>a secret</seed:think>the answer", "the answer"),
    ("in brackets", "[THINK]a secret[/THINK]the answer", "the answer"),
    ("of OpenThinker", "<|begin_of_thought|>a secret<|end_of_thought|>the answer", "the answer"),
    ("of Kimi", "◁think▷a secret◁/think▷the answer", "the answer"),
    ("Chinese", "<think>一个秘密 secret</think>the answer 好的", "the answer 好的"),
]


class Quoting:
    """A summariser that keeps what it was given."""

    def __init__(self) -> None:
        self.read: list[str] = []

    def summarize(self, text: str) -> str:
        self.read.append(text)
        return "summary"


@pytest.mark.parametrize("streamed", [False, True], ids=["invoked", "streamed"])
@pytest.mark.parametrize(("told", "shown"), [t[1:] for t in THOUGHTS], ids=[t[0] for t in THOUGHTS])
def test_a_thought_is_stored_and_goes_nowhere_else(told: str, shown: str, streamed: bool) -> None:
    summariser = Quoting()
    with Memory.open(":memory:", summarizer=summariser, window=1) as memory:
        bot = with_memory(memory.load_mem | PROMPT | Scripted(answers=[told]) | StrOutputParser(), memory)
        for n in range(4):
            asked = {"question": f"question {n}"}
            answer = "".join(bot.stream(asked, U1)) if streamed else bot.invoke(asked, U1)
            assert answer == told
        memory.flush()
        assert memory.session("s1", "u").messages()[1].content == told
        history = memory.history("and?", U1)
        assert [m.content for m in history if isinstance(m, AIMessage)][-1] == shown
        assert not any("secret" in str(m.content) for m in history)
        assert summariser.read
        assert not any("secret" in text for text in summariser.read)
        assert not any("secret" in part.text for part in memory.explain("secret", U1).parts if part.kind != "question")
        assert not any("secret" in d.page_content for d in memory.retriever(k=9).invoke("the secret", U2))


def test_a_thought_in_pieces_of_a_content_list_goes_nowhere_either() -> None:
    parts = [{"type": "text", "text": "<thi"}, {"type": "text", "text": "nk>a secret"}, {"type": "text", "text": "</think>the answer"}]
    with _memory() as memory:
        _saved(memory, [assistant(parts)])
        assert memory.history("and?", U1)[-1].content == "the answer"


@pytest.mark.parametrize("words", ["what does <think> do?", "<think>mine</think> words", "</think>", "a <thinking> cap"])
def test_guard_what_a_user_writes_is_his_own(words: str) -> None:
    with _memory() as memory:
        _saved(memory, [assistant("ok")], words)
        assert memory.history("and?", U1)[0].content == words


def test_guard_a_mark_in_backquotes_is_a_word_of_the_answer() -> None:
    with _memory() as memory:
        _saved(memory, [assistant("Write `<think>` and then `</think>`.")])
        assert memory.history("and?", U1)[-1].content == "Write `<think>` and then `</think>`."


def test_a_managers_history_is_shown_without_thoughts_too() -> None:
    manager = Words()
    manager.add({"role": "user", "content": "<think>mine"})
    manager.add({"role": "assistant", "content": "<think>secret</think>told"})
    history = Memory(manager).history("and?")
    assert [m.content for m in history] == ["<think>mine", "told"]


def test_reading_thoughts_out_of_a_text_takes_steps_in_proportion_to_its_length() -> None:
    from lc_memory.messages import speech as spoken

    counted: list[int] = []
    for size in (2_000, 4_000):
        steps = 0
        for unit in ("<", "<think", "<think>", "</think>", "<think ", "< ", "<t:", "[/", "◁"):
            text = unit * size
            steps += sum(1 for _ in spoken._THOUGHT_MARK.finditer(text))
            shown = spoken.without_thoughts(text)
            assert len(shown) <= len(text)
        counted.append(steps)
    assert counted[1] <= 2 * counted[0] + 9


# ---------------------------------------------------------------- calls without results

TEXT = {"type": "text", "text": "let me look"}
BLOCKS: list[tuple[str, list[Message]]] = [
    ("tool_use", [{"type": "tool_use", "id": "c1", "name": "f", "input": {}}]),
    ("streamed tool_use", [{"type": "tool_use", "id": "c1", "name": "f", "input": {}, "partial_json": "{}", "index": 1}]),
    ("tool_use and its delta", [{"type": "tool_use", "id": "c1", "name": "f", "input": {}},
                                {"type": "input_json_delta", "partial_json": "{}", "index": 1}]),
    ("function_call", [{"type": "function_call", "id": "fc1", "call_id": "c1", "name": "f", "arguments": "{}"}]),
    ("custom_tool_call", [{"type": "custom_tool_call", "id": "ct1", "call_id": "c1", "name": "f", "input": "x"}]),
    ("computer_call", [{"type": "computer_call", "id": "cc1", "call_id": "c1", "action": {}}]),
    ("local_shell_call", [{"type": "local_shell_call", "id": "ls1", "call_id": "c1", "action": {}}]),
    ("apply_patch_call", [{"type": "apply_patch_call", "id": "ap1", "call_id": "c1", "operation": {}}]),
    ("tool_call of v1", [{"type": "tool_call", "id": "c1", "name": "f", "args": {}}]),
    ("tool_call_chunk of v1", [{"type": "tool_call_chunk", "id": "c1", "name": "f", "args": "{}", "index": 0}]),
    ("invalid_tool_call of v1", [{"type": "invalid_tool_call", "id": "c1", "name": "f", "args": "{"}]),
    ("server_tool_use", [{"type": "server_tool_use", "id": "srv1", "name": "web_search", "input": {}}]),
    ("server_tool_call of v1", [{"type": "server_tool_call", "id": "srv1", "name": "web_search", "args": {}}]),
    ("mcp_tool_use", [{"type": "mcp_tool_use", "id": "mcp1", "name": "f", "server_name": "s", "input": {}}]),
    ("non_standard", [{"type": "non_standard", "value": {"type": "tool_use", "id": "c1", "name": "f", "input": {}}}]),
    ("Bedrock's toolUse", [{"toolUse": {"toolUseId": "c1", "name": "f", "input": {}}}]),
    ("the AI SDK's tool-call", [{"type": "tool-call", "toolCallId": "c1", "toolName": "f", "input": {}}]),
    ("reasoning before a function_call", [{"type": "reasoning", "id": "rs1", "summary": []},
                                          {"type": "function_call", "id": "fc1", "call_id": "c1", "name": "f", "arguments": "{}"}]),
]  # fmt: skip


@pytest.mark.parametrize("calls", [True, False], ids=["with tool_calls", "in the content alone"])
@pytest.mark.parametrize("blocks", [b[1] for b in BLOCKS], ids=[b[0] for b in BLOCKS])
def test_a_call_without_result_goes_with_its_block_in_the_content(blocks: list[Message], calls: bool) -> None:
    message = assistant([TEXT, *blocks], **({"tool_calls": [call("c1")]} if calls else {}))
    user = {"role": "user", "content": "q"}
    assert valid_groups([user, message, user]) == [user, assistant([TEXT]), user]
    assert valid_groups([user, assistant(blocks, **({"tool_calls": [call("c1")]} if calls else {})), user]) == [user, user]


@pytest.mark.parametrize(
    "result",
    [
        {"type": "tool_result", "tool_use_id": "gone", "content": "r"},
        {"type": "function_call_output", "call_id": "gone", "output": "r"},
        {"type": "custom_tool_call_output", "call_id": "gone", "output": "r"},
        {"type": "computer_call_output", "call_id": "gone", "output": {}},
        {"type": "server_tool_result", "tool_call_id": "gone", "output": "r"},
        {"type": "tool-result", "toolCallId": "gone", "output": "r"},
        {"toolResult": {"toolUseId": "gone", "content": []}},
    ],
    ids=lambda r: r.get("type", "toolResult"),
)
def test_a_result_block_whose_call_is_gone_goes_too(result: Message) -> None:
    kept = {"role": "user", "content": [{"type": "text", "text": "and?"}]}
    assert valid_groups([{"role": "user", "content": [result, *kept["content"]]}]) == [kept]
    assert valid_groups([kept, {"role": "user", "content": [result]}]) == [kept]


def test_calls_that_chatopenai_would_read_back_go_as_well() -> None:
    message = from_lc(AIMessage("said", tool_calls=[{"name": "f", "args": {}, "id": "c1"}],
                                additional_kwargs={"tool_calls": [call("c1")]}))  # fmt: skip
    (kept,) = messages_to_lc(valid_groups([message]))
    wire = ChatOpenAI(base_url="http://127.0.0.1:9/v1", api_key="k", model="m")._get_request_payload([kept])
    assert "tool_calls" not in wire["messages"][0]


def test_a_function_call_of_2023_goes_without_its_result_and_stays_with_it() -> None:
    made = assistant(None, function_call={"name": "f", "arguments": "{}"})
    answered = {"role": "function", "name": "f", "content": "r"}
    user = {"role": "user", "content": "q"}
    assert valid_groups([user, made, user]) == [user, user]
    assert valid_groups([user, made, answered]) == [user, made, answered]


def test_guard_whole_groups_in_content_blocks_stay_as_they_are() -> None:
    made = assistant([TEXT, {"type": "tool_use", "id": "t", "name": "f", "input": {}}])
    answered = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]}
    searched = assistant([{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}},
                          {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}, TEXT])  # fmt: skip
    for whole in ([made, answered], [searched], [assistant([*made["content"]], tool_calls=[call("t")]), tool("t", "r")]):
        assert valid_groups(whole) == whole


WIRE_BLOCKS = [b for b in BLOCKS if "SDK" not in b[0] and "Bedrock" not in b[0]]


def _model(service: str, url: str) -> Any:
    if service == "anthropic":
        anthropic = pytest.importorskip("langchain_anthropic")
        return anthropic.ChatAnthropic(base_url=url, api_key="k", model="claude-sonnet-5", max_retries=0)
    return ChatOpenAI(base_url=f"{url}/v1", api_key="k", model="gpt-5", max_retries=0, use_responses_api=True)


@pytest.mark.parametrize("service", ["anthropic", "responses"])
@pytest.mark.parametrize("way", ["store", "manager"])
def test_on_the_wire_no_call_is_left_behind_and_no_answer_is_empty(service: str, way: str) -> None:
    with OtherServer(service) as server:
        model = _model(service, server.url)
        turns = [[{"role": "user", "content": "q"}, assistant([TEXT, *blocks], tool_calls=[call("c1")])] for _, blocks in WIRE_BLOCKS]
        turns += [[{"role": "user", "content": "q"}, assistant(blocks, tool_calls=[call("c1")])] for _, blocks in WIRE_BLOCKS]
        turns += [[{"role": "user", "content": "q"}, *answer] for _, answer, _ in ANSWERS]
        turns += [[{"role": "user", "content": "q"}, assistant([TEXT, blocks[0]], tool_calls=[call("c1", "{}", "f")]), tool("c1", "r"),
                   assistant("done")] for name, blocks in WIRE_BLOCKS if name in ("tool_use", "function_call", "tool_call of v1")]
        for turn in turns:
            if way == "store":
                memory = Memory.open(":memory:", recall=())
                memory._stored("test").conversation(memory._key(None)).save(turn)
            else:
                manager = Words()
                for message in turn:
                    manager.add(message)
                memory = Memory(manager)
            bot = memory.load_mem | PROMPT | model | StrOutputParser()
            assert bot.invoke({"question": "And now?"}) == "ok", (turn, server.refusals)
            memory.close()
        assert server.refusals == []
        assert len(server.requests) == len(turns)


@pytest.mark.parametrize("blocks", [b[1] for b in WIRE_BLOCKS], ids=[b[0] for b in WIRE_BLOCKS])
def test_chat_completions_take_a_history_whose_call_was_dropped(blocks: list[Message]) -> None:
    with _memory() as memory:
        _saved(memory, [assistant([TEXT, *blocks], tool_calls=[call("c1")])])
        history = memory.history("And now?", U1)
        plain = ChatOpenAI(base_url="http://127.0.0.1:9/v1", api_key="k", model="m")
        body = plain._get_request_payload([*history, HumanMessage("And now?")])
        assert refusal({"model": "m", "messages": body["messages"]}, "openai") is None
        assert body["messages"][1] == {"role": "assistant", "content": "let me look"} or body["messages"][1] == {
            "role": "assistant", "content": [TEXT]}  # fmt: skip


def test_guard_a_finished_group_of_claude_goes_to_openai_as_it_should() -> None:
    content: Any = [{"type": "thinking", "thinking": "hm", "signature": "s"}, TEXT, {"type": "tool_use", "id": "c1", "name": "f", "input": {}}]
    said = AIMessage(content, tool_calls=[{"name": "f", "args": {}, "id": "c1"}])
    with _memory() as memory:
        _saved(memory, [from_lc(said), tool("c1", "r"), assistant("done")])
        history = memory.history("And now?", U1)
        assert [type(m) for m in history] == [HumanMessage, AIMessage, ToolMessage, AIMessage]
        assert history[1].content == "let me look"
        for service in SERVICES:
            assert refusal(_sent(service, history), service) is None
