"""The command line as people use it: from a pipe, and at a real (pseudo-)terminal."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.helpers import programs
from tests.helpers.console import CTRL_C, CTRL_D, UP, Terminal, environment, offline, run, run_really, served
from tests.servers.chat import Answer, ChatServer, Fault


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer("openai") as service:
        yield service


# ---------------------------------------------------------------- the demo


def test_the_demo_gives_back_hobby_and_name_and_keeps_nothing(tmp_path: Path) -> None:
    done = run(offline(tmp_path), "demo")
    assert (done.returncode, done.stderr) == (0, "")
    first, second, third = re.findall(r"^A: (.*)$", done.stdout, re.M)
    assert "篮球" not in first
    assert "篮球" in second
    assert "小明" in third
    order = [done.stdout.index(name) for name in ("| load_mem |", "| ChatPromptTemplate |", "| save_mem |")]
    assert order == sorted(order)
    assert re.findall(r"^ +(human|ai)  ", done.stdout, re.M) == ["human", "ai"] * 3
    assert list(tmp_path.iterdir()) == []


def test_without_arguments_the_module_is_the_demo_and_says_once_that_no_model_is_configured(
    tmp_path: Path,
) -> None:
    done = programs.run("-m", "lc_memory", env=environment(tmp_path), cwd=tmp_path)
    assert done.returncode == 0
    assert "小明" in done.stdout
    (line,) = done.stderr.splitlines()
    assert "offline" in line
    assert "DEEPSEEK_API_KEY" in line


def test_a_demo_in_which_nothing_comes_back_says_so_and_fails(tmp_path: Path, server: ChatServer) -> None:
    done = run(served(tmp_path, server), "demo")
    assert done.returncode == 1
    assert "not in the answers: 篮球, 小明" in done.stderr


def test_a_demo_whose_model_fails_says_why_in_one_line(tmp_path: Path, server: ChatServer) -> None:
    server.script(Fault(400))
    done = run(served(tmp_path, server), "demo")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "scripted 400" in done.stderr


def test_without_grandalf_the_graph_is_mermaid_and_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import langchain_core.runnables.graph_ascii as drawing  # looks for it when it is imported

    monkeypatch.delitem(sys.modules, drawing.__name__)
    for name in [name for name in sys.modules if name.split(".")[0] == "grandalf"]:
        monkeypatch.setitem(sys.modules, name, None)
    done = run(offline(tmp_path), "chat", typed="/graph\n")
    assert done.returncode == 0
    assert "load_mem --> " in done.stdout
    assert "pip install 'lc-memory[graph]'" in done.stderr


# ---------------------------------------------------------------- chat, from a pipe


def test_a_pipe_gives_one_answer_a_line_and_the_session_lasts(tmp_path: Path) -> None:
    env = offline(tmp_path)
    first = run(env, "chat", typed="我叫小明，喜欢打篮球\n\n  \n记住: 我对花生过敏\nremember: my budget is 400\n/history")
    assert (first.returncode, first.stderr) == (0, "")
    assert "you>" not in first.stdout  # prompts are for people
    assert "已记住 · remembered: 我对花生过敏\n" in first.stdout
    assert "已记住 · remembered: my budget is 400\n" in first.stdout
    assert len(re.findall(r"^ +human  ", first.stdout, re.M)) == 3

    again = run(env, "chat", typed="我刚说的爱好是什么？\n")
    assert "篮球" in again.stdout
    elsewhere = run(env, "chat", "--session", "另一个", "--user", "小红", typed="我的名字叫什么？\n/history\n")
    assert "小明" not in elsewhere.stdout

    from lc_memory.store import SessionKey, open_store

    store = open_store(tmp_path / ".lc_memory")
    try:
        facts = store.ledger().current(SessionKey("default", None).owner)
        assert {fact.text for fact in facts} == {"我对花生过敏", "my budget is 400"}
    finally:
        store.close()


def test_every_command_answers_and_an_unknown_one_points_to_help(tmp_path: Path, server: ChatServer) -> None:
    server.script("记下了", "看起来是一个文件")
    typed = "/history\n我叫小明\n/explain 我叫什么？\n/explain\n/graph\n/help\n/nope now\n/etc/hosts 是什么？\n/exit\n不会问到\n"
    done = run(served(tmp_path, server), "chat", typed=typed)
    assert done.returncode == 1  # one of the lines could not be done
    assert done.stderr == "there is no /nope; /help lists the commands\n"
    assert done.stdout.startswith("nothing yet\n记下了\n")
    assert re.search(r"window.*我叫小明", done.stdout)
    assert "/explain needs a question" in done.stdout
    assert done.stdout.index("| load_mem |") < done.stdout.index("| save_mem |")
    assert "记住: …" in done.stdout
    assert [body["messages"][-1]["content"] for body in server.requests] == ["我叫小明", "/etc/hosts 是什么？"]


def test_chat_with_notes_keeps_what_the_model_proposes(server: ChatServer, tmp_path: Path) -> None:
    said = "我在成都开了家面馆"
    note = {"kind": "生意", "subject": "", "content": said, "quote": said}
    server.script("记下了", json.dumps({"notes": [note]}))
    done = run(served(tmp_path, server), "chat", "--user", "u1", "--notes", typed=f"{said}\n")
    assert done.returncode == 0, done.stderr
    assert server.refusals == []
    assert said in run(served(tmp_path, server), "facts", "list", "--user", "u1").stdout


def test_the_offline_model_makes_no_notes_and_says_so(tmp_path: Path) -> None:
    done = run(offline(tmp_path), "chat", "--notes", typed="你好\n")
    assert done.returncode == 2
    assert "cannot propose facts" in done.stderr


def test_a_failing_model_is_one_line_and_the_next_question_is_answered(tmp_path: Path, server: ChatServer) -> None:
    server.script(Fault(400), Fault(cut=3), "第三个答案")
    done = run(served(tmp_path, server), "chat", typed="一\n二\n三\n/history\n")
    assert done.returncode == 1
    first, second = done.stderr.splitlines()
    assert "scripted 400" in first
    assert "Error" in second
    assert "第三个答案" in done.stdout
    assert re.findall(r"^ +human  (.*)$", done.stdout, re.M) == ["三"]


def test_words_that_look_like_markup_are_printed_as_they_are_and_cannot_steer_the_terminal(
    tmp_path: Path, server: ChatServer
) -> None:
    server.script("[bold]粗[/bold] :smile: [/x] \x1b[2J\x1b]0;title\x07\\")
    done = run(served(tmp_path, server), "chat", "--session", "[red]", typed="[/]\n/history\n")
    assert done.returncode == 0
    assert done.stdout.count("[bold]粗[/bold] :smile: [/x] [2J]0;title\\\n") == 2
    assert "\x1b" not in done.stdout


def test_a_reader_that_leaves_early_gets_no_traceback(tmp_path: Path) -> None:
    process = programs.start("-m", "lc_memory", "demo", stderr=subprocess.PIPE, env=offline(tmp_path), cwd=tmp_path)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    process.wait(programs.PATIENCE)


# ---------------------------------------------------------------- other encodings


@pytest.mark.parametrize("locale", [{"LANG": "C"}, {"LC_ALL": "C"}, {"LC_ALL": "POSIX"}], ids=str)
def test_in_the_c_locale_chinese_emoji_and_broken_bytes_pass(tmp_path: Path, locale: dict[str, str]) -> None:
    typed = "我叫小明😀\n".encode() + b"\xff\xfe\xe6\x88\n" + "我叫什么？\n/history\n".encode()
    done = run_really(offline(tmp_path, **locale), "chat", typed=typed)
    assert (done.returncode, done.stderr) == (0, "")
    assert "你说过：「我叫小明😀」" in done.stdout


def test_a_console_of_gbk_gets_what_it_can_show(tmp_path: Path, server: ChatServer) -> None:
    server.script("你好，小明😀！")
    env = served(tmp_path, server, PYTHONIOENCODING="gbk")
    done = run_really(env, "chat", typed="我叫小明\n/history\n/explain 我叫什么？\n", encoding="gbk")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("你好，小明?！\n")
    assert server.requests[0]["messages"][-1]["content"] == "我叫小明"


def test_a_console_of_ascii_shows_question_marks(tmp_path: Path) -> None:
    done = run_really(offline(tmp_path, PYTHONIOENCODING="ascii"), "demo", encoding="ascii")
    assert done.returncode == 0
    assert "| load_mem |" in done.stdout


# ---------------------------------------------------------------- help and exit codes


@pytest.mark.parametrize("args", [(), ("chat",), ("demo",)])
def test_help_fits_eighty_columns_and_shows_no_machinery(tmp_path: Path, args: tuple[str, ...]) -> None:
    done = run(environment(tmp_path, COLUMNS="80"), *args, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage: ")
    assert max(map(len, done.stdout.splitlines())) <= 80
    wanted = {(): ["demo ", "chat "], ("demo",): ["--provider"], ("chat",): [
        "--provider", "deepseek", "--memory", "LC_MEMORY_HOME", "~/.lc_memory", "--user", "--session", "[default: default]",
    ]}  # fmt: skip
    for words in wanted[args]:
        assert words in done.stdout


def test_exit_codes_tell_a_wrong_command_line_from_a_failure(tmp_path: Path) -> None:
    assert run(offline(tmp_path), "nope").returncode == 2
    assert run(offline(tmp_path), "chat", "--nope").returncode == 2
    for args, words in [
        (["chat", "--provider", "nope"], "no provider 'nope'"),
        (["demo", "--provider", "deepseek"], "DEEPSEEK_API_KEY"),
    ]:
        done = run(environment(tmp_path), *args)
        assert done.returncode == 1
        assert len(done.stderr.splitlines()) == 1
        assert words in done.stderr


def test_a_memory_that_cannot_be_opened_is_told_before_the_first_question(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = run(offline(tmp_path), "chat", "--memory", str(tmp_path / "file" / "in"), typed="你好\n")
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1


# ---------------------------------------------------------------- at a terminal

terminal_only = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")

@terminal_only
def test_a_session_at_the_terminal(tmp_path: Path, server: ChatServer) -> None:
    server.script("你好，小明😀", "好的", "又是小明")
    with Terminal(served(tmp_path, server), "chat") as terminal:
        terminal.wait_for("session default · model m\n/help lists the commands, Ctrl-D ends\n\nyou> ")
        terminal.type("我叫小明\n")
        terminal.wait_for("你好，小明😀\n\nyou> ")
        terminal.type("记住: 我对花生过敏\n")
        terminal.wait_for("好的\n已记住 · remembered: 我对花生过敏\n\nyou> ")
        terminal.type("/nope\n")
        terminal.wait_for("there is no /nope; /help lists the commands\n\nyou> ")
        terminal.type("/help\n")
        terminal.wait_for("Ctrl-C       stops an answer; that turn is not saved\n\nyou> ")
        terminal.type("/graph\n")
        terminal.wait_for("| save_mem |")
        terminal.wait_for("you> ")
        terminal.type("/history\n")
        assert "human  我叫小明\n     ai  你好，小明😀\n" in terminal.wait_for("ai  好的\n\nyou> ")
        terminal.type("/explain 我叫什么？\n")
        terminal.wait_for(" of 8000 tokens")
        terminal.wait_for("you> ")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
        assert terminal.screen.endswith("you> \n再见 · bye\n")


@terminal_only
def test_ctrl_c_stops_an_answer_which_is_not_saved_and_the_session_goes_on(
    tmp_path: Path, server: ChatServer
) -> None:
    server.script(Fault(hang=True), "还在")
    with Terminal(served(tmp_path, server), "chat") as terminal:
        terminal.wait_for("you> ")
        terminal.type("请等一下\n")
        assert server.hanging.wait(programs.PATIENCE)
        terminal.type(CTRL_C)
        terminal.wait_for("stopped; this turn is not saved\n\nyou> ")
        server.release()
        terminal.type("在吗\n")
        terminal.wait_for("还在\n\nyou> ")
        terminal.type("/history\n")
        history = terminal.wait_for("ai  还在\n\nyou> ")
        assert "请等一下" not in history
        terminal.type("/exit\n")
        assert terminal.ended() == 0
    # The model was not told of the turn that was stopped either.
    assert [m["content"] for m in server.requests[-1]["messages"] if m["role"] == "user"] == ["在吗"]


@terminal_only
def test_ctrl_c_at_the_prompt_drops_the_line_only(tmp_path: Path, server: ChatServer) -> None:
    with Terminal(served(tmp_path, server), "chat") as terminal:
        terminal.wait_for("you> ")
        terminal.type("半句话")
        terminal.wait_for("半句话")
        terminal.type(CTRL_C)
        terminal.wait_for("Ctrl-D or /exit ends\n\nyou> ")
        terminal.type("一句话\n")
        terminal.wait_for("ok\n\nyou> ")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    assert [body["messages"][-1]["content"] for body in server.requests] == ["一句话"]


@terminal_only
def test_a_failing_model_is_one_line_at_the_terminal_and_the_session_goes_on(
    tmp_path: Path, server: ChatServer
) -> None:
    server.script(Fault(400), Fault(cut=3, answer=Answer("说到一半就断了")), "好了")
    with Terminal(served(tmp_path, server), "chat") as terminal:
        terminal.wait_for("you> ")
        terminal.type("一\n")
        assert "Traceback" not in terminal.wait_for("scripted 400\n\nyou> ")
        terminal.type("二\n")
        terminal.wait_for("说到一半就断了\n")  # the error stands on a line of its own
        assert "Traceback" not in terminal.wait_for("you> ")
        terminal.type("三\n")
        terminal.wait_for("好了\n\nyou> ")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0


@terminal_only
def test_ctrl_c_in_the_demo_ends_it(tmp_path: Path, server: ChatServer) -> None:
    server.script(Fault(hang=True))
    with Terminal(served(tmp_path, server), "demo") as terminal:
        assert server.hanging.wait(programs.PATIENCE)
        terminal.type(CTRL_C)
        assert terminal.ended() == 130
        assert "Traceback" not in terminal.screen


@terminal_only
@pytest.mark.parametrize("columns", [20, 300])
def test_narrow_and_wide_terminals_show_everything(tmp_path: Path, server: ChatServer, columns: int) -> None:
    said = "很长的一段话，" * 30 + "😀"
    server.script(said)
    with Terminal(served(tmp_path, server), "chat", columns=columns) as terminal:
        terminal.wait_for("you> ")
        terminal.type("你好\n")
        terminal.wait_for(said)  # lines are left to the terminal: a copied answer has no breaks of ours
        for command, last in [("/history", said), ("/graph", "| save_mem |"), ("/explain 谁", "tokens"), ("/help", "Ctrl-C")]:
            terminal.wait_for("you> ")
            terminal.type(f"{command}\n")
            terminal.wait_for(last)
        terminal.wait_for("you> ")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    table = [line for line in terminal.screen.splitlines() if line.startswith(("┏", "┡", "└"))]
    assert len(table) == 3
    assert all(len(line) <= columns for line in table)


@terminal_only
@pytest.mark.parametrize("locale", [{"LANG": "C"}, {"LC_ALL": "C"}], ids=str)
def test_chinese_can_be_typed_in_the_c_locale(
    tmp_path: Path, server: ChatServer, locale: dict[str, str]
) -> None:
    with Terminal(served(tmp_path, server, **locale), "chat", real=True) as terminal:
        terminal.wait_for("you> ")
        terminal.type("我叫小明😀\n")
        terminal.wait_for("ok\n\nyou> ")
        terminal.type("/history\n")
        terminal.wait_for("human  我叫小明😀\n")
        terminal.wait_for("you> ")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    assert server.requests[0]["messages"][-1]["content"] == "我叫小明😀"


@terminal_only
def test_the_line_before_comes_back_with_the_arrow_key(tmp_path: Path, server: ChatServer) -> None:
    pytest.importorskip("readline")
    with Terminal(served(tmp_path, server), "chat") as terminal:
        terminal.wait_for("you> ")
        terminal.type("你好\n")
        terminal.wait_for("ok\n\nyou> ")
        terminal.type(f"{UP}\n")
        terminal.wait_for("ok\n\nyou> ")
        terminal.type(CTRL_D)
        assert terminal.ended() == 0
    assert [body["messages"][-1]["content"] for body in server.requests] == ["你好", "你好"]
