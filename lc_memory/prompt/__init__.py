"""What one prompt gets: its parts under one budget, and the account of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_memory.lazy import lazy

if TYPE_CHECKING:
    from .context import Kind as Kind
    from .context import Material as Material
    from .context import Part as Part
    from .context import Plan as Plan
    from .context import Remembered as Remembered
    from .context import Unit as Unit
    from .context import assemble as assemble
    from .context import message_counter as message_counter
    from .explain import Explanation as Explanation
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "context": "Kind Material Part Plan Remembered Unit assemble message_counter",
            "explain": "Explanation",
        },
    )
