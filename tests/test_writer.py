"""When notes are made: behind the conversation, each turn once, and no failure reaches a turn."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tracers.context import collect_runs

from lc_memory.errors import MemoryInputError, StoreError
from lc_memory.facts.extract.writer import NoteWriter
from lc_memory.facts.kinds import NoteKind
from lc_memory.store import Fact, SessionKey, Store
from lc_memory.store.background import Background
from lc_memory.store.ledger import Ledger
from tests.helpers.homes import Home

KEY = SessionKey("s1", "u1")
PHONE = "13926548710"


class Extractor:
    """A model that proposes each line that holds ``；`` as a note: kind；what was said."""

    def __init__(self, fails: int = 0) -> None:
        self.asked: list[list[str]] = []
        self.fails = fails
        self.hold: threading.Event | None = None
        self.holding = threading.Event()

    def __call__(self, messages: Any) -> AIMessage:
        lines = [line[2:] for line in str(messages[1].text).split("\n") if line.startswith("- ")]
        self.asked.append(lines)
        if self.hold is not None:
            self.holding.set()
            self.hold.wait()
        if self.fails:
            self.fails -= 1
            raise ConnectionError("the service is away")
        pairs = [line.split("；", 1) for line in lines if "；" in line]
        notes = [{"kind": k, "subject": "", "content": v, "quote": v} for k, v in pairs]
        return AIMessage(json.dumps({"notes": notes}))


@pytest.fixture
def store(home: Home) -> Store:
    return home.open()


def writer(store: Store, model: Callable[[Any], AIMessage], **options: Any) -> tuple[NoteWriter, Background]:
    background = Background()
    return NoteWriter(lambda: store, background, RunnableLambda(model), **options), background


def say(store: Store, notes: NoteWriter | None, *texts: str, key: SessionKey = KEY, when: float | None = None) -> None:
    for text in texts:
        turn = [{"role": "user", "content": text}, {"role": "assistant", "content": "preference；我说的"}]
        store.append(key, turn, created_at=when)
        if notes is not None:
            notes.saved(key)


def known(store: Store, owner: str = KEY.owner) -> list[str]:
    return [fact.text for fact in store.ledger().current(owner)]


def history(store: Store, kind: str) -> list[Fact]:
    return store.ledger().history(KEY.owner, kind)


def test_turns_are_read_when_there_are_enough_of_them(store: Store) -> None:
    model = Extractor()
    notes, background = writer(store, model, every=3)
    say(store, notes, "一", "name；我叫小岚")
    background.wait()
    assert model.asked == []
    say(store, notes, "三")
    background.wait()
    assert model.asked == [["一", "name；我叫小岚", "三"]]
    assert known(store) == ["我叫小岚"]
    say(store, notes, "四")
    background.wait()
    assert len(model.asked) == 1, "a turn is read once"


def test_what_is_left_is_read_at_the_end(store: Store) -> None:
    model = Extractor()
    notes, background = writer(store, model, every=10)
    say(store, notes, "name；我叫小岚")
    say(store, notes, "home；我住在成都", key=SessionKey("s2", "u1"))
    background.wait()
    notes.finish()
    assert model.asked == [["name；我叫小岚"], ["home；我住在成都"]]
    assert known(store) == ["我叫小岚", "我住在成都"]
    notes.finish()
    assert len(model.asked) == 2


def test_a_turn_is_read_once_across_restarts(store: Store) -> None:
    for i in range(5):
        model = Extractor()
        notes, background = writer(store, model, every=2)
        say(store, notes, f"preference；我喜欢第{i}种茶")
        background.wait()
        notes.finish()
        assert model.asked == [[f"preference；我喜欢第{i}种茶"]]
    assert [f.count for f in history(store, "preference")] == [1] * 5


def test_notes_and_the_mark_that_their_turns_were_read_are_one_commit(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a crash between the two, whichever comes first: nothing is there, and nothing is lost."""
    notes, background = writer(store, Extractor(), every=2)
    add = Ledger.add
    calls: list[str] = []

    def failing(ledger: Ledger, owner: str, text: str, **more: Any) -> Fact:
        calls.append(text)
        if len(calls) == 2:
            raise StoreError("the database went away")
        return add(ledger, owner, text, **more)

    monkeypatch.setattr(Ledger, "add", failing)
    say(store, notes, "name；我叫小岚", "home；我住在成都")
    background.wait()
    assert calls == ["我叫小岚", "我住在成都"]
    assert known(store) == []
    assert len(store.backlog().pending("notes")) == 2
    notes.finish()
    assert known(store) == ["我叫小岚", "我住在成都"]
    assert store.backlog().pending("notes") == []


def test_a_fact_says_where_it_comes_from(store: Store) -> None:
    notes, _ = writer(store, Extractor(), every=9)
    say(store, notes, "你好呀", "name；大家好，我叫小岚", when=1_700_000_000.0)
    notes.finish()
    (fact,) = history(store, "name")
    turn = list(store.turns(KEY))[1]
    assert fact.source == {"session": "s1", "turn": turn.turn_id, "quote": "大家好，我叫小岚"}
    assert fact.noted_at == turn.created_at
    assert fact.core, "there is one truth of this kind: it stands in every prompt"


# ---------------------------------------------------------------- one truth


def test_the_newer_takes_the_place_of_the_older_which_stays_as_history(store: Store) -> None:
    notes, _ = writer(store, Extractor(), every=9)
    say(store, notes, "work；我在A公司工作", when=1_700_000_000.0)
    notes.finish()
    say(store, notes, "work；我现在在B公司上班", when=1_700_900_000.0)
    notes.finish()
    assert known(store) == ["我现在在B公司上班"]
    old, new = history(store, "work")
    assert (old.superseded_by, old.noted_at, old.superseded_at) == (new.id, 1_700_000_000.0, 1_700_900_000.0)


def test_both_in_one_reading_leave_the_last_too(store: Store) -> None:
    notes, _ = writer(store, Extractor(), every=9)
    say(store, notes, "work；我在A公司工作", "work；我现在在B公司上班")
    notes.finish()
    assert known(store) == ["我现在在B公司上班"]


@pytest.mark.parametrize(
    ("first", "then", "other"),
    [
        ("我喜欢吃中餐", "我现在讨厌中餐了", "我喜欢打篮球"),
        ("I love Chinese food", "I hate Chinese food now", "I like jazz"),
    ],
)
def test_loving_and_then_hating_leaves_the_last_word_and_other_likings_alone(
    store: Store, first: str, then: str, other: str
) -> None:
    notes, _ = writer(store, Extractor(), every=9)
    say(store, notes, f"preference；{first}", f"preference；{other}", f"preference；{then}")
    notes.finish()
    assert known(store) == [other, then]


def test_the_same_fifty_times_is_one_fact_with_a_count(store: Store) -> None:
    notes, background = writer(store, Extractor(), every=5)
    for _ in range(10):
        say(store, notes, *["preference；我喜欢打篮球"] * 5)
        background.wait()
    notes.finish()
    (fact,) = history(store, "preference")
    # Within one reading it is one note; ten readings say it ten times.
    assert (fact.text, fact.count) == ("我喜欢打篮球", 10)
    for _ in range(40):
        say(store, notes, "preference；我喜欢打篮球")
        background.wait()
        notes.finish()
    (fact,) = history(store, "preference")
    assert fact.count == 50


def test_what_was_said_long_ago_does_not_replace_what_is_known_since(store: Store) -> None:
    notes, _ = writer(store, Extractor(), every=9)
    say(store, notes, "budget；预算40万", when=1_700_000_000.0)
    store.ledger().add(KEY.owner, "预算50万", kind="budget", noted_at=1_700_000_500.0, supersede=True)
    notes.finish()
    assert known(store) == ["预算50万"]


def test_a_kind_may_expire(store: Store) -> None:
    kinds = [NoteKind("plan", several=True, days=30)]
    notes, _ = writer(store, Extractor(), every=9, kinds=kinds)
    say(store, notes, "plan；我决定考驾照", when=1_700_000_000.0)
    notes.finish()
    (fact,) = history(store, "plan")
    assert fact.expires_at == 1_700_000_000.0 + 30 * 86400
    assert known(store) == []
    assert store.ledger().prune() == (fact.row,)


# ---------------------------------------------------------------- failures


def test_a_failure_is_tried_again_and_the_turns_are_not_lost(store: Store, caplog: Any) -> None:
    model = Extractor(fails=2)
    notes, background = writer(store, model, every=1)
    for i in range(12):
        say(store, notes, f"preference；我喜欢第{i}种茶")
        background.wait()
    assert len(known(store)) == 12
    assert len([line for line in caplog.messages if "tried again later" in line]) == 2
    assert [len(asked) for asked in model.asked[:3]] == [1, 2, 5], "the next turn, and then three turns on"


def test_a_service_that_stays_away_is_asked_ever_more_rarely_and_loses_nothing(store: Store) -> None:
    model = Extractor(fails=8)
    notes, background = writer(store, model, every=1)
    for i in range(150):
        say(store, notes, f"preference；我喜欢第{i}种茶")
        background.wait()
    assert model.fails == 0
    notes.finish()
    assert len(known(store)) == 150


def test_turns_that_no_answer_can_be_read_of_are_given_up(store: Store, caplog: Any) -> None:
    asked: list[int] = []

    def babbling(_: Any) -> AIMessage:
        asked.append(1)
        return AIMessage("我不知道你要什么")

    notes, background = writer(store, babbling, every=1)
    for i in range(5):
        say(store, notes, f"preference；我喜欢第{i}种茶")
        background.wait()
    assert any("given up" in line for line in caplog.messages)
    assert [told for told in notes.problems(KEY) if "no notes were made of 5 turns" in told]
    assert store.backlog().pending("notes") == []
    assert len(asked) == 16, "three tries and one for each of the five alone, each with one to mend the answer"


def test_old_turns_are_not_tried_again_for_ever(store: Store) -> None:
    model = Extractor(fails=1)
    notes, background = writer(store, model, every=1)
    say(store, notes, "name；我叫小岚", when=time.time() - 30 * 86400)
    background.wait()
    notes.finish()
    assert store.backlog().pending("notes") == []


def test_at_the_end_a_service_that_is_down_is_asked_once(store: Store) -> None:
    model = Extractor(fails=10**6)
    notes, _ = writer(store, model, every=50)
    for i in range(20):
        say(store, notes, "name；我叫小岚", key=SessionKey(f"s{i}", "u1"))
    notes.finish()
    assert len(model.asked) == 1


def test_nothing_private_and_no_words_reach_the_log(store: Store, caplog: Any) -> None:
    caplog.set_level(logging.DEBUG)
    notes, _ = writer(store, Extractor(), every=50)
    say(store, notes, f"work；我的电话是{PHONE}", "name；我叫小岚", "plan；我可能去读书")
    notes.finish()
    said = "\n".join(caplog.messages)
    assert "1 notes kept, 2 dropped" in said
    assert "the user was not sure of it" in said
    for words in (PHONE, "小岚", "读书"):
        assert words not in said
    report = notes.report(KEY)
    assert report is not None
    assert [n.content for n in report.notes] == ["我叫小岚"]
    assert PHONE not in report.model_dump_json()
    assert PHONE not in " ".join(f"{f.text} {f.source}" for f in store.ledger().iterate())


def test_nothing_private_stands_in_a_trace(store: Store) -> None:
    notes, _ = writer(store, Extractor(), every=50)
    say(store, notes, f"work；我的电话是{PHONE}", "name；我叫小岚")
    with collect_runs() as runs:
        notes.finish()
    traced = "\n".join(f"{run.name} {run.inputs} {run.outputs}" for run in runs.traced_runs)
    assert "小岚" in traced
    assert PHONE not in traced


# ---------------------------------------------------------------- several at work


def test_two_workers_read_a_turn_but_once(store: Store, home: Home) -> None:
    other_store = home.open()
    slow, quick = Extractor(), Extractor()
    slow.hold = threading.Event()
    one, background = writer(store, slow, every=1)
    two, _ = writer(other_store, quick, every=50)
    say(store, one, "preference；我喜欢打篮球")
    assert slow.holding.wait(60)
    two.saved(KEY)
    two.finish()
    slow.hold.set()
    background.wait()
    (fact,) = history(store, "preference")
    assert fact.count == 1


def test_notes_of_a_session_that_was_forgotten_meanwhile_are_not_written(store: Store) -> None:
    model = Extractor()
    model.hold = threading.Event()
    notes, background = writer(store, model, every=1)
    say(store, notes, "name；我叫小岚")
    assert model.holding.wait(60)
    store.forget(user_id="u1")
    model.hold.set()
    background.wait()
    assert known(store) == []


def test_saving_a_turn_does_not_wait_for_the_model(store: Store) -> None:
    model = Extractor()
    model.hold = threading.Event()
    notes, background = writer(store, model, every=1)
    say(store, notes, "name；我叫小岚", "home；我住在成都", "work；我开面馆")
    assert model.holding.wait(60)
    model.hold.set()
    background.wait()
    notes.finish()
    assert known(store) == ["我叫小岚", "我住在成都", "我开面馆"]


def test_what_a_process_left_behind_is_taken_up_by_the_next(store: Store) -> None:
    left = SessionKey("left", "u1")
    say(store, None, "name；我叫小岚", key=left, when=time.time() - 3600)
    say(store, None, "work；我开面馆", key=SessionKey("long ago", "u1"), when=time.time() - 30 * 86400)
    say(store, None, "home；我住在成都", key=SessionKey("busy", "u1"))  # somebody else's, about to be read
    model = Extractor()
    notes, background = writer(store, model, every=50)
    say(store, notes, "你好呀")
    background.wait()
    assert model.asked == [["name；我叫小岚"]]
    assert known(store) == ["我叫小岚"]


def test_a_long_history_is_read_in_parts(store: Store) -> None:
    model = Extractor()
    notes, background = writer(store, model, every=5)
    say(store, None, *(f"preference；我喜欢第{i}种茶" for i in range(50)))
    say(store, None, "长" * 9000, "长" * 9000)
    notes.saved(KEY)
    background.wait()
    notes.finish()
    assert max(map(len, model.asked)) <= 20
    assert sum(map(len, model.asked)) == 52
    assert len(known(store)) == 50


def test_facts_belong_to_the_session_where_no_user_is_named(store: Store) -> None:
    nobody = SessionKey("s9")
    notes, _ = writer(store, Extractor(), every=9)
    say(store, notes, "name；我叫小岚", key=nobody)
    notes.finish()
    assert known(store, nobody.owner) == ["我叫小岚"]
    assert known(store) == []


def test_notes_are_made_of_at_least_one_turn(store: Store) -> None:
    with pytest.raises(MemoryInputError, match="notes_every"):
        writer(store, Extractor(), every=0)
