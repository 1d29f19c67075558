"""The command line: ``lc-memory …``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_memory.lazy import lazy

if TYPE_CHECKING:
    from .entry import app as app
    from .entry import main as main
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "entry": "app main",
        },
    )
