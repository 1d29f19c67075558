"""Notes are made of the sessions whose calls asked for them, and of nobody else's."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda

from lc_memory import Memory
from lc_memory.sessions.portable import export_lines, import_file
from lc_memory.store import SessionKey, Store, open_store

OTHERS: dict[str, SessionKey] = {
    "the default session of nobody": SessionKey("default"),
    "a named session of nobody": SessionKey("s7"),
    "the same session of another user": SessionKey("default", "alice"),
    "a user of the same letters": SessionKey("default", "Other"),
}


class Asked:
    """A model that proposes nothing and keeps what it was sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def __call__(self, messages: Any) -> AIMessage:
        self.sent.append("\n".join(str(m.text) for m in messages))
        return AIMessage(json.dumps({"notes": []}))


def say(store: Store, key: SessionKey, words: str, age: float) -> None:
    turn = [{"role": "user", "content": words}, {"role": "assistant", "content": "ok"}]
    store.append(key, turn, created_at=time.time() - age)


def talk(folder: Path, key: SessionKey, words: str, end: Callable[[Memory], object]) -> str:
    model = Asked()
    with Memory.open(folder, recall=(), notes=RunnableLambda(model), notes_every=2) as memory:
        session = memory.session(key.session_id, key.user_id)
        session.add([{"role": "user", "content": words}, {"role": "assistant", "content": "ok"}])
        end(memory)
    return "\n".join(model.sent)


ENDS: dict[str, Callable[[Memory], object]] = {"close": lambda memory: None, "flush": lambda memory: memory.flush()}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS.keys())
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_what_was_left_behind_is_read_for_its_own_owner_alone(
    other: SessionKey, end: Callable[[Memory], object], tmp_path: Path
) -> None:
    store = open_store(tmp_path)
    for age in (3600, 86400):
        say(store, other, "I keep a secret recipe at home", age)
    store.close()
    sent = talk(tmp_path, SessionKey("default", "other"), "I live in Leeds", end)
    assert "Leeds" in sent
    assert "secret recipe" not in sent
    # The other one asks for himself: then his are read.
    assert "secret recipe" in talk(tmp_path, other, "I work in Bath", end)


def test_of_two_that_name_nobody_each_is_its_own(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    say(store, SessionKey("default"), "I keep a secret recipe at home", 3600)
    store.close()
    sent = talk(tmp_path, SessionKey("s2"), "I live in Leeds", ENDS["close"])
    assert "Leeds" in sent
    assert "secret recipe" not in sent


def test_a_session_that_became_somebodys_is_read_for_him_alone(tmp_path: Path) -> None:
    one = open_store(tmp_path / "one")
    say(one, SessionKey("default"), "I keep a secret recipe at home", 3600)
    lines = "".join(line + "\n" for line in export_lines(one))
    one.close()
    (tmp_path / "out.jsonl").write_text(lines)
    two = open_store(tmp_path / "two")
    import_file(two, tmp_path / "out.jsonl", owner="user:mallory")
    two.close()
    assert "secret recipe" not in talk(tmp_path / "two", SessionKey("x", "other"), "I live in Leeds", ENDS["close"])
    assert "secret recipe" in talk(tmp_path / "two", SessionKey("y", "mallory"), "I live in York", ENDS["close"])


def test_a_reading_that_fails_at_one_owner_keeps_nobodys_back(tmp_path: Path) -> None:
    """Guard: what waits stays for its owner, and the conversation goes on."""
    store = open_store(tmp_path)
    say(store, SessionKey("default", "alice"), "I keep a secret recipe at home", 3600)
    store.close()
    asked: list[int] = []

    def fails(messages: Any) -> AIMessage:
        asked.append(1)
        raise ConnectionError("away")

    with Memory.open(tmp_path, recall=(), notes=RunnableLambda(fails), notes_every=1) as memory:
        for user in ("alice", "bob"):
            memory.session("s", user).add([{"role": "user", "content": "I live in Leeds"}])
        memory.flush()
    assert asked
    assert "secret recipe" in talk(tmp_path, SessionKey("default", "alice"), "I live in York", ENDS["close"])
