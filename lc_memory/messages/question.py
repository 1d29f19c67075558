"""What is asked: the question in what a chain was given, and what of a conversation sent along is new."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import HumanMessage

from .convert import Message, _to_lc, from_lc
from .histories import is_conversation, is_message, read
from .speech import arguments_of, spoken


@dataclass(frozen=True)
class Asked:
    """What a chain was asked: the human's message, and what of the conversation was sent along with it."""

    question: Message
    before: Sequence[Message] = ()
    is_conversation: bool = False

    def new(self, given: Any) -> Any:
        """``given``, the whole conversation, with what is new in it alone: its last message."""
        return given[-1:] if isinstance(given, list) else [_to_lc(self.question)]


def asked(question: Any) -> Asked | None:
    """What is new in what a chain was asked with: text, a message, a list of content parts, or a whole
    conversation in any form that :mod:`lc_memory.messages.histories` knows, as a web front end sends it.
    Of that the last message is the question. None: nobody asks anything.

    Raises MemoryInputError for a conversation that is not understood.
    """
    if isinstance(question, str):
        return Asked({"role": "user", "content": question})
    if isinstance(question, HumanMessage):
        return Asked(_checked(from_lc(question)))
    listed = isinstance(question, list)
    if listed and question and all(isinstance(p, (str, dict)) and not is_message(p) for p in question):
        return Asked(_checked({"role": "user", "content": question}))
    if (listed and question) or is_message(question) or is_conversation(question):
        said = read([question] if isinstance(question, tuple) else question, blanks=True)
        if said and said[-1]["role"] == "user":
            return Asked(said[-1], said[:-1], is_conversation=listed or len(said) > 1)
    return None


def human_message(question: Any) -> Message | None:
    """The human's message from what a chain was asked with; see :func:`asked`."""
    found = asked(question)
    return None if found is None else found.question


def _checked(message: Message) -> Message:
    _to_lc(message)  # what no prompt could show is refused before a model is asked
    return message


def unknown(before: Sequence[Message], known: Iterable[Message]) -> list[Message]:
    """What the memory does not know of the messages that a caller sent along before a question: those from
    the user's first one behind the last that is ``known``, in the same words. What the caller shortened or
    edited further up is known all the same, and the memory's own words for it stand. System messages count
    each for itself."""
    words = {_words(m) for m in known} - {None}
    last = next((i for i in range(len(before) - 1, -1, -1) if _words(before[i]) in words), -1)
    start = last + 1
    while last >= 0 and start < len(before) and before[start]["role"] != "user":
        start += 1  # the answer to what is known, in other words
    return [
        m for i, m in enumerate(before)
        if (_words(m) not in words if m["role"] in ("system", "developer") else i >= start)
    ]  # fmt: skip


def _words(message: Message) -> tuple[str, str] | None:
    said = " ".join(spoken(message).split())
    if not said and message.get("role") == "assistant":
        said = arguments_of(message)
    return (str(message.get("role")), said) if said else None
