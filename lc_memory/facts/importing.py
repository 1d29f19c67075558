"""The facts of a dict-based memory's Chroma folder come along, with their ids, private flags and times.

The old folder is copied and the copy is opened: Chroma writes even to what it only reads. What was taken
over already is known by its id, so an import that was stopped goes on where it was.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lc_memory.errors import FactIndexError, MemoryInputError
from lc_memory.facts.privacy import PrivacyMode, kinds_in_words, passed
from lc_memory.index import Progress, settings
from lc_memory.store import Fact, SqlStore, moment

_PAGE = 256


@dataclass(frozen=True)
class Imported:
    """How many facts were written, and how many were there already or have no text."""

    added: int
    known: int
    empty: int
    bad: tuple[str, ...] = ()
    """Those that were left out, each by its id and what is wrong with it."""


@dataclass(frozen=True)
class _Old:
    id: str
    text: str | None
    about: dict[str, Any]


def import_chroma(
    store: SqlStore,
    owner: str,
    folder: Path,
    collection: str,
    *,
    progress: Progress | None = None,
    privacy: PrivacyMode = "refuse",
    skip_bad: bool = False,
) -> Imported:
    """Write the facts of ``collection`` in the Chroma folder ``folder`` to the ledger, as ``owner``'s.

    ``private`` and ``ts`` (Unix seconds) of the old metadata are kept, and ``kind`` where there is one.
    ``privacy``: what becomes of a fact that is not private and holds private data. MemoryInputError where
    there is no such folder or collection, and, before anything is written, for a fact that cannot come in;
    with ``skip_bad`` it is left out.
    """
    if not (folder / "chroma.sqlite3").is_file():
        raise MemoryInputError(f"{folder} is no Chroma folder: it holds no chroma.sqlite3")
    ledger = store.ledger()
    added = known = empty = done = 0
    bad: list[str] = []
    with _facts(folder, collection) as (total, pages):
        for page in () if skip_bad else pages():
            there = {fact.id for fact in ledger.get(owner, [old.id for old in page])}
            for old in page:
                if old.id not in there and (what := _read(owner, old, privacy)[1]) is not None:
                    raise MemoryInputError(
                        f"{folder}, fact {what}. Nothing was imported; --skip-bad leaves such facts out"
                    )
        for page in pages():
            there = {fact.id for fact in ledger.get(owner, [old.id for old in page])}
            for old in page:
                done += 1
                fact, what = (None, None) if old.id in there else _read(owner, old, privacy)
                known += old.id in there
                if fact is not None:
                    added += ledger.restore(fact)
                elif what is not None:
                    bad.append(what)
                elif old.id not in there:
                    empty += 1
            if progress is not None:
                progress(done, total)
    return Imported(added, known, empty, tuple(bad))


@contextmanager
def _facts(folder: Path, collection: str) -> Iterator[tuple[int, Callable[[], Iterator[list[_Old]]]]]:
    """How many there are, and a page of them after the other, from a copy of the folder."""
    with tempfile.TemporaryDirectory(prefix="lc-memory-import-") as copied:
        copy = Path(copied) / "chroma"
        shutil.copytree(folder, copy)
        client, found = _opened(copy, collection)
        try:
            yield found.count(), lambda: _pages(found)
        finally:
            client.close()


def _opened(folder: Path, collection: str) -> tuple[Any, Any]:
    import chromadb

    try:
        client = chromadb.PersistentClient(str(folder), settings=settings())
        names = [found.name for found in client.list_collections()]
        if collection not in names:
            raise MemoryInputError(
                f"there is no collection {collection!r} in it; it has {', '.join(names) or 'none'}"
            )
        # Without its embedding function: Chroma's default would be downloaded, and nothing is embedded here.
        return client, client.get_collection(collection, embedding_function=None)
    except MemoryInputError:
        raise
    except Exception as error:
        raise FactIndexError(f"the old folder cannot be read ({type(error).__name__}: {error})") from error


def _pages(found: Any) -> Iterator[list[_Old]]:
    for start in range(0, found.count(), _PAGE):
        page = found.get(limit=_PAGE, offset=start, include=["documents", "metadatas"])
        nothing = [None] * len(page["ids"])
        documents: Sequence[Any] = page["documents"] or nothing
        metadatas: Sequence[Any] = page["metadatas"] or nothing
        yield [
            _Old(i, text, dict(about or {}))
            for i, text, about in zip(page["ids"], documents, metadatas, strict=True)
        ]


def _read(owner: str, old: _Old, privacy: PrivacyMode) -> tuple[Fact | None, str | None]:
    """The fact as it comes in; or why it cannot, without its words; or neither, where it has none."""
    if not old.text or not old.text.strip():
        return None, None
    private = bool(old.about.get("private"))
    text, found = passed(old.text, "off" if private else privacy)
    if text is None:
        return None, f"{old.id}: it holds {kinds_in_words(found)}, which is not kept"
    noted = old.about.get("ts")
    try:
        when = moment("ts", noted) if isinstance(noted, (int, float)) else 0.0
    except MemoryInputError as error:
        return None, f"{old.id}: {error}"
    kind = old.about.get("kind")
    return _fact(owner, old.id, text, kind if isinstance(kind, str) else None, private, when), None


def _fact(owner: str, fact_id: str, text: str, kind: str | None, private: bool, noted_at: float) -> Fact:
    return Fact(
        row=0,
        owner=owner,
        id=fact_id,
        text=text,
        kind=kind,
        subject=None,
        private=private,
        core=False,
        source={"imported": "chroma"},
        noted_at=noted_at,
        expires_at=None,
        superseded_by=None,
        superseded_at=None,
        count=1,
        indexed=False,
        revision=1,
    )
