"""The facts as a LangGraph store: put, get, search, delete, list, side by side with LangGraph's own store."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from lc_memory import Memory, MemoryInputError
from lc_memory.integrations.store import FactStore, namespace_of
from tests.helpers.models import Scripted

U1, U2, S1 = namespace_of("u1"), namespace_of("u2"), namespace_of(session_id="s1")


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:") as opened:
        yield opened


@pytest.fixture
def store(memory: Memory) -> FactStore:
    return FactStore(memory)


def script(store: Any) -> list[Any]:
    """The same calls on any BaseStore; what they give, in terms of keys and values."""
    store.put(U1, "k1", {"text": "我喜欢打篮球", "n": 1})
    store.put(U1, "k2", {"food": "pizza", "n": 2, "deep": {"list": [1, None, "x"]}})
    store.put(U2, "k1", {"text": "I prefer tea", "n": 3})
    store.put(S1, "k1", {"content": "only here", "n": 4})
    store.put(U1, "k1", {"text": "我喜欢打篮球", "n": 5})  # the same words, another value
    store.put(U1, "k2", {"food": "noodles", "n": 6})
    store.put(U2, "gone", {"text": "x"})
    store.delete(U2, "gone")
    store.delete(U2, "never there")

    def items(found: Any) -> Any:
        return sorted((i.namespace, i.key, sorted(i.value.items(), key=str)) for i in found)

    return [
        store.get(U1, "k1").value,
        store.get(U1, "k2").value,
        store.get(U2, "gone"),
        store.get(U1, "missing"),
        items(store.search(U1)),
        items(store.search(("user",))),
        items(store.search(())),
        items(store.search((), filter={"n": 6})),
        items(store.search((), filter={"n": {"$gte": 3, "$lt": 6}})),
        items(store.search((), filter={"n": {"$ne": 3}, "text": "我喜欢打篮球"})),
        items(store.search(("nobody",))),
        len(store.search((), limit=2)),
        len(store.search((), limit=10, offset=3)),
        store.list_namespaces(),
        store.list_namespaces(prefix=("user",)),
        store.list_namespaces(suffix=("u1",)),
        store.list_namespaces(prefix=("*", "s1")),
        store.list_namespaces(max_depth=1),
        store.list_namespaces(limit=1, offset=1),
        store.batch([GetOp(U1, "k1"), PutOp(U1, "k9", {"text": "new"}), ListNamespacesOp()])[0].value,
        store.batch([SearchOp(U1), ListNamespacesOp((MatchCondition("suffix", ("u2",)),))])[1],
    ]


def test_it_answers_as_langgraphs_own_store_does(store: FactStore) -> None:
    assert script(store) == script(InMemoryStore())


def test_search_goes_by_meaning_within_the_namespace(store: FactStore) -> None:
    store.put(U1, "a", {"text": "我喜欢打篮球"})
    store.put(U1, "b", {"text": "我对花生过敏"})
    store.put(U2, "c", {"text": "我喜欢踢足球"})
    first = store.search(U1, query="我爱什么运动？")[0]
    assert (first.key, first.namespace) == ("a", U1)
    assert first.score is not None
    assert 0 < first.score <= 1
    assert [i.key for i in store.search(U1, query="What may I not eat?", limit=1)] == ["b"]
    assert {i.key for i in store.search(("user",), query="喜欢什么运动")} >= {"a", "c"}
    store.delete(U1, "a")
    assert "a" not in [i.key for i in store.search(U1, query="我爱什么运动？")]


def test_what_was_put_gets_into_prompts_and_what_was_said_is_found(memory: Memory, store: FactStore) -> None:
    store.put(U1, "allergy", {"text": "我对花生过敏", "kind": "allergy"})
    config: Any = {"configurable": {"user_id": "u1", "session_id": "s9"}}
    assert any("花生" in str(m.text) for m in memory.history("我对什么过敏？", config))
    memory.core("u1").set("预算", "40万")
    (fact,) = store.search(U1, filter={"kind": "预算"})
    assert fact.value == {"text": "40万", "kind": "预算", "subject": None, "private": False, "core": True}
    memory.forget(user_id="u1")
    assert store.search(U1) == []


def test_private_facts_come_by_key_or_by_name_alone(memory: Memory, store: FactStore) -> None:
    store.put(U1, "p", {"text": "我的秘密爱好是集邮"}, index=False)
    store.put(U1, "q", {"text": "我的秘密是蓝色", "private": True})
    assert store.get(U1, "p").value == {"text": "我的秘密爱好是集邮"}  # type: ignore[union-attr]
    assert store.search(U1) == store.search(U1, query="我的秘密爱好") == []
    assert {i.key for i in store.search(U1, filter={"private": True})} == {"p", "q"}
    assert not any("集邮" in str(m.text) for m in memory.history("我的秘密爱好是什么", {"configurable": {"user_id": "u1"}}))


def test_times_and_expiry(store: FactStore) -> None:
    store.put(U1, "k", {"text": "a"}, ttl=60)
    before = store.get(U1, "k")
    store.put(U1, "k", {"text": "b"})
    after = store.get(U1, "k")
    assert before is not None
    assert after is not None
    assert after.created_at == before.created_at <= before.updated_at <= after.updated_at
    store.put(U1, "short", {"text": "c"}, ttl=0)
    assert store.get(U1, "short") is None
    assert [i.key for i in store.search(U1)] == ["k"]


@pytest.mark.parametrize("user", ["a.b@c.com", "小明", "", "%", "100%.x", "a\x00b", "%2E", "x" * 300])
def test_every_user_id_has_a_namespace_of_its_own(store: FactStore, memory: Memory, user: str) -> None:
    namespace = namespace_of(user)
    store.put(namespace, "k", {"text": "mine"})
    assert store.list_namespaces() == [namespace]
    assert [fact.text for fact in memory._stored("").store.ledger().current(f"user:{user}")] == ["mine"]
    assert store.get(namespace, "k").namespace == namespace  # type: ignore[union-attr]


def test_what_it_cannot_keep_is_refused(store: FactStore) -> None:
    with pytest.raises(MemoryInputError, match="namespace_of"):
        store.put(("memories", "u1"), "k", {"text": "a"})
    with pytest.raises(MemoryInputError, match="namespace_of"):
        store.get(("user", "u1", "deeper"), "k")
    with pytest.raises(InvalidNamespaceError):
        store.put(("user", "a.b"), "k", {"text": "a"})
    with pytest.raises(NotImplementedError, match="text"):
        store.put(U1, "k", {"text": "a"}, index=["text"])
    store.put(U1, "k", {"text": "a"})
    with pytest.raises(MemoryInputError, match=r"\$in"):
        store.search(U1, filter={"n": {"$in": [1]}})


def test_async_calls_do_the_same(store: FactStore) -> None:
    async def run() -> Any:
        await store.aput(U1, "k", {"text": "我喜欢喝茶"})
        found = await store.asearch(U1, query="喝什么")
        got = await store.aget(U1, "k")
        await store.adelete(U1, "k")
        return found[0].key, got, await store.aget(U1, "k"), await store.alist_namespaces()

    key, got, gone, namespaces = asyncio.run(run())
    assert key == "k"
    assert got.value == {"text": "我喜欢喝茶"}
    assert gone is None
    assert namespaces == []


def test_a_tool_of_an_agent_reads_and_writes_it(store: FactStore) -> None:
    @tool
    def keep(text: str, runtime: ToolRuntime) -> str:
        """Keeps."""
        runtime.store.put(U1, "kept", {"text": text})  # type: ignore[union-attr]
        return runtime.store.get(U1, "kept").value["text"]  # type: ignore[union-attr]

    model = Scripted(answers=[AIMessage("", tool_calls=[{"name": "keep", "args": {"text": "茶"}, "id": "1"}]), "好"])
    out = create_agent(model, [keep], store=store).invoke({"messages": [HumanMessage("记住")]})
    assert out["messages"][2].content == "茶"
    assert store.get(U1, "kept") is not None
