"""Memory at the head of LCEL chains: sessions, users, a rolling summary and long-term facts.

::

    from lc_memory import Memory, with_memory

    memory = Memory.open("./memory")
    chain = memory.load_mem | prompt | model | StrOutputParser()
    bot = with_memory(chain, memory)
    bot.invoke({"question": "我叫小明"}, {"configurable": {"user_id": "u1", "session_id": "s1"}})

Names are imported when they are first touched, so that ``import lc_memory`` costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .lazy import lazy

if TYPE_CHECKING:
    from .chains import with_memory as with_memory
    from .errors import EmbeddingMismatchError as EmbeddingMismatchError
    from .errors import EmbeddingUnavailableError as EmbeddingUnavailableError
    from .errors import FactIndexError as FactIndexError
    from .errors import LCMemoryError as LCMemoryError
    from .errors import MemoryInputError as MemoryInputError
    from .errors import MissingExtraError as MissingExtraError
    from .errors import MissingKeyError as MissingKeyError
    from .errors import SessionBusyError as SessionBusyError
    from .errors import StoreError as StoreError
    from .memory import Memory as Memory
    from .messages import _to_lc as _to_lc
    from .messages import from_lc as from_lc
    from .messages import messages_from_lc as messages_from_lc
    from .messages import messages_to_lc as messages_to_lc
    from .models import chat_model as chat_model
    from .models import one_system as one_system
    from .retriever import MemoryRetriever as MemoryRetriever
    from .script import ask as ask
    from .script import chain as chain
    from .script import get_history as get_history
    from .script import load_mem as load_mem
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "chains": "with_memory",
            "errors": (
                "EmbeddingMismatchError EmbeddingUnavailableError FactIndexError LCMemoryError "
                "MemoryInputError MissingExtraError MissingKeyError SessionBusyError StoreError"
            ),
            "memory": "Memory",
            "messages": "_to_lc from_lc messages_from_lc messages_to_lc",
            "models": "chat_model one_system",
            "retriever": "MemoryRetriever",
            "script": "ask chain get_history load_mem",
        },
    )
