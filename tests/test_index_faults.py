# ruff: noqa: PT031  # a warning is expected of several calls together
"""The vector index breaks, each time for real: no fact is lost, the chain goes on, and it mends itself."""

from __future__ import annotations

import gc
import json
import os
import shutil
import threading
import warnings
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lc_memory.errors import EmbeddingMismatchError, FactIndexError
from lc_memory.index.chroma.base import BrokenIndexError
from lc_memory.index.chroma.collection import VectorIndex
from lc_memory.models.remote_embeddings import RemoteEmbeddings
from tests.helpers import programs
from tests.helpers.longterm import FACTS, Bags, in_order, opened, recalled, say, with_facts
from tests.servers.chroma import running_chroma


def delete(folder: Path) -> None:
    shutil.rmtree(folder)


def empty_files(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_bytes(b"")


def garble(folder: Path) -> None:
    for path in folder.rglob("*"):
        if path.is_file():
            path.write_bytes(os.urandom(max(8192, path.stat().st_size)))


def garble_the_vectors(folder: Path) -> None:
    for path in folder.rglob("*.bin"):
        path.write_bytes(os.urandom(path.stat().st_size))


DAMAGES = [delete, empty_files, garble, garble_the_vectors]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_folder_that_was_damaged_between_two_runs_is_built_anew(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    with with_facts(tmp_path / "m") as memory:
        say(memory, "我的车位在B2层", "记下了")
        in_order(memory)
    damage(tmp_path / "m" / "chroma")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with opened(tmp_path / "m") as memory:
            assert "我喜欢打篮球" in recalled(memory, "我喜欢打什么球")
            in_order(memory)
            assert "车位" in recalled(memory, "我的车位在哪层")
            in_order(memory)
    assert len([w for w in said if issubclass(w.category, RuntimeWarning)]) <= 1, [
        str(w.message) for w in said
    ]


@pytest.mark.parametrize("damage", [delete, empty_files, garble])
def test_a_folder_that_is_damaged_while_it_is_open_is_built_anew(
    tmp_path: Path, damage: Callable[[Path], None]
) -> None:
    with with_facts(tmp_path / "m") as memory:
        in_order(memory)
        damage(tmp_path / "m" / "chroma")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert "我喜欢打篮球" in recalled(memory, "我喜欢打什么球")
            memory.remember("我的生日是三月五日", user_id="u1")
            assert "三月五日" in recalled(memory, "我的生日是哪天")
            in_order(memory)
    with opened(tmp_path / "m") as memory:
        assert "花生" in recalled(memory, "我对花生过敏吗")
        in_order(memory)


def test_what_was_left_of_a_broken_folder_is_kept(tmp_path: Path) -> None:
    with with_facts(tmp_path / "m") as memory:
        in_order(memory)
    garble(tmp_path / "m" / "chroma")
    with opened(tmp_path / "m") as memory, pytest.warns(RuntimeWarning, match=r"lost.*broken-"):
        recalled(memory, "我喜欢打什么球")
        memory.flush()
    assert list((tmp_path / "m").glob("chroma.broken-*/chroma.sqlite3"))


def test_a_server_that_is_gone_leaves_the_words_and_is_followed_when_it_is_back(tmp_path: Path) -> None:
    with running_chroma(tmp_path / "server") as server:
        with with_facts(tmp_path / "m", chroma=server.url) as memory:
            in_order(memory)
            server.stop()
            with pytest.warns(RuntimeWarning, match="chroma run") as told:
                assert "我喜欢打篮球" in recalled(memory, "我喜欢打什么球")
                memory.remember("我的生日是三月五日", user_id="u1")
                say(memory, "我的车位在B2层", "记下了")
                memory.flush()
                assert "三月五日" in recalled(memory, "我的生日是哪天")
                assert "B2" in recalled(memory, "我的车位在哪层")
                memory.flush()
            assert len([w for w in told if issubclass(w.category, RuntimeWarning)]) == 1
            health = memory.health()
            assert health.degraded
            assert health.unindexed == 2
            assert "chroma run" in str(health)
            assert memory.explain("我喜欢打什么球", {"configurable": {"user_id": "u1"}}).degraded
            server.start()
            recalled(memory, "我喜欢打什么球")  # tries again, in the background
            in_order(memory)
            assert not memory.explain("我喜欢打什么球", {"configurable": {"user_id": "u1"}}).degraded


def test_a_memory_that_was_closed_has_no_connection_to_the_server_any_more(tmp_path: Path) -> None:
    with running_chroma(tmp_path / "server") as server, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        with with_facts(tmp_path / "m", chroma=server.url) as memory:
            in_order(memory)
        gc.collect()
        assert [w for w in told if str(server.port) in str(w.message)] == []


def test_a_server_that_lost_its_data_is_filled_again(tmp_path: Path) -> None:
    with (
        running_chroma(tmp_path / "server") as server,
        with_facts(tmp_path / "m", chroma=server.url) as memory,
    ):
        in_order(memory)
        server.stop()
        shutil.rmtree(server.folder)
        server.folder.mkdir()
        server.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert "我喜欢打篮球" in recalled(memory, "我喜欢打什么球")
            memory.flush()
            recalled(memory, "我喜欢打什么球")
        in_order(memory)


# The embedding


class Service:
    """An OpenAI-compatible embeddings service whose behaviour can be changed."""

    def __init__(self) -> None:
        self.mode = "well"
        self.dimension = 64
        self.asked = 0
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.asked += 1
                if service.mode == "429":
                    self._send(429, {"error": {"message": "slow down", "type": "rate_limit"}})
                elif service.mode == "silent":
                    service.released.wait()
                else:
                    bags = Bags("service", service.dimension)
                    texts = body["input"] if isinstance(body["input"], list) else [body["input"]]
                    data = [
                        {"object": "embedding", "index": i, "embedding": bags.embed_query(text)}
                        for i, text in enumerate(texts)
                    ]
                    usage = {"prompt_tokens": 1, "total_tokens": 1}
                    self._send(200, {"object": "list", "model": "m", "data": data, "usage": usage})

            def _send(self, status: int, body: Any) -> None:
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                pass

        self.released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def stop(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def service() -> Iterator[Service]:
    running = Service()
    yield running
    running.stop()


def remote(service: Service) -> RemoteEmbeddings:
    return RemoteEmbeddings("m", base_url=service.url, api_key="k", max_retries=0, timeout=0.5)


@pytest.mark.parametrize("mode", ["429", "silent", "another dimension"])
def test_an_embedding_service_that_fails_leaves_the_words_and_is_followed_later(
    tmp_path: Path, service: Service, mode: str
) -> None:
    with with_facts(tmp_path / "m", embedding=remote(service)) as memory:
        in_order(memory)
        if mode == "another dimension":
            service.dimension = 48
        else:
            service.mode = mode
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            assert "我喜欢打篮球" in recalled(memory, "我喜欢打什么球")
            memory.remember("我的生日是三月五日", user_id="u1")
            assert "三月五日" in recalled(memory, "我的生日是哪天")
            memory.flush()
        assert len([w for w in told if issubclass(w.category, RuntimeWarning)]) == 1
        health = memory.health()
        assert health.degraded
        assert health.unindexed == 1
        service.mode, service.dimension = "well", 64
        service.released.set()
        recalled(memory, "我喜欢打什么球")
        in_order(memory)


def test_an_embedding_that_never_works_leaves_the_words(tmp_path: Path) -> None:
    broken = Bags()
    broken.fails = RuntimeError("no model here")
    memory = opened(tmp_path / "m", embedding=broken)
    with pytest.warns(RuntimeWarning, match="no model here") as told:
        for fact in FACTS:
            memory.remember(fact, user_id="u1")
        assert "我喜欢打篮球" in recalled(memory, "我喜欢打什么球")
        assert "Vienna" in recalled(memory, "Who plays the violin?")
        memory.flush()
    assert len([w for w in told if issubclass(w.category, RuntimeWarning)]) == 1
    assert memory.health().degraded
    memory.close()


# Another embedding


@pytest.mark.parametrize("other", [Bags("other"), Bags("other", 32)])
def test_another_embedding_is_refused_with_the_way_out(tmp_path: Path, other: Bags) -> None:
    with with_facts(tmp_path / "m") as memory:
        in_order(memory)
    with opened(tmp_path / "m", embedding=other) as memory:
        for _ in range(2):
            with pytest.raises(EmbeddingMismatchError, match="lc-memory reindex"):
                recalled(memory, "我喜欢打什么球")
        with pytest.raises(EmbeddingMismatchError, match="lc-memory reindex"):
            memory.retriever().invoke("我喜欢打什么球", {"configurable": {"user_id": "u1"}})
        assert memory.reindex() == len(FACTS)
        assert "我喜欢打篮球" in recalled(memory, "我喜欢打什么球")
        in_order(memory)


# Processes


SECOND = """
import sys, warnings
from tests.helpers.longterm import opened, recalled
memory = opened(sys.argv[1])
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    assert "我喜欢打篮球" in recalled(memory, "我喜欢打什么球")
    memory.remember("我的生日是三月五日", user_id="u1")
print(told[0].message)
try:
    memory.reindex()
except Exception as error:
    print(type(error).__name__, error)
memory.close()
"""


def run(script: str, *arguments: Any) -> Any:
    return programs.start("-c", script, *arguments)


def test_a_second_process_on_an_embedded_folder_is_refused_and_has_the_words(tmp_path: Path) -> None:
    with with_facts(tmp_path / "m") as memory:
        in_order(memory)
        out, _ = run(SECOND, tmp_path / "m").communicate()
        first, second = out.splitlines()
        assert "chroma run --path" in first
        assert str(os.getpid()) in first
        assert second.startswith("FactIndexError")
        assert "chroma='http://" in second
        # What it noted gets into the index here.
        recalled(memory, "我的生日是哪天")
        in_order(memory)
        assert memory.health().facts == len(FACTS) + 1


HOLD = """
import sys
from tests.helpers.longterm import with_facts
memory = with_facts(sys.argv[1])
memory.flush()
print("ready", flush=True)
sys.stdin.read()
"""


def test_the_lock_goes_with_a_killed_process(tmp_path: Path) -> None:
    holder = run(HOLD, tmp_path / "m")
    assert holder.stdout is not None
    assert holder.stdout.readline() == "ready\n"
    with opened(tmp_path / "m") as memory:
        with pytest.warns(RuntimeWarning, match="in use by another process"):
            recalled(memory, "我喜欢打什么球")
        holder.kill()
        holder.wait()
        recalled(memory, "我喜欢打什么球")
        in_order(memory)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_the_child_of_a_fork_knows_that_it_cannot_use_the_parents_chroma(tmp_path: Path) -> None:
    script = """
import os, sys, warnings
from tests.helpers.longterm import recalled, with_facts
memory = with_facts(sys.argv[1])
memory.flush()
child = os.fork()
if not child:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert "我喜欢打篮球" in recalled(memory, "我喜欢打什么球")
        memory.remember("我的生日是三月五日", user_id="u1")
        assert "三月五日" in recalled(memory, "我的生日是哪天")
        memory.flush()
    print(len(told), told[0].message, flush=True)
    os._exit(0)
os.waitpid(child, 0)
assert "三月五日" in recalled(memory, "我的生日是哪天")
memory.flush()
print(memory.health().ok, memory.health().entries)
memory.close()
"""
    out, _ = run(script, tmp_path / "m").communicate(timeout=100)
    child, parent = out.splitlines()
    assert child.startswith("1 ")
    assert "spawn" in child
    assert parent == f"True {len(FACTS) + 1}"


WRITER = """
import sys
from tests.helpers.longterm import opened, say
memory = opened(sys.argv[1], chroma=sys.argv[2])
for n in range(40):
    memory.remember(f"fact number {sys.argv[3]}{n} of somebody", user_id="u1")
    say(memory, f"question {sys.argv[3]}{n}", "answer", session=sys.argv[3])
memory.close()
"""


def test_two_processes_on_one_server_lose_nothing(tmp_path: Path) -> None:
    with running_chroma(tmp_path / "server") as server:
        writers = [run(WRITER, tmp_path / "m", server.url, name) for name in "ab"]
        for writer in writers:
            assert writer.wait() == 0
        with opened(tmp_path / "m", chroma=server.url) as memory:
            assert "fact number b7 " in recalled(memory, "fact number b7 of somebody")
            in_order(memory)
            assert memory.health().entries == 160


def test_a_killed_reindex_goes_on_where_it_was(tmp_path: Path) -> None:
    with with_facts(tmp_path / "m") as memory:
        for n in range(1000):
            memory._stored("").store.ledger().add("user:u2", f"thing number {n}")
        memory._longterm.noted()  # type: ignore[union-attr]
        in_order(memory)
    script = """
import sys
from tests.helpers.longterm import Bags, opened
memory = opened(sys.argv[1], embedding=Bags("other"))
def told(done, total):
    print(done, total, flush=True)
    if done >= 512 and sys.argv[2] == "stop":
        sys.stdin.read()
print(memory.reindex(progress=told), flush=True)
memory.close()
"""
    first = run(script, tmp_path / "m", "stop")
    assert first.stdout is not None
    while not first.stdout.readline().startswith("512 "):
        pass
    first.kill()
    first.wait()
    with opened(tmp_path / "m") as memory:  # the old one serves still
        assert "我喜欢打篮球" in recalled(memory, "我喜欢打什么球")
        in_order(memory)
    counting = Bags("other")
    with opened(tmp_path / "m", embedding=counting) as memory:
        assert memory.reindex() == 1000 + len(FACTS)
        assert counting.calls < 700  # what was done is not done again
        assert "我喜欢打篮球" in recalled(memory, "我喜欢打什么球")
        in_order(memory)
    with opened(tmp_path / "m") as memory, pytest.raises(EmbeddingMismatchError):
        recalled(memory, "我喜欢打什么球")


def test_a_full_disk_is_told_and_chroma_is_not_asked_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lc_memory.index.chroma.folder._ROOM", 2**62)
    memory = opened(tmp_path / "m")
    with pytest.warns(RuntimeWarning, match="disk has"):
        memory.remember("我喜欢打篮球", user_id="u1")
        assert "我喜欢打篮球" in recalled(memory, "我喜欢打什么球")
        memory.flush()
    memory.close()


def test_a_place_for_the_vectors_is_asked_for_where_the_store_is_a_server() -> None:
    from lc_memory.index.chroma.places import chroma_home

    with pytest.raises(FactIndexError, match="chroma run"):
        chroma_home(None, None)


class Picky(Bags):
    """Refuses one text, as a moderated service does."""

    def _vector(self, text: str) -> list[float]:
        if "unspeakable" in text:
            raise ValueError("content refused")
        return super()._vector(text)


def test_one_text_that_is_refused_does_not_keep_the_others_out(tmp_path: Path) -> None:
    with opened(tmp_path / "m", embedding=Picky()) as memory:
        ledger = memory._stored("").store.ledger()
        for fact in [*FACTS, "an unspeakable word"]:
            ledger.add("user:u1", fact)
        with pytest.warns(RuntimeWarning, match="found by its words alone"):
            assert "我喜欢打篮球" in recalled(memory, "我喜欢打什么球")
        memory.flush()
        assert memory.health().entries == len(FACTS)
        assert not memory.health().degraded
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert "unspeakable" in memory.facts_for("u1").recall("unspeakable word")[0]


def test_a_search_that_meets_the_first_write_is_made_again_and_nothing_is_set_aside(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Chroma then says that there is nothing on the disk, once."""
    with opened(tmp_path / "m") as memory:
        memory.remember("我的车位在B2层17号", user_id="u1")
        nearest = VectorIndex.nearest
        calls: list[int] = []

        def at_first_nothing(index: VectorIndex, *args: Any, **more: Any) -> Any:
            calls.append(1)
            if len(calls) == 1:
                raise BrokenIndexError("Error creating hnsw segment reader: Nothing found on disk")
            return nearest(index, *args, **more)

        monkeypatch.setattr(VectorIndex, "nearest", at_first_nothing)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            assert "17号" in recalled(memory, "我的车位在几层")
        assert len(calls) == 2
        assert memory.health().ok
    assert not list((tmp_path / "m").glob("chroma.broken-*"))
