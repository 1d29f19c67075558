"""An agent on the memory: tools, a loop that ends, a router, four ways of thinking.

``agent()`` needs the extra ``[agent]`` (LangChain's create_agent); all else runs with the core alone. Names
are imported when they are first touched.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lc_memory.lazy import lazy

if TYPE_CHECKING:
    from . import memory_tools as memory_tools
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
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "calculator": "CalculatorTool calculate",
            "calls": "ToolRecord TransientToolError tool_records",
            "lcel": "tool_loop",
            "loop": "agent",
            "memory_tools": "memory_tools",
            "modes": "MODES cot few_shot react tot",
            "registry": "tools_from_config",
            "router": "auto_select by_mode route_model",
            "runnable": "Agent",
            "tools": "default_tools",
            "weather": "WeatherTool",
        },
    )
