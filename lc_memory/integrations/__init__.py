"""One thin file for each contract of others: a middleware for create_agent (``middleware``), nodes for
LangGraph (``langgraph``), the facts as a LangGraph BaseStore (``store``). All need the extra ``[agent]``, and
nothing of the core imports them. Names are imported when they are first touched; without the extra that is a
MissingExtraError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_memory.lazy import lazy

if TYPE_CHECKING:
    from .langgraph import MemoryState as MemoryState
    from .langgraph import load_mem as load_mem
    from .langgraph import memory_graph as memory_graph
    from .langgraph import save_mem as save_mem
    from .middleware import MemoryMiddleware as MemoryMiddleware
    from .saving import SavedBy as SavedBy
    from .saving import last_question as last_question
    from .saving import saved_outside as saved_outside
    from .store import FactStore as FactStore
    from .store import namespace_of as namespace_of
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "langgraph": "MemoryState load_mem memory_graph save_mem",
            "middleware": "MemoryMiddleware",
            "saving": "SavedBy last_question saved_outside",
            "store": "FactStore namespace_of",
        },
    )
