"""What of the facts and turns of a user bears on a question."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_memory.lazy import lazy

if TYPE_CHECKING:
    from .longterm import Found as Found
    from .longterm import LongTerm as LongTerm
    from .ranking import rank as rank
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "longterm": "Found LongTerm",
            "ranking": "rank",
        },
    )
