"""What a demanding user tried, and what broke: odd managers, odd parameters, odd inputs."""

from __future__ import annotations

import warnings
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableLambda

from lc_memory import Memory, with_memory
from lc_memory.errors import MemoryInputError
from lc_memory.facts.privacy import PrivateDataWarning


class Manager:
    """The usual dict-based manager, of which each test breaks something."""

    def __init__(self) -> None:
        self.buffer: list[Any] = []

    def add(self, msg: dict[str, Any]) -> None:
        self.buffer.append(msg)

    def get_context(self, query: str | None = None) -> Any:
        return list(self.buffer)


def bot(memory: Memory) -> Any:
    return with_memory(memory.load_mem | RunnableLambda(lambda given: "answer"), memory)


@pytest.mark.parametrize("name", ["add", "get_context", "maybe_compress"])
def test_a_manager_whose_calls_are_async_is_refused_rather_than_losing_every_turn(name: str) -> None:
    async def call(self: Any, *args: Any, **kwargs: Any) -> None: ...

    odd = type("Odd", (Manager,), {name: call})
    with pytest.raises(MemoryInputError, match=rf"Odd\.{name}\(\) is async"):
        Memory(odd())


def test_a_manager_whose_add_is_no_method_is_refused_at_once() -> None:
    with pytest.raises(MemoryInputError, match="add is a int"):
        Memory(type("Odd", (Manager,), {"add": 5})())


def test_the_smallest_manager_whose_get_context_takes_no_query_is_asked_without_and_nobody_is_warned() -> (
    None
):
    class Smallest:
        def __init__(self) -> None:
            self.words: list[dict[str, str]] = []

        def add_user(self, text: str) -> None:
            self.words.append({"role": "user", "content": text})

        def add_ai(self, text: str) -> None:
            self.words.append({"role": "assistant", "content": text})

        def get_context(self) -> list[dict[str, str]]:
            return self.words

    memory = Memory(Smallest())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bot(memory).invoke({"question": "q"})
    assert [m.content for m in memory.history("next")] == ["q", "answer"]


def test_a_maybe_compress_without_parameters_is_called_though_the_manager_has_an_llm() -> None:
    class Own(Manager):
        compressed = 0

        class llm:
            @staticmethod
            def summarize(text: str) -> str:
                return text

        def maybe_compress(self) -> None:
            self.compressed += 1

    manager = Own()
    bot(Memory(manager)).invoke({"question": "q"})
    assert manager.compressed == 1


def test_a_maybe_compress_that_nobody_can_call_is_told_once() -> None:
    class Own(Manager):
        def maybe_compress(self, llm: Any) -> None:
            raise AssertionError

    chain = bot(Memory(Own()))
    with pytest.warns(RuntimeWarning, match=r"give the manager an \.llm"):
        chain.invoke({"question": "q"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chain.invoke({"question": "q"})


def test_one_manager_for_two_sessions_is_refused_because_each_would_read_the_other() -> None:
    manager = Manager()
    memory = Memory.per_session(lambda key: manager)
    memory.history("q", {"configurable": {"session_id": "s1"}})
    with pytest.raises(MemoryInputError, match="a new one for each session"):
        memory.history("q", {"configurable": {"session_id": "s2"}})


def test_per_session_wants_a_function_and_not_a_manager() -> None:
    with pytest.raises(MemoryInputError, match="a function that makes a manager"):
        Memory.per_session(Manager())  # type: ignore[arg-type]


def test_explain_reads_the_same_contexts_as_a_chain_does() -> None:
    mixed = [HumanMessage("one"), ("user", "two"), {"role": "user", "content": "three"}]
    memory = Memory(type("Odd", (Manager,), {"get_context": lambda self, query=None: mixed})())
    assert [p.text for p in memory.explain("q").parts] == ["one", "two", "three", "q"]
    for odd in (None, ("x",), "text"):
        memory = Memory(type("Odd", (Manager,), {"get_context": lambda self, query=None, odd=odd: odd})())
        with pytest.raises(MemoryInputError, match="not a list of dicts"):
            memory.explain("q")


# ---------------------------------------------------------------- odd parameters


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[
            (name, v)
            for name in ("window", "cached_sessions", "recall_k", "notes_every")
            for v in (0, "x", 1.5)
        ],
        ("max_context_tokens", "x"),
        ("max_context_tokens", True),
        ("summary_chars", 0),
        ("session_wait", None),
        ("session_wait", -1),
        ("recall", None),
        ("recall", 5),
        ("question_key", ""),
        ("history_key", 5),
    ],
)
def test_a_parameter_that_cannot_be_is_named_when_the_memory_is_opened(name: str, value: Any) -> None:
    with pytest.raises(MemoryInputError, match=rf"^{name}="):
        Memory.open(":memory:", **{name: value})


def test_the_history_may_not_take_the_place_of_the_question() -> None:
    with pytest.raises(MemoryInputError, match="would replace the question"):
        Memory.open(":memory:", question_key="history")
    with pytest.raises(MemoryInputError, match="would replace the question"):
        Memory(Manager(), history_key="question")


def test_a_tilde_is_the_home_folder_and_no_folder_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with Memory.open("~/memory", recall=()) as memory:
        bot(memory).invoke({"question": "q"})
    assert [p.name for p in tmp_path.iterdir()] == ["memory"]


@pytest.mark.parametrize("where", ["", None, 5, b"folder"])
def test_a_place_that_is_none_is_refused_before_anything_lies_in_the_working_directory(where: Any) -> None:
    with pytest.raises(MemoryInputError, match="expected a folder"):
        Memory.open(where)


# ---------------------------------------------------------------- odd calls


def test_a_flat_config_names_the_same_session_to_a_look_as_to_a_chain() -> None:
    flat = {"session_id": "s1", "user_id": "u1"}
    with Memory.open(":memory:", recall=()) as memory:
        bot(memory).invoke({"question": "q"}, flat)
        assert [m.content for m in memory.history("next", flat)] == ["q", "answer"]
        assert [m.content for m in memory.session("s1", "u1").messages()] == ["q", "answer"]
        with pytest.raises(MemoryInputError, match="expected a config"):
            memory.history("next", "s1")  # type: ignore[arg-type]


def test_an_empty_user_is_nobody_to_every_call_alike() -> None:
    nobody = {"configurable": {"user_id": "", "session_id": "s1"}}
    with Memory.open(":memory:") as memory:
        memory.remember("我对花生过敏", user_id="", session_id="s1")
        memory.core("", session_id="s1").set("城市", "杭州")
        bot(memory).invoke({"question": "q"}, nobody)
        assert len(memory.session("s1", "").messages()) == 2
        recalled = "\n".join(str(m.content) for m in memory.history("我对什么过敏？", nobody))
    assert "花生" in recalled
    assert "杭州" in recalled


def test_a_fact_that_is_no_text_is_refused() -> None:
    with (
        Memory.open(":memory:") as memory,
        pytest.raises(MemoryInputError, match=r"remember\(text\): expected text, got int"),
    ):
        memory.remember(5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "expires_at", ["tomorrow", float("nan"), True, datetime(2030, 1, 1, tzinfo=timezone.utc)]
)
def test_a_fact_that_expires_at_no_time_is_refused_and_does_not_poison_later_prompts(expires_at: Any) -> None:
    who = {"configurable": {"user_id": "u1"}}
    with Memory.open(":memory:") as memory:
        with pytest.raises(MemoryInputError, match="expected Unix seconds"):
            memory.remember("我明天考试", user_id="u1", expires_at=expires_at)
        memory.remember("我后天考试", user_id="u1", expires_at=4_000_000_000)
        assert "我后天考试" in str(memory.history("我什么时候考试？", who)[-1].content)


@pytest.mark.parametrize(
    ("name", "value"), [("k", 0), ("kinds", "预算"), ("sources", "facts"), ("sources", ("notes",))]
)
def test_a_retriever_that_can_find_nothing_is_refused_when_it_is_made(name: str, value: Any) -> None:
    with Memory.open(":memory:") as memory, pytest.raises(MemoryInputError, match=rf"^{name}="):
        memory.retriever(**{name: value})


class Odd(Embeddings):
    """Gives ``answer`` for a text with "odd" in it, or for every text; a good vector for others."""

    def __init__(self, answer: Any, *, always: bool = False) -> None:
        self.answer, self.always = answer, always

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        if self.always or "odd" in text:
            return self.answer  # type: ignore[no-any-return]
        return [1.0 + len(text) % 7, 1.0 + len(text) % 5, 1.0 + len(text) % 3]


def indexed(memory: Memory, *facts: str) -> None:
    for fact in facts:
        memory.remember(fact, user_id="u1")
    memory.flush()


ODD_VECTORS = [None, [], [float("nan")] * 3, [float("inf"), 1.0, 1.0], ["1", "2", "3"], 5]


@pytest.mark.parametrize("answer", ODD_VECTORS)
@pytest.mark.filterwarnings("ignore:legacy embedding function config:DeprecationWarning")
def test_an_embedding_that_never_gives_a_vector_leaves_recall_by_words_and_the_chain_answers(
    answer: Any, tmp_path: Path
) -> None:
    who = {"configurable": {"user_id": "u1"}}
    with Memory.open(tmp_path, embedding=Odd(answer, always=True)) as memory:
        with pytest.warns(RuntimeWarning, match="found by their words alone"):
            indexed(memory, "我对花生过敏", "我住在苏州")
        assert bot(memory).invoke({"question": "花生"}, who) == "answer"
        assert "我对花生过敏" in str(memory.history("花生", who)[-1].content)
        assert memory.health().degraded


@pytest.mark.filterwarnings("ignore:legacy embedding function config:DeprecationWarning")
def test_one_odd_vector_costs_its_own_text_the_index_and_not_everybody(tmp_path: Path) -> None:
    with Memory.open(tmp_path, embedding=Odd([float("nan")] * 3)) as memory:
        indexed(memory, "I live in Suzhou")
        with pytest.warns(RuntimeWarning, match="cannot be indexed and is found by its words alone"):
            indexed(memory, "an odd one")
        assert memory.health().entries == 1
        assert not memory.health().degraded
    assert not list(tmp_path.glob("*.broken-*"))


# ---------------------------------------------------------------- private data by side doors

PHONE = "我的手机号是13812345678"
WHO = {"configurable": {"user_id": "u1"}}


def prompted(memory: Memory, question: str) -> str:
    memory.flush()
    return "\n".join(str(m.content) for m in memory.history(question, WHO))


def test_a_phone_number_that_an_agent_puts_into_the_store_is_given_back_by_key_and_comes_into_no_prompt() -> (
    None
):
    pytest.importorskip("langgraph")
    from lc_memory.integrations.store import FactStore, namespace_of

    place = namespace_of("u1")
    with Memory.open(":memory:") as memory:
        store = FactStore(memory)
        with pytest.warns(PrivateDataWarning, match="a phone number and is kept as private") as told:
            store.put(place, "p", {"text": PHONE})
        assert "138" not in str(told[0].message)
        found = store.get(place, "p")
        assert found is not None
        assert found.value == {"text": PHONE}
        assert store.search(place, query="手机号") == []
        assert "13812345678" not in prompted(memory, "我的手机号是多少？")
    with Memory.open(":memory:", privacy="off") as memory:
        FactStore(memory).put(place, "p", {"text": PHONE})
        assert "13812345678" in prompted(memory, "我的手机号是多少？")


def test_an_explanation_of_half_an_emoji_can_be_printed() -> None:
    with Memory.open(":memory:", recall=()) as memory:
        bot(memory).invoke({"question": "half \ud83d"}, WHO)
        assert "half ?" in str(memory.explain("q", WHO)).encode("utf-8").decode("utf-8")
