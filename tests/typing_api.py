"""The public API under strict mypy: this file is checked, not run."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable

from lc_memory import Memory, _to_lc, ask, chat_model, from_lc, get_history, messages_to_lc, with_memory
from lc_memory.prompt.explain import Explanation
from lc_memory.store import SessionInfo
from legacy_memory import MemoryManager


def the_five_lines(prompt: ChatPromptTemplate) -> str:
    memory: Memory = Memory.open("./memory", summarizer=chat_model(), window=12)
    chain: Runnable[dict[str, Any], str] = memory.load_mem | prompt | chat_model() | StrOutputParser()
    bot: Runnable[Any, Any] = with_memory(chain, memory, on_save_error="warn")
    answer: str = bot.invoke({"question": "q"}, {"configurable": {"session_id": "s"}})
    return answer


def what_is_kept(memory: Memory) -> tuple[list[BaseMessage], list[SessionInfo], Explanation]:
    memory.core("u").set("city", "Hangzhou")
    return memory.session("s", "u").messages(), memory.sessions("u"), memory.explain("q")


def of_ones_own() -> Memory:
    return Memory.per_session(lambda key: MemoryManager(window=8))


def messages() -> list[BaseMessage]:
    message: BaseMessage = _to_lc({"role": "user", "content": "hi"})
    back: dict[str, Any] = from_lc(message)
    ask("q", user_id="u")
    return [*messages_to_lc([back]), *get_history({"question": "q"})]
