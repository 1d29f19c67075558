"""Sessions that last: what a session in the store gives to a prompt, and how its window moves.

A session is read back as its summary and the turns behind it, never as the whole history, and is checked
against the store's version before each use, so that several workers on one database see each other's
turns. The window moves in steps: it grows to twice its size and is then cut back in one go with the
summary. Between two cuts every prompt begins as the one before it did, which is what the prefix caches of
chat services are paid by.
"""

from __future__ import annotations

import logging
import math
import threading
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Protocol

from langchain_core.messages import BaseMessage

from lc_memory.facts import kept_as, said_to_remember
from lc_memory.facts.privacy import PrivacyMode, passed, warn_of_private
from lc_memory.messages import (
    Converter,
    Message,
    answer_of,
    in_prompt,
    messages_to_lc,
    spoken,
    text_of,
    unknown,
)
from lc_memory.messages import turns as turns_of
from lc_memory.prompt import Explanation, Material, Plan, Remembered, Unit, assemble
from lc_memory.store import Background, Fact, SessionKey, Snapshot, Store, Turn, apart, undisturbed

from .summary import Summariser

if TYPE_CHECKING:
    from lc_memory.facts import MemoryNotes

log = logging.getLogger("lc_memory")

_UNKNOWN = Snapshot(-1, None, 0, ())
_SUMMARY_INPUT = 12_000  # characters a summary is made from at once; more is taken in several steps
_WAITING = 100  # turns that a prompt shows at the most while they wait for a summary; or four windows
_AT_ONCE = 200  # turns that leave the window at once
_WINDOW_SHARE = 0.6  # of the budget that the window may fill before it is cut to half of that


class Recall(Protocol):
    """Finds what bears on a question among the facts and turns of the session's owner."""

    def remembered(self, key: SessionKey, query: str, in_window: Sequence[Turn]) -> list[Remembered]: ...

    def saved(self, key: SessionKey) -> None:
        """A turn was saved: index it, in the background or now."""
        ...

    def follow(self) -> None:
        """Have done, in the background, what is left to do."""
        ...

    def notes(self) -> list[str]:
        """What does not work as it should, for people."""
        ...

    def close(self) -> None:
        """Begin to stop: what runs in the background ends at its next step."""
        ...

    def closed(self) -> None:
        """Nothing runs any more: let go of files and connections."""
        ...


@dataclass(frozen=True)
class Settings:
    """How sessions behave; the same for all of one Memory."""

    window: int
    budget: int | None
    count: Callable[[Message], int]
    summarise: Summariser | None
    privacy: PrivacyMode = "refuse"


class Notes(Protocol):
    """Makes facts of what was said: :class:`lc_memory.facts.extract.writer.NoteWriter`."""

    def saved(self, key: SessionKey) -> None:
        """A turn was saved. Returns at once and raises nothing."""
        ...

    def problems(self, key: SessionKey) -> list[str]: ...

    def report(self, key: SessionKey) -> MemoryNotes | None: ...

    def finish(self) -> None:
        """Read now what is still waiting."""
        ...

    def drop(self) -> None: ...


class StoredSession:
    """One session of the store as a conversation. Safe to use from several threads."""

    def __init__(
        self,
        key: SessionKey,
        store: Callable[[], Store],
        settings: Settings,
        background: Background,
        recall: Recall | None,
        notes: Notes | None = None,
    ) -> None:
        self.key = key
        self._opened = store
        self._settings = settings
        self._background = background
        self._recall = recall
        self._notes = notes
        self._lock = threading.RLock()
        self._state = _UNKNOWN
        self._units: dict[str, Unit] = {}  # by turn_id: what the window's turns look like in a prompt
        self._last_prompt: list[Message] = []
        self._to_lc = Converter(unchanging=True)
        self._failures = 0
        self._skip = 0

    @property
    def _store(self) -> Store:
        return self._opened()  # by the first call that needs it, which is never one on an event loop

    # ------------------------------------------------------------ reading

    @apart
    def history(self, question: Message, before: Sequence[Message] = ()) -> list[BaseMessage]:
        plan = self._plan(question, before)
        with self._lock:
            self._last_prompt = [*plan.messages, question]
            return self._to_lc(plan.messages)

    @apart
    def explain(self, question: Message, before: Sequence[Message] = ()) -> Explanation:
        plan = self._plan(question, before)
        prompt = [*plan.messages, question]
        count = self._settings.count
        same = 0
        for now, then in zip(prompt, self._last_prompt, strict=False):
            if now != then:
                break
            same += count(now)
        total = sum(map(count, prompt))
        notes = self._recall.notes() if self._recall is not None else []
        if self._failures:
            notes.append(
                f"the last {self._failures} summaries failed; the window is not cut until one succeeds"
            )
        report = None
        if self._notes is not None:
            notes += self._notes.problems(self.key)
            report = self._notes.report(self.key)
        return Explanation(
            session=str(self.key.session_id),
            question=text_of(question["content"]),
            parts=plan.parts,
            budget=self._settings.budget,
            repeats=same / total if total else 0.0,
            degraded=bool(notes),
            notes=notes,
            dropped=[f"{d.kind}: {d.content} ({d.why})" for d in report.dropped] if report else [],
        )

    def _plan(self, question: Message, before: Sequence[Message]) -> Plan:
        query = text_of(question["content"])
        state = self.state()
        turns = self._shown(state)
        units = self._window(turns)
        given = self._unknown(before, turns, state) if before else []
        core = self._store.ledger().current(self.key.owner, core=True)
        found = self._recall.remembered(self.key, query, turns) if self._recall and query else []
        material = Material(
            question=question,
            system=_system_messages(state.kept, (unit.messages for unit in (*units, *given))),
            core=[core_line(fact) for fact in core],
            summary=state.summary,
            window=[self._without_system(unit) for unit in (*units, *given)],
            recalled=found,
        )
        return assemble(material, self._settings.budget, self._settings.count)

    def _unknown(self, before: Sequence[Message], turns: Sequence[Turn], state: Snapshot) -> list[Unit]:
        """What a caller sent along and nobody has saved, as further turns of the window."""
        known: list[Message] = [*state.kept]
        for turn in turns:
            known += [*turn.messages, {"role": "assistant", "content": answer_of(turn.messages)}]
        systems: list[Message] = []
        said: list[Message] = []
        for message in unknown(before, known):
            (systems if message["role"] in ("system", "developer") else said).append(message)
        units = [tuple(in_prompt(turn)) for turn in turns_of(said)]
        units = [(*({**m, "role": "system"} for m in systems), *(units[0] if units else ())), *units[1:]]
        return [Unit(messages, sum(map(self._settings.count, messages))) for messages in units if messages]

    @apart
    def context(self, question: Message, before: Sequence[Message] = ()) -> list[BaseMessage]:
        """As ``history``, for a look from outside: it does not count as the session's last prompt."""
        return messages_to_lc(self._plan(question, before).messages)

    def turns(self, start: int = 1, limit: int | None = None) -> Iterator[Turn]:
        return self._store.turns(self.key, start=start, limit=limit)

    def state(self) -> Snapshot:
        """The session as the store has it now."""
        with self._lock:
            if self._state.version != self._store.version(self.key):
                self._state = self._store.load(self.key, last=self._most)
                known = {turn.turn_id for turn in self._state.turns}
                self._units = {i: unit for i, unit in self._units.items() if i in known}
            return self._state

    @property
    def _most(self) -> int:
        return max(4 * self._settings.window, _WAITING)

    def _shown(self, state: Snapshot) -> Sequence[Turn]:
        """The turns of the window. More than a few windows of them, as a conversation that was brought along
        has or a summariser that is down leaves behind, are no window: the newest stand in the prompt, the
        others wait for the summary and can be recalled."""
        return state.turns[-2 * self._settings.window :] if _waiting(state) > self._most else state.turns

    def _window(self, turns: Sequence[Turn]) -> list[Unit]:
        with self._lock:
            for turn in turns:
                if turn.turn_id not in self._units:
                    messages = tuple(in_prompt(turn.messages))
                    tokens = sum(map(self._settings.count, messages))
                    self._units[turn.turn_id] = Unit(messages, tokens)
            return [self._units[turn.turn_id] for turn in turns]

    def _without_system(self, unit: Unit) -> Unit:
        leading = _leading_system(unit.messages) if unit.messages else ()
        if not leading:
            return unit
        messages = unit.messages[len(leading) :]
        return Unit(messages, sum(map(self._settings.count, messages)))

    # ------------------------------------------------------------ writing

    @undisturbed
    def save(self, turn: Sequence[Message], turn_id: str | None = None) -> None:
        turn_id = turn_id or uuid.uuid4().hex
        # First, because it may be done twice: where the turn then fails, the user will say it again.
        self._remember(turn, turn_id)
        saved = self._store.append(self.key, [_storable(m) for m in turn], turn_id=turn_id)
        # From here on the turn is saved: what fails is done later, and is no failure of the turn.
        try:
            self._follow_up(saved)
            self._background.trouble(("saved", self.key), None)
        except Exception as error:
            self._later(error)

    def _later(self, error: Exception) -> None:
        log.warning("%s: the turn is saved, and followed up later: %s", self.key, error)
        told = f"{self.key}: a saved turn was not followed up ({type(error).__name__}: {error!s:.300})"
        self._background.trouble(("saved", self.key), told, self._told)

    def _follow_up(self, saved: Turn) -> None:
        with self._lock:
            state = self._state
            last = state.turns[-1].seq if state.turns else state.covers
            # Ours is the only change since: what is held is the session still. If not, the version tells.
            if state.version > 0 and saved.seq == last + 1:
                turns = (*state.turns, saved)
                self._state = replace(state, version=state.version + 1, turns=turns)
            else:
                self._state = _UNKNOWN
        self._told()

    def _told(self) -> None:
        if self._recall is not None:
            self._recall.saved(self.key)
        if self._notes is not None:
            self._notes.saved(self.key)

    @undisturbed
    def save_all(self, turns: Sequence[Sequence[Message]]) -> None:
        """Save the turns of a conversation that was held elsewhere, in one commit."""
        add_turns(self._store, self.key, turns, self._settings.privacy)
        with self._lock:
            self._state = _UNKNOWN
        try:
            self._told()
            if self._settings.summarise is None and len(turns) > self._most:
                self._compact()  # nobody has to be asked, and the next prompt need not wait for it
            else:
                self.compact()
        except Exception as error:
            self._later(error)

    def _remember(self, turn: Sequence[Message], turn_id: str) -> None:
        """``记住: …`` is kept as a fact at once. What is private in it is not, and the caller is told."""
        _remember(self._store, self.key, turn, turn_id, self._settings.privacy)

    def compact(self) -> None:
        """Cut the window back and renew the summary, in the background, when the window is full. Raises
        nothing: what fails is tried again later."""
        try:
            with self._lock:
                if self._skip:
                    self._skip -= 1
                    return
                if not self._excess(self._state if self._state.version > 0 else self.state()):
                    return
            self._background.submit(self.key, self._compact)
        except Exception as error:
            log.warning("%s: the window is cut later: %s: %s", self.key, type(error).__name__, error)

    def _excess(self, state: Snapshot) -> int:
        """How many of the oldest turns have to leave: none until the window is twice its size, or fills
        its share of the budget."""
        window, budget, waiting = self._settings.window, self._settings.budget, _waiting(state)
        by_count = waiting - window if waiting > 2 * window else 0
        if budget is None:
            return by_count
        tokens = [unit.tokens for unit in self._window(state.turns)]
        room = int(budget * _WINDOW_SHARE)
        if sum(tokens) <= room:
            return by_count
        kept = leaves = 0
        for i, size in enumerate(reversed(tokens)):
            kept += size
            if kept > room // 2:
                leaves = waiting - i
                break
        return max(by_count, min(leaves, waiting - 1))

    def _compact(self) -> None:
        state = self.state()
        last = self._last_to_leave(state)
        while leaving := self._leaving(state, last):
            summary = state.summary
            messages = [m for turn in leaving for m in turn.messages if m.get("role") != "system"]
            if self._settings.summarise is not None and any(spoken(m) for m in messages):
                try:
                    summary = self._settings.summarise(state.summary, messages)
                except Exception as error:
                    self._failures += 1
                    # Not every turn pays for a summariser that is down: 1, 3, 7 … 31 turns are left out.
                    self._skip = min(2**self._failures, 32) - 1
                    log.warning(
                        "%s: no new summary (%s: %s); the old one and all turns stay, and it is tried again "
                        "%d turns on", self.key, type(error).__name__, error, self._skip + 1,
                    )  # fmt: skip
                    told = f"{self.key}: no new summary ({type(error).__name__}: {error!s:.300})"
                    self._background.trouble(("summary", self.key), told)
                    return
            self._failures = self._skip = 0
            self._background.trouble(("summary", self.key), None)
            kept = _system_messages(state.kept, (turn.messages for turn in leaving))
            self._store.commit_summary(self.key, summary, leaving[-1].seq, based_on=state, kept=kept)
            state = self.state()
            if state.covers != leaving[-1].seq:
                return  # another worker was first and goes on, or the session was erased

    def _last_to_leave(self, state: Snapshot) -> int:
        excess = self._excess(state)
        return state.covers + excess if excess else 0

    def _leaving(self, state: Snapshot, last: int) -> Sequence[Turn]:
        """The first of the turns up to ``last`` that are not covered yet, as many as leave at once."""
        if state.covers >= last:
            return ()
        held = state.turns if state.turns and state.turns[0].seq == state.covers + 1 else ()
        turns = held or self._store.turns(self.key, start=state.covers + 1, limit=_AT_ONCE)
        leaving = [turn for turn in turns if turn.seq <= last]
        return leaving if self._settings.summarise is None else _at_once(leaving)


_WORDS = frozenset({"role", "content", "name", "tool_calls", "tool_call_id"})  # what a model is sent


def _storable(message: Message) -> Message:
    """``message`` with what only a program understands (a tool's artifact, a parsed object) as JSON, or as
    text where JSON has no form for it. It cannot be a reason to lose the turn."""
    return (
        message
        if message.keys() <= _WORDS
        else {k: v if k in _WORDS else _plain(v) for k, v in message.items()}
    )


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (str, bool, int)):
        return value
    if isinstance(value, dict):
        return {k if isinstance(k, str) else str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if hasattr(value, "model_dump"):
        return _plain(value.model_dump(mode="json"))
    return str(value)


def _waiting(state: Snapshot) -> int:
    """How many turns no summary stands for; the state holds the newest of them."""
    return state.turns[-1].seq - state.covers if state.turns else 0


def _leading_system(messages: Sequence[Message]) -> Sequence[Message]:
    if messages[0].get("role") != "system":  # as nearly always
        return ()
    return list(takewhile(lambda m: m.get("role") == "system", messages))


def _system_messages(kept: Sequence[Message], turns: Iterable[Sequence[Message]]) -> list[Message]:
    """``kept`` and the system messages at the head of the turns, each once: who imports requests has many.
    They are the session's; one further down belongs to its place."""
    found = list(kept)
    for messages in turns:
        if messages and messages[0].get("role") == "system":
            found += [m for m in _leading_system(messages) if m not in found]
    return found


def add_turns(
    store: Store,
    key: SessionKey,
    turns: Sequence[Sequence[Message]],
    privacy: PrivacyMode,
    turn_ids: Sequence[str] | None = None,
) -> int:
    """Save the turns of a conversation that was held elsewhere, and the facts that were to be remembered in
    it: all of it or nothing. Returns how many are new; those whose ids are known stay as they are."""
    ids = [uuid.uuid4().hex for _ in turns] if turn_ids is None else turn_ids
    with store.transaction():
        new = store.append_all(key, [[_storable(m) for m in turn] for turn in turns], turn_ids=ids)
        if new:
            for turn, turn_id in zip(turns, ids, strict=True):
                _remember(store, key, turn, turn_id, privacy)
    return new


def _remember(
    store: Store, key: SessionKey, turn: Sequence[Message], turn_id: str, privacy: PrivacyMode
) -> None:
    for message in turn:
        if message.get("role") != "user":
            continue
        fact = said_to_remember(text_of(message.get("content")))
        if fact is None:
            continue
        text, found = passed(fact, privacy)
        if found:
            warn_of_private(text, found)
        if text is not None:
            source = {"session": key.session_id, "turn": turn_id, "quote": text}
            store.ledger().add(key.owner, text, source=source, **kept_as(text))


def _at_once(turns: Sequence[Turn]) -> Sequence[Turn]:
    """The first turns, as many as one summary is made from: at least one."""
    size = 0
    for i, turn in enumerate(turns):
        size += sum(len(text_of(m.get("content"))) for m in turn.messages)
        if size > _SUMMARY_INPUT and i:
            return turns[:i]
    return turns


def core_line(fact: Fact) -> str:
    """A core fact as a prompt shows it: the user's own words, under their kind."""
    name = fact.kind if fact.subject is None else f"{fact.kind} ({fact.subject})"
    return f"{name}: {fact.text}" if name else fact.text
