"""What strangers tried from outside, with nothing but the public calls."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

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
