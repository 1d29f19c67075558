"""The contract of the store, over memory, SQLite and PostgreSQL."""

from __future__ import annotations

import copy
import datetime
import subprocess
import sys
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lc_memory.errors import MemoryInputError
from lc_memory.store import Forgotten, SessionKey, Snapshot, Store, open_store
from tests.helpers.homes import Home

KEY = SessionKey("s1", "u1")
IDS = [
    "u1",
    "小明",
    "a.b+c@example.org",
    "",
    " ",
    "x" * 10_000,
    "a\0b",
    "\ud83d half",
    "\x1a",
    "'; DROP",
    "%s :a",
]


def say(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}, {"role": "assistant", "content": f"answer to {text}"}]


def texts(snapshot: Snapshot) -> list[str]:
    return [turn.messages[0]["content"] for turn in snapshot.turns]


# What was said comes back


def test_turns_come_back_whole_in_order_and_numbered_without_gaps(store: Store) -> None:
    appended = [store.append(KEY, say(str(n))) for n in range(5)]
    assert [turn.seq for turn in appended] == [1, 2, 3, 4, 5]
    assert store.load(KEY).turns == tuple(appended)


def test_tool_calls_and_extra_keys_come_back_as_they_were_with_the_order_of_their_keys(store: Store) -> None:
    messages = [
        {"zeta": 1, "role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:…"}}]},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "a", "function": {"arguments": "{ }"}}]},
        {"content": "", "role": "tool", "tool_call_id": "a", "x": [True, None, -0.5, 10**30, {"": {}}]},
    ]
    before = copy.deepcopy(messages)
    store.append(KEY, messages)
    back = list(store.load(KEY).turns[0].messages)
    assert back == messages == before
    assert [list(message) for message in back] == [list(message) for message in messages]


def test_what_is_changed_afterwards_does_not_change_what_was_stored(store: Store) -> None:
    messages = say("hello")
    turn = store.append(KEY, messages)
    messages[0]["content"] = "changed"
    turn.messages[1]["content"] = "changed"
    assert store.load(KEY).turns[0].messages == tuple(say("hello"))


@pytest.mark.parametrize("text", IDS)
def test_any_string_is_an_id_and_a_content(store: Store, text: str) -> None:
    key = SessionKey(text, text)
    turn = store.append(key, say(text), turn_id=text)
    store.commit_summary(key, text, 0, based_on=store.load(key))
    assert turn.turn_id == text
    assert store.load(key).summary == text
    assert store.load(key).turns == (turn,) == tuple(store.turns(key))
    assert [info.key for info in store.sessions(text)] == [key]
    assert store.append(key, say("again"), turn_id=text) == turn
    assert store.forget(user_id=text, session_id=text).sessions == (key,)


any_text = st.text(st.characters(), max_size=30) | st.text(
    st.sampled_from("a\0\x1a\ud83d\ude00\udc00é😀"), max_size=8
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(any_text, inner, max_size=4),
    max_leaves=10,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    session=any_text,
    user=st.none() | any_text,
    messages=st.lists(st.dictionaries(any_text, json_values), min_size=1, max_size=3),
)
def test_whatever_json_holds_round_trips(
    store: Store, session: str, user: str | None, messages: list[dict[str, Any]]
) -> None:
    key = SessionKey(session, user)
    turn = store.append(key, messages)
    assert list(turn.messages) == messages
    assert list(store.turns(key))[-1] == turn
    assert key in [info.key for info in store.sessions(user)]


def test_tuples_become_lists(store: Store) -> None:
    turn = store.append(KEY, ({"role": "user", "content": ("a", ("b",))},))
    assert turn.messages[0]["content"] == ["a", ["b"]]
    assert store.load(KEY).turns == (turn,)


loop: list[Any] = []
loop.append(loop)
deep: list[Any] = []
for _ in range(100_000):
    deep = [deep]


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        (
            [{"role": "user", "content": "fine"}, {"at": datetime.datetime.now()}],
            r"messages\[1\]\['at'\].*datetime",
        ),
        ([{"content": [{"data": b"x"}]}], r"messages\[0\]\['content'\]\[0\]\['data'\] is a bytes"),
        ([{"score": float("nan")}], r"messages\[0\]\['score'\] is nan"),
        ([{"score": float("-inf")}], r"messages\[0\]\['score'\] is -inf"),
        ([{"x": {1: 2}}], r"messages\[0\]\['x'\] has the key 1"),
        ([{"x": {"a", "b"}}], "is a set"),
        ([{"x": loop}], "contains itself"),
        ([{"x": deep}], "nested more than 200 levels"),
        ([{"x": 10**5000}], "cannot be written as JSON"),
        (["hello"], r"messages\[0\] must be a dict, not str"),
        ("hello", "a list of message dicts, not str"),
        ({"role": "user"}, "a list of message dicts, not dict"),
        ([], "at least one message"),
        (None, "not NoneType"),
    ],
)
def test_what_json_cannot_hold_is_refused_by_name_before_anything_is_written(
    store: Store, messages: Any, said: str
) -> None:
    with pytest.raises(MemoryInputError, match=said):
        store.append(KEY, messages)
    assert store.version(KEY) == 0
    assert store.sessions() == []


def test_an_id_that_is_no_string_is_refused(store: Store) -> None:
    for key in (SessionKey(1), SessionKey("s", 1), SessionKey(None)):  # type: ignore[arg-type]
        with pytest.raises(MemoryInputError, match="must be a string"):
            store.append(key, say("x"))
        with pytest.raises(MemoryInputError, match="must be a string"):
            store.version(key)


def test_the_same_turn_id_is_saved_once_and_gives_the_first_turn_back(store: Store) -> None:
    first = store.append(KEY, say("one"), turn_id="t")
    version = store.version(KEY)
    assert store.append(KEY, say("other words"), turn_id="t") == first
    assert store.version(KEY) == version
    assert store.append(KEY, say("two")).seq == 2
    assert store.append(SessionKey("s2", "u1"), say("elsewhere"), turn_id="t").seq == 1


def test_an_imported_turn_keeps_its_time(store: Store) -> None:
    store.append(KEY, say("old"), created_at=86_400.25)
    assert store.load(KEY).turns[0].created_at == 86_400.25


def test_order_is_that_of_the_saves_when_the_clock_jumps_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for now in (2e9, 1e9, 0.0, -5.0):
        monkeypatch.setattr("time.time", lambda now=now: now)
        store.append(KEY, say(str(now)))
    assert texts(store.load(KEY)) == ["2000000000.0", "1000000000.0", "0.0", "-5.0"]
    assert [turn.seq for turn in store.turns(KEY)] == [1, 2, 3, 4]


# Versions


def test_the_version_grows_with_every_change_and_only_then(store: Store) -> None:
    seen = [store.version(KEY)]
    assert seen == [0]
    store.append(KEY, say("one"))
    seen.append(store.version(KEY))
    store.commit_summary(KEY, "sum", 1, based_on=store.load(KEY))
    seen.append(store.version(KEY))
    store.append(SessionKey("s2", "u1"), say("elsewhere"))
    store.append(SessionKey("s1", "u2"), say("elsewhere"))
    list(store.turns(KEY))
    assert store.version(KEY) == store.load(KEY).version == seen[-1]
    assert seen == sorted(set(seen))


def test_a_version_never_comes_twice_even_after_the_session_was_erased(store: Store) -> None:
    seen = set()
    for _ in range(3):
        for n in range(3):
            store.append(KEY, say(str(n)))
            assert store.version(KEY) > max(seen, default=0)
            seen.add(store.version(KEY))
        store.clear(KEY)
        assert store.version(KEY) == 0


# Reading back


def test_an_unknown_session_is_empty(store: Store) -> None:
    assert store.load(KEY) == Snapshot(0, None, 0, ())
    assert list(store.turns(KEY)) == []
    assert store.clear(KEY) == store.forget(user_id="u1", wipe=False) == Forgotten()


def test_loading_gives_what_follows_the_summary_and_what_is_known(store: Store) -> None:
    for n in range(1, 8):
        store.append(KEY, say(str(n)))
    assert store.commit_summary(KEY, "sum", 3, based_on=store.load(KEY))
    snapshot = store.load(KEY)
    assert (snapshot.summary, snapshot.covers, texts(snapshot)) == ("sum", 3, ["4", "5", "6", "7"])
    assert texts(store.load(KEY, after=5)) == ["6", "7"]
    assert texts(store.load(KEY, after=1)) == ["4", "5", "6", "7"]
    nothing_new = store.load(KEY, after=7)
    assert (nothing_new.summary, nothing_new.turns) == ("sum", ())
    assert [turn.seq for turn in store.turns(KEY)] == [1, 2, 3, 4, 5, 6, 7]


def test_the_whole_history_is_read_page_by_page(store: Store) -> None:
    for n in range(450):
        store.append(KEY, say(str(n)))
    assert [turn.seq for turn in store.turns(KEY)] == list(range(1, 451))
    assert [turn.seq for turn in store.turns(KEY, start=199, limit=3)] == [199, 200, 201]
    assert [turn.seq for turn in store.turns(KEY, limit=401)] == list(range(1, 402))
    assert list(store.turns(KEY, limit=0)) == list(store.turns(KEY, start=451)) == []


def test_sessions_are_listed_by_user_the_last_changed_first(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for now, key in enumerate(
        [
            SessionKey("a", "u1"),
            SessionKey("b", "u1"),
            SessionKey("a", "u2"),
            SessionKey("a"),
            SessionKey("a", "u1"),
        ]
    ):
        monkeypatch.setattr("time.time", lambda now=now: float(now))
        store.append(key, say("x"))
    mine = store.sessions("u1")
    assert [info.key for info in mine] == [SessionKey("a", "u1"), SessionKey("b", "u1")]
    assert (mine[0].turns, mine[0].created_at, mine[0].updated_at) == (2, 0.0, 4.0)
    assert [info.key.user_id for info in store.sessions()] == ["u1", None, "u2", "u1"]
    assert store.sessions("nobody") == []


# The summary


def test_only_the_first_of_two_summaries_of_the_same_turns_is_kept(store: Store) -> None:
    for n in range(4):
        store.append(KEY, say(str(n)))
    base = store.load(KEY)
    store.append(KEY, say("meanwhile"))
    assert store.commit_summary(KEY, "first", 2, based_on=base)
    assert not store.commit_summary(KEY, "second", 3, based_on=base)
    assert (store.load(KEY).summary, store.load(KEY).covers) == ("first", 2)
    assert store.commit_summary(KEY, "third", 4, based_on=store.load(KEY))


def test_a_summary_of_an_erased_session_does_not_come_back_in_the_new_one(store: Store) -> None:
    for n in range(4):
        store.append(KEY, say(str(n)))
    base = store.load(KEY)
    store.clear(KEY)
    assert not store.commit_summary(KEY, "secret", 2, based_on=base)
    for n in range(4):
        store.append(KEY, say(f"new {n}"))
    assert not store.commit_summary(KEY, "secret", 2, based_on=base)
    assert store.load(KEY).summary is None


def test_a_summary_cannot_cover_turns_that_are_not_there(store: Store) -> None:
    store.append(KEY, say("one"))
    assert not store.commit_summary(KEY, "sum", 2, based_on=store.load(KEY))
    with pytest.raises(MemoryInputError, match="covers"):
        store.commit_summary(KEY, "sum", -1, based_on=store.load(KEY))
    assert not store.commit_summary(SessionKey("none"), "sum", 0, based_on=Snapshot(0, None, 0, ()))


def test_what_is_kept_of_covered_turns_comes_with_the_summary_and_goes_with_the_session(store: Store) -> None:
    store.append(KEY, say("a"))
    kept = [{"role": "system", "content": "简短\x00 \ud83d"}]
    assert store.commit_summary(KEY, "sum", 1, based_on=store.load(KEY), kept=kept)
    assert store.load(KEY).kept == tuple(kept)
    store.append(KEY, say("b"))
    assert store.load(KEY).kept == tuple(kept)
    store.clear(KEY)
    store.append(KEY, say("c"))
    assert store.load(KEY).kept == ()


def test_turns_can_be_covered_without_a_summary(store: Store) -> None:
    for n in range(3):
        store.append(KEY, say(str(n)))
    assert store.commit_summary(KEY, None, 2, based_on=store.load(KEY))
    assert (store.load(KEY).summary, texts(store.load(KEY))) == (None, ["2"])


# Whose


def test_sessions_of_one_name_of_different_users_and_of_nobody_are_different(store: Store) -> None:
    keys = [
        SessionKey("s", "u1"),
        SessionKey("s", "u2"),
        SessionKey("s"),
        SessionKey("s", ""),
        SessionKey("", "s"),
    ]
    for n, key in enumerate(keys):
        store.append(key, say(f"of {n}"))
    assert [texts(store.load(key)) for key in keys] == [[f"of {n}"] for n in range(5)]
    assert len({key.owner for key in keys}) == 5


def test_clearing_erases_exactly_one_session(store: Store) -> None:
    others = [SessionKey("s1", "u2"), SessionKey("s1"), SessionKey("s2", "u1")]
    for key in [KEY, *others]:
        store.append(key, say("x"))
    store.ledger().add(KEY.owner, "a fact", source={"session": "s1"})
    rows = [stored.row for stored in store.backlog().pending("index", key=KEY)]
    gone = store.clear(KEY)
    assert (gone.sessions, list(gone.turns), gone.facts) == ((KEY,), rows, ())
    assert store.load(KEY).turns == ()
    assert all(len(store.load(key).turns) == 1 for key in others)
    assert len(store.ledger().current(KEY.owner)) == 1


def _furnish(store: Store) -> dict[SessionKey, int]:
    keys = [
        SessionKey("s1", "u1"),
        SessionKey("s2", "u1"),
        SessionKey("s1", "u2"),
        SessionKey("s1"),
        SessionKey("s2"),
    ]
    for key in keys:
        store.append(key, say("x"))
        store.commit_summary(key, "sum", 1, based_on=store.load(key))
        store.ledger().add(key.owner, f"learnt in {key}", source={"session": key.session_id})
        store.ledger().add(key.owner, "said once")
    return {stored.key: stored.row for stored in store.backlog().scan()}


@pytest.mark.parametrize(
    ("what", "sessions", "facts"),
    [
        ({"user_id": "u1"}, ["s1 u1", "s2 u1"], ["learnt s1 u1", "learnt s2 u1", "said u1"]),
        (
            {"session_id": "s1"},
            ["s1 u1", "s1 u2", "s1 None"],
            ["learnt s1 u1", "learnt s1 u2", "learnt s1 None", "said None"],
        ),
        ({"user_id": "u1", "session_id": "s1"}, ["s1 u1"], ["learnt s1 u1"]),
        ({"user_id": "nobody"}, [], []),
    ],
)
def test_forgetting_erases_what_it_says_and_names_it(
    store: Store, what: dict[str, str], sessions: list[str], facts: list[str]
) -> None:
    rows = _furnish(store)
    ledger = store.ledger()
    before = {fact.row: fact for fact in ledger.iterate()}
    gone = store.forget(**what)
    assert sorted(f"{key.session_id} {key.user_id}" for key in gone.sessions) == sorted(sessions)
    assert sorted(gone.turns) == sorted(rows[key] for key in gone.sessions)
    assert sorted(stored.row for stored in store.backlog().scan()) == sorted(
        set(rows.values()) - set(gone.turns)
    )
    assert [store.version(key) for key in gone.sessions] == [0] * len(sessions)
    assert len(store.sessions()) == 5 - len(sessions)
    assert len(gone.facts) == len(facts)
    assert {fact.row for fact in ledger.iterate()} == set(before) - set(gone.facts)


def test_forgetting_nobody_in_particular_is_refused(store: Store) -> None:
    with pytest.raises(MemoryInputError, match="user_id, a session_id"):
        store.forget()


# What the indexes have to do


def test_a_worker_gets_the_turns_that_are_to_be_done_session_by_session(store: Store) -> None:
    backlog = store.backlog()
    other = SessionKey("s2", "u1")
    for n in range(3):
        store.append(KEY, say(f"a{n}"))
        store.append(other, say(f"b{n}"))
    pending = backlog.pending("index")
    assert [(p.key.session_id, p.turn.seq) for p in pending] == [
        ("s1", 1), ("s1", 2), ("s1", 3), ("s2", 1), ("s2", 2), ("s2", 3),
    ]  # fmt: skip
    assert backlog.advance("index", backlog.pending("index", limit=4))
    assert [(p.key.session_id, p.turn.seq) for p in backlog.pending("index")] == [("s2", 2), ("s2", 3)]
    assert backlog.counts("index") == (6, 2)
    assert backlog.counts("notes") == (6, 6)
    store.append(KEY, say("a3"))
    assert [p.turn.seq for p in backlog.pending("index", key=KEY)] == [4]
    assert {row: stored.turn for row, stored in backlog.by_row([p.row for p in pending]).items()} == {
        p.row: p.turn for p in pending
    }
    backlog.rewind("index")
    assert len(backlog.pending("index")) == 7
    assert len(backlog.pending("notes", limit=2)) == 2


def test_of_two_workers_that_took_the_same_turns_one_gets_them(store: Store) -> None:
    backlog = store.backlog()
    for n in range(3):
        store.append(KEY, say(str(n)))
    mine, theirs = backlog.pending("notes"), backlog.pending("notes", limit=2)
    assert backlog.advance("notes", theirs)
    assert not backlog.advance("notes", mine)
    assert [p.turn.seq for p in backlog.pending("notes")] == [3]
    taken = backlog.pending("notes")
    store.clear(KEY)
    assert not backlog.advance("notes", taken)


# One store, many threads


def test_threads_share_a_store_and_no_turn_is_lost_or_doubled(store: Store) -> None:
    keys = [SessionKey(f"s{n}", "u") for n in range(3)]

    def talk(name: int) -> None:
        for n in range(20):
            key = keys[n % 3]
            store.append(key, say(f"{name}.{n}"))
            assert store.load(key).turns

    threads = [threading.Thread(target=talk, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = []
    for key in keys:
        snapshot = store.load(key)
        assert [turn.seq for turn in snapshot.turns] == list(range(1, len(snapshot.turns) + 1))
        for name in range(8):
            said = [int(t.split(".")[1]) for t in texts(snapshot) if t.startswith(f"{name}.")]
            assert said == sorted(said)
        everything += texts(snapshot)
    assert sorted(everything) == sorted(f"{name}.{n}" for name in range(8) for n in range(20))


# Opening


def test_another_store_on_the_same_data_sees_the_same(home: Home) -> None:
    first, second = home.open(), home.open()
    turn = first.append(KEY, say("one"))
    assert second.load(KEY).turns == (turn,)
    assert second.append(KEY, say("two")).seq == 2
    assert first.version(KEY) == second.version(KEY)
    first.close()
    assert texts(home.open().load(KEY)) == ["one", "two"]


def test_a_closed_store_opens_again_when_it_is_used(store: Store) -> None:
    store.append(KEY, say("one"))
    store.close()
    store.close()
    assert texts(store.load(KEY)) == ["one"]


def test_importing_the_store_does_not_import_its_databases() -> None:
    code = "import sys, lc_memory.store; print('sqlalchemy' in sys.modules, 'psycopg' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


@pytest.mark.parametrize("url", ["mysql://h/db", "postgresql+asyncpg://h/db", "mongodb://x", "://"])
def test_a_url_of_another_database_is_refused_with_those_that_work(url: str) -> None:
    with pytest.raises(MemoryInputError, match="postgresql://|not a database URL"):
        open_store(url)


# Several changes as one


def test_what_a_transaction_writes_is_there_together_or_not_at_all(store: Store) -> None:
    store.append(KEY, say("1"))
    store.append(KEY, say("2"))
    turns = store.backlog().pending("notes")

    def stopped_halfway() -> None:
        with store.transaction():
            store.ledger().add(KEY.owner, "I like tea")
            assert store.backlog().advance("notes", turns)
            assert len(store.ledger().current(KEY.owner)) == 1, "its own reads see it"
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        stopped_halfway()
    assert store.ledger().current(KEY.owner) == []
    assert len(store.backlog().pending("notes")) == 2
    with store.transaction():
        store.ledger().add(KEY.owner, "I like tea")
        store.ledger().add(KEY.owner, "I like milk")
        assert store.backlog().advance("notes", turns)
    assert len(store.ledger().current(KEY.owner)) == 2
    assert store.backlog().pending("notes") == []


def test_an_advance_that_comes_too_late_undoes_nothing_else_of_its_transaction(store: Store) -> None:
    store.append(KEY, say("1"))
    turns = store.backlog().pending("notes")
    assert store.backlog().advance("notes", turns)
    with store.transaction():
        store.ledger().add(KEY.owner, "I like tea")
        assert not store.backlog().advance("notes", turns)
    assert len(store.ledger().current(KEY.owner)) == 1


def test_a_transaction_is_that_of_its_thread_alone(home: Home) -> None:
    store = home.open()
    seen: list[int] = []

    def look() -> None:
        seen.append(len(store.ledger().current(KEY.owner)))

    with store.transaction():
        store.ledger().add(KEY.owner, "I like tea")
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    look()
    assert seen == [0, 1]
