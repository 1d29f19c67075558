"""Chain of thought: the model reasons step by step, and then concludes."""

from __future__ import annotations

from typing import Any

from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import Runnable

from lc_memory.memory import Memory

from ..prompts import COT
from .shape import prompt


def cot(memory: Memory, model: Any, *, system: str = COT) -> Runnable[Any, str]:
    """A chain from ``{"question": …}`` to the answer's text, reasoning first."""
    chain: Runnable[Any, str] = memory.load_mem | prompt(memory, system) | model | StrOutputParser()
    return chain
