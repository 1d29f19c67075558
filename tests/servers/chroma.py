"""A real Chroma server on a free port of this machine, started and stopped by its process."""

from __future__ import annotations

import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.helpers import programs

# What the program ``chroma`` is.
PROGRAM = "import sys; from chromadb.cli.cli import app; sys.argv[0] = 'chroma'; app()"


class ChromaServer:
    """``chroma run`` over a folder. ``stop`` and ``start`` keep port and folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: Any = None

    def start(self) -> None:
        silent = subprocess.DEVNULL
        self._process = programs.start(
            "-c", PROGRAM, "run", "--path", self.folder, "--host", "127.0.0.1", "--port", self.port,
            stdin=silent, stdout=silent, stderr=silent, cwd=self.folder.parent,
        )  # fmt: skip
        while not self._answers():
            assert self._process.poll() is None, "the Chroma server ended"

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}/api/v2/heartbeat", timeout=1) as answer:
                return bool(answer.status == 200)
        except (urllib.error.URLError, OSError):
            return False


@contextmanager
def running_chroma(folder: Path) -> Iterator[ChromaServer]:
    """A server of one's own. Skips the test where the program is not installed."""
    pytest.importorskip("chromadb.cli.cli")
    folder.mkdir(parents=True, exist_ok=True)
    server = ChromaServer(folder)
    server.start()
    try:
        yield server
    finally:
        server.stop()
