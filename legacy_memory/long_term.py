"""Long-term memory: facts in a Chroma collection on disk, found again by meaning."""

from __future__ import annotations

import os
import time
from typing import Any

from .paths import MEM_STORE


class LongTermMemory:
    """Facts that outlive the process.

    Chroma is opened when it is first needed: building a manager costs nothing and touches no disk.
    """

    def __init__(self, path: str | os.PathLike[str] = MEM_STORE, collection_name: str = "long_term") -> None:
        self.path = path
        self.collection_name = collection_name
        self._col: Any = None

    @property
    def col(self) -> Any:
        if self._col is None:
            import chromadb

            client = chromadb.PersistentClient(path=str(self.path))
            self._col = client.get_or_create_collection(self.collection_name)
        return self._col

    def add_fact(self, text: str, fid: str, private: bool = False) -> None:
        """Keep ``text`` under ``fid``. A private fact is stored, but not recalled unless asked for."""
        self.col.add(ids=[fid], documents=[text], metadatas=[{"private": private, "ts": time.time()}])

    def recall(self, query: str, k: int = 3, include_private: bool = False) -> list[str]:
        """Of the ``k`` facts nearest to ``query``, those that may be shown."""
        found = self.col.query(query_texts=[query], n_results=k)
        return [
            text
            for text, meta in zip(found["documents"][0], found["metadatas"][0], strict=True)
            if include_private or not (meta and meta.get("private"))
        ]

    def delete(self, fid: str) -> None:
        self.col.delete(ids=[fid])
