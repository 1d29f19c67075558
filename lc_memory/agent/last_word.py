"""How a loop ends when its rounds are used up: the model is asked once more, without tools."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from lc_memory.language import Language, language_of

from .prompts import LAST_ROUND, NO_ANSWER


def asks(message: BaseMessage) -> bool:
    """Whether a message calls tools, readably or not."""
    return isinstance(message, AIMessage) and bool(message.tool_calls or message.invalid_tool_calls)


def last_round(system: SystemMessage | None, prompt: Sequence[BaseMessage]) -> SystemMessage:
    """The system message of the last request, which says that the model has to answer now. It stands there
    and not behind the results, because it is nothing that the user has said. It is not kept."""
    note = LAST_ROUND[_language(prompt)]
    if system is None:
        return SystemMessage(note)
    content = system.content
    if isinstance(content, str):
        return system.model_copy(update={"content": f"{content}\n\n{note}"})
    return system.model_copy(update={"content": [*content, {"type": "text", "text": note}]})


def told_at_last(message: AIMessage, prompt: Sequence[BaseMessage], rounds: int) -> AIMessage:
    """The answer of a model that calls a tool even so: its words beside the call, or a sentence that says
    there is no answer. Nobody will answer the call."""
    said = str(message.text)  # streamed, it has been told as it is
    words = said if said.strip() else NO_ANSWER[_language(prompt)].format(rounds=rounds)
    thought = {k: v for k, v in message.additional_kwargs.items() if k == "reasoning_content"}
    return AIMessage(words, usage_metadata=message.usage_metadata, additional_kwargs=thought)


def _language(prompt: Sequence[BaseMessage]) -> Language:
    return language_of(next((str(m.text) for m in reversed(prompt) if isinstance(m, HumanMessage)), ""))
