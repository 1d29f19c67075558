"""Programs in processes of their own that begin at once.

A Python that imports langchain-openai, chromadb and the weights of the embedding is ready after some seconds,
of which a test of a program needs none. One process of the run has them loaded (:func:`_serve`) and is forked
for each program: a real process with its own pipes or terminal, environment, signals and end, which another
test can kill. What is about the start of the interpreter (imports, locales, ``PYTHON…`` variables,
``sys.modules``) starts a real one, with ``subprocess``; so does everything where there is no ``fork``, and
where ``LC_MEMORY_TEST_PROGRAMS=real`` is set.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
import types
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tests.data import ROOT
from tests.helpers.run import once

PATIENCE = 120  # seconds until a test gives up on a program; not a measure of anything
FORKED = hasattr(os, "fork") and os.environ.get("LC_MEMORY_TEST_PROGRAMS") != "real"
_LENGTH = 8


class Program:
    """A program that runs, with the calls of :class:`subprocess.Popen` that the tests make."""

    def __init__(
        self, arguments: Sequence[str], fds: Sequence[int], env: Mapping[str, str], cwd: str, session: bool
    ) -> None:
        self.args = list(arguments)
        self.returncode: int | None = None
        self.stdin: IO[Any] | None = None
        self.stdout: IO[Any] | None = None
        self.stderr: IO[Any] | None = None
        self._status = socket.socket(socket.AF_UNIX)
        self._status.connect(once("programs", _start)["socket"])
        asked = json.dumps({"args": self.args, "env": dict(env), "cwd": cwd, "session": session}).encode()
        socket.send_fds(self._status, [len(asked).to_bytes(_LENGTH, "big")], list(fds))
        self._status.sendall(asked)
        told = b""
        while not told.endswith(b"\n"):
            told += self._status.recv(1)
        self.pid = int(told)

    def poll(self) -> int | None:
        if self.returncode is None:
            with suppress(subprocess.TimeoutExpired):
                self.wait(0.001)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            self._status.settimeout(timeout)
            try:
                told = self._status.recv(16)
            except TimeoutError:
                raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
            self.returncode = int(told)
            self._status.close()
        return self.returncode

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)

    def communicate(self, typed: Any = None, timeout: float | None = PATIENCE) -> tuple[Any, Any]:
        """Write, read both outputs to their end, and wait."""
        read: dict[str, Any] = {}

        def write() -> None:
            assert self.stdin is not None
            with suppress(BrokenPipeError):
                if typed:
                    self.stdin.write(typed)
                self.stdin.close()

        def listen(name: str, stream: IO[Any]) -> None:
            read[name] = stream.read()
            stream.close()

        work = [threading.Thread(target=write)] if self.stdin is not None else []
        for name, stream in (("out", self.stdout), ("err", self.stderr)):
            if stream is not None:
                work.append(threading.Thread(target=listen, args=(name, stream)))
        for thread in work:
            thread.start()
        self.wait(timeout)
        for thread in work:
            thread.join()
        return read.get("out"), read.get("err")


def start(
    *arguments: Any,
    env: Mapping[str, str] | None = None,
    cwd: Path | str = ROOT,
    stdin: int = subprocess.PIPE,
    stdout: int = subprocess.PIPE,
    stderr: int | None = None,
    session: bool = False,
    text: bool = True,
    real: bool = False,
) -> Program | subprocess.Popen[Any]:
    """``python arguments``, running: ``-c code``, ``-m module`` or a script, and what it is given.

    Streams as with ``Popen``. ``session``: in a session of its own, its ``stdin`` the terminal of it.
    ``real``: an interpreter that starts.
    """
    given = [str(a) for a in arguments]
    env = dict(os.environ) if env is None else env
    if real or not FORKED:
        first = ["-c", _OWN_TERMINAL, sys.executable] if session else []
        options: Any = {"text": True, "encoding": "utf-8"} if text else {}
        return subprocess.Popen(
            [sys.executable, *first, *given], env={"PYTHONPATH": str(ROOT), **env}, cwd=cwd,
            stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=session, **options,
        )  # fmt: skip
    assert env.get("PYTHONPATH", str(ROOT)).split(os.pathsep)[0] == str(ROOT), "this needs a real start"
    ours: dict[int, int] = {}
    fds: list[int] = []
    for number, stream in enumerate((stdin, stdout, stderr)):
        if stream == subprocess.PIPE:
            reader, writer = os.pipe()
            its, ours[number] = (reader, writer) if number == 0 else (writer, reader)
        elif stream == subprocess.DEVNULL:
            its = os.open(os.devnull, os.O_RDWR)
        else:
            its = os.dup(number if stream is None else stream)
        fds.append(its)
    program = Program(given, fds, env, str(cwd), session)
    for its in fds:
        os.close(its)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if number in ours:
            mode = ("w" if number == 0 else "r") + ("" if text else "b")
            opened: Any = open(ours[number], mode, encoding="utf-8" if text else None)  # noqa: SIM115
            setattr(program, name, opened)
    return program


def run(*arguments: Any, typed: Any = "", text: bool = True, **options: Any) -> subprocess.CompletedProcess[Any]:
    """The same, to its end. ``typed``: what comes through its standard input."""
    program = start(*arguments, stderr=subprocess.PIPE, text=text, **options)
    out, err = program.communicate(typed or None, timeout=PATIENCE)
    assert program.returncode is not None
    return subprocess.CompletedProcess(list(map(str, arguments)), program.returncode, out, err)


# Tests that run in the background of a shell are started with Ctrl-C switched off, and would pass that on.
_OWN_TERMINAL = """
import fcntl, os, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])
"""


# ---------------------------------------------------------------- the process that is forked


def _start(folder: Path) -> dict[str, Any]:
    path = folder / "socket"
    log = open(folder / "log", "wb")  # noqa: SIM115 - it is the server's
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.helpers.programs", path],
        env={**os.environ, "PYTHONPATH": str(ROOT)}, cwd=ROOT, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
    )  # fmt: skip
    assert process.stdout is not None
    ready = process.stdout.readline()
    assert ready == b"ready\n", (folder / "log").read_text()
    process.stdout.close()
    return {"pid": process.pid, "socket": str(path)}


_LOADED = ("chromadb.cli.cli", "langchain_chroma", "langchain_openai", "langchain.agents", "langgraph.graph", "langgraph.checkpoint.sqlite",
           "psycopg",
           "sqlalchemy.dialects.sqlite", "grandalf", "rich.console", "typer", "tests.helpers.models",
           "tests.helpers.ways", "tests.helpers.longterm")  # fmt: skip


def _load() -> None:
    import lc_memory
    from lc_memory.models.embedding_names import embeddings

    ours = [name for _, name, _ in pkgutil.walk_packages(lc_memory.__path__, "lc_memory.", onerror=lambda _: None)]
    for name in [*_LOADED, *ours]:
        # The command line looks at its terminal when it is imported.
        if not name.startswith(("lc_memory.cli", "lc_memory.__main__")):
            with suppress(ImportError):
                importlib.import_module(name)
    embeddings("local").embed_query("loads the weights")


def _serve(path: str) -> tuple[dict[str, Any], list[int]]:
    """Fork for each who connects. Returns in the child, with what it is to become and its three streams."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen(64)
    _load()
    gc.freeze()
    os.write(1, b"ready\n")
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody is waited for here
    while True:
        asked, _ = listening.accept()
        if os.fork():
            asked.close()
            continue
        # Between the server and the program stands one process that waits for its end and tells it.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        listening.close()
        head, fds, _, _ = socket.recv_fds(asked, _LENGTH, 3)
        length, body = int.from_bytes(head, "big"), b""
        while len(body) < length:
            body += asked.recv(length - len(body))
        child = os.fork()
        if not child:
            asked.close()
            return json.loads(body), list(fds)
        for fd in fds:
            os.close(fd)
        asked.sendall(b"%d\n" % child)
        _, status = os.waitpid(child, 0)
        with suppress(BrokenPipeError):
            asked.sendall(b"%d" % os.waitstatus_to_exitcode(status))
        os._exit(0)


def _become(asked: dict[str, Any], fds: list[int]) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if asked["session"]:
        import fcntl
        import termios

        os.setsid()
        fcntl.ioctl(fds[0], termios.TIOCSCTTY, 0)
    for number, fd in enumerate(fds):
        os.dup2(fd, number)
        os.close(fd)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        lines = 1 if number == 2 or (number == 1 and os.isatty(1)) else -1
        errors = "backslashreplace" if number == 2 else "surrogateescape"
        stream = open(number, "r" if number == 0 else "w", lines, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    first, *rest = asked["args"]
    if first == "-m":
        sys.argv, sys.path[0] = rest, os.getcwd()
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    elif first == "-c":
        sys.argv, sys.path[0] = ["-c", *rest[1:]], ""
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(rest[0], "<string>", "exec"), main.__dict__)
    else:
        sys.argv, sys.path[0] = [first, *rest], os.path.dirname(os.path.abspath(first))
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    _become(*_serve(sys.argv[1]))
