"""Where a provider is, what is no address, and an error that names the one that does not answer."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from lc_memory.errors import MemoryInputError, MissingKeyError
from lc_memory.models import ServiceChatModel, chat_model
from lc_memory.models.embedding_names import embeddings
from lc_memory.models.providers import PROVIDERS
from tests.servers.chat import ChatServer, Fault

NAMES = ["DEEPSEEK", "MOONSHOT", "KIMI", "DASHSCOPE", "QWEN", "OPENAI", "OLLAMA", "HOUSE"]
KEYS = [p.key_env for p in PROVIDERS.values() if p.key_env]
ELSEWHERE = "https://proxy.example.org/v1"


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    more = [f"{name}_{what}" for name in NAMES for what in ("BASE_URL", "API_BASE", "API_KEY")]
    for name in [*more, *KEYS, "OLLAMA_HOST", "BASE_URL", "API_KEY", "MODEL", "LC_MEMORY_PROVIDER", "LC_MEMORY_CONFIG"]:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def built(*args: Any, **options: Any) -> ServiceChatModel:
    model = chat_model(*args, **options)
    assert isinstance(model, ServiceChatModel)
    return model


def key(model: ServiceChatModel) -> str:
    return str(model.openai_api_key.get_secret_value())  # type: ignore[union-attr]


# ---------------------------------------------------------------- where it is


@pytest.mark.parametrize(
    ("provider", "variable", "value", "address"),
    [
        ("deepseek", "DEEPSEEK_BASE_URL", ELSEWHERE, ELSEWHERE),
        ("deepseek", "DEEPSEEK_API_BASE", ELSEWHERE, ELSEWHERE),
        ("kimi", "KIMI_BASE_URL", ELSEWHERE, ELSEWHERE),
        ("kimi", "MOONSHOT_BASE_URL", "https://api.moonshot.ai/v1", "https://api.moonshot.ai/v1"),
        ("qwen", "QWEN_BASE_URL", ELSEWHERE, ELSEWHERE),
        ("qwen", "DASHSCOPE_BASE_URL", ELSEWHERE, ELSEWHERE),
        ("ollama", "OLLAMA_BASE_URL", "http://gpu:11434/v1", "http://gpu:11434/v1"),
        ("ollama", "OLLAMA_HOST", "gpu", "http://gpu:11434/v1"),
        ("ollama", "OLLAMA_HOST", "0.0.0.0:8080", "http://localhost:8080/v1"),
        ("ollama", "OLLAMA_HOST", "https://gpu.example.org", "https://gpu.example.org:443/v1"),
        ("house", "HOUSE_BASE_URL", ELSEWHERE, ELSEWHERE),
        ("deepseek", "BASE_URL", ELSEWHERE, ELSEWHERE),
        ("openai", "BASE_URL", ELSEWHERE, ELSEWHERE),
        ("ollama", "BASE_URL", ELSEWHERE, ELSEWHERE),
    ],
)
@pytest.mark.parametrize("where", ["environment", "file"])
def test_a_providers_address_is_what_its_variable_says(
    provider: str, variable: str, value: str, address: str, where: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    (tmp_path / "config.json").write_text(
        json.dumps({"providers": {"house": {"base_url": "http://127.0.0.1:1/v1", "model": "m"}}})
    )
    if where == "file":
        (tmp_path / ".env").write_text(f"{variable}={value}\n")
    else:
        monkeypatch.setenv(variable, value)
    for name in KEYS:
        monkeypatch.setenv(name, "k")
    assert built(provider).openai_api_base == address


def test_a_variable_that_names_the_provider_counts_before_base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE_URL", "https://other.example.org/v1")
    monkeypatch.setenv("DEEPSEEK_BASE_URL", ELSEWHERE)
    monkeypatch.setenv("DEEPSEEK_API_KEY", "k")
    assert built("deepseek").openai_api_base == ELSEWHERE
    assert built("deepseek", base_url="http://127.0.0.1:9").openai_api_base == "http://127.0.0.1:9"


def test_a_key_goes_where_it_belongs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE_URL", ELSEWHERE)
    monkeypatch.setenv("DEEPSEEK_API_KEY", "of-deepseek")
    assert key(built("deepseek")) == "of-deepseek", "there is no other"
    monkeypatch.setenv("API_KEY", "of-base-url")
    model = built("deepseek")
    assert (model.openai_api_base, key(model)) == (ELSEWHERE, "of-base-url")
    monkeypatch.setenv("DEEPSEEK_BASE_URL", "https://mine.example.org")
    assert key(built("deepseek")) == "of-deepseek"


def test_a_named_provider_on_this_machine_needs_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE_URL", "http://localhost:8000/v1")
    assert built("deepseek").openai_api_base == "http://localhost:8000/v1"


def test_what_the_file_of_providers_says_counts_before_base_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Guard."""
    (tmp_path / "config.json").write_text(json.dumps({"providers": {"deepseek": {"base_url": ELSEWHERE}}}))
    monkeypatch.setenv("BASE_URL", "https://other.example.org/v1")
    monkeypatch.setenv("DEEPSEEK_API_KEY", "k")
    assert built("deepseek").openai_api_base == ELSEWHERE


# ---------------------------------------------------------------- what is no address

NO_ADDRESS = [
    "localhost:8000", "127.0.0.1:8000/v1", "api.example.com/v1", "ftp://example.com", "http://", "https:///v1",
    "http:/localhost:8000", "http://localhost:port", "http://exam ple.com", "http://[::1", "//example.com", "8000",
    "http://localhost:8000/v1/chat/completions",
]  # fmt: skip


@pytest.mark.parametrize("value", NO_ADDRESS)
@pytest.mark.parametrize("place", ["BASE_URL", "DEEPSEEK_BASE_URL", "base_url=", "config.json", "OPENAI_BASE_URL"])
def test_what_is_no_address_is_said_so_and_is_no_missing_key(
    value: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL", "m")
    if place.isupper() and not place.endswith("="):
        monkeypatch.setenv(place, value)
    if place == "config.json":
        (tmp_path / "config.json").write_text(json.dumps({"providers": {"x": {"base_url": value, "model": "m"}}}))
    make: dict[str, Any] = {
        "base_url=": lambda: chat_model("deepseek", base_url=value),
        "config.json": lambda: chat_model("x"),
        "OPENAI_BASE_URL": lambda: embeddings("openai"),
        "BASE_URL": lambda: chat_model("generic"),
        "DEEPSEEK_BASE_URL": lambda: chat_model("deepseek"),
    }
    with pytest.raises(MemoryInputError) as refused:
        make[place]()
    assert not isinstance(refused.value, MissingKeyError)
    assert value in str(refused.value)
    assert place.rstrip("=").removesuffix(".json") in str(refused.value)


def test_the_error_shows_how_it_is_written_and_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE_URL", "localhost:8000/v1")
    with pytest.raises(MemoryInputError, match="as in http://localhost:8000/v1"):
        chat_model("generic", model="m")
    monkeypatch.setenv("BASE_URL", "ftp://me:hunter2@example.com/v1")
    with pytest.raises(MemoryInputError) as refused:
        chat_model("generic", model="m")
    assert "hunter2" not in str(refused.value)


# ---------------------------------------------------------------- one that does not answer


@pytest.fixture
def dead() -> Iterator[str]:
    taken = socket.socket()  # bound, and not listening: nobody else gets the port, and nobody answers
    taken.bind(("127.0.0.1", 0))
    yield f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    taken.close()


def ways(model: Any) -> dict[str, Any]:
    async def astream() -> Any:
        return [chunk async for chunk in model.astream("hi")]

    return {
        "invoke": lambda: model.invoke("hi"),
        "ainvoke": lambda: asyncio.run(model.ainvoke("hi")),
        "stream": lambda: list(model.stream("hi")),
        "astream": lambda: asyncio.run(astream()),
        "batch": lambda: model.batch(["hi"]),
        "structured": lambda: model.with_structured_output({"title": "A", "type": "object", "properties": {}}).invoke("hi"),
        "tools": lambda: model.bind_tools([]).invoke("hi"),
    }


@pytest.mark.parametrize("way", ["invoke", "ainvoke", "stream", "astream", "batch", "structured", "tools"])
def test_a_dead_servers_error_names_it_and_is_what_it_was(way: str, dead: str) -> None:
    model = chat_model(base_url=dead, model="m", max_retries=0)
    with pytest.raises(openai.APIConnectionError) as failed:
        ways(model)[way]()
    assert str(failed.value).count(dead) == 1
    assert "ConnectError" in str(failed.value), "what was behind it"
    assert "BASE_URL" in str(failed.value)
    assert failed.value.message == str(failed.value)


def test_a_password_in_the_address_is_not_shown(dead: str) -> None:
    model = chat_model(base_url=dead.replace("//", "//me:hunter2@"), model="m", max_retries=0)
    with pytest.raises(openai.APIConnectionError) as failed:
        model.invoke("hi")
    assert dead in str(failed.value)
    assert "hunter2" not in str(failed.value)


@pytest.mark.parametrize(
    "fault", [Fault(404), Fault(cut=1)], ids=["a path that is not there", "a connection that breaks off"]
)
def test_other_ways_not_to_answer_name_it_too(fault: Fault) -> None:
    with ChatServer() as server:
        server.script(fault)
        model = chat_model(base_url=server.url, model="m", max_retries=0)
        with pytest.raises((openai.APIError, httpx.TransportError)) as failed:
            list(model.stream("hi"))
        assert server.url in str(failed.value)


def test_retries_and_fallbacks_go_on_by_the_class_of_the_error(dead: str) -> None:
    """Guard."""
    with ChatServer() as server:
        server.script("好了", "好了")
        broken = chat_model(base_url=dead, model="m", max_retries=0)
        works = chat_model(base_url=server.url, model="m")
        chain = broken.with_fallbacks([works], exceptions_to_handle=(openai.APIConnectionError,))
        assert chain.invoke("hi").content == "好了"
        with pytest.raises(openai.APIConnectionError) as failed:
            broken.with_retry(
                retry_if_exception_type=(openai.APIConnectionError,), stop_after_attempt=2, wait_exponential_jitter=False
            ).invoke("hi")
        assert str(failed.value).count(dead) <= 1
