"""The retriever: LangChain's own suite, one for everyone, and how it composes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_tests.integration_tests import RetrieversIntegrationTests

from lc_memory import Memory
from lc_memory.errors import MemoryInputError
from lc_memory.retriever import MemoryRetriever
from tests.helpers.longterm import opened, say, with_facts
from tests.helpers.models import Scripted


def config(user: str | None, session: str = "s") -> Any:
    return {"configurable": {"session_id": session, **({"user_id": user} if user else {})}}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with with_facts(tmp_path / "m") as opened_memory:
        say(opened_memory, "我的车位在B2层", "好的")
        opened_memory.flush()
        yield opened_memory


class TestStandard(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def _memory(self, tmp_path: Path) -> Iterator[None]:
        with opened(tmp_path / "m") as memory:
            for n in range(6):
                memory.remember(f"example query about thing {n}", session_id="default")
            type(self).memory = memory
            yield

    memory: Memory

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return MemoryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory}

    @property
    def retriever_query_example(self) -> str:
        return "example query"


def test_documents_say_where_they_are_from_and_why(memory: Memory) -> None:
    memory.remember("我的车位很大", user_id="u1", kind="parking")
    found = memory.retriever(k=2).invoke("我的车位", config("u1"))
    assert {d.metadata["source"] for d in found} == {"fact", "turn"}
    for document in found:
        assert document.id
        assert set(document.metadata) == {"source", "kind", "noted_at", "session", "score", "why"}
        assert 0 < document.metadata["score"] <= 1
        assert "车位" in document.metadata["why"]
        assert document.metadata["noted_at"] > 1_700_000_000
    by_source = {d.metadata["source"]: d for d in found}
    assert by_source["fact"].metadata["kind"] == "parking"
    assert by_source["turn"].metadata["session"] == "s1"
    assert by_source["turn"].page_content == "我的车位在B2层\n好的"


def test_kinds_sources_and_k_narrow_what_is_found(memory: Memory) -> None:
    memory.remember("我的车位很大", user_id="u1", kind="parking")
    only = memory.retriever(kinds=["parking"]).invoke("我的车位和狗", config("u1"))
    assert [d.page_content for d in only] == ["我的车位很大"]
    turns = memory.retriever(sources=["turns"]).invoke("我的车位和狗", config("u1"))
    assert [d.metadata["source"] for d in turns] == ["turn"]
    assert len(memory.retriever(k=1).invoke("我的车位", config("u1"))) == 1
    assert len(memory.retriever(k=4).invoke("我的车位", config("u1"), k=1)) == 1


def test_one_retriever_never_answers_for_the_user_before(memory: Memory) -> None:
    memory.remember("我养了一只猫叫咪咪", user_id="u2")
    retriever = memory.retriever(k=3)
    for _ in range(3):
        assert "豆豆" in retriever.invoke("我家的狗叫什么", config("u1"))[0].page_content
        assert all("豆豆" not in d.page_content for d in retriever.invoke("我家的狗叫什么", config("u2")))
        assert retriever.invoke("我家的狗叫什么", config("u3")) == []
        assert retriever.invoke("我家的狗叫什么") == []


async def test_side_by_side_each_call_has_its_own_user(memory: Memory) -> None:
    for n in range(8):
        memory.remember(f"我的门牌是{n}号", user_id=f"n{n}")
    retriever = memory.retriever(k=1)
    found = await asyncio.gather(
        *(retriever.ainvoke("我的门牌是几号", config(f"n{n % 8}")) for n in range(40))
    )
    assert [d[0].page_content for d in found] == [f"我的门牌是{n % 8}号" for n in range(40)]
    batched = retriever.batch(["我的门牌是几号"] * 8, [config(f"n{n}") for n in range(8)])
    assert [d[0].page_content for d in batched] == [f"我的门牌是{n}号" for n in range(8)]


async def test_it_composes_with_parallel_and_assign(memory: Memory) -> None:
    retriever = memory.retriever(k=1)
    question = itemgetter("question")

    def words(documents: Any) -> str:
        return " ".join(d.page_content for d in documents)

    parallel = RunnableParallel(
        history=memory.load_mem | itemgetter("history"),
        knowledge=question | retriever | words,
        question=question,
    )
    prompt = ChatPromptTemplate.from_messages([("system", "{knowledge}"), ("human", "{question}")])
    model = Scripted(answers=["好"])
    chain = parallel | prompt | model | StrOutputParser()
    chain.invoke({"question": "我家的狗叫什么"}, config("u1"))
    await chain.ainvoke({"question": "我家的狗叫什么"}, config("u2"))
    assert "豆豆" in str(model.prompts[0][0].content)
    assert model.prompts[1][0].content == ""
    assign = RunnablePassthrough.assign(facts=question | retriever) | RunnableLambda(
        lambda x: words(x["facts"])
    )
    assert "豆豆" in assign.invoke({"question": "我家的狗叫什么"}, config("u1"))
    assert await assign.ainvoke({"question": "我家的狗叫什么"}, config("u2")) == ""
    assert "retriever" in chain.get_graph().draw_mermaid().lower()


def test_what_is_no_text_is_an_error_that_says_so(memory: Memory) -> None:
    with pytest.raises(MemoryInputError, match="text"):
        memory.retriever().invoke({"question": "x"}, config("u1"))  # type: ignore[arg-type]
