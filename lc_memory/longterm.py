"""The calls of a Memory that concern what is known of a user beyond the conversation."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lc_memory.errors import MemoryInputError, StoreError
from lc_memory.facts.privacy import PrivacyMode, kinds_in_words, passed
from lc_memory.lazy import import_all
from lc_memory.sessions import DEFAULT_SESSION, named

from . import checks

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from lc_memory.facts import Kinds, NoteWriter, UserFacts
    from lc_memory.index import ChromaHome, Health, Keeping, Source
    from lc_memory.recall import LongTerm
    from lc_memory.retriever import MemoryRetriever
    from lc_memory.sessions import StoredSessions
    from lc_memory.store import Fact, SqlStore


log = logging.getLogger("lc_memory")

IN_MEMORY = frozenset({":memory:", "sqlite://", "sqlite:///", "sqlite:///:memory:"})
"""Names of a store that ends with its process."""


class LongTermCalls:
    """For :class:`~lc_memory.Memory`, where it was opened on a store."""

    _longterm: LongTerm | None = None
    _indexes: Keeping
    """What keeps the indexes of the store, also where nothing is recalled from them."""

    def remember(
        self,
        text: str,
        *,
        user_id: str | None = None,
        session_id: str = DEFAULT_SESSION,
        kind: str | None = None,
        private: bool = False,
        expires_at: float | None = None,
    ) -> Fact:
        """Note a fact of a user (or, with no user, of this session), to be recalled where it bears on a
        question. One of the same ``kind`` takes the place of the one before. A ``private`` one is kept and
        comes into no prompt. ``expires_at``: Unix seconds.

        Raises MemoryInputError for private data in a fact that is not said to be ``private``, unless this
        memory was opened with another ``privacy`` than "refuse"."""
        if not isinstance(text, str):
            raise MemoryInputError(f"remember(text): expected text, got {type(text).__name__} {text!r:.80}")
        kept, found = passed(text, "off" if private else self._stored("remember()").privacy)
        if kept is None:
            raise MemoryInputError(
                f"the fact holds {kinds_in_words(found)}; remember(…, private=True) keeps it out of prompts"
            )
        fact = (
            self._stored("remember()")
            .store.ledger()
            .add(
                named(session_id, user_id).owner,
                kept,
                kind=kind,
                private=private,
                expires_at=expires_at,
                supersede=kind is not None,
            )
        )
        if self._longterm is not None:
            self._longterm.noted()
        return fact

    def retriever(
        self,
        *,
        k: int = 4,
        kinds: Sequence[str] | None = None,
        include_private: bool = False,
        sources: Sequence[Source] = ("facts", "turns"),
    ) -> MemoryRetriever:
        """A LangChain retriever over facts and turns, for the user that the config names at each call."""
        from lc_memory.retriever import MemoryRetriever

        self._long("retriever()")
        checks.whole("k", k, "a retriever that finds nothing is none")
        for name, given in (("kinds", kinds), ("sources", sources)):
            if isinstance(given, str):
                raise MemoryInputError(f"{name}={given!r:.40}: expected a list, such as [{given!r:.40}]")
        if not sources or not set(sources) <= {"facts", "turns"}:
            raise MemoryInputError(f"sources={sources!r:.60}: expected a list of 'facts' and 'turns'")
        return MemoryRetriever(
            memory=self,
            k=k,
            kinds=None if kinds is None else list(kinds),
            include_private=include_private,
            sources=tuple(sources),
        )

    def facts_for(self, user_id: str | None = None, *, session_id: str = DEFAULT_SESSION) -> UserFacts:
        """The facts of one user behind the calls that a dict-based manager makes to its long-term part:
        ``manager.ltm = memory.facts_for("u1")``."""
        from lc_memory.facts import UserFacts

        owner = named(session_id, user_id).owner
        stored = self._stored("facts_for()")
        longterm = self._long("facts_for()")
        return UserFacts(owner, self._sql_store("facts_for()"), longterm, stored.privacy, self._wipe)

    def health(self) -> Health:
        """How the long-term memory is, and what to do where something is wrong. ``print`` it."""
        return self._long("health()").health()

    def reindex(self, *, progress: Callable[[int, int], None] | None = None) -> int:
        """Build the vector index anew with the embedding that this memory was opened with, and put it in
        the place of the old one, which serves until then. Stopped, it goes on where it was. Returns how
        many memories it holds; ``progress`` is called with how many are done, and of how many."""
        return self._long("reindex()").reindex(progress=progress)

    def _wipe(self) -> bool:
        """After an erasure: nothing of it stays in any file, of the store, of the vectors, or of what was set
        aside. False, and a warning, where something does."""
        gone = self._indexes.forgotten()
        try:
            wiped = self._stored("an erasure").store.wipe()
            why = "" if wiped else "another program reads the store"
        except StoreError as error:  # the erasure is done, and whoever asked for it needs to know
            wiped, why = False, str(error)
        if not wiped:
            log.warning("erased, but not yet from the files, until the next erasure: %s", why)
        return wiped and gone

    def _long(self, what: str) -> LongTerm:
        self._stored(what)
        if self._longterm is None:
            raise MemoryInputError(f"{what} needs recall, and this memory was opened with recall=()")
        return self._longterm

    def _sql_store(self, what: str) -> Callable[[], SqlStore]:
        stored = self._stored(what)
        return lambda: cast("SqlStore", stored.store)

    def _stored(self, what: str) -> StoredSessions:
        raise NotImplementedError


def long_term(
    where: str | os.PathLike[str],
    stored: StoredSessions,
    recall: Sequence[str],
    k: int,
    embedding: str | Embeddings,
    chroma: Any,
) -> LongTerm | None:
    """The long-term part of a memory; None where it is switched off. Opens nothing."""
    listed = isinstance(recall, (list, tuple, set, frozenset))
    sources = [source for source in ("facts", "turns") if source in recall] if listed else []
    if not listed or len(sources) != len(set(recall)):
        raise MemoryInputError(f"recall={recall!r}: expected a list of 'facts' and 'turns', or none of them")
    if not sources:
        return None
    from lc_memory.index import Vectors
    from lc_memory.models import embeddings
    from lc_memory.recall import LongTerm

    def store() -> SqlStore:
        return cast("SqlStore", stored.store)

    made = embeddings(embedding)
    import_all(getattr(made, "needs", ()))
    vectors = Vectors(lambda: store().database, _home(where, chroma), made)
    return LongTerm(store, vectors, stored.background, sources=cast(Any, sources), k=k)


def index_left_behind(where: str | os.PathLike[str], stored: StoredSessions, chroma: Any) -> Keeping:
    """For a memory that recalls nothing: what was erased leaves the index that it was once opened with."""
    from lc_memory.index import Keeping, Vectors
    from lc_memory.models import embeddings

    def store() -> SqlStore:
        return cast("SqlStore", stored.store)

    vectors = Vectors(lambda: store().database, _home(where, chroma), embeddings("local"))
    return Keeping(store, vectors, stored.background, ())


def note_writer(
    stored: StoredSessions,
    longterm: LongTerm | None,
    model: Any,
    every: int,
    kinds: Kinds | None,
    privacy: PrivacyMode,
) -> NoteWriter | None:
    """What makes facts of the turns of a memory; None where no model is given for it. Opens nothing."""
    if model is None:
        return None
    from lc_memory.facts import NoteWriter

    return NoteWriter(
        lambda: stored.store,
        stored.background,
        model,
        kinds=kinds,
        every=every,
        privacy=privacy,
        written=longterm.noted if longterm is not None else lambda: None,
    )


def _home(where: str | os.PathLike[str], chroma: Any) -> Callable[[], ChromaHome]:
    """Where the vectors of a store lie: what ``chroma`` names, else a folder beside the store."""
    name = os.fspath(where)
    beside: Path | None = None
    if name in IN_MEMORY:
        chroma = ":memory:" if chroma is None else chroma
    elif name.startswith("sqlite:///"):
        beside = Path(name.removeprefix("sqlite:///") + ".chroma")
    elif "://" not in name:
        beside = Path(name) / "chroma"

    def home() -> ChromaHome:
        from lc_memory.index import chroma_home

        return chroma_home(chroma, beside)

    return home
