"""Memory at the head of LCEL chains: sessions, users, a rolling summary and long-term facts.

::

    from lc_memory import Memory, with_memory

    memory = Memory.open("./memory")
    chain = memory.load_mem | prompt | model | StrOutputParser()
    bot = with_memory(chain, memory)
    bot.invoke({"question": "我叫小明"}, {"configurable": {"user_id": "u1", "session_id": "s1"}})

Names are imported when they are first touched, so that ``import lc_memory`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .errors import EmbeddingMismatchError as EmbeddingMismatchError
    from .errors import EmbeddingUnavailableError as EmbeddingUnavailableError
    from .errors import FactIndexError as FactIndexError
    from .errors import LCMemoryError as LCMemoryError
    from .errors import MemoryInputError as MemoryInputError
    from .errors import MissingExtraError as MissingExtraError
    from .errors import MissingKeyError as MissingKeyError
    from .errors import SessionBusyError as SessionBusyError
    from .errors import StoreError as StoreError
    from .memory import Memory as Memory
    from .messages import _to_lc as _to_lc
    from .messages import from_lc as from_lc
    from .messages import messages_from_lc as messages_from_lc
    from .messages import messages_to_lc as messages_to_lc
    from .models import chat_model as chat_model
    from .models import one_system as one_system
    from .recorder import with_memory as with_memory
    from .retriever import MemoryRetriever as MemoryRetriever
    from .script import ask as ask
    from .script import chain as chain
    from .script import get_history as get_history
    from .script import load_mem as load_mem

_WHERE = {
    "Memory": "memory",
    "with_memory": "recorder",
    "MemoryRetriever": "retriever",
    "_to_lc": "messages",
    "from_lc": "messages",
    "messages_to_lc": "messages",
    "messages_from_lc": "messages",
    "chat_model": "models",
    "one_system": "models",
    "ask": "script",
    "chain": "script",
    "get_history": "script",
    "load_mem": "script",
    **dict.fromkeys(
        (
            "EmbeddingMismatchError", "EmbeddingUnavailableError", "FactIndexError", "LCMemoryError",
            "MemoryInputError", "MissingExtraError", "MissingKeyError", "SessionBusyError", "StoreError",
        ),
        "errors",
    ),
}  # fmt: skip

__all__ = [name for name in _WHERE if not name.startswith("_")]


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{where}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
