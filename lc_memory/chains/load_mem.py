"""load_mem, the head of a chain, and what a chain needs of a memory."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, cast

from langchain_core.messages import BaseMessage
from langchain_core.runnables import ConfigurableFieldSpec, Runnable, RunnableConfig
from langchain_core.runnables.config import run_in_executor

from lc_memory.errors import MemoryInputError
from lc_memory.messages import Asked, Message, asked
from lc_memory.prompt import Explanation
from lc_memory.sessions import NOTHING, SPECS, Conversation, Sessions, session_key
from lc_memory.store import SessionKey

from .graphs import is_command
from .queue import SessionQueue


class ChainMemory:
    """What a chain needs of a memory: whose turn it is, what is asked, and the conversation that answers.

    The part of :class:`~lc_memory.Memory` that ``load_mem`` and ``with_memory`` stand on.
    """

    _name: str | None = None
    """By which its copies in other processes find each other."""

    def __init__(self, sessions: Sessions, question_key: str, history_key: str, session_wait: float) -> None:
        self._sessions = sessions
        self.question_key = question_key
        self.history_key = history_key
        self.turns = SessionQueue(session_wait)
        self.load_mem = LoadMem(self)

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

    def __init__(self, memory: ChainMemory) -> None:
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


def knowing_its_signature(method: Callable[..., Any]) -> Any:
    """``method`` as a function that carries its signature. LangChain asks for the signature of what it runs
    several times a run, and working that of a bound method out anew is a tenth of what a turn costs."""

    def call(*args: Any, **kwargs: Any) -> Any:
        return method(*args, **kwargs)

    cast(Any, call).__signature__ = inspect.signature(method)
    return call
