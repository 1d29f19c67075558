"""The vectors of facts and turns: where they lie, how they follow the store, how they are built anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_memory.lazy import lazy

if TYPE_CHECKING:
    from .chroma.base import ChromaHome as ChromaHome
    from .chroma.base import settings as settings
    from .chroma.places import chroma_home as chroma_home
    from .collected import recorded as recorded
    from .health import Health as Health
    from .keeping import Keeping as Keeping
    from .keeping import RunsLater as RunsLater
    from .keeping import Source as Source
    from .mending import Progress as Progress
    from .scale import LOCAL as LOCAL
    from .scale import Scale as Scale
    from .texts import FACT as FACT
    from .texts import PRIVATE as PRIVATE
    from .texts import TURN as TURN
    from .texts import day as day
    from .texts import fact_line as fact_line
    from .texts import said as said
    from .texts import turn_line as turn_line
    from .texts import turn_text as turn_text
    from .vectors import Vectors as Vectors
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "chroma.base": "ChromaHome settings",
            "chroma.places": "chroma_home",
            "collected": "recorded",
            "health": "Health",
            "keeping": "Keeping RunsLater Source",
            "mending": "Progress",
            "scale": "LOCAL Scale",
            "texts": "day FACT PRIVATE TURN fact_line said turn_line turn_text",
            "vectors": "Vectors",
        },
    )
