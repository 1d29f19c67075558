"""One thin file for each contract of others: a middleware for create_agent (``middleware``), nodes for
LangGraph (``langgraph``), the facts as a LangGraph BaseStore (``store``). All need the extra ``[agent]``, and
nothing of the core imports them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_memory.lazy import lazy

if TYPE_CHECKING:
    from .middleware import MemoryMiddleware as MemoryMiddleware
    from .saving import SavedBy as SavedBy
    from .saving import last_question as last_question
    from .saving import saved_outside as saved_outside
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "middleware": "MemoryMiddleware",
            "saving": "SavedBy last_question saved_outside",
        },
    )
