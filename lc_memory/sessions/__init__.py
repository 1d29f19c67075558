"""Conversations: sessions in the store, a manager of the user's own, the rolling summary; and a memory as a
file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_memory.lazy import lazy

if TYPE_CHECKING:
    from .cache import StoredSessions as StoredSessions
    from .conversation import SPECS as SPECS
    from .conversation import Conversation as Conversation
    from .conversation import Sessions as Sessions
    from .histories_file import holds_conversations as holds_conversations
    from .histories_file import import_conversations as import_conversations
    from .identity import DEFAULT_SESSION as DEFAULT_SESSION
    from .identity import NOTHING as NOTHING
    from .identity import identified as identified
    from .identity import named as named
    from .identity import session_key as session_key
    from .managers import ManagerPerSession as ManagerPerSession
    from .managers import OneManager as OneManager
    from .portable import Imported as Imported
    from .portable import all_facts as all_facts
    from .portable import export_lines as export_lines
    from .portable import export_notes as export_notes
    from .portable import import_file as import_file
    from .session import Session as Session
    from .stored import Settings as Settings
    from .stored import add_turns as add_turns
    from .summary import Summariser as Summariser
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "histories_file": "import_conversations holds_conversations",
            "identity": "DEFAULT_SESSION named session_key identified NOTHING",
            "cache": "StoredSessions",
            "conversation": "Conversation SPECS Sessions",
            "managers": "ManagerPerSession OneManager",
            "portable": "Imported all_facts export_lines export_notes import_file",
            "session": "Session",
            "stored": "add_turns Settings",
            "summary": "Summariser",
        },
    )
