"""What is known of a user beyond the conversation.

``extract``: from what was said to the few facts worth keeping. ``privacy``: what of a text is private; it
knows nothing of facts, and is a room of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_memory.lazy import lazy

if TYPE_CHECKING:
    from .core import CoreFacts as CoreFacts
    from .extract.notes import MemoryNotes as MemoryNotes
    from .extract.writer import NoteWriter as NoteWriter
    from .for_user import UserFacts as UserFacts
    from .importing import import_chroma as import_chroma
    from .kinds import PREFERENCE as PREFERENCE
    from .kinds import Kinds as Kinds
    from .kinds import kept_as as kept_as
    from .remember import said_to_remember as said_to_remember
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "core": "CoreFacts",
            "extract.notes": "MemoryNotes",
            "extract.writer": "NoteWriter",
            "for_user": "UserFacts",
            "importing": "import_chroma",
            "kinds": "Kinds PREFERENCE kept_as",
            "remember": "said_to_remember",
        },
    )
