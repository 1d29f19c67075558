"""Few shot: the model answers after examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import Runnable

from lc_memory.errors import MemoryInputError
from lc_memory.memory import Memory

from ..prompts import EXAMPLES, FEW_SHOT
from .shape import prompt


def few_shot(
    memory: Memory,
    model: Any,
    *,
    examples: Sequence[Mapping[str, str]] = EXAMPLES,
    system: str = FEW_SHOT,
) -> Runnable[Any, str]:
    """A chain from ``{"question": …}`` to the answer's text, in the manner of ``examples``: dicts with
    ``question`` and ``answer``. They stand before the history, and are no part of the conversation."""
    shown: list[BaseMessage] = []
    for i, example in enumerate(examples):
        try:
            shown += [HumanMessage(example["question"]), AIMessage(example["answer"])]
        except (KeyError, TypeError) as error:
            raise MemoryInputError(f"examples[{i}] needs question and answer, got {example!r}") from error
    chain: Runnable[Any, str] = memory.load_mem | prompt(memory, system, shown) | model | StrOutputParser()
    return chain
