"""The vector index as something that may be away: opened when it is first needed, given up for a while when
it fails, tried again, and built anew where its files are lost.

While it is away recall goes by words alone. One warning is given for each outage, and nobody's question
waits for another attempt: these are made in the background, after pauses that grow from a second to a
minute.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable
from typing import TypeVar

from langchain_core.embeddings import Embeddings

from lc_memory.errors import EmbeddingMismatchError, EmbeddingUnavailableError, FactIndexError
from lc_memory.store import Database

from .chroma.base import BrokenIndexError, ChromaHome, ClosedIndexError, LostIndexError
from .chroma.collection import VectorIndex, open_index
from .collected import recorded

T = TypeVar("T")


class Vectors:
    """At most one open :class:`VectorIndex`, and whether it can be used. Safe to use from several threads."""

    first_pause, longest_pause = 1.0, 60.0  # seconds

    def __init__(
        self, database: Callable[[], Database], home: Callable[[], ChromaHome], embedding: Embeddings
    ) -> None:
        self.embedding = embedding
        self._database = database
        self._make_home = home
        self._home: ChromaHome | None = None
        self._index: VectorIndex | None = None
        self._opened = False
        self._lock = threading.RLock()
        self.outage: FactIndexError | None = None
        """Why it cannot be used now. None: it can, as far as is known."""
        self._failures = 0
        self._again_at = 0.0
        self.unchecked = True
        """Whether it is still to be compared with the store: after an opening, or a loss."""

    def use(self, call: Callable[[VectorIndex], T], *, anyway: bool = False) -> T:
        """What ``call`` makes of the index.

        FactIndexError where it cannot be used; at once in an outage, unless ``anyway``. An index whose
        files are lost is set aside and a new one begun, which is empty at first.
        """
        if self.outage is not None and not anyway:
            raise self.outage
        try:
            try:
                result = self._twice(call)
            except (LostIndexError, ClosedIndexError) as error:
                self._give_up(error)
                result = call(self._open())
        except FactIndexError as error:
            self._failed(error)
            raise
        self._worked()
        return result

    def erase(self, call: Callable[[VectorIndex], None]) -> None:
        """As :meth:`use`, in an outage too, for what needs no embedding: the index may be of another one."""
        if not isinstance(self.outage, (EmbeddingMismatchError, EmbeddingUnavailableError)):
            try:
                return self.use(call, anyway=True)
            except (EmbeddingMismatchError, EmbeddingUnavailableError):
                pass
        with self._lock:
            about = recorded(self._database())
            if about is None:
                return None
            self.close()
            try:
                index = VectorIndex(self.home(), self.embedding, about)
            except LostIndexError as error:
                self._give_up(error)
                index = VectorIndex(self.home(), self.embedding, about)
            try:
                call(index)
            finally:
                index.close()

    def _twice(self, call: Callable[[VectorIndex], T]) -> T:
        try:
            return call(self._open())
        except BrokenIndexError:
            self.close()  # what is broken still is when it is opened anew
            return call(self._open())

    @property
    def refused(self) -> bool:
        """Whether it was built with another embedding, as was found when it was to be opened first."""
        return isinstance(self.outage, EmbeddingMismatchError) and not self._opened

    def due(self) -> bool:
        """Whether the pause after a failure is over, so that another attempt is in order."""
        return self.outage is not None and time.monotonic() >= self._again_at

    @property
    def is_open(self) -> bool:
        return self._index is not None

    def close(self) -> None:
        with self._lock:
            index, self._index = self._index, None
            if index is not None:
                index.close()
            elif self._home is not None:
                self._home.close()

    def reset(self) -> None:
        """After a change from outside (a reindex, a fork): forget what was open, and that it failed."""
        self._lock = threading.RLock()
        self._index = self._home = None
        self.outage = None
        self._failures = 0
        self.unchecked = True

    def another_home(self) -> ChromaHome:
        """The same place, to be opened beside this."""
        return self._make_home()

    @property
    def name(self) -> str:
        """Where the index is, for people."""
        try:
            return self.home().name
        except FactIndexError as error:
            return str(error)

    def home(self) -> ChromaHome:
        with self._lock:
            if self._home is None:
                self._home = self._make_home()
            return self._home

    def _open(self) -> VectorIndex:
        with self._lock:
            if self._index is None:
                self._index = open_index(self._database(), self.home(), self.embedding)
                self._opened = self.unchecked = True
            return self._index

    def _give_up(self, error: FactIndexError) -> None:
        """Close what cannot be used any more, and make room where it is broken."""
        with self._lock:
            self.close()
            self.unchecked = True
            if not isinstance(error, LostIndexError):
                return
            aside = self.home().set_aside()
            where = "" if aside is None else f"; what was left of it is in {aside}"
            self._warn(f"the index of the memories is lost ({error}) and is built anew from the store{where}")

    def _failed(self, error: FactIndexError) -> None:
        with self._lock:
            self.close()  # or the next attempt would meet the same broken connection
            first = self.outage is None
            self.outage = error
            self._failures += 1
            pause = min(self.first_pause * 2 ** (self._failures - 1), self.longest_pause)
            self._again_at = time.monotonic() + pause
        if first and not self.refused:
            self._warn(
                f"{str(error).rstrip('.')}. Until that is mended memories are found by their words alone"
            )

    def _warn(self, message: str) -> None:
        warnings.warn(message, RuntimeWarning, stacklevel=5)

    def _worked(self) -> None:
        if self.outage is not None:
            with self._lock:
                self.outage = None
                self._failures = 0
                self.unchecked = True
