"""A manager of the user's own as a conversation: adapted, and never changed."""

from __future__ import annotations

import inspect
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

from langchain_core.messages import BaseMessage

from lc_memory.errors import LCMemoryError, MemoryInputError, StoreError
from lc_memory.messages import (
    Converter,
    Message,
    answer_of,
    count_message_tokens,
    from_lc,
    in_prompt,
    one_to_lc,
    spoken,
    text_of,
    unknown,
    valid_groups,
)
from lc_memory.prompt import Explanation, Kind, Part
from lc_memory.store import SessionKey

from .conversation import Conversation
from .identity import UNNAMED


@runtime_checkable
class SupportsAdd(Protocol):
    def add(self, msg: Message) -> Any: ...


@runtime_checkable
class SupportsAddPair(Protocol):
    """The smallest manager there is: two lists of words."""

    def add_user(self, text: str) -> Any: ...
    def add_ai(self, text: str) -> Any: ...


@runtime_checkable
class SupportsContext(Protocol):
    def get_context(self, query: str | None = None) -> list[Message]: ...


@runtime_checkable
class SupportsCompress(Protocol):
    def maybe_compress(self) -> Any: ...


class ManagerConversation:
    """A dict-based manager as a conversation.

    ``manager`` has ``get_context(query=None) -> list[dict]`` and either ``add(msg)`` or ``add_user(text)``
    with ``add_ai(text)``; ``maybe_compress()`` is called after each turn where there is one. What of it
    exists is looked up once, here. MemoryInputError when something is missing.
    """

    RECALL_PAUSE = 60.0  # seconds without recall after its long-term part has failed

    def __init__(self, manager: Any) -> None:
        if isinstance(manager, type):
            raise MemoryInputError(
                f"Memory() wants a manager, not its class; write Memory({manager.__name__}()), or "
                f"Memory.per_session(lambda session: {manager.__name__}()) for one manager a session"
            )
        missing = [] if isinstance(manager, SupportsContext) else ["get_context(query=None)"]
        if not isinstance(manager, (SupportsAdd, SupportsAddPair)):
            missing.append("add(msg)  (or add_user(text) and add_ai(text))")
        if missing:
            name = type(manager).__name__
            raise MemoryInputError(f"{name} cannot be a memory, it lacks {', '.join(missing)}")
        self.manager = manager
        self._adds = isinstance(manager, SupportsAdd)
        self._compresses = isinstance(manager, SupportsCompress)
        for call in ("get_context", *(("add",) if self._adds else ("add_user", "add_ai"))):
            _check_callable(manager, call)
        if self._compresses:
            _check_callable(manager, "maybe_compress")
            self._compress_alone = _takes(manager.maybe_compress)
            self._compress_with = _takes(manager.maybe_compress, None)
        self._recalls = _takes(manager.get_context, query=None)
        self._to_lc = Converter()
        self._lock = threading.RLock()
        self._last_turn: str | None = None
        self._recall_after = 0.0  # monotonic time before which the long-term part is left alone

    def history(self, question: Message, before: Sequence[Message] = ()) -> list[BaseMessage]:
        return self._to_lc(in_prompt(self._before(question, before)))

    def explain(self, question: Message, before: Sequence[Message] = ()) -> Explanation:
        query = text_of(question["content"])
        context = self._before(question, before)
        kept = {id(m) for m in valid_groups(context)}
        parts = []
        for message in context:
            kind: Kind = "summary" if message.get("is_summary") else "window"
            if message.get("role") == "system" and kind == "window":
                kind = "system"
            whole = id(message) in kept
            why = "in the manager's context" if whole else "a tool call and its results are not all here"
            parts.append(Part(kind, spoken(message), count_message_tokens(message), whole, why))
        asked = count_message_tokens(question)
        parts.append(Part("question", query, asked, True, "always"))
        return Explanation(type(self.manager).__name__, query, parts)

    def _before(self, question: Message, before: Sequence[Message]) -> list[Message]:
        with self._lock:
            context = _as_dicts(self._context(text_of(question["content"])))
        return [*context, *unknown(before, context)] if before else context

    def _context(self, query: str) -> list[Any]:
        context = self._given(query)
        if not isinstance(context, list):
            name = type(self.manager).__name__
            raise MemoryInputError(f"{name}.get_context() gave {type(context).__name__}, not a list of dicts")
        return context

    def _given(self, query: str) -> Any:
        # A long-term part that cannot be had (no embedding, a broken folder) must not silence the window.
        if query and self._recalls and time.monotonic() >= self._recall_after:
            try:
                return self.manager.get_context(query=query)
            except LCMemoryError:
                raise
            except Exception as error:
                self._recall_after = time.monotonic() + self.RECALL_PAUSE
                warnings.warn(
                    f"long-term recall failed ({type(error).__name__}: {error}); this conversation goes on "
                    f"with its window alone, and recall is tried again after {self.RECALL_PAUSE:g} s",
                    RuntimeWarning,
                    stacklevel=2,
                )
        try:
            return self.manager.get_context()
        except Exception as error:
            name = type(self.manager).__name__
            raise StoreError(f"{name}.get_context() failed: {type(error).__name__}: {error}") from error

    def save(self, turn: Sequence[Message], turn_id: str | None = None) -> None:
        with self._lock:
            if turn_id is not None and turn_id == self._last_turn:
                return
            try:
                if self._adds:
                    for message in turn:
                        self.manager.add(message)
                else:  # two lists of words have no place for what stands between
                    self.manager.add_user(text_of(turn[0]["content"]))
                    self.manager.add_ai(text_of(turn[-1].get("content")) or answer_of(turn))
            except Exception as error:
                name = type(self.manager).__name__
                raise StoreError(f"{name} did not take the turn: {type(error).__name__}: {error}") from error
            self._last_turn = turn_id

    def compact(self) -> None:
        if not self._compresses:
            return
        llm = getattr(self.manager, "llm", None)
        with self._lock:
            if hasattr(llm, "summarize") and self._compress_with:
                self.manager.maybe_compress(_CheckedSummariser(llm))
            elif self._compress_alone:
                self.manager.maybe_compress()
            else:
                self._compresses = False
                warnings.warn(
                    f"{type(self.manager).__name__}.maybe_compress() wants arguments that nobody has, and is "
                    "not called: give the manager an .llm with summarize(text)",
                    RuntimeWarning,
                    stacklevel=2,
                )


def _as_dicts(context: list[Any]) -> list[Message]:
    """LangChain messages and (role, content) pairs do, too."""
    return [m if isinstance(m, dict) else from_lc(one_to_lc(m, i)) for i, m in enumerate(context)]


def _check_callable(manager: Any, call: str) -> None:
    """MemoryInputError for what would lose every turn without a word: a coroutine that nobody awaits."""
    method = getattr(manager, call)
    name = type(manager).__name__
    if not callable(method):
        raise MemoryInputError(f"{name}.{call} is a {type(method).__name__}, not a method")
    if inspect.iscoroutinefunction(method):
        raise MemoryInputError(
            f"{name}.{call}() is async, and a manager's calls are plain ones (ainvoke makes them off the "
            f"event loop): write def {call}"
        )


def _takes(method: Any, *args: Any, **kwargs: Any) -> bool:
    """Whether ``method`` can be called with these arguments."""
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):  # what is written in C may have none
        return True
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        return False
    return True


class _CheckedSummariser:
    """The manager's own summariser, but an empty answer is an error before it replaces the history."""

    def __init__(self, llm: Any) -> None:
        self._llm = llm

    def summarize(self, text: str) -> str:
        summary = self._llm.summarize(text)
        if not isinstance(summary, str) or not summary.strip():
            raise StoreError(f"the summary came back empty ({summary!r}); the history stays as it is")
        return summary


class OneManager:
    """All there is of a Memory(manager): one manager is one conversation, whoever calls.

    The first session that calls is the one it holds, be it one without a name. A second one would be shown
    the first one's words, and is refused.
    """

    def __init__(self, manager: Any) -> None:
        self._conversation = ManagerConversation(manager)
        self._held: SessionKey | None = None
        self._guard = threading.Lock()

    def canonical(self, key: SessionKey) -> SessionKey:
        with self._guard:
            if self._held is None:
                self._held = key
        if key != self._held:
            nobody = " (this call names nobody)" if key == UNNAMED else ""
            raise MemoryInputError(
                f"this Memory holds one manager, which is the conversation of {self._held}; {key}{nobody} "
                "would read what was said there. Use Memory.per_session(make_manager) or Memory.open(folder)"
            )
        return UNNAMED

    def conversation(self, key: SessionKey) -> Conversation:
        return self._conversation

    def close(self) -> None:
        pass


class ManagerPerSession:
    """A manager for each session, made by ``make(key)`` when the session is first seen and kept since."""

    def __init__(self, make: Callable[[SessionKey], Any]) -> None:
        if not callable(make):
            raise MemoryInputError(
                f"per_session(make): expected a function that makes a manager, got a {type(make).__name__}"
            )
        if inspect.iscoroutinefunction(make):
            raise MemoryInputError(
                "per_session(make): make is async, and is called plainly: write def make(key)"
            )
        if not _takes(make, UNNAMED):
            name = getattr(make, "__name__", type(make).__name__)
            raise MemoryInputError(
                f"per_session(make): make is called with the session's key, and {name} cannot be called with "
                f"one argument: write per_session(lambda key: {name}())"
            )
        self._make = make
        self._conversations: dict[SessionKey, ManagerConversation] = {}
        self._of: dict[int, SessionKey] = {}  # by id() of a manager; all of them live as long as this
        self._guard = threading.Lock()

    def canonical(self, key: SessionKey) -> SessionKey:
        return key

    def conversation(self, key: SessionKey) -> Conversation:
        with self._guard:
            if key not in self._conversations:
                manager = self._made(key)
                if id(manager) in self._of:
                    raise MemoryInputError(
                        f"make({key}) gave the manager of {self._of[id(manager)]}, which would read what was "
                        "said there: make a new one for each session"
                    )
                self._conversations[key] = ManagerConversation(manager)
                self._of[id(manager)] = key
            return self._conversations[key]

    def _made(self, key: SessionKey) -> Any:
        try:
            return self._make(key)
        except LCMemoryError:
            raise
        except Exception as error:
            raise MemoryInputError(
                f"per_session(make): make({key}) failed ({type(error).__name__}: {error}). It is called with "
                "the session's key and returns a new manager"
            ) from error

    def close(self) -> None:
        pass
