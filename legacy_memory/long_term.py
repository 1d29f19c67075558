"""Long-term memory: facts in a Chroma collection on disk, found again by meaning."""

import time

from .paths import MEM_STORE


class LongTermMemory:
    """Facts that outlive the process.

    Chroma is opened when it is first needed: building a manager costs nothing and touches no disk.
    """

    def __init__(self, path=MEM_STORE, collection_name="long_term"):
        self.path = path
        self.collection_name = collection_name
        self._col = None

    @property
    def col(self):
        if self._col is None:
            import chromadb

            client = chromadb.PersistentClient(path=str(self.path))
            self._col = client.get_or_create_collection(self.collection_name)
        return self._col

    def add_fact(self, text, fid, private=False):
        """Keep ``text`` under ``fid``. A private fact is stored, but not recalled unless asked for."""
        self.col.add(ids=[fid], documents=[text], metadatas=[{"private": private, "ts": time.time()}])

    def recall(self, query, k=3, include_private=False):
        """Of the ``k`` facts nearest to ``query``, those that may be shown."""
        found = self.col.query(query_texts=[query], n_results=k)
        return [
            text
            for text, meta in zip(found["documents"][0], found["metadatas"][0], strict=True)
            if include_private or not (meta and meta.get("private"))
        ]

    def delete(self, fid):
        self.col.delete(ids=[fid])
