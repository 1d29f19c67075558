"""What ten programs stumbled over that were written by the README alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers import JsonOutputParser, StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import Runnable, RunnableParallel, RunnablePassthrough
from langgraph.graph import START, StateGraph

from lc_memory import Memory, MemoryInputError, with_memory
from lc_memory.integrations.langgraph import MemoryState, load_mem, save_mem
from lc_memory.sessions.histories_file import import_conversations
from tests.helpers.ways import WAYS

ONE: Any = {"configurable": {"user_id": "u1", "session_id": "s1"}}
PROMPT = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])


@pytest.fixture
def memory() -> Iterator[Memory]:
    with Memory.open(":memory:", recall=()) as opened:
        yield opened


def said(memory: Memory) -> list[tuple[str, str]]:
    return [(m.type, str(m.text)) for m in memory.session("s1", "u1").messages()]


def saying(words: str) -> Runnable[Any, Any]:
    return PROMPT | GenericFakeChatModel(messages=iter([AIMessage(words)] * 3))


# ---------------------------------------------------------------- an answer beside other things

TEXT = StrOutputParser()
BESIDE: dict[str, Callable[[], Runnable[Any, Any]]] = {
    "an answer, then a title": lambda: RunnableParallel(answer=saying("yes") | TEXT, title=saying("Tea") | TEXT),
    "an answer as a message": lambda: RunnableParallel(answer=saying("yes"), title=saying("Tea") | TEXT),
    "an agent's output, then a grade": lambda: RunnableParallel(
        output=saying("yes") | TEXT, grade=saying("5") | TEXT
    ),
    "assigned one after another": lambda: RunnablePassthrough.assign(
        answer=saying("yes") | TEXT
    ).assign(follow_up=saying("And why?") | TEXT),
    "an answer that was cleaned": lambda: (
        saying("YES!!") | TEXT | (lambda words: {"answer": "yes", "raw": words})
    ),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("rest", BESIDE)
def test_an_answer_beside_other_things_is_the_one_that_is_saved(memory: Memory, rest: str, way: str) -> None:
    bot = with_memory(memory.load_mem | BESIDE[rest](), memory)
    WAYS[way](bot, {"question": "Tea?"}, ONE)
    assert said(memory) == [("human", "Tea?"), ("ai", "yes")]


@pytest.mark.parametrize(
    ("words", "kept"),
    [('{"answer": "yes", "sure": 3}', '{"answer": "yes", "sure": 3}'), ('{"n": 3}', '{"n": 3}')],
    ids=["with an answer in it", "without"],
)
def test_parsed_json_is_still_saved_as_the_model_said_it(memory: Memory, words: str, kept: str) -> None:
    with_memory(memory.load_mem | saying(words) | JsonOutputParser(), memory).invoke({"question": "Tea?"}, ONE)
    assert said(memory) == [("human", "Tea?"), ("ai", kept)]


def test_a_question_that_is_handed_on_under_the_name_of_an_answer_is_no_answer(memory: Memory) -> None:
    chain = RunnableParallel(response=lambda x: x["question"], made=saying("yes") | TEXT)
    with_memory(memory.load_mem | chain, memory).invoke({"question": "Tea?"}, ONE)
    assert said(memory) == [("human", "Tea?"), ("ai", "yes")]


# ---------------------------------------------------------------- conversations brought along


class Kept(BaseChatMessageHistory):
    """As those of langchain-community, which are no pydantic models."""

    def __init__(self, messages: list[BaseMessage]) -> None:
        self.held = messages

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        return list(self.held)

    def clear(self) -> None:
        self.held = []


LC = [HumanMessage("My cat is Tom"), AIMessage("Hello Tom")]
OPENAI = [{"role": "user", "content": "My cat is Tom"}, {"role": "assistant", "content": "Hello Tom"}]


def node(key: str, parent: str | None, role: str, *parts: Any, kind: str = "text", **more: Any) -> dict[str, Any]:
    content = {"content_type": kind, "parts": list(parts)}
    message = {"id": key, "author": {"role": role}, "content": content, "recipient": "all", **more}
    return {"id": key, "parent": parent, "message": message}


TREE: dict[str, Any] = {
    "title": "Cats",
    "conversation_id": "abc",
    "current_node": "answer",
    "mapping": {
        n["id"]: n
        for n in (
            {"id": "root", "parent": None, "message": None},
            node("empty", "root", "system", ""),
            node("about", "empty", "user", "Be brief", metadata={"is_visually_hidden_from_conversation": True}),
            node("asked", "about", "user", {"asset_pointer": "file-1"}, "My cat is Tom", kind="multimodal_text"),
            node("draft", "asked", "assistant", "A first try"),
            node("search", "asked", "assistant", "cats", kind="code", recipient="browser"),
            node("found", "search", "tool", "a page"),
            node("answer", "found", "assistant", "Hello Tom"),
        )
    },
}
CLAUDE = {
    "uuid": "c1",
    "name": "Cats",
    "chat_messages": [
        {"uuid": "a", "sender": "human", "text": "My cat is Tom", "content": []},
        {"uuid": "b", "sender": "assistant", "text": "Hello Tom", "content": []},
    ],
}
FORMS: dict[str, Callable[[], Any]] = {
    "a chat message history": lambda: Kept(list(LC)),
    "a prompt's value": lambda: ChatPromptTemplate.from_messages(LC).invoke({}),
    "a string of JSON": lambda: json.dumps(OPENAI),
    "bytes of JSON": lambda: json.dumps({"messages": OPENAI}).encode(),
    "what ChatGPT exports": lambda: TREE,
    "what ChatGPT exports, its leaf unknown": lambda: {**TREE, "current_node": None},
    "what Claude exports": lambda: CLAUDE,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_conversation_comes_in_as_people_have_it(memory: Memory, form: str) -> None:
    memory.session("s1", "u1").add(FORMS[form]())
    assert said(memory) == [("human", "My cat is Tom"), ("ai", "Hello Tom")]


@pytest.mark.parametrize("text", ["hi", "", "[", "3", "null"])
def test_other_text_is_still_refused(memory: Memory, text: str) -> None:
    with pytest.raises(MemoryInputError, match="a history is a list of messages"):
        memory.session("s1", "u1").add(text)
    assert said(memory) == []


@pytest.mark.parametrize("export", [TREE, CLAUDE], ids=["ChatGPT", "Claude"])
def test_a_whole_export_is_imported_from_its_file(memory: Memory, tmp_path: Path, export: Any) -> None:
    file = tmp_path / "conversations.json"
    file.write_text(json.dumps([export, export]), encoding="utf-8")
    import_conversations(memory._stored("").store, file, user_id="u1")
    for info in memory.sessions("u1"):
        words = [str(m.text) for m in memory.session(info.key.session_id, "u1").messages()]
        assert words[:2] == ["My cat is Tom", "Hello Tom"]
    assert memory.sessions("u1")


# ---------------------------------------------------------------- a greeting is nothing to be found

GREETINGS: dict[str, list[tuple[str, str]]] = {
    "a greeting": [("user", "hi"), ("assistant", "hello")],
    "thanks": [("user", "thanks!"), ("assistant", "ok")],
    "in Chinese": [("user", "好的"), ("assistant", "嗯")],
    "a welcome alone": [("assistant", "welcome")],
    "among others": [("user", "I like green tea"), ("assistant", "So do I"), ("user", "ok"), ("assistant", "ok")],
}


@pytest.mark.parametrize("recall", [("facts", "turns"), ("turns",), ("facts",)], ids="-".join)
@pytest.mark.parametrize("talk", GREETINGS)
def test_a_memory_is_in_order_where_people_said_hello(tmp_path: Path, talk: str, recall: tuple[str, ...]) -> None:
    with Memory.open(tmp_path, recall=recall) as memory:
        memory.session("s1", "u1").add(GREETINGS[talk])
        memory.remember("I am allergic to nuts", user_id="u1")
        memory.flush()
        assert (memory.health().drift, memory.health().notes) == (0, [])
        memory.reindex()
        assert memory.health().drift == 0


def test_an_entry_that_is_lost_is_still_told_of(tmp_path: Path) -> None:
    with Memory.open(tmp_path) as memory:
        memory.session("s1", "u1").add([*GREETINGS["a greeting"], *GREETINGS["among others"]])
        memory.flush()
        memory._longterm._vectors.use(lambda index: index.remove(["t2"]))  # type: ignore[union-attr]
        assert memory.health().drift == -1
        memory.reindex()
        assert memory.health().drift == 0


# ---------------------------------------------------------------- a graph whose state has no messages


@pytest.mark.parametrize("state", [{"question": "Tea?"}, {"messages": []}], ids=repr)
def test_a_node_says_what_it_reads_where_that_is_missing(memory: Memory, state: Any) -> None:
    for node in (load_mem(memory), save_mem(memory)):
        graph = StateGraph(MemoryState)
        graph.add_node("node", node)
        graph.add_edge(START, "node")
        with pytest.raises(MemoryInputError, match="messages"):
            graph.compile().invoke(state, ONE)
