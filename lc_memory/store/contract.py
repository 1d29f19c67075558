"""Where turns, summaries and facts lie: one contract, two homes.

A *session* is one conversation of one user. It holds *turns*: each is what was said between a question
and its answer, whole, numbered 1, 2, 3 … without gaps, and never changed afterwards. What is too old for
the prompt is *covered*: a summary stands for the turns up to ``covers``, and reading the session back
costs the summary and the turns behind it, however long the conversation is. Every change moves the
session's *version*, so that whoever holds a copy learns with one small query whether it is still true.

Beside the sessions lie the facts (:meth:`Store.ledger`), and what the indexes over the turns have still
to do (:meth:`Store.backlog`).

:func:`open_store` opens a folder (SQLite), a database by URL (SQLite or PostgreSQL), or a store in memory.
All calls block; a caller on an event loop moves them to threads, from any of which they may be made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from .rows import Forgotten, Message, SessionInfo, SessionKey, Snapshot, Turn

if TYPE_CHECKING:
    from .backlog import Backlog
    from .ledger import Ledger


class Store(Protocol):
    """What every home of the sessions can do.

    Errors: :class:`~lc_memory.errors.StoreError` where the database cannot do it, saying what is wrong
    and what to do; :class:`~lc_memory.errors.MemoryInputError` where an argument cannot be stored, before
    anything is written. After either the store stays usable.
    """

    def append(
        self,
        key: SessionKey,
        messages: Sequence[Message],
        *,
        turn_id: str | None = None,
        created_at: float | None = None,
    ) -> Turn:
        """Save one turn: all of it or nothing. Returned, it is on the disk.

        The same ``turn_id`` a second time in a session saves nothing and returns the first turn, so a
        call whose outcome is unknown (the connection broke) can simply be made again. The messages come
        back equal to what was given, save that tuples become lists.
        """
        ...

    def append_all(
        self,
        key: SessionKey,
        turns: Sequence[Sequence[Message]],
        *,
        turn_ids: Sequence[str] | None = None,
        created_at: float | None = None,
    ) -> int:
        """Save many turns, in this order: all of them or nothing. Returns how many are new: those whose
        ``turn_ids`` the session has already are left as they are."""
        ...

    def version(self, key: SessionKey) -> int:
        """A number that grows with every change of the session; 0 where there is none.

        A version never comes twice, not even when a session was erased and begun anew.
        """
        ...

    def load(self, key: SessionKey, *, after: int = 0, last: int | None = None) -> Snapshot:
        """The session now, in one consistent read, without the turns up to ``after`` and the covered ones;
        with ``last``, no more than so many of the newest."""
        ...

    def commit_summary(
        self,
        key: SessionKey,
        summary: str | None,
        covers: int,
        *,
        based_on: Snapshot,
        kept: Sequence[Message] = (),
    ) -> bool:
        """Set the summary, what it covers, and what is kept of that, in one commit.

        False, and nothing changed, where another summary was committed since ``based_on`` was loaded, or
        the session was erased since: then the text is about turns that must not come back.
        """
        ...

    def turns(self, key: SessionKey, *, start: int = 1, limit: int | None = None) -> Iterator[Turn]:
        """The whole history from ``start``, covered turns included, read page by page."""
        ...

    def sessions(self, user_id: str | None = None) -> list[SessionInfo]:
        """The sessions of a user (None: of everyone), the one changed last first."""
        ...

    def clear(self, key: SessionKey) -> Forgotten:
        """Erase the turns and the summary of exactly this session. Facts stay."""
        ...

    def forget(
        self, *, user_id: str | None = None, session_id: str | None = None, wipe: bool = True
    ) -> Forgotten:
        """Erase turns, summaries and facts, and then :meth:`wipe`.

        ``user_id`` alone: all of that user. ``session_id`` alone: every session of that name, whoever's,
        and the facts that were learnt in them. Both: that session, and the facts of the user from it.
        Where the wiping fails, what was erased stays erased and ``wiped`` is False.
        """
        ...

    def wipe(self) -> bool:
        """Leave no byte of erased rows in the database's files.

        False where somebody's open read prevents it: call again. Both databases write their tables anew
        for this, and other writers wait meanwhile (7 s for 0.5 GB of SQLite): whoever erases a lot does it
        with ``wipe=False`` and wipes once at the end.
        """
        ...

    def transaction(self) -> AbstractContextManager[object]:
        """What this thread writes inside, to ledger and backlog, is committed together at the end of the
        block, or not at all where the block raises. Others may have to wait meanwhile."""
        ...

    def ledger(self) -> Ledger:
        """The facts in this store."""
        ...

    def backlog(self) -> Backlog:
        """The turns as the indexes see them: by row, and what is still to be done."""
        ...

    def close(self) -> None:
        """Close all connections. The store may be used again: it opens new ones."""
        ...


def open_store(where: str | os.PathLike[str], *, timeout: float = 30.0) -> Store:
    """Open a store, creating it where there is none.

    ``where`` is a folder (made for its owner only, with ``lc_memory.sqlite3`` in it), the URL
    ``sqlite:///path/of/file``, ``postgresql://user:password@host/database`` (needs the extra
    ``postgres``), or ``":memory:"`` for one that ends with the process.

    ``timeout``: how many seconds a call may wait for another process's write or for a connection.
    A store that an older version wrote is brought up to date; one that a newer version wrote is refused.
    """
    from .database import Database
    from .sql import SqlStore

    return SqlStore(Database.open(where, timeout=timeout))


__all__ = ["Store", "open_store"]
