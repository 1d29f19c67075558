"""Sessions in a store: the same after a restart, apart from each other, whole in every way of calling."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableLambda
from pydantic import BaseModel

from lc_memory import Memory, with_memory
from lc_memory.errors import MemoryInputError, SessionBusyError
from lc_memory.prompt.explain import Explanation
from tests.helpers import programs
from tests.helpers.models import Scripted
from tests.helpers.ways import ASYNC, CLOSED, WAYS, cancelled

PROMPT = ChatPromptTemplate.from_messages([("placeholder", "{history}"), ("human", "{question}")])
Open = Callable[..., Memory]


@pytest.fixture(params=["sqlite", "postgres"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return str(tmp_path / "store")
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def open_memory(where: str) -> Iterator[Open]:
    """Opens memories on one store, and closes them at the end."""
    opened: list[Memory] = []

    def open_one(**settings: Any) -> Memory:
        opened.append(Memory.open(where, **{"recall": (), **settings}))
        return opened[-1]

    yield open_one
    for memory in opened:
        memory.close()


def bot_of(memory: Memory, *answers: Any) -> Runnable[Any, Any]:
    model = Scripted(answers=list(answers) or ["好 的"])
    return with_memory(memory.load_mem | PROMPT | model | StrOutputParser(), memory)


def config(session: str | None = None, user: str | None = None) -> Any:
    given = {"session_id": session, "user_id": user}
    return {"configurable": {k: v for k, v in given.items() if v is not None}}


def turn(said: str, answer: str = "好的") -> list[dict[str, Any]]:
    return [{"role": "user", "content": said}, {"role": "assistant", "content": answer}]


def seen(
    memory: Memory, session: str | None = None, user: str | None = None, question: str = "？"
) -> list[str]:
    return [str(m.content) for m in memory.history(question, config(session, user))]


class Counted:
    """Summaries that say how many there were."""

    def __init__(self) -> None:
        self.made = 0

    def summarize(self, text: str) -> str:
        self.made += 1
        return f"第{self.made}份摘要"


# Reopened

PROGRAM = """
import json, sys
from lc_memory import Memory

memory = Memory.open(sys.argv[1], window=3, recall=())
config = {"configurable": {"session_id": "s1", "user_id": "u1"}}
history = memory.history("我的预算是多少？", config)
explained = memory.explain("我的预算是多少？", config)
print(json.dumps({
    "history": [m.model_dump(mode="json") for m in history],
    "summary": memory.session("s1", "u1").summary,
    "parts": [vars(p) for p in explained.parts],
    "tokens": explained.tokens,
    "table": str(explained).splitlines()[:-1],
}))
"""


def test_a_new_process_has_the_same_window_summary_and_explanation(open_memory: Open, where: str) -> None:
    memory = open_memory(window=3, summarizer=Counted())
    memory.core("u1").set("预算", "40万")
    bot = bot_of(memory, *(f"回 答{n}" for n in range(11)))
    for n in range(11):
        bot.invoke({"question": f"问题{n}"}, config("s1", "u1"))
        memory.flush()
    asked = "我的预算是多少？"
    history = memory.history(asked, config("s1", "u1"))
    explained = memory.explain(asked, config("s1", "u1"))
    memory.close()
    done = programs.run("-c", PROGRAM, where)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["history"] == [m.model_dump(mode="json") for m in history]
    assert found["summary"] == "第2份摘要"
    assert found["parts"] == [vars(p) for p in explained.parts]
    assert found["tokens"] == explained.tokens
    assert found["table"] == str(explained).splitlines()[:-1]
    assert {p.kind for p in explained.parts} >= {"core", "summary", "window", "question"}


def test_a_reopened_session_goes_on_where_it_was(open_memory: Open) -> None:
    first = open_memory()
    bot_of(first, "一").invoke({"question": "a"}, config("s"))
    first.close()
    second = open_memory()
    bot_of(second, "二").invoke({"question": "b"}, config("s"))
    assert seen(second, "s") == ["a", "一", "b", "二"]
    # and a closed one that is used again opens its store again
    bot_of(first, "三").invoke({"question": "c"}, config("s"))
    assert seen(second, "s") == ["a", "一", "b", "二", "c", "三"]


# Several workers on one store


def test_two_memories_see_each_others_turns_summaries_and_facts(open_memory: Open) -> None:
    one, two = open_memory(window=2, summarizer=Counted()), open_memory(window=2, summarizer=Counted())
    said: list[str] = []
    for n in range(4):
        memory = (one, two)[n % 2]
        bot_of(memory, f"回答{n}").invoke({"question": f"问题{n}"}, config("s", "u"))
        said += [f"问题{n}", f"回答{n}"]
        assert seen(one, "s", "u") == seen(two, "s", "u") == said
    bot_of(two, "x").invoke({"question": "第五"}, config("s", "u"))
    two.flush()
    assert "第1份摘要" in seen(one, "s", "u")[0]
    assert seen(one, "s", "u") == seen(two, "s", "u")
    two.core("u").set("city", "杭州")
    assert "city: 杭州" in seen(one, "s", "u")[0]
    two.session("s", "u").clear()
    assert seen(one, "s", "u")[1:] == []
    bot_of(one, "y").invoke({"question": "新"}, config("s", "u"))
    assert seen(two, "s", "u")[1:] == ["新", "y"]


WRITER = """
import sys
from lc_memory import Memory

memory = Memory.open(sys.argv[1], window=50, max_context_tokens=None, recall=())
for n in range(20):
    memory.session("s", "u").add([{"role": "user", "content": f"{sys.argv[2]}.{n}"},
                                  {"role": "assistant", "content": f"{sys.argv[2]}.{n}"}])
memory.close()
"""


def test_processes_that_share_a_session_lose_and_tear_no_turn(open_memory: Open, where: str) -> None:
    memory = open_memory(window=50, max_context_tokens=None)
    writers = [programs.start("-c", WRITER, where, name, stderr=subprocess.PIPE) for name in "abc"]
    bot = bot_of(memory, "m")
    for _ in range(20):
        bot.invoke({"question": "m"}, config("s", "u"))
    for writer in writers:
        _, errors = writer.communicate(timeout=120)
        assert writer.returncode == 0, errors
    said = [str(m.content) for m in memory.session("s", "u").messages()]
    assert said == seen(memory, "s", "u")
    assert len(said) == 160
    assert said[::2] == said[1::2]  # question and answer stand together
    for name in "abc":
        assert [s for s in said[::2] if s.startswith(name)] == [f"{name}.{n}" for n in range(20)]


# Apart


def test_users_and_sessions_are_apart_and_so_is_who_names_nobody(open_memory: Open) -> None:
    memory = open_memory()
    who = [(s, u) for s in (None, "s1", "s2", "default") for u in (None, "u1", "u2")]
    for session, user in who:
        bot_of(memory, f"to {session}/{user}").invoke(
            {"question": f"{session}/{user}"}, config(session, user)
        )
    for session, user in who:
        names = {session or "default"}
        same = [(s, u) for s, u in who if (s or "default") in names and u == user]
        expected = [text for s, u in same for text in (f"{s}/{u}", f"to {s}/{u}")]
        assert seen(memory, session, user) == expected
    assert len(memory.sessions()) == 9
    assert {i.key.session_id for i in memory.sessions("u1")} == {"default", "s1", "s2"}
    assert all(i.key.user_id == "u1" for i in memory.sessions("u1"))


def test_core_facts_are_the_users_in_all_sessions_and_the_sessions_where_nobody_is_named(
    open_memory: Open,
) -> None:
    memory = open_memory()
    memory.core("u1").set("过敏", "花生")
    memory.core(session_id="s1").set("city", "杭州")
    assert "过敏: 花生" in "".join(seen(memory, "s1", "u1"))
    assert "过敏: 花生" in "".join(seen(memory, "s2", "u1"))
    assert "city: 杭州" in "".join(seen(memory, "s1"))
    for session, user in [("s1", "u2"), ("s2", None), (None, None)]:
        assert seen(memory, session, user) == []


IDS = {
    "chinese": "会话：小明的",
    "mail": "ming.li+test@例子.cn",
    "long": "长" * 10_000,
    "nul": "a\x00b",
    "surrogate": "half \ud83d emoji",
    "quotes": "'; DROP TABLE lcm_turns; --\"%s:name",
    "spaces": "  ",
    "emoji": "🙂",
}


@pytest.mark.parametrize("name", IDS)
def test_any_string_names_a_session_and_a_user(open_memory: Open, name: str) -> None:
    memory, text = open_memory(max_context_tokens=None), IDS[name]
    memory.core(text).set(f"kind {text}", f"fact {text}")
    bot_of(memory, "好").invoke({"question": text}, config(text, text))
    bot_of(memory, "other").invoke({"question": "other"}, config(text + "x", text))
    said = seen(memory, text, text)
    assert said[-2:] == [text, "好"]
    (core,) = memory.core(text).all()
    assert core.text == f"fact {text}"
    assert {i.key.session_id for i in memory.sessions(text)} == {text, text + "x"}
    assert memory.session(text, text).messages()[0].content == text
    forgotten = memory.forget(user_id=text)
    assert len(forgotten.sessions) == 2
    assert memory.sessions(text) == []
    assert seen(memory, text, text) == []


@pytest.mark.parametrize("name", ["chinese", "surrogate", "nul"])
def test_two_ids_that_look_alike_are_two(open_memory: Open, name: str) -> None:
    memory, text = open_memory(), IDS[name]
    memory.session(text, "u").add(turn("one"))
    others = {text + "\x00", text.replace("\x00", "\x1a0000"), text + " ", text.upper() + "_"} - {text}
    for other in others:
        assert memory.session(other, "u").messages() == []


# To look at, and to bring conversations in


def test_a_conversation_is_imported_turn_by_turn_with_its_tools_and_read_back(open_memory: Open) -> None:
    memory = open_memory()
    session = memory.session("s", "u")
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{ }"}}
    session.add(
        [
            {"role": "user", "content": "天气？"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "晴"},
            {"role": "assistant", "content": "晴天"},
        ]
    )
    session.add([HumanMessage("谢谢"), AIMessage("不客气")])
    session.add({"role": "user", "content": "一个人说话"})
    session.add(HumanMessage("又一句"))
    assert [type(m) for m in session.messages()] == [
        HumanMessage, AIMessage, ToolMessage, AIMessage, HumanMessage, AIMessage, HumanMessage, HumanMessage,
    ]  # fmt: skip
    assert session.context("x") == session.messages()
    assert [m.content for m in session.messages(start=2, limit=2)] == ["谢谢", "不客气", "一个人说话"]
    assert session.messages(start=9) == []
    assert repr(session) == "Session('s', user_id='u')"


def test_roles_are_read_from_either_key_and_a_missing_one_is_the_user(open_memory: Open) -> None:
    session = open_memory().session()
    session.add([{"content": "a"}, {"role": None, "content": "b"}, {"type": "ai", "content": "c"}])
    assert [(m.type, m.content) for m in session.messages()] == [("human", "a"), ("human", "b"), ("ai", "c")]
    assert session.context() == session.messages()


@pytest.mark.parametrize(
    "given",
    ["text", b"x", 42, None, [], [42], [None], [{"role": 3, "content": "x"}], [{"role": "user", "content": {1}}],
     [{"role": "user", "content": "x"}, "y"], ("user", "x"), {"role": "user", "content": "x"}.items()],
    ids=repr,
)  # fmt: skip
def test_what_is_no_turn_is_refused_and_nothing_of_it_is_stored(open_memory: Open, given: Any) -> None:
    memory = open_memory()
    with pytest.raises(MemoryInputError):
        memory.session().add(given)
    assert memory.session().messages() == []
    assert memory.sessions() == []


def test_clearing_takes_the_turns_and_the_summary_and_leaves_the_facts(open_memory: Open) -> None:
    memory = open_memory(window=1, summarizer=Counted())
    memory.core("u").set("city", "杭州")
    for n in range(4):
        memory.session("s", "u").add(turn(f"问题{n}"))
        memory.session("other", "u").add(turn(f"别的{n}"))
    memory.flush()
    assert memory.session("s", "u").summary
    cleared = memory.session("s", "u").clear()
    assert [k.session_id for k in cleared.sessions] == ["s"]
    assert memory.session("s", "u").messages() == []
    assert memory.session("s", "u").summary is None
    assert len(seen(memory, "s", "u")) == 1
    assert "杭州" in seen(memory, "s", "u")[0]
    assert len(memory.session("other", "u").messages()) == 8
    memory.session("s", "u").add(turn("新的"))
    assert seen(memory, "s", "u")[1:] == ["新的", "好的"]


def test_looking_does_not_count_as_a_prompt(open_memory: Open) -> None:
    memory = open_memory()
    memory.session().add(turn("a"))
    bot_of(memory).invoke({"question": "b"})
    repeats = memory.explain("c").repeats
    memory.session().context("something else")
    memory.explain("something else")
    assert memory.explain("c").repeats == repeats > 0


def test_system_messages_of_an_import_stay_in_front_when_their_turn_has_left_the_window(
    open_memory: Open,
) -> None:
    memory = open_memory(window=2, summarizer=Counted())
    memory.session().add([{"role": "system", "content": "Be brief."}, *turn("first")])
    for n in range(9):
        repeated = [{"role": "system", "content": "Be brief."}] if n % 2 else []
        memory.session().add([*repeated, *turn(f"问题{n}")])
    memory.flush()
    said = memory.history("?")
    assert isinstance(said[0], SystemMessage)
    assert said[0].content == "Be brief."
    assert "摘要" in str(said[1].content)
    assert [m.type for m in said[2:]] == ["human", "ai"] * ((len(said) - 2) // 2)
    assert memory.explain("?").parts[0].kind == "system"
    memory.session().clear()
    assert memory.history("?") == []


# Forgotten


def _files_with(folder: Path, mark: str) -> list[str]:
    return [f.name for f in folder.rglob("*") if f.is_file() and mark.encode() in f.read_bytes()]


def test_no_byte_of_who_is_forgotten_stays_in_the_files(tmp_path: Path) -> None:
    memory = Memory.open(tmp_path, window=2, summarizer=Counted())
    for user in ("mark-one", "mark-two"):
        memory.core(user).set("city", f"{user} lives here")
        for n in range(30):
            memory.session(f"s{n % 3}", user).add(turn(f"{user} said {n} " * 20, f"to {user}"))
        memory.session("s0", user).add(turn(f"记住: {user} likes tea"))
    memory.flush()
    assert _files_with(tmp_path, "mark-one")
    forgotten = memory.forget(user_id="mark-one")
    assert forgotten.wiped
    assert len(forgotten.sessions) == 3
    assert len(forgotten.turns) == 31
    assert len(forgotten.facts) == 2
    assert _files_with(tmp_path, "mark-one") == []
    assert _files_with(tmp_path, "mark-two")
    assert memory.sessions("mark-one") == []
    assert seen(memory, "s0", "mark-one") == []
    assert len(memory.session("s0", "mark-two").messages()) == 22
    memory.forget(session_id="s0")
    assert {i.key.session_id for i in memory.sessions()} == {"s1", "s2"}
    with pytest.raises(MemoryInputError):
        memory.forget()
    memory.close()
    assert _files_with(tmp_path, "mark-one") == []


def test_a_turn_under_way_while_its_user_is_forgotten_brings_back_nothing_of_before(
    open_memory: Open,
) -> None:
    memory = open_memory()
    memory.session("s", "u").add(turn("old"))

    def forget(prompt: Any) -> Any:
        memory.forget(user_id="u")
        return prompt

    bot = with_memory(
        memory.load_mem | PROMPT | RunnableLambda(forget) | Scripted(answers=["new answer"]), memory
    )
    bot.invoke({"question": "new"}, config("s", "u"))
    assert seen(memory, "s", "u") == ["new", "new answer"]
    assert [i.turns for i in memory.sessions("u")] == [1]


# What stands in every prompt


def test_core_facts_stand_in_every_prompt_word_for_word_whatever_the_window_does(open_memory: Open) -> None:
    memory = open_memory(window=1, summarizer=Counted(), max_context_tokens=400)
    core = memory.core("u")
    core.set("预算", "40万")
    core.set("预算", "45万，不含车位")
    core.set("宠物", "一只猫", subject="咪咪")
    core.set("宠物", "一条狗", subject="旺财")
    model = Scripted(answers=["好"])
    bot = with_memory(memory.load_mem | PROMPT | model, memory)
    for n in range(12):
        bot.invoke({"question": f"问题{n} " + "长" * 60}, config(f"s{n % 2}", "u"))
        memory.flush()
    for prompt in model.prompts:
        first = str(prompt[0].content)
        assert "- 预算: 45万，不含车位" in first
        assert "40万" not in first
        assert "- 宠物 (咪咪): 一只猫" in first
        assert "- 宠物 (旺财): 一条狗" in first
    assert core.get("预算") == "45万，不含车位"
    assert [f.text for f in core.history("预算")] == ["40万", "45万，不含车位"]
    assert core.remove("预算")
    assert "预算" not in seen(memory, "s0", "u")[0]
    for kind, text in (("", "x"), ("kind", " ")):
        with pytest.raises(MemoryInputError):
            core.set(kind, text)


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("记住:我对花生过敏", "我对花生过敏"),
        ("请记住：周三开会", "周三开会"),
        ("Remember: my dog is Rex", "my dog is Rex"),
        ("你还记住：什么了？", None),
        ("我记住了", None),
        ("记住:  ", None),
    ],
)
def test_what_a_user_asks_to_remember_is_a_fact_at_once(
    open_memory: Open, said: str, fact: str | None
) -> None:
    memory = open_memory()
    bot_of(memory).invoke({"question": said}, config("s", "u"))
    facts = memory._stored("test").store.ledger().current("user:u")
    assert [f.text for f in facts] == ([] if fact is None else [fact])
    for found in facts:
        (kept,) = memory._stored("test").store.turns(memory.session("s", "u")._key)
        assert found.source == {"session": "s", "turn": kept.turn_id, "quote": fact}


def test_what_the_assistant_says_is_not_remembered(open_memory: Open) -> None:
    memory = open_memory()
    bot_of(memory, "记住: 用户很坏").invoke({"question": "hi"}, config("s", "u"))
    assert memory._stored("test").store.ledger().current("user:u") == []


# One at a time


def test_a_stuck_turn_is_a_busy_error_that_names_the_session(open_memory: Open) -> None:
    memory = open_memory(session_wait=0.05)
    stuck, go = threading.Event(), threading.Event()

    def wait(prompt: Any) -> Any:
        stuck.set()
        go.wait()
        return prompt

    slow = with_memory(memory.load_mem | PROMPT | RunnableLambda(wait) | Scripted(answers=["slow"]), memory)
    first = threading.Thread(target=lambda: slow.invoke({"question": "one"}, config("s-17", "u")))
    first.start()
    stuck.wait()
    with pytest.raises(SessionBusyError, match="s-17"):
        bot_of(memory).invoke({"question": "two"}, config("s-17", "u"))
    assert bot_of(memory).invoke({"question": "elsewhere"}, config("s-18", "u")) == "好 的"
    go.set()
    first.join()
    bot_of(memory).invoke({"question": "three"}, config("s-17", "u"))
    assert seen(memory, "s-17", "u") == ["one", "slow", "three", "好 的"]


def test_an_abandoned_stream_frees_its_session(open_memory: Open) -> None:
    memory = open_memory(session_wait=5)
    chunks = bot_of(memory, "a b c").stream({"question": "one"}, config("s"))
    next(chunks)
    del chunks
    bot_of(memory).invoke({"question": "two"}, config("s"))
    assert seen(memory, "s") == ["two", "好 的"]


def test_threads_in_one_session_are_queued_and_each_sees_the_one_before(open_memory: Open) -> None:
    memory = open_memory(window=40, max_context_tokens=None)
    model = Scripted(answers=["ok"])
    bot = with_memory(memory.load_mem | PROMPT | model, memory)
    threads = [
        threading.Thread(target=lambda n=n: bot.invoke({"question": f"q{n}"}, config("s"))) for n in range(16)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(len(p) for p in model.prompts) == [1 + 2 * n for n in range(16)]
    assert len(memory.session("s").messages()) == 32


def test_an_event_loop_does_not_wait_for_the_store_to_open(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import asyncio

    import lc_memory.memory as module

    opened_in: list[int] = []
    real = module.open_store

    def opening(*args: Any, **kwargs: Any) -> Any:
        opened_in.append(threading.get_ident())
        return real(*args, **kwargs)

    monkeypatch.setattr(module, "open_store", opening)
    memory = Memory.open(where, recall=())
    asyncio.run(bot_of(memory).ainvoke({"question": "x"}))
    assert len(opened_in) == 1
    assert opened_in[0] != threading.get_ident()
    memory.close()


# How much is held


def test_only_so_many_sessions_are_held_and_the_others_come_back_from_the_store(open_memory: Open) -> None:
    memory = open_memory(cached_sessions=3)
    bot = bot_of(memory)
    for n in [*range(10), *range(10)]:
        bot.invoke({"question": f"q{n}"}, config(f"s{n}"))
        assert len(memory._stored("test")._sessions) <= 3
    for n in range(10):
        assert seen(memory, f"s{n}") == [f"q{n}", "好 的"] * 2


def test_a_session_that_is_evicted_in_the_middle_of_its_turn_is_saved_whole(open_memory: Open) -> None:
    memory = open_memory(cached_sessions=1)

    def visit_others(prompt: Any) -> Any:
        for n in range(3):
            bot_of(memory).invoke({"question": "x"}, config(f"other{n}"))
        return prompt

    bot = with_memory(
        memory.load_mem | PROMPT | RunnableLambda(visit_others) | Scripted(answers=["a"]), memory
    )
    for n in range(3):
        bot.invoke({"question": f"q{n}"}, config("s"))
    assert seen(memory, "s") == ["q0", "a", "q1", "a", "q2", "a"]


# Explained


def test_the_explanation_adds_up_and_prints_as_a_table(open_memory: Open) -> None:
    memory = open_memory(window=2, summarizer=Counted())
    memory.core().set("city", "[bold]杭州[/bold]")
    for n in range(5):
        memory.session().add(turn(f"问题{n}"))
    memory.flush()
    bot_of(memory).invoke({"question": "a"})
    explained = memory.explain("b")
    assert isinstance(explained, Explanation)
    assert explained.budget == 8000
    assert explained.tokens == sum(p.tokens for p in explained.parts if p.included)
    assert 0.5 < explained.repeats < 1
    assert not explained.degraded
    table = str(explained)
    for word in ("core", "summary", "window", "question", "[bold]杭州[/bold]", "of 8000 tokens"):
        assert word in table


# What a program keeps beside the words


class Parsed(BaseModel):
    city: str


def test_a_parsed_object_or_an_artifact_does_not_lose_the_turn(open_memory: Open) -> None:
    answers: list[Any] = [
        AIMessage("杭州", additional_kwargs={"parsed": Parsed(city="杭州"), "raw": object()}),
        AIMessage("x", response_metadata={"logprob": float("-inf"), "when": {1: (2, {3})}}),
    ]
    memory = open_memory()
    for answer in answers:
        bot = with_memory(memory.load_mem | PROMPT | Scripted(answers=[answer]), memory)
        assert bot.invoke({"question": "q"}).content == answer.content
    kept = memory.session().messages()
    assert [m.content for m in kept] == ["q", "杭州", "q", "x"]
    assert kept[1].additional_kwargs["parsed"] == {"city": "杭州"}


# The recorder over a store: as tests/test_recorder_matrix.py, in short

QUESTION = {"question": "我刚说的爱好是什么？"}
EARLIER = turn("我叫小明，喜欢打篮球", "记住了")
KEPT = ["我叫小明，喜欢打篮球", "记住了"]


def chain_of(memory: Memory, model: Scripted, ending: str) -> Runnable[Any, Any]:
    tail: Runnable[Any, Any] = model | StrOutputParser() if ending == "text" else model
    return with_memory(memory.load_mem | PROMPT | tail, memory)


ways = pytest.mark.parametrize("way", WAYS)
endings = pytest.mark.parametrize("ending", ["text", "message"])


@ways
@endings
def test_a_finished_turn_is_saved_once_and_whole(open_memory: Open, way: str, ending: str) -> None:
    memory = open_memory()
    memory.session("s").add(EARLIER)
    bot = chain_of(memory, Scripted(answers=["打 篮球"]), ending)
    for _ in range(2):
        WAYS[way](bot, QUESTION, config("s"))
    assert seen(memory, "s") == KEPT + [QUESTION["question"], "打 篮球"] * 2
    assert len(list(memory.session("s").messages(start=2))) == 4


@ways
def test_a_turn_whose_model_raises_is_not_saved_and_the_session_is_free(open_memory: Open, way: str) -> None:
    memory = open_memory(session_wait=5)
    memory.session("s").add(EARLIER)
    bot = chain_of(memory, Scripted(answers=[ValueError("429"), "打 篮球"]), "text")
    with pytest.raises(ValueError, match="429"):
        WAYS[way](bot, QUESTION, config("s"))
    assert seen(memory, "s") == KEPT
    WAYS[way](bot, QUESTION, config("s"))
    assert seen(memory, "s") == [*KEPT, QUESTION["question"], "打 篮球"]


@pytest.mark.parametrize("way", ASYNC)
def test_a_cancelled_turn_is_not_saved(open_memory: Open, way: str) -> None:
    memory, model = open_memory(session_wait=5), Scripted(answers=["打 篮球"], hang=True)
    memory.session("s").add(EARLIER)
    cancelled(way, chain_of(memory, model, "text"), QUESTION, config("s"), model.hanging)
    assert seen(memory, "s") == KEPT
    assert memory.turns._lines == {}


@pytest.mark.parametrize("way", CLOSED)
def test_a_stream_that_is_closed_early_saves_nothing(open_memory: Open, way: str) -> None:
    memory = open_memory(session_wait=5)
    memory.session("s").add(EARLIER)
    CLOSED[way](chain_of(memory, Scripted(answers=["打 篮球"]), "text"), QUESTION, config("s"))
    assert seen(memory, "s") == KEPT
    assert memory.turns._lines == {}
