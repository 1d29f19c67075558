"""The tools an agent has when nothing else is said."""

from __future__ import annotations

from langchain_core.tools import BaseTool

from lc_memory.memory import Memory
from lc_memory.sessions import StoredSessions

from .calculator import CalculatorTool
from .memory_tools import memory_tools
from .weather import WeatherTool


def default_tools(memory: Memory) -> list[BaseTool]:
    """calculator and get_weather; and, over a Memory that was opened on a store, save_preference,
    recall_memory and forget_memory."""
    kept = memory_tools(memory) if isinstance(memory._sessions, StoredSessions) else []
    return [CalculatorTool(), WeatherTool(), *kept]
