"""The original memory behaves as its authors' own checks say: five for the manager, four scenes end to end."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from legacy_memory import LongTermMemory, MemoryManager, ShortTermMemory, compress, maybe_compress
from legacy_memory.memory_manager import _fid
from tests.data import ROOT


class Summariser:
    """Answers with a fixed text and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def summarize(self, text: str) -> str:
        self.asked.append(text)
        return f"第{len(self.asked)}版"


class Facts:
    """A long-term memory by words, in place of Chroma: the manager takes anything that answers its calls."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[str, bool]] = {}

    def add_fact(self, text: str, fid: str, private: bool = False) -> None:
        self.rows.setdefault(fid, (text, private))

    def recall(self, query: str, k: int = 3, include_private: bool = False) -> list[str]:
        shared = [(len(set(query) & set(t)), t) for t, p in self.rows.values() if include_private or not p]
        return [t for n, t in sorted(shared, reverse=True) if n > 1][:k]

    def delete(self, fid: str) -> None:
        self.rows.pop(fid, None)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def ai(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def summaries(manager: MemoryManager) -> list[dict[str, Any]]:
    return [m for m in manager.stm.buffer if m.get("is_summary")]


@pytest.fixture
def facts() -> Facts:
    return Facts()


def talk(manager: MemoryManager, rounds: int) -> None:
    for i in range(rounds):
        manager.add(user(f"第{i}个问题，讲讲今天的安排"))
        manager.add(ai(f"第{i}个回答，今天先这样再那样"))
        manager.maybe_compress()


# ---- the five checks of the manager


@pytest.fixture
def after_twenty_rounds(facts: Facts) -> MemoryManager:
    manager = MemoryManager(window=8, max_tokens=300, keep=4, llm=Summariser())
    manager.ltm = facts  # type: ignore[assignment]
    manager.add({"role": "system", "content": "你是客服小M"})
    manager.add(user("我叫小明喜欢蓝色"), persist=True)
    talk(manager, 20)
    return manager


def test_1_a_persisted_fact_is_recalled_into_the_context(after_twenty_rounds: MemoryManager) -> None:
    context = after_twenty_rounds.get_context("小明喜欢什么")
    assert any("小明" in m["content"] for m in context)
    assert [m["role"] for m in context[:2]] == ["system", "system"]


def test_2_recalled_facts_are_never_written_back(after_twenty_rounds: MemoryManager) -> None:
    for _ in range(3):
        after_twenty_rounds.get_context("小明喜欢什么")
    assert not any("已知用户长期事实" in str(m["content"]) for m in after_twenty_rounds.stm.buffer)


def test_3_there_is_exactly_one_summary(after_twenty_rounds: MemoryManager) -> None:
    assert len(summaries(after_twenty_rounds)) == 1


def test_4_facts_outlive_the_manager(after_twenty_rounds: MemoryManager, facts: Facts) -> None:
    restarted = MemoryManager()
    restarted.ltm = facts  # type: ignore[assignment]
    assert any("蓝色" in t for t in restarted.recall("喜欢什么颜色"))


def test_5_the_system_prompt_stays(after_twenty_rounds: MemoryManager) -> None:
    assert after_twenty_rounds.stm.buffer[0] == {"role": "system", "content": "你是客服小M"}


# ---- the four scenes


def test_below_the_threshold_not_compressing_is_right() -> None:
    manager = MemoryManager(window=8, max_tokens=2000, keep=4, llm=Summariser())
    talk(manager, 20)
    assert summaries(manager) == []
    assert len(manager.stm.buffer) == 40


def test_above_the_threshold_there_is_one_summary_and_the_last_keep_messages() -> None:
    manager = MemoryManager(window=8, max_tokens=300, keep=4, llm=Summariser())
    talk(manager, 20)
    assert len(summaries(manager)) == 1
    assert manager.stm.buffer[-1] == ai("第19个回答，今天先这样再那样")


def test_the_window_is_what_the_context_shows() -> None:
    manager = MemoryManager(window=8)
    manager.add({"role": "system", "content": "s"})
    talk(manager, 20)
    context = manager.get_context()
    assert [m["role"] for m in context] == ["system"] + ["user", "assistant"] * 4
    assert len(manager.stm.buffer) == 41


def test_the_old_summary_is_merged_into_the_new_one() -> None:
    llm = Summariser()
    messages = [user(f"q{i}") for i in range(6)]
    once = compress(messages, llm, keep=4)
    assert once[0] == {"role": "system", "content": "历史摘要：第1版", "is_summary": True}
    twice = compress([*once, user("q6")], llm, keep=4)
    assert [m.get("is_summary", False) for m in twice] == [True, False, False, False, False]
    assert llm.asked == ["user:q0\nuser:q1", "已有摘要:历史摘要：第1版\n新增对话：\nuser:q2"]


# ---- what else the parts promise


def test_nothing_to_compress_gives_the_same_list_object() -> None:
    messages = [user("q")] * 3
    assert maybe_compress(messages, Summariser()) is messages
    assert compress(messages, Summariser(), keep=4) is messages
    long = [user("长" * 2000)] * 5
    assert maybe_compress(long, Summariser(), keep=4) is long  # over the threshold, but too few messages
    assert maybe_compress([*long, user("q")], Summariser(), keep=4)[0]["is_summary"]


def test_trim_drops_the_oldest_and_leaves_one() -> None:
    memory = ShortTermMemory(window=10, max_tokens=20)
    memory.add({"role": "system", "content": "s" * 300})
    for i in range(5):
        memory.add(user(str(i) * 30))
    assert [m["content"][0] for m in memory.trim()] == ["s", "3", "4"]
    memory.max_tokens = 0
    assert [m["content"][0] for m in memory.trim()] == ["s", "4"]


def test_only_a_users_persisted_words_become_facts(facts: Facts) -> None:
    manager = MemoryManager()
    manager.ltm = facts  # type: ignore[assignment]
    manager.add(user("我喜欢蓝色"))
    manager.add(ai("好的"), persist=True)
    assert facts.rows == {}
    manager.add(user("我喜欢蓝色"), persist=True)
    assert list(facts.rows) == [_fid("我喜欢蓝色")] == ["f" + hashlib.md5("我喜欢蓝色".encode()).hexdigest()[:12]]


def test_building_a_manager_touches_no_disk_and_loads_no_chroma(tmp_path: Path) -> None:
    code = (
        "import sys; from legacy_memory import MemoryManager; m = MemoryManager();"
        "m.add({'role': 'user', 'content': 'hi'}); m.get_context();"
        "assert 'chromadb' not in sys.modules and 'langchain_core' not in sys.modules"
    )
    env = {**os.environ, "LEGACY_MEMORY_HOME": str(tmp_path / "home")}
    subprocess.run([sys.executable, "-c", code], check=True, env=env)
    assert not (tmp_path / "home").exists()


def test_the_paths_are_absolute_and_can_be_moved(tmp_path: Path) -> None:
    code = "from legacy_memory import paths; print(paths.MEM_STORE)"
    env = {**os.environ, "LEGACY_MEMORY_HOME": "relative", "PYTHONPATH": str(ROOT)}
    run = subprocess.run([sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert run.stdout.strip() == str(tmp_path / "relative" / "mem_store")


def test_facts_lie_in_a_real_chroma_folder_private_ones_filtered_after_the_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import chromadb

    memory = LongTermMemory(path=tmp_path / "store")
    # Chroma's default embedding is a download; vectors made here keep the test on this machine.
    vectors = {"我喜欢蓝色": [1.0, 0.0], "我的密码是猫": [0.9, 0.1], "什么颜色": [1.0, 0.05]}

    class Fixed(chromadb.EmbeddingFunction):  # type: ignore[type-arg, misc]
        def __init__(self) -> None: ...

        def __call__(self, input: list[str]) -> Any:  # noqa: A002
            return [vectors[text] for text in input]

        @staticmethod
        def name() -> str:
            return "fixed"

        def get_config(self) -> dict[str, Any]:
            return {}

        @staticmethod
        def build_from_config(config: dict[str, Any]) -> Fixed:
            return Fixed()

    client = chromadb.PersistentClient(path=str(tmp_path / "store"))
    memory._col = client.create_collection("long_term", embedding_function=Fixed())
    memory.add_fact("我喜欢蓝色", "f1")
    memory.add_fact("我的密码是猫", "f2", private=True)
    assert memory.recall("什么颜色", k=2) == ["我喜欢蓝色"]
    assert memory.recall("什么颜色", k=2, include_private=True) == ["我喜欢蓝色", "我的密码是猫"]
    memory.delete("f1")
    assert memory.recall("什么颜色", k=1) == []
