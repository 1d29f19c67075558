"""What an import takes in, whose it becomes, and that nobody's facts stop whoever reads them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lc_memory import Memory, cli
from lc_memory.errors import MemoryInputError
from lc_memory.sessions.portable import all_facts, export_lines, export_notes, import_file
from lc_memory.store import DATABASE_FILE, Fact, SessionKey, Store, open_store

PHONE = "13812345678"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "m")
    yield opened
    opened.close()


def header(**more: Any) -> dict[str, Any]:
    return {"type": "header", "format": "lc-memory", "version": 1, **more}


def session(session_id: str = "s1", user_id: str | None = "alice", **more: Any) -> dict[str, Any]:
    about = {"summary": None, "covers": 0, "noted": 0}
    return {"type": "session", "session_id": session_id, "user_id": user_id, **about, **more}


def turn(turn_id: str = "t1", session_id: str = "s1", user_id: str | None = "alice", **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"words of {turn_id}"}, {"role": "assistant", "content": "ok"}]
    about = {"turn_id": turn_id, "created_at": 1_700_000_000.0, "messages": messages}
    return {"type": "turn", "session_id": session_id, "user_id": user_id, **about, **more}


def fact(fact_id: str = "f1", owner: str = "user:alice", **more: Any) -> dict[str, Any]:
    about = {
        "text": f"text of {fact_id}", "kind": None, "subject": None, "private": False, "core": False,
        "source": {}, "noted_at": 1_700_000_000.0, "expires_at": None, "superseded_by": None,
        "superseded_at": None, "count": 1,
    }  # fmt: skip
    return {"type": "fact", "owner": owner, "id": fact_id, **about, **more}


def said(content: Any = "x", role: Any = "user", **more: Any) -> dict[str, Any]:
    return turn("t2", messages=[{"role": role, "content": content, **more}])


def write(path: Path, *lines: Any) -> Path:
    path.write_bytes(b"".join((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n" for line in lines))
    return path


def everything(store: Store) -> tuple[list[Any], list[Fact]]:
    return [(i.key, list(store.turns(i.key))) for i in store.sessions()], list(all_facts(store))


# ---------------------------------------------------------------- lines that cannot come in


def nested(depth: int) -> bytes:
    line = json.dumps(said("DEEP")).encode()
    return line.replace(b'"DEEP"', b'[{"type": "text", "x": ' + b"[" * depth + b"]" * depth + b"}]")


BAD: dict[str, Any] = {
    "a role that is a number": said(role=7),
    "a role that is empty": said(role=""),
    "a role that is a list": said(role=["user"]),
    "a content that is a number": said(5),
    "tool calls that are text": said(tool_calls="rm -rf"),
    "a number in a message that is infinite": said("x", score=float("inf")),
    "a number in a message that is none": said("x", score=float("nan")),
    "a turn at an infinite time": turn("t2", created_at=float("inf")),
    "a turn before 1970": turn("t2", created_at=-5),
    "a turn at 10^400": json.dumps(turn("t2", created_at=0)).replace('"created_at": 0', f'"created_at": {10**400}').encode(),
    "a turn in milliseconds": turn("t2", created_at=1_700_000_000_000),
    "a turn with an unknown field": turn("t2", mood="fine"),
    "a turn that stands there twice": turn("t1"),
    "a fact noted at an infinite time": fact(noted_at=float("inf")),
    "a fact noted in the year 130,000": fact(noted_at=4.04e12),
    "a fact noted at no number": fact(noted_at=float("nan")),
    "a fact that expires beyond any calendar": fact(expires_at=1e300),
    "a fact superseded before 1970": fact(superseded_at=-1.0),
    "a fact said minus three times": fact(count=-3),
    "a fact said 10^400 times": json.dumps(fact(count=0)).replace('"count": 0', f'"count": {10**400}').encode(),
    "a fact of nobody": fact(owner="alice"),
    "a fact whose source is infinite": fact(source={"created_at": float("inf")}),
    "a fact with an unknown field": fact(colour="red"),
    "a fact with a phone number in it": fact(text=f"my phone is {PHONE}"),
    "a core fact with a phone number in it": fact(text=f"my phone is {PHONE}", core=True, kind="phone"),
    "a fact whose quote holds a phone number": fact(source={"quote": f"call {PHONE}"}),
    "a session that covers minus one": session("s2", covers=-1),
    "a session that covers 10^400": json.dumps(session("s2")).replace('"covers": 0', f'"covers": {10**400}').encode(),
    "a session that stands there twice": session(),
    "a header of version minus one": header(version=-1),
    "nesting of 100,000": nested(100_000),
    "nesting of 900": nested(900),
    "a type that is a list": {"type": ["turn"]},
}
BAD_BEFORE: dict[str, Any] = {
    "a message that is text": turn("t2", messages=["hello"]),
    "messages that are empty": turn("t2", messages=[]),
    "a turn at a time that is a flag": turn("t2", created_at=True),
    "a number of 6,000 digits": json.dumps(turn("t2", created_at=0)).replace('"created_at": 0', f'"created_at": {"9" * 6000}').encode(),
    "a turn without a time": {k: v for k, v in turn("t2").items() if k != "created_at"},
    "a session id that is a number": turn("t2", session_id=5),
    "a user id that is a list": turn("t2", user_id=["alice"]),
    "a turn id that is nothing": turn(turn_id=None),
    "a fact said true times": fact(count=True),
    "a fact that is private by number": fact(private=1),
    "a fact without words": fact(text=" \t "),
    "a session noted by a flag": session("s2", noted=False),
    "a summary that is a list": session("s2", summary=["a"]),
    "a list": [1, 2],
    "half a surrogate as raw bytes": b'{"type": "turn", "session_id": "\xed\xa0\x80"}',
    "bytes that are no text": b"\xff\xfe\x00",
    "a line that breaks off": b'{"type": "turn", "session_id": "s',
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_bad_line_is_one_error_with_its_number_and_nothing_is_written(bad: Any, store: Store, tmp_path: Path) -> None:
    _is_refused(bad, store, tmp_path)


@pytest.mark.parametrize("bad", BAD_BEFORE.values(), ids=BAD_BEFORE.keys())
def test_guard_lines_that_were_refused_before_are_refused_still(bad: Any, store: Store, tmp_path: Path) -> None:
    _is_refused(bad, store, tmp_path)


def _is_refused(bad: Any, store: Store, tmp_path: Path) -> None:
    path = write(tmp_path / "in.jsonl", header(), session(), turn(), fact("f0"), bad, turn("t9"))
    with pytest.raises(MemoryInputError, match=r"line 5: ") as refused:
        import_file(store, path)
    assert PHONE not in str(refused.value)
    assert "rm -rf" not in str(refused.value)
    assert everything(store) == ([], [])
    done = import_file(store, path, skip_bad=True)
    assert [line.split(":")[0] for line in done.bad] == ["line 5"]
    assert (done.sessions, done.turns, done.facts) == (1, 2, 1)


def test_a_fault_in_the_middle_of_the_writing_leaves_nothing(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from lc_memory.store.ledger import Ledger

    restore = Ledger.restore

    def breaks(self: Ledger, fact: Fact) -> bool:
        if fact.id == "f2":
            raise RuntimeError("the plug was pulled")
        return restore(self, fact)

    path = write(tmp_path / "in.jsonl", header(), session(), turn(), fact("f1"), fact("f2"))
    monkeypatch.setattr(Ledger, "restore", breaks)
    with pytest.raises(RuntimeError):
        import_file(store, path)
    monkeypatch.undo()
    assert everything(store) == ([], [])
    assert import_file(store, path).facts == 2


LISTS: dict[str, tuple[Any, str]] = {
    "a day in the year 1": ({"kind": "a", "content": "b", "noted_at": "0001-01-01"}, "no date"),
    "a day in the year 9999": ({"kind": "a", "content": "b", "noted_at": "9999-12-31"}, "no date"),
    "a moment at the edge of the calendar": ({"kind": "a", "content": "b", "noted_at": "9999-12-31T23:59:59-23:00"}, "no date"),
}


@pytest.mark.parametrize(("entry", "what"), LISTS.values(), ids=LISTS.keys())
def test_a_list_of_notes_is_checked_as_lines_are(entry: Any, what: str, store: Store, tmp_path: Path) -> None:
    path = tmp_path / "fan_memory.json"
    path.write_text(json.dumps([{"kind": "k", "content": "c", "noted_at": "2026-08-24"}, entry]))
    with pytest.raises(MemoryInputError, match="entry 2") as refused:
        import_file(store, path, owner="user:u1")
    assert what in str(refused.value)
    assert everything(store) == ([], [])


def test_a_list_that_is_nested_without_end_is_an_error_of_ours(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "fan_memory.json"
    path.write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(MemoryInputError, match="nested"):
        import_file(store, path, owner="user:u1")


def test_private_data_comes_in_as_the_door_is_set(store: Store, tmp_path: Path) -> None:
    path = write(
        tmp_path / "in.jsonl", header(),
        fact("f1", text=f"call me at {PHONE} after five", source={"quote": f"call me at {PHONE} after five"}),
        fact("f2", text=f"the number is {PHONE}", private=True),
    )  # fmt: skip
    import_file(store, path, privacy="redact")
    open_one, private = all_facts(store)
    assert PHONE not in open_one.text + str(open_one.source)
    assert "after five" in open_one.text
    assert PHONE in private.text, "a private fact is kept as it is, as remember(private=True) keeps it"


# ---------------------------------------------------------------- whose it becomes


def test_with_a_user_all_of_it_becomes_his(store: Store, tmp_path: Path) -> None:
    path = write(
        tmp_path / "in.jsonl", header(),
        session(), turn(), turn("t2"), session("s2", None), turn("t3", "s2", None),
        fact("f1", core=True, kind="budget", text="40"), fact("f2", "session:s2"), fact("f3", "user:mallory"),
    )  # fmt: skip
    done = import_file(store, path, owner="user:mallory")
    assert {info.key.user_id for info in store.sessions()} == {"mallory"}
    assert {one.owner for one in all_facts(store)} == {"user:mallory"}
    assert store.ledger().current("user:alice") == []
    assert (done.sessions, done.turns, done.facts) == (2, 3, 3)
    assert done.was == {"user:alice": 4, "session:s2": 3}
    before = everything(store)
    assert import_file(store, path, owner="user:mallory").known == 6
    assert everything(store) == before


def test_what_two_owners_called_alike_stays_two(store: Store, tmp_path: Path) -> None:
    path = write(
        tmp_path / "in.jsonl", header(),
        session("default", "alice"), turn("t1", "default", "alice"),
        session("default", "bob"), turn("t1", "default", "bob"), turn("t2", "default", "bob"),
        fact("k", "user:alice", text="from alice"),
        fact("k", "user:bob", text="from bob", source={"session": "default"}),
        fact("old", "user:bob", text="long ago", superseded_by="k", superseded_at=1.0),
    )  # fmt: skip
    store.ledger().add("user:mallory", "my own", fact_id="k")
    import_file(store, path, owner="user:mallory")
    assert sorted(info.turns for info in store.sessions("mallory")) == [1, 2]
    facts = {one.text: one for one in store.ledger().current("user:mallory")}
    assert facts.keys() == {"my own", "from alice", "from bob"}
    (bobs,) = (i.key.session_id for i in store.sessions("mallory") if i.turns == 2)
    assert facts["from bob"].source == {"session": bobs}
    gone = store.forget(user_id="mallory", session_id=bobs)
    assert len(gone.facts) == 1, "what was learnt in a session goes with it"


def test_an_export_cannot_become_a_sessions(store: Store, tmp_path: Path) -> None:
    with pytest.raises(MemoryInputError, match="user's"):
        import_file(store, write(tmp_path / "in.jsonl", header(), turn()), owner="session:s1")
    assert everything(store) == ([], [])


def run(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    code = 0
    try:
        cli.main(args)
    except SystemExit as end:
        code = int(end.code or 0)
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_command_says_whose_it_was_and_health_is_in_order_right_after(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "in.jsonl", header(), session(), turn(), fact())
    here = ("--memory", str(tmp_path / "m"))
    code, out, err = run(capsys, "import", str(path), *here, "--user", "mallory")
    assert (code, err) == (0, "")
    assert out == "1 sessions, 1 turns, 1 facts; 3 of user:alice are mallory's now\n"
    assert "mallory" in run(capsys, "facts", "list", *here, "--user", "mallory")[1]
    assert "nothing yet" in run(capsys, "facts", "list", *here, "--user", "alice")[1]
    code, out, _ = run(capsys, "health", *here)
    assert (code, "in order" in out) == (0, True)


def test_what_waits_to_be_indexed_is_said_with_what_to_do(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    import_file(store, write(tmp_path / "in.jsonl", header(), turn(), fact()))
    store.close()
    with Memory.open(tmp_path) as memory:
        found = memory.health()
        assert found.unindexed == 2
        assert any("lc-memory reindex" in note for note in found.notes)


@pytest.mark.parametrize("command", ["import", "export"])
def test_an_empty_user_is_refused_by_the_commands(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "in.jsonl", header(), turn())
    open_store(tmp_path / "m").close()
    code, _, err = run(capsys, command, str(path), "--memory", str(tmp_path / "m"), "--user", "")
    assert code == 1
    assert "names nobody" in err


def test_a_pipe_in_a_files_place_is_refused_before_it_is_read(store: Store, tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(MemoryInputError, match="read twice"):
        import_file(store, tmp_path / "pipe")


# ---------------------------------------------------------------- what is in the store already

STRANGE: dict[str, dict[str, Any]] = {
    "noted without end": {"noted_at": float("inf")},
    "noted in the year 130,000": {"noted_at": 4.04e12},
    "noted long before Christ": {"noted_at": -1e15},
    "superseded in no year": {"superseded_at": 1e300, "superseded_by": "x"},
    "a source with times that are none": {"source": json.dumps({"created_at": "yesterday", "put": {"text": "x"}})},
    "a source with a time without end": {"source": json.dumps({"created_at": 1e300, "put": {"text": "x"}})},
    "a kind of control characters": {"kind": "\x1b[2J\n\x07"},
}
STRANGE_BEFORE: dict[str, dict[str, Any]] = {
    "expires without end": {"expires_at": float("inf")},
    "an empty kind": {"kind": ""},
    "half an emoji in it": {"text": "\x1aI have \x1ad83d"},
}

READERS: dict[str, Callable[[Memory, Any], object]] = {
    "export": lambda memory, store: [json.loads(line) for line in export_lines(store)],
    "notes": lambda memory, store: json.dumps(export_notes(store, "user:u1")),
    "history": lambda memory, store: memory.history("the dog of my aunt", {"configurable": {"user_id": "u1"}}),
    "explain": lambda memory, store: str(memory.explain("the dog of my aunt", {"configurable": {"user_id": "u1"}})),
    "health": lambda memory, store: str(memory.health()),
    "retriever": lambda memory, store: memory.retriever(include_private=True).invoke(
        "the dog of my aunt", {"configurable": {"user_id": "u1"}}
    ),
    "store": lambda memory, store: fact_store(memory).search(("user", "u1")),
}


def fact_store(memory: Memory) -> Any:
    from lc_memory.integrations.store import FactStore

    return FactStore(memory)


@pytest.mark.parametrize("strange", STRANGE.values(), ids=STRANGE.keys())
def test_a_fact_that_is_there_never_ends_its_readers(
    strange: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _is_read(strange, tmp_path, capsys)


@pytest.mark.parametrize("strange", STRANGE_BEFORE.values(), ids=STRANGE_BEFORE.keys())
def test_guard_facts_that_could_be_read_before_can_be_read_still(
    strange: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _is_read(strange, tmp_path, capsys)


def _is_read(strange: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import sqlite3

    store = open_store(tmp_path)
    for text in ("the dog of my aunt is called Rex", "I drink tea with the dog of my aunt"):
        store.ledger().add("user:u1", text, kind="pets", core="tea" in text, fact_id=text[:5])
    store.close()
    written = sqlite3.connect(tmp_path / DATABASE_FILE)  # as older versions let it in
    for column, value in strange.items():
        written.execute(f"UPDATE lcm_facts SET {column} = ?", (value,))
    written.commit()
    written.close()
    with Memory.open(tmp_path) as memory:
        for reader in READERS.values():
            reader(memory, memory._stored("").store)
        exported = tmp_path / "out.jsonl"
        with exported.open("wb") as file:
            for line in export_lines(memory._stored("").store):
                file.write(line.encode() + b"\n")
    code, out, err = run(capsys, "facts", "list", "--history", "--private", "--memory", str(tmp_path))
    assert (code, err) == (0, "")
    assert len(out.splitlines()) == 2, "a line for each"
    assert "\x1b" not in out
    if "text" not in strange:
        other = open_store(tmp_path / "other")
        assert import_file(other, exported).facts == 2, "what was exported comes in again"
        other.close()


@pytest.mark.parametrize("when", [float("inf"), float("nan"), 4.04e12, -1.0, True, "now", 10**400], ids=str)
def test_no_door_lets_a_time_in_that_no_calendar_has(when: Any, store: Store) -> None:
    with pytest.raises(MemoryInputError, match="Unix seconds"):
        store.ledger().add("user:u1", "x", noted_at=when)
    with pytest.raises(MemoryInputError, match="Unix seconds"):
        store.ledger().add("user:u1", "x", expires_at=when)
    with pytest.raises(MemoryInputError, match="Unix seconds"):
        store.append(SessionKey("s"), [{"role": "user", "content": "x"}], created_at=when)
    assert everything(store) == ([], [])


def test_a_turn_saved_again_within_a_transaction_draws_no_number(store: Store) -> None:
    key, words = SessionKey("s"), [{"role": "user", "content": "x"}]
    store.append(key, words, turn_id="t1")
    with store.transaction():
        store.append(key, words, turn_id="t2")
        store.append(key, words, turn_id="t1")
        store.append(key, words, turn_id="t3")
    assert [t.seq for t in store.turns(key)] == [1, 2, 3]
