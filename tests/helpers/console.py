"""The command line: called in this process, with streams, environment and folder of its own; or at a terminal."""

from __future__ import annotations

import io
import logging
import os
import re
import select
import struct
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.data import ROOT
from tests.helpers.programs import PATIENCE, start
from tests.servers.chat import ChatServer

if sys.platform != "win32":
    import fcntl
    import pty
    import termios

SETTINGS = re.compile(r"LC_|LANG|PYTHON|COLUMNS|LINES|BASE_URL|MODEL|HOME$|XDG_|.*API_KEY|.*COLOR")
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\r")


def environment(home: Path, **more: str) -> dict[str, str]:
    """A user with an empty home, and nothing configured but ``more``."""
    kept = {k: v for k, v in os.environ.items() if not SETTINGS.match(k)}
    return {**kept, "HOME": str(home), "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8", "TERM": "xterm", **more}


def offline(home: Path, **more: str) -> dict[str, str]:
    return environment(home, LC_MEMORY_PROVIDER="offline", **more)


def served(home: Path, server: ChatServer, **more: str) -> dict[str, str]:
    return environment(home, BASE_URL=server.url, API_KEY="k", MODEL="m", **more)


def run(
    env: Mapping[str, str], *args: object, typed: str | bytes = "", cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """``lc-memory args`` with ``typed`` coming through a pipe, in the folder ``$HOME`` or ``cwd``."""
    from lc_memory import cli

    given = typed.encode() if isinstance(typed, str) else typed
    out, err = io.BytesIO(), io.BytesIO()
    code: object = 0
    with _surroundings(env, cwd), _streams(given, out, err), _as_in_a_new_process():
        try:
            cli.main(list(map(str, args)))
        except SystemExit as end:
            code = end.code
    said, complained = out.getvalue().decode(), err.getvalue().decode()
    assert "Traceback" not in complained, complained
    return subprocess.CompletedProcess(list(args), code if isinstance(code, int) else int(code is not None), said, complained)


def run_really(
    env: Mapping[str, str], *args: str, typed: str | bytes = "", encoding: str = "utf-8"
) -> subprocess.CompletedProcess[str]:
    """The same in an interpreter that starts: for what the interpreter makes of its environment."""
    given = typed.encode(encoding) if isinstance(typed, str) else typed
    done = subprocess.run(
        [sys.executable, "-m", "lc_memory", *args],
        input=given, capture_output=True, env=env, cwd=env["HOME"], timeout=PATIENCE,
    )  # fmt: skip
    out, err = done.stdout.decode(encoding), done.stderr.decode(encoding)
    assert "Traceback" not in err, err
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


@contextmanager
def _surroundings(env: Mapping[str, str], cwd: Path | None) -> Iterator[None]:
    before, folder = dict(os.environ), os.getcwd()
    os.environ.clear()
    os.environ.update(env)
    os.chdir(cwd or env["HOME"])
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
        os.chdir(folder)


@contextmanager
def _streams(typed: bytes, out: io.BytesIO, err: io.BytesIO) -> Iterator[None]:
    before = sys.stdin, sys.stdout, sys.stderr
    opened = (
        io.TextIOWrapper(io.BytesIO(typed), "utf-8"),
        io.TextIOWrapper(out, "utf-8", write_through=True),
        io.TextIOWrapper(err, "utf-8", "backslashreplace", write_through=True),
    )
    sys.stdin, sys.stdout, sys.stderr = opened
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        for stream in opened:
            stream.flush()
            stream.detach()


@contextmanager
def _as_in_a_new_process() -> Iterator[None]:
    """Warnings and log as a program has them that sets nothing: what is shown comes to its stderr."""
    shown = logging.StreamHandler(sys.stderr)
    shown.setLevel(logging.WARNING)
    logging.getLogger().addHandler(shown)
    try:
        with warnings.catch_warnings():
            warnings.resetwarnings()
            for silent in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
                warnings.simplefilter("ignore", silent)
            yield
    finally:
        logging.getLogger().removeHandler(shown)


class Terminal:
    """``lc-memory args`` at a terminal of its own, as a person sees it."""

    def __init__(self, env: Mapping[str, str], *args: str, columns: int = 80, real: bool = False) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
        self.process = start(
            "-m", "lc_memory", *args, stdin=slave, stdout=slave, stderr=slave, session=True, env=env,
            cwd=env["HOME"], real=real,
        )  # fmt: skip
        os.close(slave)
        self._bytes = b""
        self.seen = 0

    @property
    def screen(self) -> str:
        return _ESCAPES.sub("", self._bytes.decode("utf-8", "replace"))

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def wait_for(self, text: str) -> str:
        """Read on until ``text`` comes; what came up to it since the last time."""
        self._read(lambda: text in self.screen[self.seen :])
        at = self.screen.index(text, self.seen) + len(text)
        came, self.seen = self.screen[self.seen : at], at
        return came

    def ended(self) -> int:
        self._read(None)
        return self.process.wait(PATIENCE)

    def _read(self, enough: Callable[[], bool] | None) -> None:
        deadline = time.monotonic() + PATIENCE
        while not (enough and enough()):
            ready, _, _ = select.select([self._master], [], [], max(0, deadline - time.monotonic()))
            assert ready, f"nothing came any more after:\n{self.screen}"
            try:
                data = os.read(self._master, 65536)
            except OSError:  # how Linux says that the other end is closed
                data = b""
            self._bytes += data
            if not data:
                assert enough is None, f"it ended after:\n{self.screen}"
                return

    def __enter__(self) -> Terminal:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        with suppress(OSError):
            os.close(self._master)
