"""Who waits, waits for what was begun before him; what comes after a commit fails no turn and is done later."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder
from langchain_core.runnables import RunnableLambda

from lc_memory import Memory, with_memory
from lc_memory.errors import StoreError
from lc_memory.facts.extract import writer
from lc_memory.index import following, reindexing
from lc_memory.index.chroma.base import ClosedIndexError
from lc_memory.index.chroma.collection import open_index
from lc_memory.store.background import Background
from lc_memory.store.forks import ForkGate
from tests.helpers.longterm import Bags, in_order, opened, recalled, say
from tests.helpers.models import Scripted

PROMPT = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{question}")])
CONFIG: Any = {"configurable": {"session_id": "s1", "user_id": "u1"}}
BOUND = 60.0  # seconds after which a thread is taken to wait for ever: how a hang is told, no measure


def bot_of(memory: Memory, answer: str = "an answer") -> Any:
    return with_memory(memory.load_mem | PROMPT | Scripted(answers=[answer]) | StrOutputParser(), memory)


def questions(memory: Memory, session: str = "s1") -> list[str]:
    return [str(m.content) for m in memory.session(session, "u1").messages() if m.type == "human"]


# ------------------------------------------------------------ others go on


MOST = 900  # turns that others save before they give up


@contextmanager
def busy(memory: Memory, threads: int = 3) -> Iterator[Callable[[], bool]]:
    """Others save turns all the time; yields whether they still do."""
    enough, saved = threading.Event(), [0] * threads

    def save(n: int) -> None:
        while not enough.is_set() and sum(saved) < MOST:
            say(memory, f"Question {saved[n]} of {n}", "Noted", session=f"busy{n}", user=f"other{n}")
            saved[n] += 1

    at_work = [threading.Thread(target=save, args=(n,)) for n in range(threads)]
    for thread in at_work:
        thread.start()
    while sum(saved) < 3 * threads:
        threading.Event().wait(0.001)
    try:
        yield lambda: sum(saved) < MOST
    finally:
        enough.set()
        for thread in at_work:
            thread.join()


CALLS: dict[str, Callable[[Memory], object]] = {
    "forget a user": lambda memory: memory.forget(user_id="u1"),
    "forget a session": lambda memory: memory.forget(session_id="s1", user_id="u1"),
    "clear a session": lambda memory: memory.session("s1", "u1").clear(),
    "flush": lambda memory: memory.flush(),
    "close": lambda memory: memory.close(),
    "the context manager's end": lambda memory: memory.__exit__(None, None, None),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_call_that_waits_comes_to_its_end_while_others_save(
    tmp_path: Path, call: Callable[[Memory], object]
) -> None:
    memory = opened(tmp_path / "m")
    say(memory, "My parking space is B2", "Noted")
    with busy(memory) as others_save:
        call(memory)
        assert others_save()
    memory.close()


def test_with_notes_flush_comes_to_its_end_while_others_save(tmp_path: Path) -> None:
    model = RunnableLambda(lambda _: AIMessage('{"notes": []}'))
    memory = opened(tmp_path / "m", notes=model, notes_every=2)
    say(memory, "My parking space is B2", "Noted")
    with busy(memory) as others_save:
        memory.flush()
        assert others_save()
    memory.close()


def test_the_index_is_closed_though_there_is_always_somebody_in_it(tmp_path: Path) -> None:
    memory = opened(tmp_path / "m")
    say(memory, "My parking space is B2", "Noted")
    in_order(memory)
    memory.close()
    store = memory._sql_store("a test")()
    index = open_index(store.database, memory._longterm._vectors.another_home(), Bags())  # type: ignore[union-attr]

    @contextmanager
    def using() -> Iterator[None]:
        with suppress(ClosedIndexError), index._using():
            yield
            return
        yield  # he was through

    assert _relay(using, index.close) < _ROUNDS
    memory.close()


def test_a_fork_comes_though_there_is_always_a_call_in_progress() -> None:
    gate = ForkGate(before_fork=None)

    @contextmanager
    def inside() -> Iterator[None]:
        with gate:
            yield

    def fork() -> None:
        gate._close()
        gate._open()

    assert _relay(inside, fork) < _ROUNDS


_ROUNDS = 500


def _relay(inside: Callable[[], Any], waits: Callable[[], object]) -> int:
    """Two are ``inside`` by turns, each until the other one is too, while a third one ``waits``. How often they
    were before he was through."""
    through, rounds = threading.Event(), 0
    is_in = [threading.Semaphore(0), threading.Semaphore(0)]

    def runner(me: int) -> None:
        nonlocal rounds
        while rounds < _ROUNDS and not through.is_set():
            with inside():
                rounds += 1
                is_in[me].release()
                is_in[1 - me].acquire(timeout=0.05)  # or he is kept outside, because somebody waits for us

    def third() -> None:
        waits()
        through.set()

    threads = [threading.Thread(target=runner, args=(n,)) for n in (0, 1)]
    for thread in threads:
        thread.start()
    while rounds < 4:
        threading.Event().wait(0.001)
    threads.append(threading.Thread(target=third))
    threads[-1].start()
    for thread in threads:
        thread.join()
    return rounds


class Endless(Exception):
    """It would have gone on for ever."""


def _at_most(times: int, monkeypatch: pytest.MonkeyPatch, where: Any, name: str, before: Callable[[], object]) -> None:
    """Do something before each call of this; raise where it is called more often than that."""
    original, calls = getattr(where, name), 0

    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > times:
            raise Endless(name)
        before()
        return original(*args, **kwargs)

    monkeypatch.setattr(where, name, call)


def test_a_reindex_ends_though_others_note_facts_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "m") as memory:
        memory.remember("I like basketball", user_id="u1")
        ledger, n = memory._sql_store("a test")().ledger(), iter(range(1000))
        _at_most(40, monkeypatch, reindexing, "mend", lambda: ledger.add("u2", f"fact number {next(n)}"))
        assert memory.reindex() >= 1
    with opened(tmp_path / "m") as memory:
        memory.flush()
        assert "basketball" in recalled(memory, "Who likes basketball?")


def test_catching_up_ends_though_others_note_facts_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path / "m") as memory:
        ledger, n = memory._sql_store("a test")().ledger(), iter(range(1000))
        ledger.add("u1", "I like basketball")
        _at_most(40, monkeypatch, following.Follower, "facts", lambda: ledger.add("u2", f"fact number {next(n)}"))
        memory._long("a test").catch_up()


@pytest.mark.parametrize("what", ["turns", "facts"])
def test_a_pass_over_the_store_ends_though_more_comes_with_every_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    with opened(tmp_path / "m") as memory:
        store, n = memory._sql_store("a test")(), iter(range(100_000))
        key = memory.session("s1", "u1")._key

        def more() -> None:
            for _ in range(3):
                if what == "turns":
                    store.append(key, [{"role": "user", "content": f"q{next(n)}"}])
                else:
                    store.ledger().add("u2", f"fact number {next(n)}")

        more()
        follower = memory._long("a test")._indexer()
        _at_most(40, monkeypatch, follower, "_write_words", more)
        getattr(follower, what)()


def test_making_notes_ends_though_turns_are_saved_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(tmp_path / "m", notes=RunnableLambda(lambda _: AIMessage('{"notes": []}')), notes_every=1000)
    say(memory, "My parking space is B2", "Noted")
    store, key, n = memory._sql_store("a test")(), memory.session("s1", "u1")._key, iter(range(1000))
    _at_most(
        40, monkeypatch, writer, "_at_once", lambda: store.append(key, [{"role": "user", "content": f"q{next(n)}"}])
    )
    memory.flush()
    assert len(questions(memory)) <= 3
    memory.close()


@pytest.mark.parametrize("call", ["flush", "forget", "clear", "close"])
def test_work_in_the_background_that_waits_does_not_wait_for_itself(tmp_path: Path, call: str) -> None:
    memory = opened(tmp_path / "m")
    say(memory, "My parking space is B2", "Noted")
    memory.flush()
    through = threading.Event()
    calls = {**CALLS, "forget": CALLS["forget a user"], "clear": CALLS["clear a session"]}

    def work() -> None:
        calls[call](memory)
        through.set()

    memory._stored("a test").background.submit("a tool", work)
    assert through.wait(BOUND)
    memory.close()


def test_what_was_asked_for_while_it_ran_is_done_once_more() -> None:
    background, begun, go_on, done = Background(), threading.Event(), threading.Event(), []

    def work() -> None:
        begun.set()
        go_on.wait()
        done.append(1)

    background.submit("k", work)
    begun.wait()
    for _ in range(5):
        background.submit("k", work)
    go_on.set()
    background.wait()
    assert len(done) == 2


def test_what_is_asked_for_later_is_not_waited_for() -> None:
    background, never, begun = Background(), threading.Event(), threading.Event()
    background.submit("first", begun.set)
    background.wait()

    def endless() -> None:
        never.wait()

    waiting = threading.Thread(target=background.wait)
    go_on, at_work = threading.Event(), threading.Event()

    def first() -> None:
        at_work.set()
        go_on.wait()
        background.submit("later", endless)  # before the first one has ended

    background.submit("first", first)
    at_work.wait()
    waiting.start()
    while not waiting.is_alive():
        pass
    threading.Event().wait(0.05)  # he is at his waiting; were he not, the test would be passed all the same
    go_on.set()
    waiting.join(BOUND)
    alive = waiting.is_alive()
    never.set()
    waiting.join()
    assert not alive


def test_a_batch_that_was_read_before_an_erasure_does_not_come_back_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(tmp_path / "m")
    say(memory, "The code is Xanthippe", "Noted", session="s0")
    memory.flush()
    read, go_on = threading.Event(), threading.Event()
    original = following.Follower._write_vectors

    def slow(self: Any, kept: Any, gone: Any) -> None:
        if any("Xanthippe" in item.text for item, _ in kept):
            read.set()
            go_on.wait()
        original(self, kept, gone)

    monkeypatch.setattr(following.Follower, "_write_vectors", slow)
    say(memory, "The other code is Xanthippe", "Noted")
    read.wait()
    erased = threading.Thread(target=lambda: memory.forget(user_id="u1"))
    monkeypatch.setattr(Background, "wait", lambda self: None)  # it was begun too late to be waited for
    erased.start()
    while memory.sessions("u1"):
        threading.Event().wait(0.001)
    erased.join(0.2)
    go_on.set()
    erased.join()
    index = memory._long("a test")._vectors
    assert index.use(lambda one: one.count()) == 0
    monkeypatch.undo()
    memory.close()
    folder = tmp_path / "m" / "chroma"
    assert not [p for p in folder.rglob("*") if p.is_file() and b"Xanthippe" in p.read_bytes()]


def test_a_summary_that_was_begun_before_an_erasure_does_not_come_back_after_it(tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    class Slow:
        def summarize(self, text: str) -> str:
            begun.set()
            go_on.wait()
            return "They spoke of Xanthippe"

    memory = opened(tmp_path / "m", summarizer=Slow(), recall=())
    for n in range(4):
        say(memory, f"Xanthippe {n}", "Noted")
    begun.wait()
    erased = threading.Thread(target=lambda: memory.forget(user_id="u1"))
    erased.start()
    go_on.set()
    erased.join()
    assert memory.session("s1", "u1").summary is None
    assert not memory.sessions("u1")
    memory.close()


# ------------------------------------------------------------ after the commit


def no_threads(monkeypatch: pytest.MonkeyPatch, message: str) -> None:
    """No thread of ours can be started."""
    start = threading.Thread.start

    def refused(self: threading.Thread) -> None:
        if self.name.startswith("lc-memory"):
            raise RuntimeError(message)
        start(self)

    monkeypatch.setattr(threading.Thread, "start", refused)


FULL = ["can't start new thread", "can't create new thread at interpreter shutdown"]


async def _ainvoke(memory: Memory, bot: Any) -> None:
    await bot.ainvoke({"question": "My parking space is B2"}, CONFIG)


WAYS: dict[str, Callable[[Memory, Any], object]] = {
    "invoke": lambda memory, bot: bot.invoke({"question": "My parking space is B2"}, CONFIG),
    "stream": lambda memory, bot: list(bot.stream({"question": "My parking space is B2"}, CONFIG)),
    "batch": lambda memory, bot: bot.batch([{"question": "My parking space is B2"}], CONFIG),
    "with_retry": lambda memory, bot: bot.with_retry(
        stop_after_attempt=3, wait_exponential_jitter=False
    ).invoke({"question": "My parking space is B2"}, CONFIG),
    "session.add": lambda memory, bot: say(memory, "My parking space is B2", "an answer"),
}


@pytest.mark.parametrize("message", FULL)
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_with_no_thread_to_be_had_the_turn_is_saved_once_told_of_and_indexed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[[Memory, Any], object], message: str
) -> None:
    memory = opened(tmp_path / "m")
    bot = bot_of(memory)
    memory.health()
    memory.flush()
    no_threads(monkeypatch, message)
    way(memory, bot)
    assert questions(memory) == ["My parking space is B2"]
    health = memory.health()
    assert not health.ok
    assert message in str(health)
    monkeypatch.undo()
    say(memory, "And yours?", "C1", session="s2")  # the next turn, of another session
    memory.flush()
    in_order(memory)
    assert "B2" in recalled(memory, "Where is my parking space?")
    memory.close()


async def test_with_no_thread_to_be_had_an_async_turn_is_saved_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(tmp_path / "m")
    bot = bot_of(memory)
    memory.flush()
    no_threads(monkeypatch, FULL[0])
    await bot.ainvoke({"question": "My parking space is B2"}, CONFIG)
    assert questions(memory) == ["My parking space is B2"]
    assert not memory.health().ok
    monkeypatch.undo()
    memory.flush()
    in_order(memory)
    memory.close()


@pytest.mark.parametrize("call", ["flush", "close and open"])
def test_what_no_thread_could_be_had_for_is_done_by_whoever_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    memory = opened(tmp_path / "m")
    memory.health()
    memory.flush()
    no_threads(monkeypatch, FULL[0])
    say(memory, "My parking space is B2", "Noted")
    if call == "flush":
        memory.flush()  # still without a thread
        assert "B2" in recalled(memory, "Where is my parking space?")
    else:
        memory.close()
        memory = opened(tmp_path / "m")
    monkeypatch.undo()
    in_order(memory)
    memory.close()


def _raises(error: Exception) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        raise error

    return call


AFTER: dict[str, Callable[[Memory, pytest.MonkeyPatch], None]] = {
    "indexing cannot be asked for": lambda memory, patch: patch.setattr(
        memory._longterm, "saved", _raises(RuntimeError("no room"))
    ),
    "notes cannot be asked for": lambda memory, patch: patch.setattr(
        memory._stored("a test").notes, "saved", _raises(RuntimeError("no room"))
    ),
    "the window cannot be cut": lambda memory, patch: patch.setattr(
        "lc_memory.sessions.stored.StoredSession._excess", _raises(StoreError("no room"))
    ),
    "background work is refused": lambda memory, patch: patch.setattr(
        memory._stored("a test").background, "submit", _raises(RuntimeError("no room"))
    ),
}


@pytest.mark.parametrize("way", ["with_retry", "session.add"])
@pytest.mark.parametrize("fault", AFTER.values(), ids=AFTER.keys())
def test_a_fault_after_the_commit_is_no_fault_of_the_turn(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: Callable[[Memory, pytest.MonkeyPatch], None],
    way: str,
) -> None:
    notes = RunnableLambda(lambda _: AIMessage('{"notes": []}'))
    memory = opened(tmp_path / "m", notes=notes)
    bot = bot_of(memory)
    memory.flush()
    with monkeypatch.context() as patch:
        fault(memory, patch)
        WAYS[way](memory, bot)
    assert questions(memory) == ["My parking space is B2"]
    memory.flush()
    in_order(memory)
    memory.close()


def test_a_fact_whose_indexing_fails_is_noted_once_and_indexed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(tmp_path / "m")
    memory.flush()
    with monkeypatch.context() as patch:
        patch.setattr(following.Follower, "_write_words", _raises(StoreError("the disk is full")))
        fact = memory.remember("I like basketball", user_id="u1")
        assert fact.count == 1
        memory._stored("a test").background.wait()
        assert "the disk is full" in str(memory.health())
    in_order(memory)
    assert "basketball" in recalled(memory, "Who likes basketball?")
    memory.close()


def test_an_index_job_that_failed_is_told_of_and_done_by_the_next_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(tmp_path / "m")
    memory.flush()
    with monkeypatch.context() as patch:
        patch.setattr(following.Follower, "turns", _raises(StoreError("the disk is full")))
        say(memory, "My parking space is B2", "Noted")
        memory._stored("a test").background.wait()
        assert "the disk is full" in str(memory.health())
    memory.flush()
    in_order(memory)
    memory.close()


def test_a_summary_that_fails_shows_in_health_until_one_succeeds(tmp_path: Path) -> None:
    class Summariser:
        fails = True

        def summarize(self, text: str) -> str:
            if self.fails:
                raise RuntimeError("no model here")
            return "a summary"

    summariser = Summariser()
    memory = opened(tmp_path / "m", summarizer=summariser)
    for n in range(3):
        say(memory, f"Question number {n}", "Noted")
    memory.flush()
    assert "no model here" in str(memory.health())
    summariser.fails = False
    for n in range(3, 6):
        say(memory, f"Question number {n}", "Noted")
        memory.flush()
    assert memory.session("s1", "u1").summary == "a summary"
    in_order(memory)
    memory.close()


def test_a_save_that_fails_before_the_commit_is_still_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(tmp_path / "m", recall=())
    bot = bot_of(memory)
    monkeypatch.setattr(type(memory._sql_store("a test")()), "append", _raises(StoreError("the disk is full")))
    with warnings.catch_warnings(), pytest.raises(StoreError, match="the disk is full"):
        bot.invoke({"question": "q"}, CONFIG)
    monkeypatch.undo()
    assert questions(memory) == []
    memory.close()
