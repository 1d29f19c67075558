"""The sessions of one store: opened when first needed, the ones used last kept at hand."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from lc_memory.store import Background, SessionKey, Store

from .stored import Notes, Recall, Settings, StoredSession


class StoredSessions:
    """The sessions of one store, the ones used last kept at hand."""

    def __init__(self, store: Callable[[], Store], settings: Settings, cached: int) -> None:
        self._open = store
        self._settings = settings
        self.recall: Recall | None = None
        """Given before the first conversation; None: nothing is recalled."""
        self.notes: Notes | None = None
        """Given before the first conversation; None: no facts are made of what is said."""
        self._cached = cached
        self._sessions: OrderedDict[SessionKey, StoredSession] = OrderedDict()
        self._store: Store | None = None
        self._opening = threading.Lock()
        self._guard = threading.Lock()
        self.background = Background()
        self.privacy = settings.privacy

    @property
    def store(self) -> Store:
        """Opened when it is first needed: building a Memory touches no disk."""
        if self._store is None:
            with self._opening:
                if self._store is None:
                    self._store = self._open()
        return self._store

    def canonical(self, key: SessionKey) -> SessionKey:
        return key

    def conversation(self, key: SessionKey) -> StoredSession:
        with self._guard:
            session = self._sessions.get(key)
            if session is None:
                session = StoredSession(
                    key, lambda: self.store, self._settings, self.background, self.recall, self.notes
                )
                self._sessions[key] = session
                if len(self._sessions) > self._cached:
                    self._sessions.popitem(last=False)
            else:
                self._sessions.move_to_end(key)
            return session

    def drop(self) -> None:
        """Forget what is held of the sessions; the store has it."""
        with self._guard:
            self._sessions.clear()
        if self.notes is not None:
            self.notes.drop()

    def flush(self) -> None:
        """Do, or wait for, what is to be done so far: turns are indexed, and notes are made of those that
        wait for it. What is saved meanwhile is not waited for."""
        self.background.retry()
        if self.recall is not None:
            self.recall.follow()
        self.background.wait()
        if self.notes is not None:
            self.notes.finish()
            self.background.wait()

    def close(self) -> None:
        if self.notes is not None and self._store is not None:
            self.flush()
        self.let_go()

    def let_go(self) -> None:
        """Close files and connections. What is still to be done is done at the next start."""
        if self.recall is not None:
            self.recall.close()
        self.background.close()
        if self.recall is not None:
            self.recall.closed()
        self.drop()
        if self._store is not None:
            self._store.close()
