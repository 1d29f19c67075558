"""Around an LCEL chain: load_mem at its head, with_memory behind it, one queue a session.

The plural, because ``lc_memory.chain`` is the default chain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_memory.lazy import lazy

if TYPE_CHECKING:
    from .graphs import is_command as is_command
    from .load_mem import ChainMemory as ChainMemory
    from .load_mem import LoadMem as LoadMem
    from .moving import known as known
    from .moving import movable as movable
    from .moving import opened_again as opened_again
    from .moving import stays as stays
    from .queue import Place as Place
    from .queue import SessionQueue as SessionQueue
    from .recorder import OnSaveError as OnSaveError
    from .recorder import with_memory as with_memory
    from .turn import TurnRecorder as TurnRecorder
    from .turn import merged as merged
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "moving": "stays opened_again movable known",
            "graphs": "is_command",
            "load_mem": "ChainMemory LoadMem",
            "queue": "Place SessionQueue",
            "recorder": "OnSaveError with_memory",
            "turn": "TurnRecorder merged",
        },
    )
