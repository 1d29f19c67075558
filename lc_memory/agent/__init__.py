"""An agent on the memory: tools, a loop that ends, a router, four ways of thinking.

``agent()`` needs the extra ``[agent]`` (LangChain's create_agent); all else runs with the core alone. Names
are imported when they are first touched.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .calculator import CalculatorTool as CalculatorTool
    from .calculator import calculate as calculate
    from .calls import ToolRecord as ToolRecord
    from .calls import TransientToolError as TransientToolError
    from .calls import tool_records as tool_records
    from .lcel import tool_loop as tool_loop
    from .loop import agent as agent
    from .modes import MODES as MODES
    from .modes import cot as cot
    from .modes import few_shot as few_shot
    from .modes import react as react
    from .modes import tot as tot
    from .registry import tools_from_config as tools_from_config
    from .router import auto_select as auto_select
    from .router import by_mode as by_mode
    from .router import route_model as route_model
    from .runnable import Agent as Agent
    from .tools import default_tools as default_tools
    from .weather import WeatherTool as WeatherTool

_WHERE = {
    "Agent": "runnable",
    "CalculatorTool": "calculator",
    "MODES": "modes",
    "ToolRecord": "calls",
    "TransientToolError": "calls",
    "WeatherTool": "weather",
    "agent": "loop",
    "auto_select": "router",
    "by_mode": "router",
    "calculate": "calculator",
    "cot": "modes",
    "default_tools": "tools",
    "few_shot": "modes",
    "react": "modes",
    "route_model": "router",
    "tool_loop": "lcel",
    "tool_records": "calls",
    "tools_from_config": "registry",
    "tot": "modes",
}

__all__ = list(_WHERE)


def __getattr__(name: str) -> Any:
    where = _WHERE.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{where}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE})
