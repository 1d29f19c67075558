"""Tools from config.json: what is registered, and what is refused before anything of it runs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from lc_memory import Memory, MemoryInputError
from lc_memory.agent import CalculatorTool, tool_loop, tools_from_config
from lc_memory.agent.registry import as_tools
from tests.helpers.models import Scripted

MODULE = "lcm_users_own_tools"
SOURCE = '''
from langchain_core.tools import tool

made = []

class StockTool:
    name = "stock"
    description = "a price"
    parameters = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}

    def __init__(self, memory=None, market="SZ"):
        self.memory, self.market = memory, market
        made.append(self)

    def execute(self, code):
        return f"{self.market}:{code}"

class SwallowsAll(StockTool):
    name = "swallows"

    def __init__(self, **kwargs):
        self.given = kwargs
        made.append(self)

    def execute(self, code):
        return sorted(self.given)

class AsyncTool(StockTool):
    name = "asynchronous"

    def __init__(self):
        pass

    async def execute(self, code):
        return code * 2

class NoSchema(StockTool):
    parameters = {"properties": {}}

class Breaks(StockTool):
    def __init__(self):
        raise OSError("no such market")

@tool
def shout(word: str) -> str:
    """Says it loudly."""
    return word.upper()

class NotATool:
    def __init__(self):
        raise AssertionError("was built")

def call_me():
    raise AssertionError("was called")
'''


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / f"{MODULE}.py").write_text(SOURCE, encoding="utf-8")
    yield tmp_path
    sys.modules.pop(MODULE, None)
    sys.path[:] = [p for p in sys.path if p != str(tmp_path)]


def config(folder: Path, tools: Any, text: str | None = None) -> Path:
    path = folder / "config.json"
    path.write_text(text if text is not None else json.dumps({"tools": tools}), encoding="utf-8")
    return path


def test_our_tools_and_the_users_own_are_built_in_order_with_what_they_ask_for(folder: Path) -> None:
    path = config(
        folder,
        [
            {"module": "lc_memory.agent.weather", "class": "WeatherTool", "args": {"timeout": 3}},
            {"module": "lc_memory.agent.calculator", "class": "CalculatorTool"},
            {"module": "lc_memory.agent.memory_tools", "class": "RecallMemory"},
            {"module": MODULE, "class": "StockTool", "args": {"market": "SH"}},
            {"module": MODULE, "class": "SwallowsAll"},
            {"module": MODULE, "class": "shout"},
        ],
    )
    with Memory.open(":memory:", recall=()) as memory:
        tools = {tool.name: tool for tool in tools_from_config(path, memory=memory, mm="a manager")}
        assert list(tools) == ["get_weather", "calculator", "recall_memory", "stock", "swallows", "shout"]
        assert tools["get_weather"].timeout == 3  # type: ignore[attr-defined]
        assert sys.modules[MODULE].made[0].memory is memory
        assert tools["stock"].invoke({"code": "600519"}) == "SH:600519"
        assert tools["swallows"].invoke({"code": "1"}) == ["memory", "mm"]
        assert tools["shout"].invoke({"word": "ja"}) == "JA"
        assert tools["recall_memory"].invoke({"query": "x"}) == "Nothing is remembered about that."


async def test_an_async_execute_is_awaited(folder: Path) -> None:
    (tool,) = tools_from_config(config(folder, [{"module": MODULE, "class": "AsyncTool"}]))
    assert await tool.ainvoke({"code": "ab"}) == "abab"


class StockTool:
    name = "stock"
    description = "a price"
    parameters: ClassVar[dict[str, Any]] = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}

    def execute(self, code: str) -> str:
        return f"SH:{code}"


def shout(word: str) -> str:
    """Says it loudly."""
    return word.upper()


def test_a_program_may_hand_over_tools_functions_and_objects_of_its_own() -> None:
    builtin = {"type": "web_search"}
    tools = as_tools([CalculatorTool(), shout, StockTool(), builtin])
    assert [getattr(tool, "name", tool) for tool in tools] == ["calculator", "shout", "stock", builtin]
    assert tools[1].invoke({"word": "ja"}) == "JA"
    assert tools[2].invoke({"code": "1"}) == "SH:1"


@pytest.mark.parametrize("bad", [[StockTool], [7], ["calculator"], [None], [lambda x: x], [shout, shout]])
def test_what_is_no_tool_is_refused_when_the_loop_is_built(bad: list[Any]) -> None:
    with pytest.raises(MemoryInputError, match="tool"):
        tool_loop(Scripted(answers=["a"]), bad)


def one(module: Any, name: Any, **more: Any) -> list[Any]:
    return [{"module": module, "class": name, **more}]


BAD: dict[str, tuple[Any, str]] = {
    "a text": (["weather"], "must be an object"),
    "a number": ([7], "must be an object"),
    "null": ([None], "must be an object"),
    "no module": ([{"class": "X"}], '"module" must be a dotted name'),
    "no class": ([{"module": MODULE}], '"class" must be'),
    "a path for a module": (one("../evil", "X"), '"module" must be a dotted name'),
    "a relative module": (one(".tools", "X"), '"module" must be a dotted name'),
    "a URL": (one("https://x/y.py", "X"), '"module" must be a dotted name'),
    "code for a module": (one("os;import sys", "X"), '"module" must be a dotted name'),
    "an empty module": (one("", "X"), '"module" must be a dotted name'),
    "a module that is not there": (one("no.such_module", "X"), "cannot be imported: ModuleNotFoundError"),
    "a class that is not there": (one(MODULE, "Missing"), "has no 'Missing'"),
    "a dotted class": (one(MODULE, "a.b"), '"class" must be'),
    "a private class": (one(MODULE, "__builtins__"), '"class" must be'),
    "a function": (one("os", "system"), "os.system is no tool"),
    "a dangerous class": (one("subprocess", "Popen", args={"args": "id"}), "subprocess.Popen is no tool"),
    "another class": (one(MODULE, "NotATool"), "is no tool"),
    "any function": (one(MODULE, "call_me"), "is no tool"),
    "a class without a schema": (one(MODULE, "NoSchema"), 'a JSON schema with "type": "object"'),
    "a class that breaks": (one(MODULE, "Breaks"), "cannot be built: OSError: no such market"),
    "unknown args": (one(MODULE, "StockTool", args={"colour": 1}), "cannot be built: TypeError"),
    "args that are none": (one(MODULE, "StockTool", args=[1]), '"args" must be an object'),
    "args for a finished tool": (one(MODULE, "shout", args={"a": 1}), "takes no args"),
    "a mistyped key": (one(MODULE, "StockTool", arguments={}), "unknown key 'arguments'"),
    "a key from an object's inside": (one(MODULE, "StockTool", __class__="x"), "unknown key '__class__'"),
    "the same tool twice": (one(MODULE, "StockTool") * 2, "called 'stock' already"),
}


@pytest.mark.parametrize("entry", BAD, ids=str)
def test_a_bad_entry_is_named_and_nothing_is_registered(folder: Path, entry: str) -> None:
    tools, says = BAD[entry]
    good = [{"module": "lc_memory.agent.calculator", "class": "CalculatorTool"}]
    path = config(folder, [*good, *tools])
    with pytest.raises(MemoryInputError, match=r"config\.json, line 1: tools\[[12]\]") as error:
        tools_from_config(path)
    assert says in str(error.value)


def test_only_the_modules_of_the_file_are_imported(folder: Path) -> None:
    tools_from_config(config(folder, one("lc_memory.agent.calculator", "CalculatorTool")))
    assert MODULE not in sys.modules


def test_no_file_beside_the_config_stands_in_for_an_installed_package(folder: Path) -> None:
    (folder / "colorsys.py").write_text("raise AssertionError('was imported')")
    sys.modules.pop("colorsys", None)
    with pytest.raises(MemoryInputError, match="is no tool"):
        tools_from_config(config(folder, one("colorsys", "rgb_to_hls")))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('{"a": {"tools": [1]},\n "tools": [\n\n  {"module": "x.y",\n "class": "Z"}]}', 4),
        ('{"tools": [],\n"tools": [\n7]}', 3),
        ('{\n"other": [1, {"b": []}],\n"tools":[7],"c":1}', 3),
    ],
)
def test_the_line_is_that_of_the_entry(folder: Path, text: str, line: int) -> None:
    with pytest.raises(MemoryInputError, match=f"line {line}: "):
        tools_from_config(config(folder, None, text))


@pytest.mark.parametrize(
    "text", ["", "[", "[]", "{}", '{"tools": {}}', '{"tools": "x"}', '{"tools": [1,]}', "[" * 100_000]
)
def test_a_file_that_lists_no_tools_is_refused(folder: Path, text: str) -> None:
    with pytest.raises(MemoryInputError, match=r"config\.json"):
        tools_from_config(config(folder, None, text))


def test_an_empty_list_is_no_tools(folder: Path) -> None:
    assert tools_from_config(config(folder, [])) == []
    with pytest.raises(MemoryInputError, match="cannot be read"):
        tools_from_config(folder / "missing.json")
