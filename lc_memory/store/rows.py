"""What the store holds of conversations, as values: sessions, their turns, a snapshot of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Message = dict[str, Any]
"""A chat message as OpenAI writes it (``role``, ``content`` …), with any further keys, of JSON values."""

DATABASE_FILE = "lc_memory.sqlite3"
"""The name of the database in a folder that was given to :func:`open_store`."""


@dataclass(frozen=True)
class SessionKey:
    """Which conversation, and whose. Both may be any string: the pair names the session."""

    session_id: str
    user_id: str | None = None

    @property
    def owner(self) -> str:
        """Who owns the long-term facts: the user, or, where nobody is named, this session alone."""
        return f"session:{self.session_id}" if self.user_id is None else f"user:{self.user_id}"


@dataclass(frozen=True)
class Turn:
    """What was said from a question to its answer, tool calls and results between them included."""

    seq: int
    """1, 2, 3 … within the session, in the order of the commits, whatever the clock said."""
    messages: tuple[Message, ...]
    created_at: float
    """Unix seconds."""
    turn_id: str
    """Unique within the session; 32 hex digits unless the caller chose it."""


@dataclass(frozen=True)
class Snapshot:
    """A session at one moment."""

    version: int
    summary: str | None
    """What stands for the turns up to ``covers``. None: there is no summary of them."""
    covers: int
    turns: tuple[Turn, ...]
    """The turns after ``covers`` (and after what :meth:`Store.load` was told is known), oldest first."""
    kept: tuple[Message, ...] = ()
    """Messages of covered turns that stand in every prompt all the same: the system messages."""


@dataclass(frozen=True)
class SessionInfo:
    """One line of the list of sessions."""

    key: SessionKey
    turns: int
    created_at: float
    updated_at: float
    """Unix seconds by the clock of whoever wrote last."""


@dataclass(frozen=True)
class Forgotten:
    """What was erased, so that the indexes can follow."""

    sessions: tuple[SessionKey, ...] = ()
    turns: tuple[int, ...] = ()
    """:attr:`~lc_memory.store.backlog.StoredTurn.row` of each."""
    facts: tuple[int, ...] = ()
    """:attr:`~lc_memory.store.Fact.row` of each."""
    wiped: bool = False
    """False: erased, but bytes of it may still lie in the files until :meth:`Store.wipe` succeeds."""

    @property
    def nothing(self) -> bool:
        """Whether there was nothing to erase: nobody of that name is known."""
        return not (self.sessions or self.turns or self.facts)

    def __str__(self) -> str:
        if self.nothing:
            return "nothing was there"
        return f"erased: {len(self.sessions)} sessions, {len(self.turns)} turns, {len(self.facts)} facts"
