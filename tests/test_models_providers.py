"""chat_model(): which provider is taken, where its settings come from, and what is said when one is missing."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from langchain_core.prompts import ChatPromptTemplate

from lc_memory.errors import MemoryInputError, MissingKeyError
from lc_memory.models import PROFILES, Profile, ServiceChatModel, chat_model
from lc_memory.models.profiles import profile_for
from lc_memory.models.providers import PROVIDERS, _say_offline
from tests.data import ROOT
from tests.servers.chat import ChatServer, Fault

VARIABLES = [
    *(p.key_env for p in PROVIDERS.values() if p.key_env),
    "BASE_URL", "API_KEY", "MODEL", "LC_MEMORY_PROVIDER", "LC_MEMORY_CONFIG", "OPENAI_BASE_URL", "OPENAI_API_BASE",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    _say_offline.cache_clear()


def _service(model: Any) -> ServiceChatModel:
    assert isinstance(model, ServiceChatModel)
    return model


def _key(model: Any) -> str:
    return str(_service(model).openai_api_key.get_secret_value())  # type: ignore[union-attr]


def _config(folder: Path, **providers: Any) -> None:
    (folder / "config.json").write_text(json.dumps({"providers": providers, "tools": []}), encoding="utf-8")


# ---------------------------------------------------------------- the table


@pytest.mark.parametrize(
    ("provider", "base_url", "key_env", "model", "profile"),
    [
        ("deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY", "deepseek-v4-flash", "deepseek"),
        ("kimi", "https://api.moonshot.cn/v1", "MOONSHOT_API_KEY", "kimi-k2.6", "kimi"),
        ("qwen", "https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY", "qwen3.7-max", "qwen"),
        ("openai", None, "OPENAI_API_KEY", "gpt-5-mini", "openai"),
        ("ollama", "http://localhost:11434/v1", None, "qwen3", "qwen"),
    ],
)
def test_each_provider_of_the_table_is_built_with_its_rules(
    provider: str, base_url: str | None, key_env: str | None, model: str, profile: str, tmp_path: Path
) -> None:
    if key_env:
        (tmp_path / ".env").write_text(f"{key_env}=sk-1\n", encoding="utf-8")
    built = _service(chat_model(provider))
    assert (built.openai_api_base, built.model_name) == (base_url, model)
    assert built.service is PROFILES[profile]
    assert built.stream_usage is True
    assert built.request_timeout == 120
    assert built.max_retries == 2
    if key_env:
        assert _key(built) == "sk-1"


def test_overrides_win_over_the_table() -> None:
    built = _service(
        chat_model("deepseek", api_key="sk-2", model="x", base_url="http://127.0.0.1:9", timeout=3, max_retries=0,
                   temperature=0.5, profile="gemma")
    )  # fmt: skip
    assert (built.model_name, built.openai_api_base, built.request_timeout) == ("x", "http://127.0.0.1:9", 3)
    assert (built.max_retries, built.temperature, built.service.name) == (0, 0.5, "gemma")
    mine = Profile("mine", alternate=True)
    assert _service(chat_model("ollama", profile=mine)).service == mine


@pytest.mark.parametrize(
    ("model", "base_url", "profile"),
    [
        ("Qwen/Qwen3-8B", "http://10.0.0.5:8000/v1", "qwen"),
        ("google/gemma-3-27b-it", "http://10.0.0.5:8000/v1", "gemma"),
        ("deepseek-ai/DeepSeek-V4", "https://openrouter.ai/api/v1", "deepseek"),
        ("my-finetune", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "qwen"),
        ("MiniMax-M2.5", "https://api.minimax.io/v1", "minimax"),
        ("gpt-4o", None, "openai"),
        ("llama-4", "http://10.0.0.5:8000/v1", "compatible"),
    ],
)
def test_the_rules_follow_the_models_name_and_then_the_address(
    model: str, base_url: str | None, profile: str
) -> None:
    assert profile_for(model, base_url).name == profile


def test_an_unknown_provider_is_named_beside_those_there_are() -> None:
    with pytest.raises(MemoryInputError, match=r"no provider 'depseek'.*deepseek, kimi.*config\.json"):
        chat_model("depseek")


# ---------------------------------------------------------------- keys and .env


def test_env_file_wins_over_a_stale_or_empty_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text('DEEPSEEK_API_KEY="sk-file"\n', encoding="utf-8-sig")
    for stale in ("sk-old", ""):
        monkeypatch.setenv("DEEPSEEK_API_KEY", stale)
        assert _key(chat_model("deepseek")) == "sk-file"


def test_an_empty_line_in_the_file_leaves_the_variable_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("DEEPSEEK_API_KEY=\n", encoding="utf-8")
    monkeypatch.setenv("DEEPSEEK_API_KEY", " sk-shell\n")
    assert _key(chat_model("deepseek")) == "sk-shell"


def test_the_environment_is_read_and_never_written(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DEEPSEEK_API_KEY=sk-file\nBASE_URL=http://127.0.0.1:9/v1\n", encoding="utf-8")
    before = dict(os.environ)
    chat_model("deepseek")
    assert dict(os.environ) == before


def test_env_file_is_found_above_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("MOONSHOT_API_KEY=sk-up\n", encoding="utf-8")
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert _key(chat_model("kimi")) == "sk-up"


def test_a_missing_key_names_its_variable_and_file(tmp_path: Path) -> None:
    with pytest.raises(MissingKeyError) as caught:
        chat_model("qwen")
    assert "DASHSCOPE_API_KEY" in str(caught.value)
    assert str(tmp_path / ".env") in str(caught.value)


def test_a_placeholder_is_no_key_and_no_key_is_ever_shown(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("DEEPSEEK_API_KEY=你的密钥\nMOONSHOT_API_KEY=sk-secret\n", encoding="utf-8")
    with pytest.raises(MissingKeyError) as caught:
        chat_model("deepseek")
    assert "DEEPSEEK_API_KEY" in str(caught.value)
    assert "你的密钥" not in str(caught.value)
    model = chat_model("kimi")
    assert "sk-secret" not in repr(model) + str(model)


def test_the_example_file_copied_as_it_is_sets_nothing(tmp_path: Path) -> None:
    example = ROOT / ".env.example"
    (tmp_path / ".env").write_text(example.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.warns(UserWarning, match="no chat model is configured"):
        assert not isinstance(chat_model(), ServiceChatModel)


# ---------------------------------------------------------------- the default


def test_the_default_is_the_named_one_then_the_generic_one_then_the_first_with_a_key(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DASHSCOPE_API_KEY", "sk-q")
    assert _service(chat_model()).model_name == "qwen3.7-max"
    monkeypatch.setenv("MOONSHOT_API_KEY", "sk-k")
    assert _service(chat_model()).model_name == "kimi-k2.6"
    monkeypatch.setenv("BASE_URL", "http://10.0.0.5:8000/v1")
    monkeypatch.setenv("API_KEY", "sk-g")
    monkeypatch.setenv("MODEL", "qwen3.7-max-2026-06-08")
    generic = _service(chat_model())
    assert (generic.openai_api_base, _key(generic)) == ("http://10.0.0.5:8000/v1", "sk-g")
    assert generic.service.name == "qwen"
    monkeypatch.setenv("LC_MEMORY_PROVIDER", "kimi")
    assert _service(chat_model()).model_name == "kimi-k2.6"


def test_the_generic_provider_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE_URL", "https://example.org/v1")
    with pytest.raises(MemoryInputError, match="MODEL"):
        chat_model()
    monkeypatch.setenv("MODEL", "m")
    with pytest.raises(MissingKeyError, match="API_KEY"):
        chat_model()
    monkeypatch.setenv("BASE_URL", "http://localhost:8000/v1")
    assert _service(chat_model()).model_name == "m"


def test_a_server_can_be_named_in_the_call() -> None:
    built = _service(chat_model(base_url="http://127.0.0.1:1234/v1", model="local"))
    assert (built.openai_api_base, built.service.name) == ("http://127.0.0.1:1234/v1", "compatible")


def test_with_nothing_configured_the_offline_model_answers_and_that_is_said_once() -> None:
    with pytest.warns(UserWarning, match=r"DEEPSEEK_API_KEY.*BASE_URL.*\.env") as said:
        first = chat_model(temperature=0.3)
    assert len(said) == 1
    assert Path(said[0].filename) == Path(__file__)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        second = chat_model()
        chat_model("offline")
    assert type(first) is type(second)
    assert first.invoke("我叫小明").content


# ---------------------------------------------------------------- config.json


def test_config_extends_the_table_and_replaces_what_it_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _config(
        tmp_path,
        deepseek={"base_url": "https://proxy.example.org/v1", "key_env": "PROXY_KEY", "model": "deepseek-v4-pro"},
        kimi={"model": "kimi-k3"},
        house={"base_url": "http://10.0.0.5:8000/v1", "model": "llama-4", "profile": "gemma"},
    )
    monkeypatch.setenv("PROXY_KEY", "sk-p")
    monkeypatch.setenv("MOONSHOT_API_KEY", "sk-k")
    deepseek, kimi, house = (_service(chat_model(n)) for n in ("deepseek", "kimi", "house"))
    assert (deepseek.openai_api_base, deepseek.model_name) == ("https://proxy.example.org/v1", "deepseek-v4-pro")
    assert (_key(deepseek), deepseek.service.name) == ("sk-p", "deepseek")
    assert (kimi.openai_api_base, kimi.model_name) == ("https://api.moonshot.cn/v1", "kimi-k3")
    assert house.service.name == "gemma"
    assert _service(chat_model()).model_name == "deepseek-v4-pro"


def test_config_is_found_above_or_where_the_variable_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _config(tmp_path, house={"base_url": "http://127.0.0.1:1/v1", "model": "above"})
    inner, other = tmp_path / "inner", tmp_path / "other"
    inner.mkdir()
    other.mkdir()
    _config(other, house={"base_url": "http://127.0.0.1:2/v1", "model": "named"})
    (inner / "config.json").write_text('{"theme": "dark"}', encoding="utf-8")  # somebody else's
    monkeypatch.chdir(inner)
    assert _service(chat_model("house")).model_name == "above"
    monkeypatch.setenv("LC_MEMORY_CONFIG", str(other / "config.json"))
    assert _service(chat_model("house")).model_name == "named"


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ('{"providers": ', "cannot be read as JSON"),
        ('{"providers": []}', "'providers' must be an object"),
        ('{"providers": {"house": "http://x"}}', "providers.house must be an object"),
        ('{"providers": {"house": {"model": "m"}}}', "providers.house.base_url is missing"),
        ('{"providers": {"house": {"base_url": "http://x", "model": 4}}}', "providers.house.model must be a text"),
        ('{"providers": {"house": {"base_url": " "}}}', "providers.house.base_url must be a text"),
        ('{"providers": {"house": {"base_url": "http://x", "profile": "qwe"}}}', "providers.house.profile: no profile"),
        ('{"providers": {"house": {"base_url": "http://x"}}}', "has no model"),
    ],
)
def test_a_bad_config_is_an_error_that_names_the_file_and_the_key(written: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(written, encoding="utf-8")
    with pytest.raises(MemoryInputError) as caught:
        chat_model("house")
    assert said in str(caught.value)
    assert "config.json" in str(caught.value)


def test_a_config_that_is_named_must_be_there_and_hold_providers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_MEMORY_CONFIG", str(tmp_path / "none.json"))
    with pytest.raises(MemoryInputError, match=r"none\.json, which is not a file"):
        chat_model("deepseek")
    (tmp_path / "none.json").write_text("{}", encoding="utf-8")
    with pytest.raises(MemoryInputError, match=r"none\.json: the key 'providers' is missing"):
        chat_model("deepseek")


# ---------------------------------------------------------------- over HTTP


@pytest.mark.parametrize("provider", ["deepseek", "kimi", "qwen", "openai"])
def test_a_chain_runs_on_each_provider_streamed_or_not(provider: str) -> None:
    prompt = ChatPromptTemplate.from_messages([("system", "简短回答。"), ("placeholder", "{history}"), ("human", "{q}")])
    history = [("system", "摘要：用户叫小明"), ("human", "在吗？"), ("ai", "在。"), ("system", "想起：篮球")]
    with ChatServer(provider) as server:
        server.script("小明。", "小明。")
        chain = prompt | chat_model(provider, base_url=server.url, api_key="k")
        asked = {"history": history, "q": "我叫什么？"}
        assert chain.invoke(asked).content == "小明。"
        assert "".join(str(c.content) for c in chain.stream(asked)) == "小明。"
        assert server.requests[1]["stream_options"] == {"include_usage": True}
        assert server.headers[0]["authorization"] == "Bearer k"
        assert server.refusals == []


def test_a_service_that_is_busy_is_asked_again() -> None:
    with ChatServer() as server:
        server.script(Fault(429, retry_after=0), Fault(500, retry_after=0), "好了")
        assert chat_model("openai", base_url=server.url, api_key="k").invoke("在吗？").content == "好了"
        assert len(server.requests) == 3
