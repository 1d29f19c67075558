"""Memory: the door. ``memory.load_mem`` stands at the head of a chain, ``with_memory`` saves what came out.

::

    memory = Memory(MemoryManager())                 # a dict-based memory of your own, untouched
    chain = memory.load_mem | prompt | model | StrOutputParser()
    bot = with_memory(chain, memory)
    bot.invoke({"question": "我叫小明"})
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast
from uuid import uuid4

from langchain_core.messages import BaseMessage
from langchain_core.runnables import ConfigurableFieldSpec, Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor

from . import checks
from .context import message_counter
from .errors import MemoryInputError
from .explain import Explanation
from .facts.core import CoreFacts
from .facts.privacy import PrivacyMode, checked_mode
from .graphs import is_command
from .identity import DEFAULT_SESSION, NOTHING, named, session_key
from .imports import import_for
from .longterm import IN_MEMORY, LongTermCalls, index_left_behind, long_term, note_writer
from .managers import ManagerPerSession, OneManager
from .messages import Message
from .moving import known, movable, opened_again, stays
from .session import Session
from .session_cache import StoredSessions
from .session_queue import SessionQueue
from .sessions import Conversation, Sessions
from .store import Forgotten, SessionInfo, SessionKey, open_store
from .store.undisturbed import when_dropped
from .stored import Settings
from .summary import Summariser
from .turn import Asked, asked

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

    from .facts.kinds import Kinds

SPECS = [
    ConfigurableFieldSpec(
        id="session_id",
        annotation=str,
        name="Session",
        description="Names the conversation. Without it `thread_id` does, and without both there is one.",
        default=DEFAULT_SESSION,
        is_shared=True,
    ),
    ConfigurableFieldSpec(
        id="user_id",
        annotation=str,
        name="User",
        description="Whose long-term facts these are. Without it they belong to the session alone.",
        default=None,
        is_shared=True,
    ),
]


class Memory(LongTermCalls):
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
    _name: str | None = None
    """By which copies of it in other processes find each other."""

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
        self._sessions = sessions
        self.question_key = question_key
        self.history_key = history_key
        self.turns = SessionQueue(session_wait)
        self.load_mem = LoadMem(self)

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

    # ------------------------------------------------------------ a turn

    def history(self, question: Any, config: Mapping[str, Any] | None = None) -> list[BaseMessage]:
        """What the prompt of ``question`` gets before it: messages, whole tool groups only.

        ``question``: text, a HumanMessage, a list of content parts, or the whole conversation with the
        question as its last message; what the memory does not know of that comes last. Reads, and writes
        nothing.
        """
        asked = self._asked(question)
        return self._conversation(config).history(asked.question, asked.before)

    def explain(self, question: Any, config: Mapping[str, Any] | None = None) -> Explanation:
        """Why each part of the prompt of ``question`` would be in it or not, with tokens and score, and how
        much of it repeats the session's last prompt. ``print`` it for a table."""
        asked = self._asked(question)
        return self._conversation(config).explain(asked.question, asked.before)

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

    # ------------------------------------------------------------ for load_mem and with_memory

    def _key(
        self, config: Mapping[str, Any] | None, kwargs: Mapping[str, Any] = NOTHING, given: Any = None
    ) -> SessionKey:
        """The key under which the turns of a run's session are queued. See :func:`session_key`."""
        return self._sessions.canonical(session_key(config, kwargs, given))

    def _conversation(self, config: Mapping[str, Any] | None) -> Conversation:
        return self._conversation_of(session_key(config))

    def _conversation_of(self, key: SessionKey) -> Conversation:
        self._sessions.canonical(key)  # refuses a session this memory must not show
        return self._sessions.conversation(key)

    def _human(self, question: Any) -> Message:
        return self._asked(question).question

    def _asked(self, question: Any) -> Asked:
        found = asked(question)
        if found is None:
            raise MemoryInputError(
                "the question must be text, a HumanMessage, a list of content parts, or a conversation whose "
                f"last message is the user's, got {type(question).__name__} {question!r:.80}"
            )
        return found

    def _question(self, given: Any) -> Any:
        if isinstance(given, Mapping):
            if self.question_key in given:
                return given[self.question_key]
            keys = ", ".join(map(repr, given)) or "none"
            raise MemoryInputError(
                f"the input has no {self.question_key!r} (its keys: {keys}). Call the chain with "
                f"{{{self.question_key!r}: …}}, or name the key your input has: Memory(…, question_key=…)"
            )
        raise MemoryInputError(
            f"expected a dict like {{{self.question_key!r}: …}}, got {type(given).__name__} {given!r:.80}"
        )


class LoadMem(Runnable[dict[str, Any], dict[str, Any]]):
    """The head of a chain: a new dict with all keys of the input and the history under ``history``, a
    list of messages. The input is not touched, and nothing is written."""

    name = "load_mem"

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self._loading = knowing_its_signature(self._load)
        self._aloading = knowing_its_signature(self._aload)

    def __reduce__(self) -> tuple[Any, ...]:
        return attrgetter("load_mem"), (self.memory,)

    def __deepcopy__(self, memo: dict[int, Any]) -> LoadMem:
        return self.memory.load_mem

    @property
    def config_specs(self) -> list[ConfigurableFieldSpec]:
        return SPECS

    def invoke(
        self,
        input: dict[str, Any],
        config: RunnableConfig | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        return self._call_with_config(self._loading, input, config, **kwargs)

    async def ainvoke(
        self, input: dict[str, Any], config: RunnableConfig | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        return await self._acall_with_config(self._aloading, input, config, **kwargs)

    def _load(self, given: dict[str, Any], config: RunnableConfig, **kwargs: Any) -> dict[str, Any]:
        if is_command(given):  # the graph behind it knows the question, and what was remembered for it
            return given
        question = self.memory._question(given)
        asked = self.memory._asked(question)
        conversation = self.memory._conversation_of(session_key(config, kwargs, given))
        history = conversation.history(asked.question, asked.before)
        # Of a whole conversation only what is new goes on: the rest is what the memory has, or brings along.
        new = {self.memory.question_key: asked.new(question)} if asked.is_conversation else {}
        return {**given, **new, self.memory.history_key: history}

    async def _aload(self, given: dict[str, Any], config: RunnableConfig, **kwargs: Any) -> dict[str, Any]:
        # Recall reads a database and computes an embedding: not on the event loop.
        return await run_in_executor(config, self._load, given, config, **kwargs)


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float))


def knowing_its_signature(method: Callable[..., Any]) -> Any:
    """``method`` as a function that carries its signature. LangChain asks for the signature of what it runs
    several times a run, and working that of a bound method out anew is a tenth of what a turn costs."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    cast(Any, call).__signature__ = inspect.signature(method)
    return call
