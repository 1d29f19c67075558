"""The facts of a dict-based memory's Chroma folder come along, with their ids, private flags and times.

The old folder is copied and the copy is opened: Chroma writes even to what it only reads. What was taken
over already is known by its id, so an import that was stopped goes on where it was.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lc_memory.errors import FactIndexError, MemoryInputError
from lc_memory.index import Progress, settings
from lc_memory.store import Fact, SqlStore

_PAGE = 256


@dataclass(frozen=True)
class Imported:
    """How many facts were written, and how many were there already or have no text."""

    added: int
    known: int
    empty: int


@dataclass(frozen=True)
class _Old:
    id: str
    text: str | None
    about: dict[str, Any]


def import_chroma(
    store: SqlStore, owner: str, folder: Path, collection: str, *, progress: Progress | None = None
) -> Imported:
    """Write the facts of ``collection`` in the Chroma folder ``folder`` to the ledger, as ``owner``'s.

    ``private`` and ``ts`` (Unix seconds) of the old metadata are kept, and ``kind`` where there is one.
    MemoryInputError where there is no such folder or collection.
    """
    if not (folder / "chroma.sqlite3").is_file():
        raise MemoryInputError(f"{folder} is no Chroma folder: it holds no chroma.sqlite3")
    ledger = store.ledger()
    added = known = empty = done = 0
    with tempfile.TemporaryDirectory(prefix="lc-memory-import-") as copied:
        copy = Path(copied) / "chroma"
        shutil.copytree(folder, copy)
        total, facts = _facts(copy, collection)
        for page in facts:
            there = {fact.id for fact in ledger.get(owner, [old.id for old in page])}
            for old in page:
                done += 1
                if old.id in there:
                    known += 1
                elif not old.text or not old.text.strip():
                    empty += 1
                else:
                    added += ledger.restore(_fact(owner, old))
            if progress is not None:
                progress(done, total)
    return Imported(added, known, empty)


def _facts(folder: Path, collection: str) -> tuple[int, Iterator[list[_Old]]]:
    import chromadb

    try:
        client = chromadb.PersistentClient(str(folder), settings=settings())
        names = [found.name for found in client.list_collections()]
        if collection not in names:
            raise MemoryInputError(
                f"there is no collection {collection!r} in it; it has {', '.join(names) or 'none'}"
            )
        # Without its embedding function: Chroma's default would be downloaded, and nothing is embedded here.
        found = client.get_collection(collection, embedding_function=None)
        total = found.count()
    except MemoryInputError:
        raise
    except Exception as error:
        raise FactIndexError(f"the old folder cannot be read ({type(error).__name__}: {error})") from error

    def pages() -> Iterator[list[_Old]]:
        for start in range(0, total, _PAGE):
            page = found.get(limit=_PAGE, offset=start, include=["documents", "metadatas"])
            nothing = [None] * len(page["ids"])
            documents: Sequence[Any] = page["documents"] or nothing
            metadatas: Sequence[Any] = page["metadatas"] or nothing
            yield [
                _Old(i, text, dict(about or {}))
                for i, text, about in zip(page["ids"], documents, metadatas, strict=True)
            ]
        client.close()  # type: ignore[attr-defined]

    return total, pages()


def _fact(owner: str, old: _Old) -> Fact:
    noted = old.about.get("ts")
    kind = old.about.get("kind")
    return Fact(
        row=0,
        owner=owner,
        id=old.id,
        text=old.text or "",
        kind=kind if isinstance(kind, str) else None,
        subject=None,
        private=bool(old.about.get("private")),
        core=False,
        source={"imported": "chroma"},
        noted_at=float(noted) if isinstance(noted, (int, float)) else 0.0,
        expires_at=None,
        superseded_by=None,
        superseded_at=None,
        count=1,
        indexed=False,
        revision=1,
    )
