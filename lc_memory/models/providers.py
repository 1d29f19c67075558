"""Which chat model to talk to: the table of providers, what extends it, and where keys come from.

Looked up, each in this order:

- a setting (a key, ``LC_MEMORY_PROVIDER``): the ``.env`` file next to or above the working directory,
  then the environment. The file wins, because a variable that was once exported and forgotten is a
  common reason for a refused key; an empty value counts as not set in either place. The environment is
  read and never written.
- a provider: ``config.json`` next to or above the working directory (or the file ``LC_MEMORY_CONFIG``
  names), then the table below::

      {"providers": {"deepseek": {"base_url": "https://api.deepseek.com",
                                  "key_env": "DEEPSEEK_API_KEY",
                                  "model": "deepseek-v4-flash"}}}

  ``key_env`` may be left out for a service without keys. ``"profile"`` names the rules to keep
  (``lc_memory.models.PROFILES``) where they cannot be told from the model's name or the address.
- its address: what the call says, the provider's own variable (``DEEPSEEK_BASE_URL``; any provider has one
  of its name, see ``Provider.addresses``), its entry in config.json, ``BASE_URL``, the table. A key is sent
  where it belongs: to an address that ``BASE_URL`` names goes ``API_KEY``, where that is set.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from lc_memory.errors import MemoryInputError, MissingKeyError

from .addresses import without_login
from .profiles import Profile, profile_for, profile_named

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

TIMEOUT = 120.0
"""Seconds without a byte from the service until a request is given up. Models that think answer late."""
RETRIES = 2
"""Further tries after a 429, a 5xx or a broken connection; between them the service's Retry-After, or a
growing wait."""

OFFLINE = "offline"
_OLLAMA, _OLLAMA_HOST = "http://localhost:11434/v1", "OLLAMA_HOST"
_LOCAL_KEY = "not-needed"  # the client library insists on one; a local server ignores it


@dataclass(frozen=True)
class Provider:
    """One line of the table. ``key_env`` None: the service takes no key."""

    name: str
    base_url: str | None = None
    key_env: str | None = None
    model: str | None = None
    profile: str | None = None
    also: tuple[str, ...] = ()

    @property
    def addresses(self) -> tuple[str, ...]:
        """The variables that may hold its address, the first that is set counts."""
        name = "".join(c if c.isalnum() else "_" for c in self.name.upper())
        return f"{name}_BASE_URL", *self.also


PROVIDERS: Mapping[str, Provider] = {
    p.name: p
    for p in (
        Provider(
            "deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY", "deepseek-v4-flash",
            also=("DEEPSEEK_API_BASE",),
        ),
        Provider(
            "kimi", "https://api.moonshot.cn/v1", "MOONSHOT_API_KEY", "kimi-k2.6",
            also=("MOONSHOT_BASE_URL", "MOONSHOT_API_BASE"),
        ),
        Provider(
            "qwen", "https://dashscope.aliyuncs.com/compatible-mode/v1", "DASHSCOPE_API_KEY", "qwen3.7-max",
            also=("DASHSCOPE_BASE_URL", "DASHSCOPE_API_BASE"),
        ),
        Provider("openai", None, "OPENAI_API_KEY", "gpt-5-mini", also=("OPENAI_API_BASE",)),
        Provider("ollama", _OLLAMA, None, "qwen3", also=(_OLLAMA_HOST,)),
    )
}  # fmt: skip
"""What ``chat_model()`` knows without a config.json."""

GENERIC = "generic"
"""The provider that is nothing but BASE_URL, API_KEY and MODEL."""


def chat_model(provider: str | None = None, **overrides: Any) -> BaseChatModel:
    """A chat model of a provider, ready for a chain.

    ``provider``: a name of ``PROVIDERS`` or of config.json, ``"generic"`` (``BASE_URL``, ``API_KEY``,
    ``MODEL``) or ``"offline"`` (no key, no network: quotes from its prompt). None means the one
    ``LC_MEMORY_PROVIDER`` names, else the generic one where ``BASE_URL`` or ``MODEL`` is set, else the
    first whose key is set, else the offline one, with a warning that says what to set.

    ``overrides``: ``model``, ``base_url``, ``api_key``, ``profile`` (a Profile or its name), and whatever
    ``ChatOpenAI`` takes: ``temperature``, ``max_tokens``, ``timeout`` (seconds, here 120), ``max_retries``
    (here 2), ``extra_body``…

    Raises MissingKeyError naming the variable and the file it belongs in, and MemoryInputError for a
    provider that is not known, an address that is no URL or a config.json that cannot be read. Nothing is
    sent.
    """
    settings = Settings.read()
    name = provider or (GENERIC if overrides.get("base_url") else _configured(settings))
    if name == OFFLINE:
        from .offline import OfflineChatModel

        # Chosen for want of a service, it gets none of what was meant for one.
        return OfflineChatModel(**(overrides if provider else {}))
    found = _provider(name, settings)
    given = overrides.pop("base_url", None)
    base_url, key_env = _address(found, settings, given)
    model = overrides.pop("model", None) or found.model
    if not model:
        where = f"set MODEL in {settings.env_file}" if name == GENERIC else "name one in config.json"
        raise MemoryInputError(f'provider {name!r} has no model: {where}, or pass model="…"')
    keyed = replace(found, key_env=key_env)
    api_key: Any = overrides.pop("api_key", None) or _key(keyed, base_url, settings)

    from .chat import ServiceChatModel

    defaults: dict[str, Any] = {"stream_usage": True, "max_retries": RETRIES}
    if not {"timeout", "request_timeout"} & overrides.keys():
        defaults["timeout"] = TIMEOUT
    service = _profile(overrides.pop("profile", None) or found.profile, str(model), base_url)
    if service.name != "openai":  # the Responses API is OpenAI's own
        defaults["use_responses_api"] = False
    return ServiceChatModel(
        model=model, base_url=base_url, api_key=api_key, service=service, **{**defaults, **overrides}
    )


# ---------------------------------------------------------------- settings


@dataclass(frozen=True)
class Settings:
    """The values of ``.env`` and the environment as they were when read."""

    env_file: Path
    """The ``.env`` that was read, or the place where one would be looked for first."""
    file_values: Mapping[str, str | None]

    @classmethod
    def read(cls) -> Settings:
        from dotenv import dotenv_values

        path = next(_upwards(".env"), None)
        return cls(path or Path.cwd() / ".env", dotenv_values(path, encoding="utf-8-sig") if path else {})

    def get(self, name: str) -> str | None:
        """The value of a variable, None where it is not set or empty."""
        for value in (self.file_values.get(name), os.environ.get(name)):
            if value and value.strip():
                return value.strip()
        return None


def _upwards(name: str) -> Iterator[Path]:
    here = Path.cwd()
    return (p for folder in (here, *here.parents) if (p := folder / name).is_file())


# ---------------------------------------------------------------- which provider


def _configured(settings: Settings) -> str:
    named = settings.get("LC_MEMORY_PROVIDER")
    if named:
        return named
    if settings.get("BASE_URL") or settings.get("MODEL"):
        return GENERIC
    table = _table(settings)
    for provider in table.values():
        if provider.key_env and settings.get(provider.key_env):
            return provider.name
    keys = ", ".join(dict.fromkeys(p.key_env for p in table.values() if p.key_env))
    _say_offline(keys, settings.env_file)
    return OFFLINE


@lru_cache(maxsize=8)  # said once, however many models are asked for
def _say_offline(keys: str, env_file: Path) -> None:
    warnings.warn(
        "no chat model is configured, so the offline one answers: it only quotes from what was said. "
        f"For a real one set one of {keys}, or BASE_URL, API_KEY and MODEL, in {env_file}; "
        "LC_MEMORY_PROVIDER=offline keeps this one without a word",
        stacklevel=4,
    )


def _provider(name: str, settings: Settings) -> Provider:
    table = _table(settings)
    if name in table:
        return table[name]
    if name == GENERIC:
        return Provider(GENERIC, None, "API_KEY", settings.get("MODEL"))
    known = ", ".join([*table, GENERIC, OFFLINE])
    raise MemoryInputError(f"no provider {name!r}; there are: {known}. Add yours to config.json")


def _address(provider: Provider, settings: Settings, given: Any) -> tuple[str | None, str | None]:
    """Where a provider is, and the variable with the key that belongs there."""
    if given:
        return address(str(given), "base_url"), provider.key_env
    for variable in provider.addresses:
        if value := settings.get(variable):
            if variable == _OLLAMA_HOST:
                value = _of_ollama(value)
            return address(value, variable), provider.key_env
    known = PROVIDERS.get(provider.name)
    if provider.base_url and (known is None or provider.base_url != known.base_url):
        return provider.base_url, provider.key_env  # config.json's
    if value := settings.get("BASE_URL"):
        key_env = "API_KEY" if settings.get("API_KEY") else provider.key_env
        return address(value, "BASE_URL"), key_env
    return provider.base_url, provider.key_env


def _of_ollama(host: str) -> str:
    """What OLLAMA_HOST says, which its server reads as well: ``0.0.0.0``, ``gpu:11434``, ``http://gpu``."""
    scheme, _, rest = host.rpartition("://")
    parts = urlsplit(f"//{rest}")
    name = parts.hostname or ""
    if name in ("", "0.0.0.0", "::"):  # where it listens, which is no place to call
        name = "localhost"
    name = f"[{name}]" if ":" in name else name
    with contextlib.suppress(ValueError):
        usual = {"http": 80, "https": 443}.get(scheme, 11434)
        return f"{scheme or 'http'}://{name}:{parts.port or usual}{parts.path.rstrip('/') or '/v1'}"
    return host


_BLANK = re.compile(r"[\s\x00-\x1f]")
_BARE = re.compile(r"(?!https?:)[\w.-]+(:\d{1,5})?(/[\w./-]*)?", re.ASCII)


def address(value: str, what: str) -> str:
    """``value`` where it is the URL of a service. MemoryInputError, which begins with ``what``, where not."""
    value = value.strip()
    shown = without_login(value)
    try:
        parts = urlsplit(value)
        right = bool(parts.hostname) and parts.port != 0 and parts.scheme in ("http", "https")
    except ValueError:  # a port that is none, a bracket without its other half
        parts, right = urlsplit(""), False
    if not right or _BLANK.search(value):
        hint = "https://api.example.com/v1"
        if _BARE.fullmatch(value):
            hint = f"http{'' if _is_local('//' + value) else 's'}://{shown}"
        raise MemoryInputError(
            f"{what}={shown!r} is no URL of a service: it begins with http:// or https://, as in {hint}"
        )
    if parts.path.rstrip("/").endswith("/chat/completions"):
        raise MemoryInputError(
            f"{what}={shown!r}: leave /chat/completions out; what comes before it is the address"
        )
    return value


def _key(provider: Provider, base_url: str | None, settings: Settings) -> str:
    key = settings.get(provider.key_env) if provider.key_env else None
    if key is None and (provider.key_env is None or _is_local(base_url)):
        return _LOCAL_KEY
    remedy = f"Put a line {provider.key_env}=… into {settings.env_file}, or set the environment variable"
    if key is None:
        raise MissingKeyError(f"{provider.name}: {provider.key_env} is not set. {remedy}")
    if not key.isascii():  # a placeholder such as 你的密钥, which would fail as a header much later
        raise MissingKeyError(f"{provider.name}: what {provider.key_env} holds is no key. {remedy}")
    return key


def _is_local(base_url: str | None) -> bool:
    return urlsplit(base_url or "").hostname in ("localhost", "127.0.0.1", "::1")


def _profile(wanted: Profile | str | None, model: str, base_url: str | None) -> Profile:
    if isinstance(wanted, Profile):
        return wanted
    return profile_named(wanted) if wanted else profile_for(model, base_url)


# ---------------------------------------------------------------- config.json

_ENTRY = {"base_url": str, "key_env": str, "model": str, "profile": str}


def _table(settings: Settings) -> dict[str, Provider]:
    """The providers of config.json, then those of the built-in table that it does not replace.

    An entry for a known provider need only name what is different.
    """
    table: dict[str, Provider] = {}
    for path, entries in _config(settings):
        for name, entry in entries.items():
            table[name] = _entry(name, entry, path)
    return {**table, **{name: p for name, p in PROVIDERS.items() if name not in table}}


def _config(settings: Settings) -> list[tuple[Path, dict[str, Any]]]:
    named = settings.get("LC_MEMORY_CONFIG")
    if named:
        path = Path(named).expanduser()
        if not path.is_file():
            raise MemoryInputError(f"LC_MEMORY_CONFIG names {path}, which is not a file")
        config = _read(path)
        if "providers" not in config:
            raise MemoryInputError(f"{path}: the key 'providers' is missing")
        return [(path, _providers(config, path))]
    for path in _upwards("config.json"):
        # Many programs call a file that; without "providers" it is somebody else's.
        if "providers" in (config := _read(path)):
            return [(path, _providers(config, path))]
    return []


def _read(path: Path) -> dict[str, Any]:
    try:
        config = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise MemoryInputError(f"{path} cannot be read as JSON: {error}") from error
    return config if isinstance(config, dict) else {}


def _providers(config: dict[str, Any], path: Path) -> dict[str, Any]:
    providers = config["providers"]
    if not isinstance(providers, dict):
        raise MemoryInputError(f"{path}: 'providers' must be an object, name -> settings")
    return providers


def _entry(name: str, entry: Any, path: Path) -> Provider:
    where = f"{path}: providers.{name}"
    if not isinstance(entry, dict):
        raise MemoryInputError(f"{where} must be an object with base_url, key_env and model")
    given: dict[str, Any] = {}
    for key, kind in _ENTRY.items():
        value = entry.get(key)
        if value is None:
            continue
        if not isinstance(value, kind) or not value.strip():
            raise MemoryInputError(f"{where}.{key} must be a text that is not empty")
        given[key] = address(value, f"{where}.base_url") if key == "base_url" else value.strip()
    if "profile" in given:
        try:
            profile_named(given["profile"])
        except MemoryInputError as error:
            raise MemoryInputError(f"{where}.profile: {error}") from None
    known = PROVIDERS.get(name)
    if known is None and "base_url" not in given:
        raise MemoryInputError(f"{where}.base_url is missing")
    return replace(known, **given) if known else Provider(name, **given)
