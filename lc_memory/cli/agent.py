"""``lc-memory chat --agent``: the agent at the keyboard, with its tool calls shown as they happen."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from lc_memory.errors import MemoryInputError

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

    from lc_memory.agent import Agent
    from lc_memory.memory import Memory

Say = Callable[[str, str | None], None]
"""Prints some text in a style: None for the answer, ``"dim"`` for what happens on the way."""
_SHOWN = 300  # characters of arguments and results


def agent_of(memory: Memory, model: Any) -> Agent:
    """The agent with the tools of config.json, where one lists ``"tools"``, else with ``default_tools``."""
    from lc_memory.agent import agent

    return agent(memory, model, configured_tools(memory))


def configured_tools(memory: Memory) -> list[BaseTool]:
    """The tools of the file ``LC_MEMORY_CONFIG`` names, or of a config.json in the working directory, if it
    lists any; else the default ones. Tools may ask for ``memory``.

    To list a tool is to have it run. So a config.json in a folder further up counts for nothing here, and one
    that belongs to another user has to be named."""
    from lc_memory.agent import default_tools, tools_from_config

    path = _config_with_tools()
    return default_tools(memory) if path is None else tools_from_config(path, memory=memory)


def show(agent: Agent, question: str, config: Any, say: Say) -> str:
    """Ask, and print words and tool calls as they come; the answer. Closed early, nothing is saved."""
    answer, at_line_start = "", True
    with closing(cast(Any, _parts(agent, question, config))) as parts:
        for part in parts:
            if words := part.get("words"):
                say(words, None)
                at_line_start = words.endswith("\n")
            for line in _lines(part):
                say(("" if at_line_start else "\n") + line + "\n", "dim")
                at_line_start = True
            if "answer" in part:
                answer = part["answer"]
                if answer and part.get("unsaid"):
                    say(answer, None)
    return answer


def _parts(agent: Agent, question: str, config: Any) -> Iterator[dict[str, Any]]:
    """The agent's stream; an answer that was not streamed (it ended without one) is marked ``unsaid``."""
    said = ""
    with closing(cast(Any, agent.stream({agent.memory.question_key: question}, config))) as stream:
        for part in stream:
            said += part.get("words") or ""
            ends = "answer" in part and not said.endswith(part["answer"])
            yield {**part, "unsaid": True} if ends else dict(part)


def _lines(part: dict[str, Any]) -> Iterator[str]:
    for call in part.get("tool_calls") or ():
        yield f"→ {call['tool']} {_short(call['args'])}"
    for record in part.get("tool_records") or ():
        mark, outcome = ("✗", record["error"]) if record["error"] else ("✓", record["result"])
        yield f"{mark} {record['tool']} {record['seconds']:.2f} s: {_short(outcome)}"


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _config_with_tools() -> Path | None:
    from lc_memory.models import Settings

    named = Settings.read().get("LC_MEMORY_CONFIG")
    path = Path(named).expanduser() if named else Path.cwd() / "config.json"
    if not named and not path.is_file():
        return None
    try:
        config = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError) as error:
        raise MemoryInputError(f"{path} cannot be read as JSON: {error}") from error
    entries = config.get("tools") if isinstance(config, dict) else None
    if named:
        return path if entries is not None else None  # it may list providers alone
    if not isinstance(entries, list) or not any(isinstance(e, dict) and "module" in e for e in entries):
        return None  # many programs call a file that
    if hasattr(os, "getuid") and path.stat().st_uid not in (os.getuid(), 0):
        raise MemoryInputError(
            f"{path} belongs to another user, and its tools would run as yours. If you want them, name the "
            "file: LC_MEMORY_CONFIG=…"
        )
    return path
