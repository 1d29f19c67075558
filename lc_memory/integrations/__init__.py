"""One thin file for each contract of others: a middleware for create_agent (``middleware``), nodes for
LangGraph (``langgraph``), the facts as a LangGraph BaseStore (``store``). All need the extra ``[agent]``, and
nothing of the core imports them. Names are imported when they are first touched; without the extra that is a
MissingExtraError.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .langgraph import MemoryState as MemoryState
    from .langgraph import load_mem as load_mem
    from .langgraph import memory_graph as memory_graph
    from .langgraph import save_mem as save_mem
    from .middleware import MemoryMiddleware as MemoryMiddleware
    from .store import FactStore as FactStore
    from .store import namespace_of as namespace_of

_WHERE = {
    "FactStore": "store",
    "MemoryMiddleware": "middleware",
    "MemoryState": "langgraph",
    "load_mem": "langgraph",
    "memory_graph": "langgraph",
    "namespace_of": "store",
    "save_mem": "langgraph",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{where}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
