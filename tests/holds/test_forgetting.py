"""What was erased is in no file that the product made, whichever door it was erased by."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lc_memory import Memory, cli
from lc_memory.agent.memory_tools import memory_tools
from lc_memory.errors import MemoryInputError
from lc_memory.index.collected import collected, record
from lc_memory.models.embedding import fingerprint
from tests.helpers.longterm import Bags, opened, say

MARK = "Xylo77"
WORDS = f"我藏着一把紫檀木琴 {MARK}"
PARTS = (MARK, MARK.lower(), "紫檀", "木琴")
OTHERS = "I keep a bicycle called Brunhilde"
U1: Any = {"configurable": {"user_id": "u1"}}

BYTES = {part.encode(code) for part in PARTS for code in ("utf-8", "utf-16-le", "utf-16-be")} | {
    json.dumps(part)[1:-1].encode() for part in PARTS
}


def left(folder: Path, vectors: set[bytes] = frozenset()) -> list[str]:  # type: ignore[assignment]
    """The files in which something of the words, or of their vectors, stands."""
    return [
        f"{path.relative_to(folder)}: {some[:12]!r}"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        for content in [path.read_bytes()]
        for some in BYTES | vectors
        if some in content
    ]


def vectors_of(memory: Memory) -> set[bytes]:
    """The vectors of the words, and of everything that has them in it."""
    assert memory._longterm is not None
    found = memory._longterm._vectors.use(
        lambda index: index._collection.get(include=["embeddings", "documents"]), anyway=True
    )
    pairs = zip(found["documents"] or [], found["embeddings"], strict=True)  # type: ignore[arg-type]
    vectors = [Bags().embed_query(WORDS), *(vector for text, vector in pairs if MARK in text)]
    return {np.asarray(vector, dtype=np.float32).tobytes() for vector in vectors}


def written_out(memory: Memory) -> None:
    """Have Chroma write its vectors to their own files, as it does after a thousand changes."""
    memory.facts_for("u3").add_fact("something of no weight", "w")
    memory.facts_for("u3").delete("w")


# ---------------------------------------------------------------- by one call, from all files, at once


def _fact(memory: Memory) -> None:
    memory.facts_for("u1").add_fact(WORDS, "k")


def _kind(memory: Memory) -> None:
    memory.remember(WORDS, user_id="u1", kind="琴")


def _core(memory: Memory) -> None:
    memory.core("u1").set("琴", WORDS)


def _turn(memory: Memory) -> None:
    say(memory, WORDS, "好的", "s1", "u1")


def _store(memory: Memory) -> Any:
    from lc_memory.integrations.store import FactStore

    return FactStore(memory)


def _superseded(memory: Memory) -> None:
    _kind(memory)
    written_out(memory)
    memory.remember("我不再弹了", user_id="u1", kind="琴")


def _core_superseded(memory: Memory) -> None:
    _core(memory)
    written_out(memory)
    memory.core("u1").set("琴", "我不再弹了")


def _written_over(memory: Memory) -> None:
    _fact(memory)
    memory.facts_for("u1").add_fact("我不再弹了", "k")


def _expired(memory: Memory) -> None:
    memory._stored("").store.ledger().add("user:u1", WORDS, expires_at=1.0)
    memory._longterm.noted()  # type: ignore[union-attr]


def _tool(memory: Memory) -> None:
    tools = {tool.name: tool for tool in memory_tools(memory)}
    assert "Forgotten" in tools["forget_memory"].invoke({"fact": WORDS}, U1)


def _clear_both(memory: Memory) -> None:
    memory.session("s1", "u1").clear()
    memory.facts_for("u1").delete("k")


Do = Callable[[Memory], object]
DOORS: dict[str, tuple[Do, Do]] = {
    "facts_for.delete": (_fact, lambda m: m.facts_for("u1").delete("k")),
    "the tool": (_fact, _tool),
    "BaseStore delete": (lambda m: _store(m).put(("user", "u1"), "k", {"text": WORDS}), lambda m: _store(m).delete(("user", "u1"), "k")),
    "core.remove": (_core, lambda m: m.core("u1").remove("琴")),
    "core.remove of what was superseded": (_core_superseded, lambda m: m.core("u1").remove("琴")),
    "session.clear": (_turn, lambda m: m.session("s1", "u1").clear()),
    "session.clear and a fact": (lambda m: (_turn(m), _fact(m)), _clear_both),
    "forget of a user with facts": (_fact, lambda m: m.forget(user_id="u1")),
    "forget of a user with turns": (_turn, lambda m: m.forget(user_id="u1")),
    "forget of a session": (_turn, lambda m: m.forget(session_id="s1")),
    "forget of a session of a user": (_turn, lambda m: m.forget(session_id="s1", user_id="u1")),
    "forget of what was superseded": (_superseded, lambda m: m.forget(user_id="u1")),
    "forget of what was written over": (_written_over, lambda m: m.forget(user_id="u1")),
    "forget of what has expired": (_expired, lambda m: m.forget(user_id="u1")),
}  # fmt: skip
GUARDS = {name for name in DOORS if name.startswith("forget of ")} | {"session.clear"}


def _erases(folder: Path, put: Do, erase: Do) -> None:
    with opened(folder) as memory:
        memory.remember(OTHERS, user_id="u2")
        put(memory)
        memory.flush()
        vectors = vectors_of(memory)
        if erase is not DOORS["forget of what was written over"][1]:
            written_out(memory)
        assert left(folder, vectors)
        erase(memory)
        assert left(folder, vectors) == [], "at once"
        found = memory.retriever(k=1).invoke("a bicycle called Brunhilde", {"configurable": {"user_id": "u2"}})
        assert [one.page_content for one in found] == [OTHERS]
    assert left(folder, vectors) == []


@pytest.mark.parametrize(("put", "erase"), [d for n, d in DOORS.items() if n not in GUARDS], ids=[n for n in DOORS if n not in GUARDS])
def test_an_erasure_leaves_no_byte_in_any_file(put: Do, erase: Do, tmp_path: Path) -> None:
    _erases(tmp_path, put, erase)


@pytest.mark.parametrize(("put", "erase"), [DOORS[n] for n in sorted(GUARDS)], ids=sorted(GUARDS))
def test_guard_a_forgotten_user_leaves_no_byte_in_any_file(put: Do, erase: Do, tmp_path: Path) -> None:
    _erases(tmp_path, put, erase)


# ---------------------------------------------------------------- what else lies there


def _filled(folder: Path) -> set[bytes]:
    with opened(folder) as memory:
        memory.remember(OTHERS, user_id="u2")
        _fact(memory)
        _turn(memory)
        memory.flush()
        written_out(memory)
        return vectors_of(memory)


def test_a_broken_index_that_was_set_aside_goes_with_the_first_erasure(tmp_path: Path) -> None:
    vectors = _filled(tmp_path)
    for _ in range(2):
        with (tmp_path / "chroma" / "chroma.sqlite3").open("r+b") as file:
            file.truncate(0)
        with opened(tmp_path) as memory:
            with pytest.warns(RuntimeWarning, match="broken-"):
                memory.history("紫檀木琴", U1)
            memory.flush()
    assert len(list(tmp_path.glob("chroma.broken-*"))) == 2
    with opened(tmp_path) as memory:
        assert memory.forget(user_id="u1").wiped
        assert left(tmp_path, vectors) == []
    assert not list(tmp_path.glob("chroma.broken-*"))


def test_guard_an_index_that_is_found_broken_by_the_erasure_goes_too(tmp_path: Path) -> None:
    vectors = _filled(tmp_path)
    with (tmp_path / "chroma" / "chroma.sqlite3").open("r+b") as file:
        file.truncate(0)
    with opened(tmp_path) as memory, pytest.warns(RuntimeWarning, match="lost"):
        assert memory.forget(user_id="u1").wiped
    assert left(tmp_path, vectors) == []


def test_an_index_that_nothing_is_recalled_from_any_more_lets_go(tmp_path: Path) -> None:
    vectors = _filled(tmp_path)
    with Memory.open(tmp_path, recall=()) as memory:
        assert memory.forget(user_id="u1").wiped
    assert left(tmp_path, vectors) == []


def test_an_index_of_another_embedding_lets_go(tmp_path: Path) -> None:
    vectors = _filled(tmp_path)
    with warnings.catch_warnings(), opened(tmp_path, embedding=Bags("other", 32)) as memory:
        warnings.simplefilter("error", RuntimeWarning)
        assert memory.forget(user_id="u1").wiped
    assert left(tmp_path, vectors) == []


def test_an_index_whose_embedding_is_away_lets_go(tmp_path: Path) -> None:
    vectors = _filled(tmp_path)
    away = Bags()
    away.fails = ConnectionError("away")
    with opened(tmp_path, embedding=away) as memory:
        assert memory.forget(user_id="u1").wiped
    assert left(tmp_path, vectors) == []


def test_a_reindex_that_was_stopped_lets_go(tmp_path: Path) -> None:
    vectors = _filled(tmp_path)
    with opened(tmp_path, embedding=Bags("next", 32)) as memory:
        calls = iter([False, True])
        from lc_memory.index import reindexing

        reindexing.reindex(
            memory._sql_store("")(), memory._longterm._indexer(), memory._longterm._vectors.another_home(),  # type: ignore[union-attr]
            Bags("next", 32), ("facts", "turns"), stopping=lambda: next(calls, True),
        )  # fmt: skip
    with opened(tmp_path) as memory:
        assert memory.forget(user_id="u1").wiped
    assert left(tmp_path, vectors) == []


def test_an_index_that_was_replaced_and_not_deleted_goes(tmp_path: Path) -> None:
    vectors = _filled(tmp_path)
    with opened(tmp_path, embedding=Bags("next", 32)) as memory, pytest.MonkeyPatch.context() as patch:
        from lc_memory.index.chroma.collection import VectorIndex

        def dies(self: VectorIndex, collection: str) -> None:
            raise KeyboardInterrupt

        patch.setattr(VectorIndex, "drop", dies)
        with pytest.raises(KeyboardInterrupt):
            memory.reindex()
    with opened(tmp_path, embedding=Bags("next", 32)) as memory:
        assert memory.forget(user_id="u1").wiped
    assert left(tmp_path, vectors) == []


def test_guard_a_collection_that_was_noted_and_not_begun_is_no_obstacle(tmp_path: Path) -> None:
    _filled(tmp_path)
    with opened(tmp_path) as memory:
        for name in ("index_next", "index_last"):
            record(memory._sql_store("")().database, collected(Bags(), fingerprint(Bags())), name)
        assert memory.forget(user_id="u1").wiped
    assert left(tmp_path) == []


def test_what_cannot_be_reached_is_not_called_wiped(tmp_path: Path) -> None:
    _filled(tmp_path)
    with opened(tmp_path, chroma="http://127.0.0.1:1") as memory, pytest.warns(RuntimeWarning, match="forgotten"):
        assert not memory.forget(user_id="u1").wiped
    with opened(tmp_path) as memory:  # and it goes when it can be reached
        memory.forget(user_id="nobody")
    assert left(tmp_path) == []


# ---------------------------------------------------------------- whom, and what was said of it


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = 0
    try:
        cli.main(args)
    except SystemExit as end:
        code = int(end.code or 0)
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_command_erases_and_says_what_or_that_nothing_was_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _filled(tmp_path)
    here = ("--memory", str(tmp_path))
    assert run(capsys, "forget", *here, "--user", "nobody")[:2] == (0, "nothing was there\n")
    assert run(capsys, "forget", *here, "--user", "u1")[:2] == (0, "erased: 1 sessions, 1 turns, 1 facts\n")
    assert left(tmp_path) == []
    assert run(capsys, "forget", *here, "--user", "u1")[1] == "nothing was there\n"
    assert run(capsys, "forget", *here)[0] == 1
    assert "names nobody" in run(capsys, "forget", *here, "--user", "")[2]


def test_pruning_takes_expired_facts_out_of_the_index_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with opened(tmp_path) as memory:
        _expired(memory)
        memory.flush()
    assert any("chroma" in one for one in left(tmp_path))
    assert "1 facts had expired" in run(capsys, "facts", "prune", "--memory", str(tmp_path))[1]
    assert left(tmp_path) == []


@pytest.mark.parametrize("given", [{"user_id": ""}, {"session_id": ""}, {"user_id": "u1", "session_id": ""}], ids=str)
def test_an_empty_id_is_refused_and_nothing_is_erased(given: dict[str, str], tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        _turn(memory)
        with pytest.raises(MemoryInputError, match="names nobody"):
            memory.forget(**given)
        assert len(memory.sessions("u1")) == 1


def test_of_somebody_unknown_it_says_that_nothing_was_there(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        _turn(memory)
        gone = memory.forget(user_id="nobody")
        assert gone.nothing
        assert (gone.sessions, gone.turns, gone.facts) == ((), (), ())
        assert str(gone) == "nothing was there"
        found = memory.forget(user_id="u1")
        assert not found.nothing
        assert str(found) == "erased: 1 sessions, 1 turns, 0 facts"


# ---------------------------------------------------------------- what a model can erase

PRIVATE = "I take pills against seizures"


@pytest.fixture
def forget_memory(tmp_path: Path) -> Any:
    with opened(tmp_path) as memory:
        memory.remember(PRIVATE, user_id="u1", private=True)
        memory.remember("I like tea", user_id="u1")
        memory.remember("I like green apples", user_id="u1")
        tools = {tool.name: tool for tool in memory_tools(memory)}
        yield lambda words: (str(tools["forget_memory"].invoke({"fact": words}, U1)), _known(memory))


def _known(memory: Memory) -> list[str]:
    return [fact.text for fact in memory._stored("").store.ledger().current("user:u1", include_private=True)]


PARTIAL = ["a", "i", "I", "pills", "seizures", "I take pills", PRIVATE, f"{PRIVATE}.", PRIVATE.upper(), "green", "tea"]


@pytest.mark.parametrize("words", PARTIAL)
def test_a_model_erases_nothing_that_it_does_not_name_whole_and_learns_of_nothing_private(
    words: str, forget_memory: Any
) -> None:
    said, known = forget_memory(words)
    assert known == [PRIVATE, "I like tea", "I like green apples"]
    assert said.startswith("Nothing was forgotten")
    assert "pills against" not in said
    assert "seizures" not in said


@pytest.mark.parametrize("words", ["  \n", "。", "!!", ""], ids=repr)
def test_guard_words_that_say_nothing_name_nothing(words: str, forget_memory: Any) -> None:
    said, known = forget_memory(words)
    assert said.startswith("Nothing was forgotten")
    assert len(known) == 3


def test_what_part_of_a_fact_may_mean_is_said_with_its_id_and_the_id_erases(forget_memory: Any) -> None:
    said, _ = forget_memory("apples")
    assert "I like green apples (id f" in said
    assert "tea" not in said
    fact_id = said.rsplit("(id ", 1)[1].rstrip(")\n")
    said, known = forget_memory(fact_id)
    assert said == "Forgotten: I like green apples"
    assert known == [PRIVATE, "I like tea"]


def test_guard_a_fact_that_is_named_whole_is_erased(forget_memory: Any) -> None:
    said, known = forget_memory("i like  TEA.")
    assert said == "Forgotten: I like tea"
    assert known == [PRIVATE, "I like green apples"]


def test_the_id_of_a_private_fact_erases_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        fact = memory.remember(PRIVATE, user_id="u1", private=True)
        tools = {tool.name: tool for tool in memory_tools(memory)}
        said = tools["forget_memory"].invoke({"fact": fact.id}, U1)
        assert "no such fact" in said
        assert _known(memory) == [PRIVATE]
