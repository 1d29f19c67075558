"""How a loop ends when its rounds are used up: the model is asked once more, without tools."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from ..wording import Language, language_of
from .prompts import LAST_ROUND, NO_ANSWER


def asks(message: BaseMessage) -> bool:
    """Whether a message calls tools, readably or not."""
    return isinstance(message, AIMessage) and bool(message.tool_calls or message.invalid_tool_calls)


def last_round(prompt: Sequence[BaseMessage]) -> HumanMessage:
    """What a model is told behind the results when it has to answer now. It is not kept."""
    return HumanMessage(LAST_ROUND[_language(prompt)])


def told_at_last(message: AIMessage, prompt: Sequence[BaseMessage], rounds: int) -> AIMessage:
    """The answer of a model that calls a tool even so: its words beside the call, or a sentence that says
    there is no answer. Nobody will answer the call."""
    words = str(message.text).strip() or NO_ANSWER[_language(prompt)].format(rounds=rounds)
    thought = {k: v for k, v in message.additional_kwargs.items() if k == "reasoning_content"}
    return AIMessage(words, usage_metadata=message.usage_metadata, additional_kwargs=thought)


def _language(prompt: Sequence[BaseMessage]) -> Language:
    return language_of(next((str(m.text) for m in reversed(prompt) if isinstance(m, HumanMessage)), ""))
