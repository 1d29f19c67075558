"""Chat models and embeddings by the name of their provider.

::

    from lc_memory.models import chat_model, one_system

    model = chat_model("deepseek")       # keys from .env, providers from the table and config.json
    chain = prompt | model
    chain = prompt | one_system | other  # the same care for a model that was built elsewhere

Everything is imported when it is first touched: langchain_openai alone takes a second.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_memory.lazy import lazy

if TYPE_CHECKING:
    from .chat import ServiceChatModel as ServiceChatModel
    from .embedding import LocalEmbeddings as LocalEmbeddings
    from .embedding import check_vector as check_vector
    from .embedding import clean as clean
    from .embedding import commonness as commonness
    from .embedding import fingerprint as fingerprint
    from .embedding import same_embedding as same_embedding
    from .embedding_names import embeddings as embeddings
    from .offline import OfflineChatModel as OfflineChatModel
    from .profiles import PROFILES as PROFILES
    from .profiles import Profile as Profile
    from .profiles import profile_for as profile_for
    from .providers import Settings as Settings
    from .providers import chat_model as chat_model
    from .request import schema_in_words as schema_in_words
    from .runnable import one_system as one_system
    from .runnable import shaped_for as shaped_for
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "chat": "ServiceChatModel",
            "embedding": "LocalEmbeddings check_vector clean commonness fingerprint same_embedding",
            "embedding_names": "embeddings",
            "offline": "OfflineChatModel",
            "profiles": "PROFILES Profile profile_for",
            "providers": "Settings chat_model",
            "request": "schema_in_words",
            "runnable": "one_system shaped_for",
        },
    )
