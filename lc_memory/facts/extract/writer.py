"""When notes are made: behind the conversation, several turns at once, each turn once.

A session's turns wait in the store (:class:`~lc_memory.store.backlog.Backlog`, job ``"notes"``) until there
are ``every`` of them, or until the memory is flushed or closed. Then, in the background: the model is asked
(nothing is changed yet), and in one commit the turns are marked as done, which only one worker can, and the
facts are written. So a crash at any moment means that the turns are read again; no note is lost or written
twice.

A failure never reaches the conversation. The turns stay where they are and are tried again 1, 3, 7 … 31
turns on. When they are a week old, or after three answers that could not be read and refusals of the request
itself, which lie with the turns and not with the service, they are read one by one, and the one that fails
again is given up: no turn costs the others their notes.

Notes are made for those who asked for them: of the sessions that are saved here, and of nobody else's. What
a process left behind that ended without closing is taken up by the first one that saves a turn of that user
later on, up to a week back; where no user is named, when the session itself goes on. So are turns from before
notes were switched on, and imported ones.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from lc_memory.errors import MemoryInputError
from lc_memory.facts.privacy import PrivacyMode
from lc_memory.store import Ledger, SessionKey, Store, StoredTurn

from ..kinds import Kinds, NoteKind, kinds_of
from .asking import NotesFailed
from .notes import DroppedNote, MemoryNote, MemoryNotes, extractor

log = logging.getLogger("lc_memory")

_AT_ONCE = 20  # turns that are read together
_CHARACTERS = 12_000  # and how much of them
_TRIES = 3
_REFUSED = (400, 413, 422)  # HTTP: the request is at fault, and will be the next time
_GIVEN_UP = 7 * 86400.0  # seconds: older turns are not tried again after a failure
_LEFT_BEHIND = 600.0  # seconds after which nobody else is taken to be about to read a turn
_REPORTS = 256
_USERS = 10_000  # whose sessions are remembered to have been looked at


class Submits(Protocol):
    """Runs work later, at most one piece for each key at a time."""

    def submit(self, key: object, work: Callable[[], Any]) -> None: ...


class NoteWriter:
    """Makes facts of what users say. One for each Memory.

    ``model`` and ``kinds``: as for :func:`~lc_memory.facts.extract.notes.notes_from`; ``every``: how many
    turns of a session are read together, each costing its share of one call. ``written`` is called when
    there are new facts.
    """

    def __init__(
        self,
        store: Callable[[], Store],
        background: Submits,
        model: Any,
        *,
        kinds: Kinds | None = None,
        every: int = 5,
        privacy: PrivacyMode = "refuse",
        written: Callable[[], None] = lambda: None,
    ) -> None:
        if every < 1:
            raise MemoryInputError(f"notes_every={every}: notes are made of at least one turn")
        self._store = store
        self._background = background
        self._kinds: dict[str, NoteKind] = {kind.name: kind for kind in kinds_of(kinds)}
        self._extract = extractor(model, kinds, privacy)  # no Runnable: traces would show the turns
        self._every = every
        self._written = written
        self._guard = threading.Lock()
        self._waiting: dict[SessionKey, int] = {}  # turns that this process saved and has not read
        self._failures: dict[SessionKey, int] = {}
        self._skip: dict[SessionKey, int] = {}
        self._given_up: dict[SessionKey, int] = {}  # turns
        self._alone: dict[SessionKey, int] = {}  # up to which turn they are read one by one
        self._reports: OrderedDict[SessionKey, MemoryNotes] = OrderedDict()
        self._looked_back: set[str] = set()  # users
        self._drops = 0

    def saved(self, key: SessionKey) -> None:
        """A turn of ``key`` was saved. Returns at once and raises nothing."""
        with self._guard:
            self._waiting[key] = self._waiting.get(key, 0) + 1
            user_id = key.user_id
            look_back = user_id is not None and user_id not in self._looked_back
            if look_back and user_id is not None:
                if len(self._looked_back) >= _USERS:
                    self._looked_back.clear()
                self._looked_back.add(user_id)
            skipped = self._skip.get(key, 0)
            if skipped:
                self._skip[key] = skipped - 1
            due = not skipped and self._waiting[key] >= self._every
        if look_back:
            self._background.submit(("notes left behind", user_id), lambda: self._left_behind(user_id))
        if due:
            self._background.submit(("notes", key), lambda: self._read(key, self._every))

    def finish(self) -> None:
        """Read what is still waiting, now. After a failure, which is logged, the rest waits for another
        day."""
        with self._guard:
            keys = [key for key, turns in self._waiting.items() if turns]
        try:
            for key in keys:
                if not self._read(key, 1):
                    return
        except Exception as error:
            log.warning("notes are left for later: %s: %.200s", type(error).__name__, error)

    def drop(self) -> None:
        """Forget the reports: what they tell of may have been erased."""
        with self._guard:
            self._drops += 1
            self._reports.clear()

    def report(self, key: SessionKey) -> MemoryNotes | None:
        """What the last reading of a session gave, what was dropped and why included."""
        with self._guard:
            return self._reports.get(key)

    def problems(self, key: SessionKey) -> list[str]:
        """What does not work as it should, for people."""
        failures, lost = self._failures.get(key, 0), self._given_up.get(key, 0)
        told = [f"the last {failures} tries to make notes of this session failed"] if failures else []
        if lost:
            told.append(
                f"no notes were made of {lost} turns of this session, which were given up: the log says why"
            )
        return told

    # ------------------------------------------------------------ in the background

    def _left_behind(self, user_id: str | None) -> None:
        now = time.time()
        first: dict[SessionKey, float] = {}
        for stored in self._store().backlog().pending("notes", user_id=user_id, limit=1000):
            first.setdefault(stored.key, stored.turn.created_at)
        for key, since in first.items():
            if not now - _GIVEN_UP < since < now - _LEFT_BEHIND:
                continue
            if not self._waiting.get(key) and not self._read(key, 1):
                return

    def _read(self, key: SessionKey, least: int) -> bool:
        """Make notes of the session's turns while there are ``least``. False where it failed."""
        backlog = self._store().backlog()
        newest = backlog.newest()  # what is said meanwhile is read another time, or this would never end
        while True:
            pending = backlog.pending("notes", key=key, limit=_AT_ONCE, upto=newest)
            with self._guard:
                self._waiting[key] = len(pending)
            if len(pending) < least:
                return True
            alone = pending[0].turn.seq <= self._alone.get(key, 0)
            turns = pending[:1] if alone else _at_once(pending)
            try:
                notes = self._extract([m for stored in turns for m in stored.turn.messages], {})
                self._keep(key, turns, notes)
            except Exception as error:
                if not self._failed(key, turns, error):
                    return False
                if len(turns) > 1:
                    self._alone[key] = turns[-1].turn.seq  # one of them is at fault: it is found out which
                else:
                    backlog.advance("notes", turns)
            else:
                self._failures.pop(key, None)

    def _failed(self, key: SessionKey, turns: Sequence[StoredTurn], error: Exception) -> bool:
        """Count a failure; True where these turns are given up."""
        failures = self._failures.get(key, 0) + 1
        theirs = (
            isinstance(error, (NotesFailed, MemoryInputError))
            or getattr(error, "status_code", None) in _REFUSED
        )
        alone = turns[0].turn.seq <= self._alone.get(key, 0)  # it failed in company already
        old = turns[0].turn.created_at < time.time() - _GIVEN_UP
        given_up = old or (theirs and (alone or failures >= _TRIES))
        with self._guard:
            self._failures[key] = 0 if given_up else failures
            self._skip[key] = 0 if given_up else min(2**failures, 32) - 2
            if given_up and len(turns) == 1:
                self._given_up[key] = self._given_up.get(key, 0) + len(turns)
        log.warning(
            "%s: no notes of %d turns (%s: %.200s); %s", key, len(turns), type(error).__name__, error,
            "they are tried again later" if not given_up else
            "it is given up" if len(turns) == 1 else "they are read one by one",
        )  # fmt: skip
        return given_up

    def _keep(self, key: SessionKey, turns: Sequence[StoredTurn], notes: MemoryNotes) -> None:
        """Write the notes, and in the same commit that the turns were read."""
        drops = self._drops
        from_turn = [stored for stored in turns for _ in stored.turn.messages]
        store = self._store()
        with store.transaction():
            if not store.backlog().advance("notes", turns):
                return  # another worker was first, or the session is gone
            kept = []
            for note in notes.notes:
                if write_note(store.ledger(), key, note, self._kinds[note.kind], from_turn[note.message]):
                    kept.append(note)
                else:
                    late = DroppedNote(kind=note.kind, content=note.content, why="something newer is known")
                    notes.dropped.append(late)
            notes = MemoryNotes(notes=kept, dropped=notes.dropped)
        if notes.notes:
            self._written()
        with self._guard:
            if self._drops != drops:
                return  # what it tells of may have been erased since
            self._reports[key] = notes
            self._reports.move_to_end(key)
            while len(self._reports) > _REPORTS:
                self._reports.popitem(last=False)
        if notes.notes or notes.dropped:
            counts = len(notes.notes), len(notes.dropped)
            log.info("%s: %d notes kept, %d dropped: %s", key, *counts, notes.reasons() or "-")


def write_note(ledger: Ledger, key: SessionKey, note: MemoryNote, kind: NoteKind, said: StoredTurn) -> bool:
    """Write a note as the fact it is, in the place of what was true before. False where something newer is
    known: turns are read late, and what they say may be out of date by then. A time that is still to come
    tells nothing of what is newer: a clock was wrong, here or where the fact came from."""
    now = time.time()
    when = said.turn.created_at if 0 < said.turn.created_at <= now else now
    if not kind.several or note.subject is not None:
        for fact in ledger.current(key.owner, kinds=[kind.name], include_private=True):
            if fact.subject == note.subject and when < fact.noted_at <= now:
                return False
    ledger.add(
        key.owner,
        note.content,
        kind=kind.name,
        subject=note.subject,
        core=kind.is_core,
        source={"session": key.session_id, "turn": said.turn.turn_id, "quote": note.quote},
        noted_at=when,
        expires_at=None if kind.days is None else when + kind.days * 86400,
        # Of a kind that has several, two without a subject may well both be true.
        supersede=not kind.several or note.subject is not None,
    )
    return True


def _at_once(turns: Sequence[StoredTurn]) -> Sequence[StoredTurn]:
    """The first turns, as many as are read together: at least one."""
    size = 0
    for i, stored in enumerate(turns):
        size += sum(len(str(m.get("content") or "")) for m in stored.turn.messages if m.get("role") == "user")
        if i and size > _CHARACTERS:
            return turns[:i]
    return turns


__all__ = ["NoteWriter", "write_note"]
