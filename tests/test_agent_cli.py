"""``lc-memory chat --agent``: the whole assembly from the command line, tool calls shown as they happen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lc_memory import Memory, MemoryInputError, chat_model
from lc_memory.agent import CalculatorTool, agent
from lc_memory.cli.agent import configured_tools, show
from tests.data import ROOT
from tests.helpers import console, programs
from tests.servers.chat import Answer, ChatServer, call
from tests.servers.weather import WeatherServer


def chat(folder: Path, said: str, server: ChatServer | None = None, *, restart: bool = False) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY") and not k.startswith("LC_MEMORY_P")}
    env |= {"PYTHONPATH": str(ROOT), "LC_MEMORY_HOME": str(folder / "home")}
    env |= {"BASE_URL": server.url, "MODEL": "m", "API_KEY": "k"} if server else {"LC_MEMORY_PROVIDER": "offline"}
    command = ["chat", "--agent", "--user", "u1"]
    if restart:
        return programs.run("-m", "lc_memory", *command, typed=said, cwd=folder, env=env)
    return console.run(env, *command, typed=said, cwd=folder)


def test_the_whole_assembly_over_a_pipe_and_a_restart(tmp_path: Path) -> None:
    with ChatServer("openai") as server, WeatherServer() as weather:
        place = {"forecast_url": weather.url, "geocoding_url": weather.url}
        tools: list[dict[str, Any]] = [
            {"module": "lc_memory.agent.calculator", "class": "CalculatorTool"},
            {"module": "lc_memory.agent.weather", "class": "WeatherTool", "args": place},
            {"module": "lc_memory.agent.memory_tools", "class": "SavePreference"},
            {"module": "lc_memory.agent.memory_tools", "class": "RecallMemory"},
        ]
        (tmp_path / "config.json").write_text(json.dumps({"tools": tools}), encoding="utf-8")
        server.script(
            Answer("好的。", tool_calls=[call("save_preference", preference="我喜欢喝茶")]), "记住了",
            Answer(tool_calls=[call("calculator", expr="12×7"), call("get_weather", place="杭州"), call("calculator", expr="x")]), "84，晴",
        )  # fmt: skip
        done = chat(tmp_path, "我喜欢喝茶\n12×7？杭州天气？\n", server, restart=True)
        assert done.returncode == 0, done.stderr
        lines = done.stdout.splitlines()
        assert lines[:4] == ["好的。", '→ save_preference {"preference": "我喜欢喝茶"}', lines[2], "记住了"]
        assert lines[2].startswith("✓ save_preference")
        assert any(line.startswith("✓ calculator") and line.endswith(": 84") for line in lines)
        assert any(line.startswith("✓ get_weather") and "晴" in line for line in lines)
        assert any(line.startswith("✗ calculator") and "not arithmetic" in line for line in lines)
        assert lines[-1] == "84，晴"

        server.script(Answer(tool_calls=[call("recall_memory", query="喝什么")]), "茶")
        done = chat(tmp_path, "我爱喝什么？\n/graph\n", server, restart=True)
        assert "我喜欢喝茶" in done.stdout
        assert "load_mem" in done.stdout
        assert "save_mem" in done.stdout
        assert server.refusals == []


def test_a_bad_config_and_a_model_without_tools_are_one_line(tmp_path: Path) -> None:
    done = chat(tmp_path, "hi\n")
    assert done.returncode == 1
    assert "cannot call tools" in done.stderr
    (tmp_path / "config.json").write_text('{"tools": [\n{"module": "os", "class": "system"}]}')
    done = chat(tmp_path, "hi\n")
    assert done.returncode == 1
    assert "line 2: tools[0]: os.system is no tool" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_only_a_config_of_ours_and_of_the_users_lists_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    monkeypatch.delenv("LC_MEMORY_CONFIG", raising=False)
    calculator = {"tools": [{"module": "lc_memory.agent.calculator", "class": "CalculatorTool"}]}
    (tmp_path / "config.json").write_text(json.dumps(calculator))  # further up
    mine = inner / "config.json"
    with Memory.open(":memory:", recall=()) as memory:
        usual = [tool.name for tool in configured_tools(memory)]
        assert len(usual) == 5
        for other in ('{"tools": {"eslint": true}}', '{"tools": ["hammer"]}', "[]", '{"providers": {}}'):
            mine.write_text(other)
            assert [tool.name for tool in configured_tools(memory)] == usual
        mine.write_text(json.dumps(calculator))
        assert [tool.name for tool in configured_tools(memory)] == ["calculator"]
        monkeypatch.setattr(os, "getuid", lambda: 4711)
        monkeypatch.setattr(Path, "stat", lambda self, **_: os.stat_result((0o100644, 0, 0, 1, 42, 0, 0, 0, 0, 0)))
        with pytest.raises(MemoryInputError, match="another user"):
            configured_tools(memory)
        monkeypatch.setenv("LC_MEMORY_CONFIG", str(mine))
        assert [tool.name for tool in configured_tools(memory)] == ["calculator"]


def test_an_answer_that_was_not_streamed_is_shown_too() -> None:
    shown: list[str] = []
    with ChatServer("openai") as server, Memory.open(":memory:", recall=()) as memory:
        model = chat_model(base_url=server.url, api_key="k", model="m", profile="openai", max_retries=0)
        server.script(*[Answer(tool_calls=[call("calculator", expr="1+1")])] * 2)
        bot = agent(memory, model, [CalculatorTool()], max_rounds=1)
        answer = show(bot, "没完没了", {}, lambda text, style: shown.append(text))
    assert "还没有得到答案" in answer
    assert shown[-1] == answer


@pytest.mark.parametrize("extra", ["langchain", "langgraph"])
def test_without_the_extra_the_message_says_what_to_install(extra: str) -> None:
    code = f"import sys; sys.modules[{extra!r}] = None\nimport lc_memory.agent as a; a.tool_loop; a.cot; a.tools_from_config; a.CalculatorTool\ntry:\n    a.agent\nexcept ImportError as e: print(e)"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "pip install 'lc-memory[agent]'" in done.stdout


def test_the_core_imports_nothing_of_the_agent() -> None:
    code = "import sys, lc_memory; lc_memory.Memory, lc_memory.with_memory, lc_memory.chat_model; print([m for m in sys.modules if m.startswith(('langgraph', 'lc_memory.agent', 'lc_memory.integrations'))])"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
