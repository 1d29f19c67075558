"""What strangers tried from outside, with nothing but the public calls."""

from __future__ import annotations

import logging
import struct
import threading
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ChatMessage

from lc_memory import Memory, MemoryInputError, with_memory
from tests.helpers.longterm import opened


def test_memories_that_several_threads_note_at_once_are_indexed_and_none_is_set_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "lc_memory")
    with opened(tmp_path / "m") as memory:
        together = threading.Barrier(8)

        def note(thread: int) -> None:
            together.wait()
            for i in range(6):
                memory.remember(f"我有第{i}只叫{thread}号的猫", user_id=f"u{thread}")
                memory.session("s", f"u{thread}").add([("user", f"问题{i}"), ("ai", f"回答{i}")])

        threads = [threading.Thread(target=note, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        memory.flush()
        assert [r.getMessage() for r in caplog.records if "set aside" in r.getMessage()] == []
        health = memory.health()
        assert health.ok
        assert (health.unindexed, health.drift) == (0, 0)


# ---------------------------------------------------------------- whose


SLIPS = {
    **dict.fromkeys(["uesr_id", "user_idd", "usre_id", "user_d", "ser_id", "id_user", "user＿id"], "user_id"),
    **dict.fromkeys(["sesion_id", "session_ids", "seession_id", "sessoin_id", "sessionId_"], "session_id"),
    **dict.fromkeys(["tread_id", "thraed_id", "threadd_id"], "thread_id"),
}


@pytest.mark.parametrize("key", SLIPS)
def test_a_slip_of_the_keyboard_is_refused_with_the_right_key(key: str) -> None:
    with Memory.open(":memory:", recall=()) as memory:
        with pytest.raises(MemoryInputError, match=SLIPS[key]):
            memory.history("q", {"configurable": {key: "alice"}})


@pytest.mark.parametrize(
    "config",
    [
        {"configuarble": {"user_id": "alice"}},
        {"configurable": {"configurable": {"user_id": "alice"}}},
        {"configurable": {"auth": {"user_id": "alice"}}},
        {"configurable": {"request": SimpleNamespace(session_id="s1")}},
        {"configurable": {"tenant_id": "acme"}},
    ],
    ids=str,
)
def test_a_name_that_lies_one_level_too_deep_is_refused(config: dict[str, Any]) -> None:
    with Memory.open(":memory:", recall=()) as memory, pytest.raises(MemoryInputError, match="nobody's name"):
        memory.history("q", config)


@pytest.mark.parametrize(
    "context", ["alice", 7, uuid.UUID(int=1), {"auth": {"user_id": "alice"}},
                SimpleNamespace(request=SimpleNamespace(user_id="alice"))], ids=str,
)  # fmt: skip
def test_a_context_that_names_somebody_where_nobody_reads_is_refused(context: Any) -> None:
    with Memory.open(":memory:", recall=()) as memory:
        bot = with_memory(memory.load_mem | (lambda _: AIMessage("ok")), memory)
        with pytest.raises(MemoryInputError, match="nobody's name"):
            bot.invoke({"question": "q"}, context=context)
        assert memory.sessions() == []


@pytest.mark.parametrize(
    "more", [{"use_id": "x"}, {"auth": {"user_id": "u9"}}, {"tenant_id": "acme"}, {"db": SimpleNamespace(x=1)}], ids=str
)
def test_guard_where_somebody_is_named_a_programs_own_fields_are_left_alone(more: dict[str, Any]) -> None:
    with Memory.open(":memory:", recall=()) as memory:
        assert memory.history("q", {"configurable": {"user_id": "u1", "session_id": "s1", **more}}) == []


# ---------------------------------------------------------------- conversations brought along


def _said(role: str, n: int) -> dict[str, Any]:
    return {"role": role, "content": f"words {n}"}


@pytest.mark.parametrize(
    "roles", [("prompter", "assistant"), ("用户", "助手"), ("assistant",)], ids=lambda roles: "-".join(roles)
)
def test_a_long_conversation_is_never_one_turn_whatever_its_roles_are_called(roles: tuple[str, ...]) -> None:
    with Memory.open(":memory:", recall=()) as memory:
        session = memory.session("s1", "u1")
        session.add([_said(roles[i % len(roles)], i) for i in range(400)])
        assert memory.sessions("u1")[0].turns == 400 // len(roles)
        assert len(session.context("q")) <= 2 * 24


def test_of_messages_whose_speakers_have_names_of_their_own_each_is_a_turn() -> None:
    with Memory.open(":memory:", recall=()) as memory:
        memory.session("s1", "u1").add([ChatMessage(f"words {i}", role=("Ann", "Bob")[i % 2]) for i in range(400)])
        assert memory.sessions("u1")[0].turns == 400


def test_guard_what_an_assistant_does_unasked_is_one_turn() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    with Memory.open(":memory:", recall=()) as memory:
        memory.session("s1", "u1").add([
            {"role": "assistant", "content": "I look it up", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "42"},
            _said("assistant", 1), _said("user", 2), _said("assistant", 3), _said("assistant", 4),
        ])  # fmt: skip
        assert memory.sessions("u1")[0].turns == 2


@pytest.mark.parametrize(
    ("history", "place"),
    [
        ([_said("user", 1), _said("customer", 2)], r"messages\[1\]\['role'\]"),
        ([_said("Jane", 1)], r"messages\[0\]\['role'\]"),
        ([{"type": "message", "user": "U1", "text": "hi", "ts": "1.1"}], r"messages\[0\].*known form"),
    ],
    ids=["customer", "a name", "slack"],
)
def test_who_speaks_must_be_known(history: list[Any], place: str) -> None:
    with Memory.open(":memory:", recall=()) as memory:
        with pytest.raises(MemoryInputError, match=place):
            memory.session("s1", "u1").add(history)
        assert memory.sessions() == []


# ---------------------------------------------------------------- forgetting


def test_an_index_that_was_emptied_holds_no_byte_of_what_this_process_had_in_memory(tmp_path: Path) -> None:
    with opened(tmp_path / "m") as memory:
        for i in range(5):
            memory.remember(f"我养了{i}条斑马鱼", user_id="u1")
        memory.flush()
        assert memory.forget(user_id="u1").wiped
        files = list((tmp_path / "m").rglob("data_level0.bin"))
        assert files
        for file in files:  # Chroma writes an empty index with whatever stood in the memory it got
            _, _, _, count, size = struct.unpack("<IQQQQ", file.with_name("header.bin").read_bytes()[:36])
            assert not any(file.read_bytes()[count * size :])
