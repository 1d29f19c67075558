"""An old Chroma folder comes along, and the index moves to another embedding, from the command line."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.data import ROOT
from tests.helpers import console, programs
from tests.helpers.longterm import FACTS, in_order, opened, recalled

MAKE_OLD = """
import sys
import chromadb
from legacy_memory import LongTermMemory
from tests.helpers.longterm import FACTS, Bags

class Function(chromadb.EmbeddingFunction):
    def __init__(self): pass
    def __call__(self, input): return Bags().embed_documents(list(input))
    @staticmethod
    def name(): return "default"
    def get_config(self): return {}
    @staticmethod
    def build_from_config(config): return Function()

ltm = LongTermMemory(path=sys.argv[1])
client = chromadb.PersistentClient(path=sys.argv[1])
ltm._col = client.get_or_create_collection("long_term", embedding_function=Function())
for n, fact in enumerate(FACTS):
    ltm.add_fact(fact, f"old{n}", private=n == 1)
if more := [f"thing{n}" for n in range(int(sys.argv[2]))]:
    a_fact = ltm._col.get("old0")["metadatas"][0]
    ltm._col.add(more, documents=[f"thing number {i[5:]}" for i in more], metadatas=[a_fact] * len(more))
"""


def program(*arguments: Any) -> subprocess.CompletedProcess[str]:
    return console.run(os.environ, *arguments, cwd=ROOT)


def old_folder(folder: Path, more: int = 0) -> Path:
    made = programs.run("-c", MAKE_OLD, folder, more)
    assert made.returncode == 0, made.stderr
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_an_old_folder_comes_along_with_ids_private_flags_and_times(tmp_path: Path) -> None:
    old = old_folder(tmp_path / "mem_store")
    before = digests(old)
    done = program("import", "--chroma", old, "--user", "u1", "--memory", tmp_path / "m")
    assert done.returncode == 0, done.stderr
    assert f"{len(FACTS)} facts taken over" in done.stdout
    assert digests(old) == before
    again = program("import", "--chroma", old, "--user", "u1", "--memory", tmp_path / "m")
    assert f"0 facts taken over, {len(FACTS)} were there already" in again.stdout
    with opened(tmp_path / "m", embedding="local") as memory:
        facts = memory._stored("").store.ledger().current("user:u1", include_private=True)
        assert {fact.id: fact.text for fact in facts} == {f"old{n}": t for n, t in enumerate(FACTS)}
        assert [fact.id for fact in facts if fact.private] == ["old1"]
        assert all(fact.noted_at > 1_700_000_000 for fact in facts)
        assert "我喜欢打篮球" in recalled(memory, "我喜欢什么运动？")
        assert "豆豆" not in recalled(memory, "我家的狗叫什么")
        in_order(memory)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--user", "u1"], "--chroma FOLDER"),
        (["--chroma", "nowhere", "--user", "u1"], "no Chroma folder"),
        (["--chroma", "old"], "--user"),
        (["--chroma", "old", "--user", "u1", "--collection", "other"], "long_term"),
    ],
)
def test_what_cannot_be_imported_is_said_and_what_to_do(
    tmp_path: Path, arguments: list[str], said: str
) -> None:
    if "old" in arguments:
        old_folder(tmp_path / "old")
    arguments = [str(tmp_path / a) if a in ("old", "nowhere") else a for a in arguments]
    done = program("import", *arguments, "--memory", tmp_path / "m")
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr


KILLED = """
import os, sys
from pathlib import Path
from lc_memory.facts.importing import import_chroma
from lc_memory.store import open_store
def tell(done, total):
    print(done, total, flush=True)
    if done >= 512:
        sys.stdin.read()
import_chroma(open_store(sys.argv[2]), "user:u1", Path(sys.argv[1]), "long_term", progress=tell)
"""


def test_a_killed_import_goes_on_where_it_was(tmp_path: Path) -> None:
    old = old_folder(tmp_path / "mem_store", more=700)
    before = digests(old)
    first = programs.start("-c", KILLED, old, tmp_path / "m")
    assert first.stdout is not None
    while not first.stdout.readline().startswith("512 "):
        pass
    first.kill()
    first.wait()
    done = program("import", "--chroma", old, "--user", "u1", "--memory", tmp_path / "m")
    assert "512 were there already" in done.stdout
    assert digests(old) == before
    health = program("health", "--memory", tmp_path / "m")
    assert health.returncode == 0, health.stdout
    assert f"{700 + len(FACTS)} entries" in health.stdout


def test_reindex_and_health_are_commands(tmp_path: Path) -> None:
    with opened(tmp_path / "m") as memory:
        for fact in FACTS:
            memory.remember(fact, user_id="u1")
        in_order(memory)
    refused = program("health", "--memory", tmp_path / "m")
    assert refused.returncode == 1
    assert "lc-memory reindex" in refused.stdout
    done = program("reindex", "--memory", tmp_path / "m", "--embedding", "local")
    assert done.returncode == 0, done.stderr
    assert f"{len(FACTS)} memories" in done.stdout
    well = program("health", "--memory", tmp_path / "m")
    assert well.returncode == 0, well.stdout
    assert "in order" in well.stdout
