"""Whose a run is: read wherever a framework says it, and refused where it is said in a place nobody reads."""

from __future__ import annotations

import asyncio
import enum
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from langchain.agents import AgentState, create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda
from langgraph.graph import START, MessagesState, StateGraph
from pydantic import BaseModel

from lc_memory import Memory, MemoryInputError, script, with_memory
from lc_memory.agent.loop import agent
from lc_memory.agent.memory_tools import memory_tools
from lc_memory.integrations.langgraph import load_mem, memory_graph, save_mem
from lc_memory.integrations.middleware import MemoryMiddleware
from tests.helpers.longterm import Bags
from tests.helpers.models import Scripted

PROMPT = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])
ASK = {"question": "q"}
MESSAGES = {"messages": [HumanMessage("q")]}


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:", recall=()) as opened:
        yield opened


def bot_of(memory: Memory) -> Any:
    return with_memory(memory.load_mem | PROMPT | Scripted(answers=["a"]) | StrOutputParser(), memory)


def whose(memory: Memory) -> set[tuple[str | None, str]]:
    return {(one.key.user_id, one.key.session_id) for one in memory.sessions()}


# ---------------------------------------------------------------- the context of a framework


@dataclass
class Data:
    user_id: str = "alice"
    session_id: str = "s1"


class Model(BaseModel):
    user_id: str = "alice"
    session_id: str = "s1"


class Pair(NamedTuple):
    user_id: str = "alice"
    session_id: str = "s1"


class Slots:
    __slots__ = ("session_id", "user_id")

    def __init__(self) -> None:
        self.user_id, self.session_id = "alice", "s1"


class Asked:
    """Knows it when it is asked."""

    @property
    def user_id(self) -> str:
        return "alice"

    @property
    def session_id(self) -> str:
        return "s1"


CONTEXTS: dict[str, Any] = {
    "a dataclass": Data(),
    "a pydantic model": Model(),
    "a dict": {"user_id": "alice", "session_id": "s1"},
    "a named tuple": Pair(),
    "an object": SimpleNamespace(user_id="alice", session_id="s1"),
    "an object with slots": Slots(),
    "an object with properties": Asked(),
    "a thread": {"user_id": "alice", "thread_id": "s1"},
}


def in_create_agent(memory: Memory, way: str, context: Any) -> None:
    graph = create_agent(Scripted(answers=["a"]), [], middleware=[MemoryMiddleware(memory)])
    called(graph, way, MESSAGES, context)


def in_agent(memory: Memory, way: str, context: Any) -> None:
    called(agent(memory, Scripted(answers=["a"]), []), way, "q", context)


def in_nodes(memory: Memory, way: str, context: Any) -> None:
    called(memory_graph(memory, Scripted(answers=["a"])).compile(), way, MESSAGES, context)


def in_a_node(memory: Memory, way: str, context: Any) -> None:
    bot = bot_of(memory)

    def node(state: Any) -> Any:
        return {"messages": [AIMessage(bot.invoke(ASK))]}

    async def anode(state: Any, config: Any) -> Any:
        return {"messages": [AIMessage(await bot.ainvoke(ASK, config))]}

    called(graph_of(RunnableLambda(node, anode)), way, MESSAGES, context)


def as_keyword(memory: Memory, way: str, context: Any) -> None:
    called(bot_of(memory), way, ASK, context)


def graph_of(node: Any) -> Any:
    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    return graph.compile()


def called(bot: Any, way: str, given: Any, context: Any, config: Any = None) -> None:
    if way == "invoke":
        bot.invoke(given, config, context=context)
    elif way == "ainvoke":
        asyncio.run(bot.ainvoke(given, config, context=context))
    elif way == "stream":
        list(bot.stream(given, config, context=context))
    else:

        async def run() -> None:
            async for _ in bot.astream(given, config, context=context):
                pass

        asyncio.run(run())


PLACES: dict[str, Callable[[Memory, str, Any], None]] = {
    "create_agent": in_create_agent,
    "agent()": in_agent,
    "nodes": in_nodes,
    "a chain in a node": in_a_node,
    "with_memory(context=)": as_keyword,
}


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream"])
@pytest.mark.parametrize("place", PLACES)
def test_a_context_names_the_user_and_the_session_in_every_way(memory: Memory, place: str, way: str) -> None:
    PLACES[place](memory, way, Data())
    assert whose(memory) == {("alice", "s1")}


@pytest.mark.parametrize("kind", CONTEXTS)
@pytest.mark.parametrize("place", ["create_agent", "a chain in a node"])
def test_a_context_of_any_kind_is_read(memory: Memory, place: str, kind: str) -> None:
    PLACES[place](memory, "invoke", CONTEXTS[kind])
    assert whose(memory) == {("alice", "s1")}


def test_one_users_request_never_carries_anothers_words(memory: Memory) -> None:
    model = Scripted(answers=["a"])
    graph = create_agent(model, [], middleware=[MemoryMiddleware(memory)], context_schema=Data)
    graph.invoke({"messages": [HumanMessage("my secret")]}, context=Data("alice"))
    graph.invoke({"messages": [HumanMessage("hello")]}, context=Data("bob"))
    assert "my secret" not in str(model.prompts[1])


def test_what_runs_below_is_of_the_same_user(memory: Memory) -> None:
    """Tools, retriever, history and explain: all ask the one place."""
    with Memory.open(":memory:", embedding=Bags()) as memory:
        save = AIMessage("", tool_calls=[{"name": "save_preference", "args": {"fact": "我喜欢茶"}, "id": "c1"}])
        tools = memory_tools(memory)
        graph = create_agent(Scripted(answers=[save, "a"]), tools, middleware=[MemoryMiddleware(memory)])
        graph.invoke(MESSAGES, context=Data())
        memory.flush()
        seen: dict[str, Any] = {}

        def node(state: Any) -> Any:
            seen["retriever"] = [d.page_content for d in memory.retriever().invoke("我喜欢什么茶")]
            seen["history"] = [m.content for m in memory.history("next")][:1]
            seen["explain"] = str(memory.explain("next"))
            return {}

        graph_of(node).invoke(MESSAGES, context=Data())
        assert seen["retriever"][0] == "我喜欢茶"
        assert seen["history"] == ["q"]
        assert "s1" in seen["explain"]


def test_history_without_a_config_is_of_the_run_under_way(memory: Memory) -> None:
    bot_of(memory).invoke({"question": "of nobody"})
    mine: Any = {"configurable": {"session_id": "s1", "user_id": "u1"}}
    chain = RunnableLambda(lambda x: [m.content for m in memory.history(x["question"])])
    assert chain.invoke(ASK, mine) == []


def test_get_history_of_the_script_is_of_the_run_under_way(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "default_memory", lambda: memory)
    bot_of(memory).invoke({"question": "of nobody"})
    mine: Any = {"configurable": {"session_id": "s1", "user_id": "u1"}}
    assert RunnableLambda(script.get_history).invoke(ASK, mine) == []


# ---------------------------------------------------------------- two places


@pytest.mark.parametrize("place", ["create_agent", "agent()", "nodes", "a chain in a node", "with_memory(context=)"])
@pytest.mark.parametrize("key", ["user_id", "session_id", "thread_id"])
def test_two_places_that_disagree_are_refused(memory: Memory, place: str, key: str) -> None:
    config = {"configurable": {"user_id": "bob", "session_id": "s2", "thread_id": "t2"}}
    bots = {
        "create_agent": (create_agent(Scripted(answers=["a"]), [], middleware=[MemoryMiddleware(memory)]), MESSAGES),
        "agent()": (agent(memory, Scripted(answers=["a"]), []), "q"),
        "nodes": (memory_graph(memory, Scripted(answers=["a"])).compile(), MESSAGES),
        "a chain in a node": (graph_of(lambda s: {"messages": [AIMessage(bot_of(memory).invoke(ASK))]}), MESSAGES),
        "with_memory(context=)": (bot_of(memory), ASK),
    }
    bot, given = bots[place]
    with pytest.raises(MemoryInputError, match=key):
        called(bot, "invoke", given, {key: "other"}, config)
    assert whose(memory) == set()


@pytest.mark.parametrize("place", ["create_agent", "nodes", "with_memory(context=)"])
def test_two_places_may_say_the_same_or_complete_each_other(memory: Memory, place: str) -> None:
    bots: dict[str, Any] = {
        "create_agent": (create_agent(Scripted(answers=["a"]), [], middleware=[MemoryMiddleware(memory)]), MESSAGES),
        "nodes": (memory_graph(memory, Scripted(answers=["a"])).compile(), MESSAGES),
        "with_memory(context=)": (bot_of(memory), ASK),
    }
    bot, given = bots[place]
    called(bot, "invoke", given, {"user_id": "7"}, {"configurable": {"thread_id": "t1", "user_id": 7}})
    called(bot, "invoke", given, {"user_id": "u2"}, {"configurable": {"session_id": "t1"}})
    assert whose(memory) == {("7", "t1"), ("u2", "t1")}


# ---------------------------------------------------------------- keys that nobody reads

MISSPELT = {
    **dict.fromkeys(
        ["userId", "userid", "UserID", "USER_ID", "user-id", "User_Id", "X-User-Id", "user", "uid", "UID", "userID",
         "user.id", "enduser_id", "currentUser", "usr", "langfuse_user_id", "用户", "用户ID"],
        "user_id",
    ),
    **dict.fromkeys(
        ["sessionid", "sessionId", "SESSION_ID", "session-id", "SessionID", "session", "sid", "conversation_id",
         "conversationId", "chat_id", "chatId", "chat", "conversation", "thread", "dialog_id", "convo_id",
         "session_key", "langfuse_session_id", "会话", "会话ID"],
        "session_id",
    ),
    **dict.fromkeys(["threadid", "threadId", "THREAD_ID", "thread-id"], "thread_id"),
}  # fmt: skip


@pytest.mark.parametrize("key", MISSPELT)
def test_a_misspelt_key_is_refused_with_the_right_one(memory: Memory, key: str) -> None:
    with pytest.raises(MemoryInputError, match=f"(?s){key}.*{MISSPELT[key]}"):
        bot_of(memory).invoke(ASK, {"configurable": {key: "alice"}})
    assert whose(memory) == set()


@pytest.mark.parametrize(
    ("configurable", "right"),
    [
        ({"session_id": "s1", "userId": "alice"}, "user_id"),
        ({"thread_id": "t1", "user": "alice"}, "user_id"),
        ({"thread_id": "t1", "user": {"id": "alice"}}, "user_id"),
        ({"thread_id": "t1", "sessionId": "s1"}, "session_id"),
        ({"user_id": "u1", "session": "s1"}, "session_id"),
        ({"user_id": "u1", "conversation_id": uuid.UUID(int=7)}, "session_id"),
        ({"user_id": "u1", "userId": "u2"}, "user_id"),
        ({"user_name": "小明"}, "user_id"),
        ({"customer_id": 9}, "user_id"),
        ({"email": "a@b.example"}, "user_id"),
    ],
    ids=str,
)
def test_half_a_name_beside_a_misspelt_one_is_refused_too(
    memory: Memory, configurable: dict[str, Any], right: str
) -> None:
    with pytest.raises(MemoryInputError, match=right):
        bot_of(memory).invoke(ASK, {"configurable": configurable})
    assert whose(memory) == set()


CALLS: dict[str, Callable[[Memory, Any], Any]] = {
    "load_mem": lambda m, c: m.load_mem.invoke(ASK, c),
    "load_mem async": lambda m, c: asyncio.run(m.load_mem.ainvoke(ASK, c)),
    "history": lambda m, c: m.history("q", c),
    "history, flat": lambda m, c: m.history("q", c["configurable"]),
    "explain": lambda m, c: m.explain("q", c),
    "with_memory": lambda m, c: bot_of(m).invoke(ASK, c),
    "with_memory stream": lambda m, c: list(bot_of(m).stream(ASK, c)),
    "with_memory batch": lambda m, c: bot_of(m).batch([ASK, ASK], c),
    "with_config": lambda m, c: bot_of(m).with_config(**c["configurable"]).invoke(ASK),
    "retriever": lambda m, c: m.retriever().invoke("q", c),
    "recall_memory": lambda m, c: memory_tools(m)[1].invoke({"query": "q"}, c),
    "save_preference": lambda m, c: memory_tools(m)[0].invoke({"fact": "我喜欢茶"}, c),
    "forget_memory": lambda m, c: memory_tools(m)[2].invoke({"fact": "我喜欢茶"}, c),
    "agent()": lambda m, c: agent(m, Scripted(answers=["a"]), []).invoke("q", c),
    "middleware": lambda m, c: create_agent(
        Scripted(answers=["a"]), [], middleware=[MemoryMiddleware(m)]
    ).invoke(MESSAGES, c),
    "load_mem node": lambda m, c: graph_of(load_mem(m)).invoke(MESSAGES, c),
    "save_mem node": lambda m, c: graph_of(save_mem(m)).invoke(MESSAGES, c),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_every_call_refuses_a_misspelt_user(call: str) -> None:
    with Memory.open(":memory:", embedding=Bags()) as memory:
        with pytest.raises(MemoryInputError, match="user_id"):
            CALLS[call](memory, {"configurable": {"session_id": "s1", "userId": "alice"}})
        assert whose(memory) == set()


@pytest.mark.parametrize("key", ["user", "userId", "sessionid", "chat_id"])
def test_ask_refuses_a_misspelt_name(memory: Memory, monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setattr(script, "_bot", lambda: bot_of(memory))
    with pytest.raises(MemoryInputError, match=MISSPELT[key]):
        script.ask("q", **{key: "alice"})


@pytest.mark.parametrize("key", ["userId", "user", "uid", "sessionId", "conversation_id", "user_name"])
@pytest.mark.parametrize("as_object", [False, True], ids=["dict", "object"])
@pytest.mark.parametrize("place", ["create_agent", "a chain in a node", "with_memory(context=)"])
def test_a_misspelt_field_of_a_context_is_refused(
    memory: Memory, place: str, as_object: bool, key: str
) -> None:
    context = SimpleNamespace(**{key: "alice"}) if as_object else {key: "alice"}
    with pytest.raises(MemoryInputError, match=MISSPELT.get(key, "user_id")):
        PLACES[place](memory, "invoke", context)
    assert whose(memory) == set()


@pytest.mark.parametrize("key", ["user_id", "session_id", "thread_id", "userId", "conversation_id", "langfuse_user_id"])
def test_who_is_named_in_metadata_alone_is_not_filed_under_nobody(memory: Memory, key: str) -> None:
    with pytest.raises(MemoryInputError, match="configurable"):
        bot_of(memory).invoke(ASK, {"metadata": {key: "alice"}})
    assert whose(memory) == set()


class State(AgentState[Any]):
    user_id: str
    session_id: str
    thread_id: str
    userId: str


@pytest.mark.parametrize("key", ["user_id", "session_id", "thread_id", "userId"])
@pytest.mark.parametrize("place", ["input", "state", "keyword"])
def test_who_is_named_in_the_input_or_a_keyword_alone_is_not_filed_under_nobody(
    memory: Memory, place: str, key: str
) -> None:
    parts = [MemoryMiddleware(memory)]
    graph = create_agent(Scripted(answers=["a"]), [], middleware=parts, state_schema=State)
    calls: dict[str, Callable[[], Any]] = {
        "input": lambda: bot_of(memory).invoke({**ASK, key: "alice"}),
        "keyword": lambda: bot_of(memory).invoke(ASK, **{key: "alice"}),
        "state": lambda: graph.invoke({**MESSAGES, key: "alice"}),
    }
    with pytest.raises(MemoryInputError, match="configurable"):
        calls[place]()
    assert whose(memory) == set()


# ---------------------------------------------------------------- what an id is


class Member(str, enum.Enum):
    ALICE = "alice"


class Row:
    id = 7


@pytest.mark.parametrize(
    "wrong",
    [Row(), object(), len, lambda: "alice"],
    ids=lambda v: type(v).__name__ + repr(v)[:12],
)
@pytest.mark.parametrize("key", ["user_id", "session_id"])
def test_what_is_no_id_is_refused(memory: Memory, key: str, wrong: Any) -> None:
    with pytest.raises(MemoryInputError, match=key):
        bot_of(memory).invoke(ASK, {"configurable": {key: wrong}})
    assert whose(memory) == set()


@pytest.mark.parametrize("wrong", [7.0, True, b"alice", ["alice"], {"id": 7}, ("alice",)], ids=str)
def test_guard_nor_is_anything_else_that_has_no_text_of_its_own(memory: Memory, wrong: Any) -> None:
    test_what_is_no_id_is_refused(memory, "user_id", wrong)


ID = uuid.UUID(int=7)


@pytest.mark.parametrize(
    ("given", "text"),
    [(7, "7"), (ID, str(ID)), (Member.ALICE, "alice")],
    ids=["int", "UUID", "enum"],
)
def test_an_id_and_its_text_are_one_user_to_every_call(memory: Memory, given: Any, text: str) -> None:
    bot_of(memory).invoke(ASK, {"configurable": {"user_id": given, "session_id": given}})
    assert whose(memory) == {(text, text)}
    assert len(memory.session(given, given).messages()) == len(memory.session(text, text).messages()) == 2
    memory.remember("我喜欢茶", user_id=given)
    assert [f.text for f in memory._stored("").store.ledger().current(f"user:{text}")] == ["我喜欢茶"]


# ---------------------------------------------------------------- one manager


class Words:
    def __init__(self) -> None:
        self.said: list[Any] = []

    def add(self, message: Any) -> None:
        self.said.append(message)

    def get_context(self, query: Any = None) -> list[Any]:
        return list(self.said)


NOBODY: dict[str, Any] = {}
NAMED = {"configurable": {"session_id": "s1"}}
KNOWN = {"configurable": {"user_id": "u1"}}


@pytest.mark.parametrize(
    ("first", "then"),
    [(NOBODY, NAMED), (NAMED, NOBODY), (NOBODY, KNOWN), (KNOWN, NOBODY), (KNOWN, {"configurable": {"session_id": ""}})],
    ids=["nobody, a session", "a session, nobody", "nobody, a user", "a user, nobody", "a user, an empty name"],
)
@pytest.mark.parametrize("way", ["with_memory", "load_mem", "history"])
def test_one_manager_is_of_one_and_nobody_is_one(first: Any, then: Any, way: str) -> None:
    memory = Memory(Words())
    bot_of(memory).invoke(ASK, first)
    with pytest.raises(MemoryInputError, match="per_session"):
        CALLS[way](memory, then)
    assert len(memory.history("q", first)) == 2


# ---------------------------------------------------------------- guards: these were right before


INNOCENT: dict[str, Any] = {
    "checkpoint_id": "c1", "checkpoint_ns": "", "__pregel_task_id": "t", "__user_id": "x", "model": "m",
    "user_name_style": "polite", "users": 3, "session_factory": "f", "thread_pool": "p", "use_id": "x",
    "user_agent": "ie", "username": "小明", "session": object(), "assistant_id": "a", "graph_id": "g",
    "run_id": "r", "tenant_id": "acme", "temperature": 1, "chat_history": [], "langgraph_auth_user_id": "x",
    "conversation_id": "c", "email": "a@b.example", "userId": "u1", "sessionid": "s1",
}  # fmt: skip


@pytest.mark.parametrize("key", INNOCENT)
def test_guard_a_programs_own_fields_are_left_alone(memory: Memory, key: str) -> None:
    bot_of(memory).invoke(ASK, {"configurable": {"session_id": "s1", "user_id": "u1", key: INNOCENT[key]}})
    assert whose(memory) == {("u1", "s1")}


@pytest.mark.parametrize("key", ["model", "session", "user_name_style", "checkpoint_ns", "db"])
def test_guard_they_name_nobody(memory: Memory, key: str) -> None:
    value = object() if key in ("session", "db") else "x"
    bot_of(memory).invoke(ASK, {"configurable": {key: value}})
    assert whose(memory) == {(None, "default")}


@pytest.mark.parametrize("metadata", [{"user_id": "u9", "session_id": "s9"}, {"conversation_id": "c"}], ids=str)
def test_guard_metadata_beside_a_configurable_is_for_tracing(memory: Memory, metadata: Any) -> None:
    bot_of(memory).invoke(ASK, {"configurable": {"thread_id": "t1"}, "metadata": metadata})
    assert whose(memory) == {(None, "t1")}


def test_guard_what_names_nobody_is_one_conversation(memory: Memory) -> None:
    for config in (None, {}, {"configurable": {}}, {"metadata": {"source": "web"}}, {"tags": ["x"]}):
        bot_of(memory).invoke(ASK, config)
    bot_of(memory).invoke(ASK, {"configurable": {"user_id": None, "session_id": ""}})
    assert whose(memory) == {(None, "default")}
