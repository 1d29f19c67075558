"""Memory: the door. ``memory.load_mem`` stands at the head of a chain, ``with_memory`` saves what came out.

::

    memory = Memory(MemoryManager())                 # a dict-based memory of your own, untouched
    chain = memory.load_mem | prompt | model | StrOutputParser()
    bot = with_memory(chain, memory)
    bot.invoke({"question": "我叫小明"})
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from lc_memory.chains import ChainMemory, known, movable, opened_again, stays
from lc_memory.errors import MemoryInputError
from lc_memory.facts import CoreFacts
from lc_memory.facts.privacy import PrivacyMode, checked_mode
from lc_memory.lazy import import_for
from lc_memory.prompt import message_counter
from lc_memory.sessions import (
    DEFAULT_SESSION,
    ManagerPerSession,
    OneManager,
    Session,
    Sessions,
    Settings,
    StoredSessions,
    Summariser,
    named,
)
from lc_memory.store import Forgotten, SessionInfo, SessionKey, open_store, when_dropped

from . import checks
from .longterm import IN_MEMORY, LongTermCalls, index_left_behind, long_term, note_writer

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from lc_memory.facts import Kinds


class Memory(LongTermCalls, ChainMemory):
    """A memory for LCEL chains.

    ``Memory(manager)`` puts one dict-based manager, which is one conversation, at the head of a chain;
    ``Memory.per_session(make)`` makes one for each session; ``Memory.open(folder)`` needs no manager and
    keeps what was said over restarts. A manager has ``get_context(query=None)`` and ``add(msg)`` (or
    ``add_user(text)`` and ``add_ai(text)``); its ``maybe_compress()`` is called after each turn where it has
    one. It is never changed, and may be used beside the chain.

    ``question_key`` / ``history_key``: the keys of a chain's input that hold the question and get the
    history. ``session_wait``: seconds a turn waits for another one of its session (SessionBusyError).
    """

    _settings: tuple[str, dict[str, Any]] | None = None
    """With what it was opened, where it was."""

    def __init__(
        self,
        manager: Any,
        *,
        question_key: str = "question",
        history_key: str = "history",
        session_wait: float = 60.0,
    ) -> None:
        self._setup(OneManager(manager), question_key, history_key, session_wait)

    @classmethod
    def per_session(
        cls,
        make: Callable[[SessionKey], Any],
        *,
        question_key: str = "question",
        history_key: str = "history",
        session_wait: float = 60.0,
    ) -> Memory:
        """A manager of its own for each session: ``make(key)`` is called once for each
        ``key.session_id``, ``key.user_id``. The managers live as long as this object."""
        memory = cls.__new__(cls)
        memory._setup(ManagerPerSession(make), question_key, history_key, session_wait)
        return memory

    def _setup(self, sessions: Sessions, question_key: str, history_key: str, session_wait: float) -> None:
        checks.keys(question_key, history_key)
        checks.seconds("session_wait", session_wait)
        ChainMemory.__init__(self, sessions, question_key, history_key, session_wait)

    @classmethod
    def open(
        cls,
        where: str | os.PathLike[str],
        *,
        summarizer: Any = None,
        window: int = 12,
        max_context_tokens: int | None = 8000,
        token_counter: Any = None,
        summary_chars: int = 200,
        question_key: str = "question",
        history_key: str = "history",
        session_wait: float = 60.0,
        cached_sessions: int = 1024,
        recall: Sequence[str] = ("facts", "turns"),
        recall_k: int = 4,
        embedding: str | Embeddings = "local",
        chroma: Any = None,
        notes: Any = None,
        notes_every: int = 5,
        kinds: Kinds | None = None,
        privacy: PrivacyMode = "refuse",
    ) -> Memory:
        """A memory that lasts: sessions, summaries and facts in a store. Nothing is opened before it is used;
        what is needed then is imported now (a second or two), for no thread may do so beside the caller's.

        ``where``: a folder (SQLite lies in it), ``sqlite:///file``, ``postgresql://…``, or ":memory:".
        ``summarizer``: a chat model, a Runnable that takes text, or an object with ``summarize(text)``; it
        makes the rolling summary of at most ``summary_chars`` characters. Without one, what leaves the
        window is kept and can be recalled, but is not summarised.
        ``window``: turns that stay in the prompt; it grows to twice that and is then cut back in one go.
        ``max_context_tokens``: what history and question may take together (None: no limit), counted by
        ``token_counter``: a chat model, or a function of a list of messages, as LangChain's trim_messages
        takes them; the default needs no download and errs on the high side.
        ``cached_sessions``: how many sessions are kept at hand in this process.
        ``recall``: what of earlier is brought into a prompt where it bears on the question, at most
        ``recall_k`` of it: "facts", and "turns" that have left the window or are of other sessions of the
        user. With ``()`` nothing is, and no index is kept.
        ``embedding``: "local" (needs nothing), "e5", "openai", "chroma", or a LangChain Embeddings.
        ``chroma``: where the vectors lie. None: in a folder beside the store, for one process at a time;
        ``http://host:port`` of a ``chroma run``, or ``cloud://TENANT/DATABASE``, for several.
        ``notes``: a chat model that finds what is worth keeping of what users say, in the background, every
        ``notes_every`` turns of a session and when the memory is flushed or closed; None: facts are kept
        only where they are given (``记住: …``, remember(), tools). ``kinds``: which facts, by name or as
        NoteKinds; None: a set for everyday talk.
        ``privacy``: a fact with a phone number, an id, a card, an address, a password or a key in it is
        refused ("refuse"), kept without ("redact") or kept ("off"). Turns are indexed without them anyhow.
        """
        given = {k: v for k, v in locals().items() if k not in ("cls", "where")}
        where = checks.place(where)
        checks.whole("window", window, "at least one turn has to stay in the prompt")
        if max_context_tokens is not None:
            checks.whole(
                "max_context_tokens", max_context_tokens, "in less no question fits; None is no limit"
            )
        checks.whole("summary_chars", summary_chars, "a summary needs at least 40 characters", least=40)
        checks.whole("cached_sessions", cached_sessions, "one is always at hand")
        checks.whole("recall_k", recall_k, "recall=() recalls nothing")
        checks.whole("notes_every", notes_every, "notes are made of at least one turn")
        settings = Settings(
            window=window,
            budget=max_context_tokens,
            count=message_counter(token_counter),
            summarise=None if summarizer is None else Summariser(summarizer, summary_chars),
            privacy=checked_mode(privacy),
        )
        import_for(where, recall=bool(recall))
        memory = cls.__new__(cls)
        stored = StoredSessions(lambda: open_store(where), settings, cached_sessions)
        memory._longterm = long_term(where, stored, recall, recall_k, embedding, chroma)
        memory._indexes = memory._longterm or index_left_behind(where, stored, chroma)
        stored.recall = memory._longterm
        stored.notes = note_writer(stored, memory._longterm, notes, notes_every, kinds, privacy)
        memory._setup(stored, question_key, history_key, session_wait)
        when_dropped(memory, stored.let_go)
        memory._settings = (checks.whole_place(where), given)
        return memory

    # ------------------------------------------------------------ what is kept (Memory.open)

    def session(self, session_id: str = DEFAULT_SESSION, user_id: str | None = None) -> Session:
        """A session to look at, or to bring a conversation into."""
        stored = self._stored("session()")
        key = named(session_id, user_id)
        return Session(key, lambda: stored.conversation(key), lambda: self._clear(key))

    def sessions(self, user_id: str | None = None) -> list[SessionInfo]:
        """The sessions of a user (None: of everyone), the one changed last first."""
        return self._stored("sessions()").store.sessions(user_id)

    def core(self, user_id: str | None = None, *, session_id: str = DEFAULT_SESSION) -> CoreFacts:
        """The facts that stand in every prompt of this user (or, with no user, of this session)."""
        stored = self._stored("core()")
        return CoreFacts(lambda: stored.store.ledger(), named(session_id, user_id).owner, self._wipe)

    def forget(self, *, user_id: str | None = None, session_id: str | None = None) -> Forgotten:
        """Erase turns, summaries and facts everywhere, from the files too.

        ``user_id`` alone: all of that user. ``session_id`` alone: every session of that name, whoever's.
        Both: that session, and what was learnt of the user in it. What was erased is in the result, whose
        ``nothing`` is True where nobody of that name was known. What was begun in the background before this
        call is waited for, and what is begun meanwhile brings nothing back. A turn whose answer is still
        under way is saved when it ends: end it first, or call this again.
        """
        stored = self._stored("forget()")
        for name, given in (("user_id", user_id), ("session_id", session_id)):
            if given == "":
                raise MemoryInputError(f"forget({name}=''): an empty id names nobody; leave it out")
        stored.background.wait()
        forgotten = stored.store.forget(user_id=user_id, session_id=session_id, wipe=False)
        stored.drop()
        return replace(forgotten, wiped=self._wipe())

    def _clear(self, key: SessionKey) -> Forgotten:
        stored = self._stored("clear()")
        stored.background.wait()
        forgotten = stored.store.clear(key)
        stored.drop()
        return replace(forgotten, wiped=self._wipe())

    def _stored(self, what: str) -> StoredSessions:
        if not isinstance(self._sessions, StoredSessions):
            raise MemoryInputError(f"{what} needs a store: Memory.open(folder). This Memory holds a manager")
        return self._sessions

    def flush(self) -> None:
        """Wait for what was begun in the background: summaries that are made, turns that are indexed; and
        make notes of what still waits for it. What others save meanwhile is not waited for."""
        if isinstance(self._sessions, StoredSessions):
            self._sessions.flush()

    def close(self) -> None:
        """Wait for what was begun in the background, and let go of files and connections."""
        self._sessions.close()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ------------------------------------------------------------ into another process

    def __reduce__(self) -> tuple[Any, ...]:
        if self._settings is None:
            raise stays("a Memory of managers")
        where, settings = self._settings
        if where in IN_MEMORY:
            raise stays('Memory.open(":memory:")')
        if self._name is None:
            self._name = uuid4().hex
            known(self, self._name)
        moved = {k: v if _is_plain(v) else movable(v, f"{k}= of the memory") for k, v in settings.items()}
        return opened_again, (self._name, type(self).open, where, moved)

    def __copy__(self) -> Memory:
        return self  # a copy beside it would not know of its turns

    def __deepcopy__(self, memo: dict[int, Any]) -> Memory:
        return self


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float))
