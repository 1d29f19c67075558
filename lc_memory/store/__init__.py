"""Where turns, summaries and facts lie, what waits to be indexed, and the lexical index beside them.

One contract over SQLite and PostgreSQL. Knows none of the rooms above it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_memory.lazy import lazy

if TYPE_CHECKING:
    from . import items as items
    from .background import Background as Background
    from .backlog import StoredTurn as StoredTurn
    from .contract import Store as Store
    from .contract import open_store as open_store
    from .database import Database as Database
    from .database import identity as identity
    from .fact import Fact as Fact
    from .fact import FactCounts as FactCounts
    from .items import fact_item as fact_item
    from .items import turn_item as turn_item
    from .ledger import Ledger as Ledger
    from .lexical.index import DatabaseLexicalIndex as DatabaseLexicalIndex
    from .lexical.scoring import LexicalItem as LexicalItem
    from .lexical.scoring import Question as Question
    from .rows import DATABASE_FILE as DATABASE_FILE
    from .rows import Forgotten as Forgotten
    from .rows import Message as Message
    from .rows import SessionInfo as SessionInfo
    from .rows import SessionKey as SessionKey
    from .rows import Snapshot as Snapshot
    from .rows import Turn as Turn
    from .sql import SqlStore as SqlStore
    from .text import digest as digest
    from .text import dump_json as dump_json
    from .text import from_moment as from_moment
    from .text import moment as moment
    from .uninterrupted import apart as apart
    from .uninterrupted import finished as finished
    from .uninterrupted import undisturbed as undisturbed
    from .uninterrupted import when_dropped as when_dropped
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "uninterrupted": "when_dropped undisturbed finished apart",
            "background": "Background",
            "backlog": "StoredTurn",
            "contract": "Store open_store",
            "database": "identity Database",
            "fact": "Fact FactCounts",
            "items": "fact_item items turn_item",
            "ledger": "Ledger",
            "lexical.index": "DatabaseLexicalIndex",
            "lexical.scoring": "LexicalItem Question",
            "rows": "Message DATABASE_FILE Forgotten SessionInfo SessionKey Snapshot Turn",
            "sql": "SqlStore",
            "text": "moment from_moment dump_json digest",
        },
    )
