"""Tools from config.json: each entry names a module and a class in it.

::

    {"tools": [{"module": "lc_memory.agent.weather", "class": "WeatherTool"},
               {"module": "my_tools", "class": "StockTool", "args": {"market": "SH"}}]}

A class is a LangChain ``BaseTool``, or one with ``name``, ``description``, ``parameters`` (a JSON schema) and
``execute(**arguments)``; a tool made with LangChain's ``@tool`` may be named as well. ``args`` go to the
constructor, and so do the dependencies the caller gives (``memory=…``, ``mm=…``) that it has a parameter
for. Only the modules of the file are imported; the folder of the file is where they are looked for last.
Nothing is built that is not a tool, and nothing is registered unless all entries are good.
"""

from __future__ import annotations

import importlib
import inspect
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from json.decoder import JSONDecoder
from pathlib import Path
from typing import Any

from langchain_core.tools import BaseTool, StructuredTool, tool

from lc_memory.errors import MemoryInputError

_KEYS = {"module", "class", "args"}


def tools_from_config(path: str | os.PathLike[str], **dependencies: Any) -> list[BaseTool]:
    """The tools that a config.json lists, in its order.

    ``dependencies``: what tools may ask for by the name of a constructor's parameter. MemoryInputError for a
    file that cannot be read and for an entry that is no tool, naming its line and what is wrong with it.
    """
    file = Path(path).expanduser().absolute()
    try:
        text = file.read_text(encoding="utf-8-sig")
        config = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise MemoryInputError(f"{file} cannot be read as JSON: {error}") from error
    entries = config.get("tools") if isinstance(config, dict) else None
    if not isinstance(entries, list):
        raise MemoryInputError(f'{file}: expected {{"tools": [{{"module": …, "class": …}}, …]}}')
    lines = _lines(text)
    tools: dict[str, BaseTool] = {}
    for i, entry in enumerate(entries):
        where = f"{file}, line {lines[i]}: tools[{i}]"
        built = _tool(entry, where, file.parent, dependencies)
        if built.name in tools:
            raise MemoryInputError(f"{where}: there is a tool called {built.name!r} already")
        tools[built.name] = built
    return list(tools.values())


def as_tools(made: Sequence[Any]) -> list[Any]:
    """Tools that a program hands over: LangChain's, functions with a docstring, or objects of one's own with
    ``name``, ``description``, ``parameters`` and ``execute``. A service's built-in tools (dicts) stay."""
    tools: list[Any] = []
    for i, one in enumerate(made):
        if isinstance(one, (BaseTool, dict)):
            tools.append(one)
        elif callable(one) and not hasattr(one, "execute"):
            try:
                tools.append(tool(one))
            except Exception as error:
                raise MemoryInputError(f"tools[{i}] cannot be a tool: {error}") from error
        else:
            tools.append(as_tool(one, f"tools[{i}]"))
    names = [one.name for one in tools if isinstance(one, BaseTool)]
    if twice := {name for name in names if names.count(name) > 1}:
        raise MemoryInputError(f"there are two tools called {min(twice)!r}")
    return tools


def as_tool(made: Any, where: str = "the tool") -> BaseTool:
    """A tool object as LangChain's: itself, or one around ``name``, ``description``, ``parameters`` and
    ``execute``. MemoryInputError, which begins with ``where``, where it is neither."""
    if isinstance(made, BaseTool):
        return made
    if isinstance(made, type) or not callable(getattr(made, "execute", None)):
        raise MemoryInputError(f"{where} is no tool: {made!r:.80}")
    name, description = getattr(made, "name", None), getattr(made, "description", None)
    parameters = getattr(made, "parameters", None)
    if not isinstance(name, str) or not name or not isinstance(description, str):
        raise MemoryInputError(f"{where} needs a name and a description, both text")
    if not isinstance(parameters, Mapping) or parameters.get("type") != "object":
        raise MemoryInputError(f'{where}: parameters must be a JSON schema with "type": "object"')
    schema = {"title": name, "description": description, "properties": {}, **parameters}
    # An async method under that name is awaited; a plain one runs in a thread.
    execute = made.execute
    runs = {"coroutine": execute} if inspect.iscoroutinefunction(execute) else {"func": execute}
    return StructuredTool(name=name, description=description, args_schema=schema, **runs)


def _tool(entry: Any, where: str, folder: Path, dependencies: Mapping[str, Any]) -> BaseTool:
    module, name, args = _read(entry, where)
    found = _found(module, name, where, folder)
    if isinstance(found, BaseTool):
        if args:
            raise MemoryInputError(f"{where}: {name} is a finished tool and takes no args")
        return found
    if not isinstance(found, type) or not (issubclass(found, BaseTool) or _looks_like_a_tool(found)):
        raise MemoryInputError(
            f"{where}: {module}.{name} is no tool: expected a LangChain BaseTool, or a class with name, "
            "description, parameters and execute(**arguments)"
        )
    try:
        made = found(**{**_wanted(found, dependencies), **args})
    except Exception as error:
        raise MemoryInputError(f"{where}: {name} cannot be built: {type(error).__name__}: {error}") from error
    return as_tool(made, f"{where}: {name}")


def _read(entry: Any, where: str) -> tuple[str, str, dict[str, Any]]:
    if not isinstance(entry, dict):
        raise MemoryInputError(f'{where} must be an object with "module" and "class"')
    if unknown := entry.keys() - _KEYS:
        raise MemoryInputError(f"{where}: unknown key {min(unknown)!r}; it takes module, class and args")
    module, name, args = entry.get("module"), entry.get("class"), entry.get("args", {})
    if not isinstance(module, str) or not all(part.isidentifier() for part in module.split(".")):
        raise MemoryInputError(f'{where}: "module" must be a dotted name, as my_tools.stock, got {module!r}')
    if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
        raise MemoryInputError(f'{where}: "class" must be the name of a public class, got {name!r}')
    if not isinstance(args, dict):
        raise MemoryInputError(f'{where}: "args" must be an object, got {type(args).__name__}')
    return module, name, args


def _found(module: str, name: str, where: str, folder: Path) -> Any:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # last: no file of the user's can stand in for an installed package
    try:
        imported = importlib.import_module(module)
    except Exception as error:
        raise MemoryInputError(
            f"{where}: the module {module} cannot be imported: {type(error).__name__}: {error}"
        ) from error
    try:
        return getattr(imported, name)
    except AttributeError:
        raise MemoryInputError(f"{where}: the module {module} has no {name!r}") from None


def _looks_like_a_tool(found: type) -> bool:
    return callable(getattr(found, "execute", None)) and all(
        hasattr(found, name) for name in ("name", "description", "parameters")
    )


def _wanted(found: type, dependencies: Mapping[str, Any]) -> dict[str, Any]:
    """The dependencies that the constructor has a parameter for; all of them for one with ``**kwargs``."""
    if issubclass(found, BaseTool):
        return {name: value for name, value in dependencies.items() if name in found.model_fields}
    parameters = inspect.signature(found).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return dict(dependencies)
    return {name: value for name, value in dependencies.items() if name in parameters}


def _lines(text: str) -> list[int]:
    """The line of each entry of the top-level ``"tools"``, in a text that is known to be good JSON. Where
    the key stands twice, the last one counts, as for Python's reader."""
    decoder = JSONDecoder()
    lines: list[int] = []
    at = _space(text, 0)  # the "{"
    while text[at] != "}" and text[at := _space(text, at + 1)] != "}":
        key, at = decoder.raw_decode(text, at)
        value = _space(text, _space(text, at) + 1)  # behind the ":"
        if key == "tools":
            lines = list(_lines_of_array(text, value)) if text[value] == "[" else []
        _, at = decoder.raw_decode(text, value)
        at = _space(text, at)  # a "," or the "}"
    return lines


def _lines_of_array(text: str, at: int) -> Iterator[int]:
    decoder = JSONDecoder()
    while text[at] != "]" and text[at := _space(text, at + 1)] != "]":
        yield text.count("\n", 0, at) + 1
        _, at = decoder.raw_decode(text, at)
        at = _space(text, at)  # a "," or the "]"


def _space(text: str, at: int) -> int:
    while text[at] in " \t\r\n":
        at += 1
    return at


__all__ = ["as_tool", "as_tools", "tools_from_config"]
