"""Chat models and embeddings by the name of their provider.

::

    from lc_memory.models import chat_model, one_system

    model = chat_model("deepseek")       # keys from .env, providers from the table and config.json
    chain = prompt | model
    chain = prompt | one_system | other  # the same care for a model that was built elsewhere

Everything is imported when it is first touched: langchain_openai alone takes a second.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .chat import ServiceChatModel as ServiceChatModel
    from .offline import OfflineChatModel as OfflineChatModel
    from .profiles import PROFILES as PROFILES
    from .profiles import Profile as Profile
    from .providers import chat_model as chat_model
    from .runnable import one_system as one_system
    from .runnable import shaped_for as shaped_for

_WHERE = {
    "chat_model": "providers",
    "ServiceChatModel": "chat",
    "OfflineChatModel": "offline",
    "one_system": "runnable",
    "shaped_for": "runnable",
    "PROFILES": "profiles",
    "Profile": "profiles",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    try:
        module = _WHERE[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
    return getattr(import_module(f".{module}", __name__), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
