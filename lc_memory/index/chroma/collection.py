"""The vectors of facts and turns: one Chroma collection, cosine, which can always be built anew.

Each entry has the item's id and text, and as metadata ``scope`` (whose it is, and whether private: one
value, because each further condition of a filter costs Chroma as much again as the first), ``source``,
``kind``, ``session``, ``row`` and ``revision``.
"""

from __future__ import annotations

import contextlib
import math
import random
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.embeddings import Embeddings

from lc_memory.errors import EmbeddingMismatchError, FactIndexError
from lc_memory.models import clean, fingerprint, same_embedding
from lc_memory.store import Database, digest

from ..collected import Checked, Collected, collected, record, recorded
from ..gate import Gate
from .base import ChromaHome, ClosedIndexError, LostIndexError

if TYPE_CHECKING:
    from chromadb import Collection, Include
    from chromadb.api.collection_configuration import CreateHNSWConfiguration
    from langchain_core.documents import Document

BATCH = 256
"""So many texts are embedded and written at once; far below Chroma's own limit (5,461 entries a call)."""

# With Chroma's own 100 a search misses a tenth of the truly nearest among 40,000, with 200 half of that, for
# a few ms more (benchmarks/recall_scale.py).
_HNSW: CreateHNSWConfiguration = {"space": "cosine", "ef_search": 200}
_WIDEST = 256  # entries that a search reads and throws away rather than filter; see nearest()
_SPARE = 1.3
_COMPARED, _COMPARED_FAR = 4000, 250  # entries that are read and compared; over HTTP they come as text
_T = TypeVar("_T")

BEFORE = 1.0
"""How much of the turn before is in the vector of a turn, which is that of its own words plus this times the
other's, made of length 1 again. From .5 to 1 LoCoMo's R@5 differs by .008."""


@dataclass(frozen=True)
class Item:
    """A memory as the vector index holds it."""

    id: str
    owner: str
    source: str
    """"fact" or "turn"."""
    text: str
    """What is embedded."""
    before: str = field(default="", kw_only=True)
    """What was said just before, of which the vector holds a part (:data:`BEFORE`)."""
    row: int
    revision: int = 1
    private: bool = False
    kind: str | None = None
    session: str | None = None


@dataclass(frozen=True)
class Near:
    id: str
    cosine: float
    """-1 to 1."""


def scope(owner: str, *, private: bool = False) -> str:
    """The value by which an owner's entries are found. Of fixed length, whatever the owner is called."""
    return digest(owner).hex() + ("-private" if private else "")


class VectorIndex:
    """One collection, open. Made by :func:`open_index`. Safe to use from several threads.

    Errors: EmbeddingUnavailableError and EmbeddingMismatchError for the embedding,
    :class:`~lc_memory.index.chroma.base.LostIndexError` where files are broken or gone, else FactIndexError.
    """

    def __init__(self, home: ChromaHome, embedding: Embeddings, about: Collected) -> None:
        self.home = home
        self.about = about
        self._embedding = Checked(embedding, about)
        self._gate = Gate()
        self._last: dict[str, list[float]] = {}
        self._connect()

    def _connect(self) -> None:
        from langchain_chroma import Chroma

        client = self._client = self.home.connect()
        try:
            with self.home.errors():
                self._collection: Collection = client.get_or_create_collection(
                    self.about.collection,
                    embedding_function=None,
                    configuration={"hnsw": _HNSW},
                    metadata={"embedding": self.about.fingerprint},
                )
                self.home.holds(self.about.collection)
                self._entries = self._collection.count()
                self._batch = min(BATCH, client.get_max_batch_size())
                self._chroma = Chroma(
                    self.about.collection,
                    self._embedding,
                    client=client,
                    collection_configuration={"hnsw": _HNSW},
                )
        except BaseException:
            self.home.close()
            raise

    @contextlib.contextmanager
    def _using(self) -> Iterator[None]:
        with self._gate.inside(), self.home.errors():
            self.home.check()
            yield

    # ------------------------------------------------------------ writing

    def put(self, items: Sequence[Item]) -> None:
        """Take in items, or write them over.

        A text that the embedding or Chroma will not have, while others pass, is left out with a warning: it
        must not keep the rest away.
        """
        for some in _slices(list({item.id: item for item in items}.values()), self._batch):
            try:
                self._put(some)
            except (LostIndexError, ClosedIndexError, EmbeddingMismatchError):
                raise
            except FactIndexError:
                self.probe()  # raises where nothing can be put now
                self._put_one_by_one(some)

    def _put(self, items: Sequence[Item]) -> None:
        with self._using():
            self.home.check_room()
            self._collection.upsert(
                [item.id for item in items],
                embeddings=self._vectors(items),
                documents=[clean(item.text) for item in items],
                metadatas=[_metadata(item) for item in items],
            )
            self._entries += len(items)

    def _vectors(self, items: Sequence[Item]) -> list[Sequence[float] | Sequence[int]]:
        texts = dict.fromkeys(clean(text) for item in items for text in (item.text, item.before) if text)
        new = [text for text in texts if text not in self._last]
        vectors = {**self._last, **dict(zip(new, self._embedding.embed_documents(new), strict=True))}
        # The turn that comes next has this one before it, and need not have it embedded again.
        self._last = {clean(items[-1].text): vectors[clean(items[-1].text)]}
        return [joined(vectors[clean(i.text)], vectors[clean(i.before)] if i.before else None) for i in items]

    def _put_one_by_one(self, items: Sequence[Item]) -> None:
        refused = 0
        for item in items:
            try:
                self._put([item])
            except FactIndexError as error:
                refused += 1
                if refused > 1 + len(items) // 4:
                    raise
                warnings.warn(
                    f"the memory {item.id} cannot be indexed and is found by its words alone ({error})",
                    RuntimeWarning,
                    stacklevel=4,
                )

    def remove(self, ids: Sequence[str], *, purge: bool = False, filling: Collected | None = None) -> None:
        """Let items go; those that are not there are no error. Chroma only marks vectors as deleted, so each
        is first written over with noise.

        ``purge``: and leave nothing of them in the files: these are written out and the database is vacuumed
        (a second, and more for a large folder), also where they have left the index before. On a server that
        is its operator's part: ``chroma vacuum``. ``filling``: another collection that they are to leave.
        """
        if not ids:
            return
        self.home.check_room()
        if not purge or not self.home.files:
            with self._using():
                for collection, dimension in self._collections(filling):
                    self._let_go(collection, dimension, self._there(collection, ids))
            return
        with self._gate.alone(), self.home.errors():
            self.home.check()
            # Chroma writes its vectors out after a thousand changes, and now is to do so at once. It heeds
            # this setting when it opens a collection.
            self._sync_after(2, filling)
            for collection, dimension in self._collections(filling):
                # Where none is there, noise that comes and goes has what went before written out.
                self._let_go(collection, dimension, self._there(collection, ids) or [_NOBODY])
            self._sync_after(_USUAL_SYNC, filling)
            self.home.close()
            self.home.purge()
            self._connect()
            if not self._entries:
                self.home.opened_again()

    def _collections(self, filling: Collected | None) -> list[tuple[Collection, int]]:
        from chromadb.errors import NotFoundError

        found = [(self._collection, self.about.dimension)]
        if filling is not None:
            with contextlib.suppress(NotFoundError):  # noted, and not begun
                found.append((self._client.get_collection(filling.collection, None), filling.dimension))
        return found

    def _there(self, collection: Collection, ids: Sequence[str]) -> list[str]:
        return [
            item
            for some in _slices(list(ids), self._batch)
            for item in collection.get(some, include=[])["ids"]
        ]

    def _sync_after(self, changes: int, filling: Collected | None) -> None:
        for collection, _ in self._collections(filling):
            collection.modify(configuration={"hnsw": {"sync_threshold": changes}})
        self.home.close()
        self._connect()

    def _let_go(self, collection: Collection, dimension: int, ids: list[str]) -> None:
        noise = random.Random(0)  # another vector for each: equal ones by the thousand cost Chroma minutes
        for some in _slices(ids, self._batch):
            vectors: list[Sequence[float] | Sequence[int]] = [
                [noise.gauss(0, 1) for _ in range(dimension)] for _ in some
            ]
            collection.upsert(
                some,
                embeddings=vectors,
                documents=["-" for _ in some],
                metadatas=[{"scope": "-"} for _ in some],
            )
            collection.delete(some)
        if collection is self._collection and ids != [_NOBODY]:
            self._entries = max(0, self._entries - len(ids))

    # ------------------------------------------------------------ reading

    def nearest(
        self,
        query: str,
        owner: str,
        limit: int,
        *,
        sources: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        include_private: bool = False,
        owned: int = 0,
        ids: Callable[[], Sequence[str]] | None = None,
    ) -> list[Near]:
        """The owner's ``limit`` entries nearest to the question, which is embedded for it.

        ``owned``: about how many entries the owner has. ``ids``: which they are, of these sources.

        A filter takes Chroma time for each entry that it lets through (half a second for 50,000), and far
        more where these are few among many (a second for 1,000 of a million). Where the owner has a good part
        of all, the nearest of everybody are read in their order instead, until ``limit`` of the owner's are
        among them, which are the same ones. Where that does not come about and he has few, all of his are
        read and compared; else the filter is used.
        """
        vector = self._embedding.embed_query(clean(query))
        scopes = [scope(owner)] + ([scope(owner, private=True)] if include_private else [])
        many = max(limit, math.ceil(limit * _SPARE * self._entries / owned)) if owned else _WIDEST + 1
        with self._using():
            if kinds is None and sources is None and many <= _WIDEST:
                found = self._search(vector, many, None)
                mine = [hit for hit in found if hit[0].metadata.get("scope") in scopes]
                if len(mine) >= limit or len(found) < many:
                    return _near(mine[:limit])
            if ids is not None and owned <= (_COMPARED if self.home.files else _COMPARED_FAR):
                return self._compared(vector, ids(), kinds)[:limit]
            return _near(self._search(vector, limit, _where(scopes, sources, kinds)))

    def _compared(self, vector: list[float], ids: Sequence[str], kinds: Sequence[str] | None) -> list[Near]:
        """All of these entries, the nearest first."""
        import numpy as np

        wanted = None if kinds is None else {digest(kind).hex() for kind in kinds}
        include: Include = ["embeddings"] if wanted is None else ["embeddings", "metadatas"]
        asked = np.asarray(vector, dtype=np.float32)
        near: list[Near] = []
        for some in _slices(list(ids), 1000):
            found = self._collection.get(some, include=include)
            if not found["ids"]:
                continue
            vectors = np.asarray(found["embeddings"], dtype=np.float32)
            lengths = np.linalg.norm(vectors, axis=1) * np.linalg.norm(asked)
            cosines = (vectors @ asked) / np.maximum(lengths, 1e-12)
            metadatas: Sequence[Any] = found["metadatas"] or [None] * len(cosines)
            near += [
                Near(item, max(-1.0, min(1.0, float(cosine))))
                for item, cosine, meta in zip(found["ids"], cosines, metadatas, strict=True)
                if wanted is None or (meta or {}).get("kind") in wanted
            ]
        return sorted(near, key=lambda one: -one.cosine)

    def _search(self, vector: list[float], n: int, where: Any) -> list[tuple[Document, float]]:
        return self._chroma.similarity_search_by_vector_with_relevance_scores(vector, n, filter=where)

    def revisions(self, ids: Sequence[str]) -> dict[str, int]:
        """Which of these items are there, and in which revision."""
        with self._using():
            found = self._collection.get(list(ids), include=["metadatas"])
        metadatas = found["metadatas"] or []
        return {
            item: _number(meta.get("revision") if meta else 0)
            for item, meta in zip(found["ids"], metadatas, strict=True)
        }

    def ids(self, page: int = 2000) -> Iterator[list[str]]:
        """All items, a page at a time."""
        start = 0
        while True:
            with self._using():
                found = self._collection.get(limit=page, offset=start, include=[])["ids"]
            if found:
                yield found
            if len(found) < page:
                return
            start += page

    def count(self) -> int:
        with self._using():
            self._entries = self._collection.count()
        return self._entries

    def probe(self) -> None:
        """Raise what is wrong with the index or the embedding, if anything is."""
        self.count()
        check_same(self.about, fingerprint(self._embedding.inner))

    def drop(self, collection: str) -> None:
        """Delete another collection, which this one has taken the place of."""
        from chromadb.errors import NotFoundError

        with self._using(), contextlib.suppress(NotFoundError):
            self._client.delete_collection(collection)

    def close(self) -> None:
        with self._gate.alone():
            self.home.close()


def open_index(database: Database, home: ChromaHome, embedding: Embeddings) -> VectorIndex:
    """The index of this store, made where there is none.

    EmbeddingMismatchError where it was built with another embedding.
    """
    space = fingerprint(embedding)
    about = recorded(database)
    if about is None:
        about = record(database, collected(embedding, space))
    check_same(about, space)
    return VectorIndex(home, embedding, about)


def check_same(about: Collected, space: str) -> None:
    """EmbeddingMismatchError where ``space`` is not that of the index."""
    if not same_embedding(about.fingerprint, space):
        raise EmbeddingMismatchError(
            f"the index was built with the embedding {about.fingerprint}, and this memory was opened with "
            f"{space}, whose vectors cannot be compared with those. Open it with the embedding it was built "
            "with, or move it over: lc-memory reindex --embedding NAME"
        )


_USUAL_SYNC = 1000  # Chroma's own default
_NOBODY = "-"


def _metadata(item: Item) -> dict[str, Any]:
    return {
        "scope": scope(item.owner, private=item.private),
        "source": item.source,
        "row": item.row,
        "revision": item.revision,
        # Hashes, like the scope: any string is a valid kind, and Chroma does not take all of them.
        **({} if item.kind is None else {"kind": digest(item.kind).hex()}),
        **({} if item.session is None else {"session": digest(item.session).hex()}),
    }


def _where(
    scopes: Sequence[str], sources: Sequence[str] | None, kinds: Sequence[str] | None
) -> dict[str, Any]:
    """Chroma refuses an empty filter, an ``$and`` of one, and an empty ``$in``."""
    clauses = [_one_of("scope", scopes)]
    if sources is not None:
        clauses.append(_one_of("source", sorted(sources)))
    if kinds is not None:
        clauses.append(_one_of("kind", sorted(digest(kind).hex() for kind in kinds)))
    return clauses[0] if len(clauses) == 1 else {"$and": clauses}


def _one_of(key: str, values: Sequence[str]) -> dict[str, Any]:
    return {key: values[0]} if len(values) == 1 else {key: {"$in": list(values)}}


def _near(found: Sequence[Any]) -> list[Near]:
    # The id and not the text is what counts: the truth is in the store.
    return [Near(doc.id, max(-1.0, min(1.0, 1.0 - distance))) for doc, distance in found if doc.id]


def _number(value: object) -> int:
    return int(value) if isinstance(value, (int, float)) else 0


def joined(own: list[float], before: list[float] | None) -> list[float]:
    """The vector of what was said, with that of what was said before it."""
    if before is None:
        return own
    total = [x + BEFORE * y for x, y in zip(own, before, strict=True)]
    length = math.sqrt(math.fsum(x * x for x in total))
    return [x / length for x in total] if length else own


def _slices(values: list[_T], size: int) -> Iterator[list[_T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]
