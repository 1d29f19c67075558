"""Which collection holds the vectors, and of which embedding they are.

It stands in the store's database, so that all processes switch together when another collection takes its
place. The embedding is known by its fingerprint: vectors of two embeddings in one collection would give no
error, and recall that is noise.
"""

from __future__ import annotations

import json
import math
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from langchain_core.embeddings import Embeddings
from sqlalchemy import text

from lc_memory.errors import EmbeddingMismatchError, EmbeddingUnavailableError, LCMemoryError
from lc_memory.models import LocalEmbeddings, check_vector
from lc_memory.store import Database

from .scale import LOCAL, Scale


@dataclass(frozen=True)
class Collected:
    """A collection and the embedding that its vectors are of."""

    collection: str
    fingerprint: str
    mean: float
    spread: float

    @property
    def scale(self) -> Scale:
        return Scale(self.mean, self.spread)

    @property
    def dimension(self) -> int:
        return int(self.fingerprint.rsplit("/", 2)[1])


class Checked(Embeddings):
    """An embedding whose vectors fit, or which says what is wrong. A service may change its model."""

    def __init__(self, inner: Embeddings, about: Collected) -> None:
        self.inner = inner
        self._about = about

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors: list[list[float]] = self._call(lambda: list(self.inner.embed_documents(texts)))
        if len(vectors) != len(texts):
            raise EmbeddingUnavailableError(f"{len(texts)} texts were embedded into {len(vectors)} vectors")
        for vector in vectors:
            self._check(vector)
        return vectors

    def embed_query(self, text: str) -> list[float]:
        vector: list[float] = self._call(lambda: self.inner.embed_query(text))
        self._check(vector)
        return vector

    def _call(self, embed: Callable[[], Any]) -> Any:
        try:
            return embed()
        except LCMemoryError:
            raise
        except Exception as error:
            raise EmbeddingUnavailableError(
                f"{type(self.inner).__name__} failed ({type(error).__name__}: {error}). Check its settings"
            ) from error

    def _check(self, vector: list[float]) -> None:
        check_vector(self.inner, vector)
        if len(vector) != self._about.dimension:
            raise EmbeddingMismatchError(
                f"the embedding gives vectors of {len(vector)} numbers, and the index holds such of "
                f"{self._about.dimension} ({self._about.fingerprint}). If it was changed on purpose, run: "
                "lc-memory reindex"
            )


_META_GET = text("SELECT value FROM lcm_meta WHERE name = :name")
_META_PUT = text("INSERT INTO lcm_meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO ")
ACTIVE, NEXT, LAST = "index", "index_next", "index_last"


def recorded(database: Database, name: str = ACTIVE) -> Collected | None:
    """The collection that is in use (or, NEXT, the one that a reindex is filling; LAST, the one that was in
    use before and is still to be deleted). A note that cannot be read is none: the index is then built
    anew."""
    with database.read() as connection:
        value = connection.execute(_META_GET, {"name": name}).scalar()
    return None if value is None else _read(value)


def _read(value: str) -> Collected | None:
    try:
        about = Collected(**json.loads(value))
        readable = about.dimension > 0 and math.isfinite(about.mean) and math.isfinite(about.spread)
    except (TypeError, ValueError, AttributeError, IndexError):
        return None
    return about if readable and isinstance(about.collection, str) else None


def record(database: Database, about: Collected, name: str = ACTIVE) -> Collected:
    """Note a collection where none is noted; the one that is noted then (another process may be first)."""
    with database.write() as connection:
        there = connection.execute(_META_GET, {"name": name}).scalar()
        readable = there is not None and _read(there) is not None
        put = text(_META_PUT.text + ("NOTHING" if readable else "UPDATE SET value = excluded.value"))
        connection.execute(put, {"name": name, "value": json.dumps(asdict(about))})
    found = recorded(database, name)
    return about if found is None else found


def switch(database: Database) -> None:
    """The collection that was being filled takes the place of the one in use, for all processes."""
    with database.write() as connection:
        connection.execute(text("DELETE FROM lcm_meta WHERE name = 'index_last'"))
        connection.execute(text("UPDATE lcm_meta SET name = 'index_last' WHERE name = 'index'"))
        connection.execute(text("UPDATE lcm_meta SET name = 'index' WHERE name = 'index_next'"))


def abandon(database: Database, name: str = NEXT) -> None:
    """The collection that was being filled (or the LAST one) is not wanted any more, and is gone."""
    with database.write() as connection:
        connection.execute(text("DELETE FROM lcm_meta WHERE name = :name"), {"name": name})


def collected(embedding: Embeddings, space: str) -> Collected:
    """A new collection for an embedding. Measures it, with 22 sentences."""
    scale = LOCAL
    if not isinstance(embedding, LocalEmbeddings):
        from .scale import measure

        try:
            scale = measure(embedding)
        except LCMemoryError:
            raise
        except Exception as error:
            raise EmbeddingUnavailableError(f"{type(embedding).__name__} failed: {error}") from error
        if not math.isfinite(scale.mean):  # a NaN on record would outlast the one bad answer
            raise EmbeddingUnavailableError(f"{type(embedding).__name__} gave vectors that are no numbers")
    return Collected(f"lc_memory-{uuid.uuid4().hex[:12]}", space, scale.mean, scale.spread)
