"""A new collection is filled while the old one serves, and then takes its place, for all processes at once.

So the index moves to another embedding, or is built anew. What is being filled is noted in the store: a
reindex that was stopped or killed goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from langchain_core.embeddings import Embeddings

from lc_memory.models import fingerprint, same_embedding
from lc_memory.store import SqlStore

from .chroma.base import ChromaHome
from .chroma.collection import VectorIndex
from .collected import LAST, NEXT, Collected, abandon, collected, record, recorded, switch
from .following import Follower
from .mending import Progress, mend


def reindex(
    store: SqlStore,
    follower: Follower,
    home: ChromaHome,
    embedding: Embeddings,
    sources: Sequence[str],
    *,
    progress: Progress | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> int:
    """Fill a new collection and switch to it. Returns how many entries it has; FactIndexError where it
    cannot be filled, and then the old one stays in use."""
    new = _begun(store, home, embedding)
    index = VectorIndex(home, embedding, new)
    try:
        # What is noted meanwhile goes to the old one; each round has less of that to add. Where it has not,
        # as much is noted as is added, and another round would not be the last one either.
        added = before = mend(store, follower, index, sources, progress=progress, stopping=stopping).added
        while added and not stopping():
            added = mend(store, follower, index, sources, progress=progress, stopping=stopping).added
            if added > before // 2:
                break
            before = added
        if stopping():
            return index.count()
        old = recorded(store.database)
        switch(store.database)
        mend(store, follower, index, sources)  # what came between the last round and the switch
        if old is not None:
            index.drop(old.collection)
            abandon(store.database, LAST)
        return index.count()
    finally:
        index.close()


def _begun(store: SqlStore, home: ChromaHome, embedding: Embeddings) -> Collected:
    space = fingerprint(embedding)
    begun = recorded(store.database, NEXT)
    if begun is not None and not same_embedding(begun.fingerprint, space):
        abandoned = VectorIndex(home, embedding, begun)
        try:
            abandoned.drop(begun.collection)
        finally:
            abandoned.close()
        abandon(store.database)
        begun = None
    return begun or record(store.database, collected(embedding, space), NEXT)
