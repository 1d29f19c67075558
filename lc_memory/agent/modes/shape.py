"""The shape of a mode's prompt: what it is told, what is remembered, what is asked."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import BaseMessage, SystemMessage
from langchain_core.prompts import ChatPromptTemplate, HumanMessagePromptTemplate, MessagesPlaceholder

from lc_memory.memory import Memory


def prompt(
    memory: Memory,
    system: str,
    examples: Sequence[BaseMessage] = (),
    asked: str | None = None,
    name: str | None = None,
) -> ChatPromptTemplate:
    """System, examples, history, question. Only ``asked`` is a template (by default just the question):
    braces in the others mean nothing. ``name``: what it is called in a drawing."""
    asked = f"{{{memory.question_key}}}" if asked is None else asked
    built = ChatPromptTemplate.from_messages(
        [
            SystemMessage(system),
            *examples,
            MessagesPlaceholder(memory.history_key),
            HumanMessagePromptTemplate.from_template(asked),
        ]
    )
    built.name = name
    return built
