"""React: the model calls tools, sees what they give, and goes on until it can answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langchain_core.output_parsers import StrOutputParser
from langchain_core.runnables import Runnable

from lc_memory.memory import Memory

from ..calls import ROUNDS
from ..lcel import tool_loop
from ..prompts import TOOLS
from ..tools import default_tools
from .shape import prompt


def react(
    memory: Memory,
    model: Any,
    tools: Sequence[Any] | None = None,
    *,
    max_rounds: int = ROUNDS,
    system: str = TOOLS,
) -> Runnable[Any, str]:
    """A chain from ``{"question": …}`` to the answer's text. ``tools`` None: those of ``default_tools``."""
    loop = tool_loop(model, default_tools(memory) if tools is None else tools, max_rounds=max_rounds)
    return memory.load_mem | prompt(memory, system) | loop | StrOutputParser()
