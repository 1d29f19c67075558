"""What a whole run of the tests shares, however many workers it has: one folder, and what was started in it.

The process that begins the run makes the folder and names it in ``LC_MEMORY_TEST_RUN``, which its workers
inherit; at the end it ends what they started and removes it (tests/conftest.py).
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from filelock import FileLock

_RUN = "LC_MEMORY_TEST_RUN"
_ROOM = 4 * 2**30  # bytes that memory must have free to be written to instead of the disk


def begin() -> None:
    """Make the folder of this run. Temporary files lie in memory where there is room: a test run writes
    thousands of small databases, each of which waits for the disk several times."""
    memory = "/dev/shm"
    if "TMPDIR" not in os.environ and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > _ROOM:
        os.environ["TMPDIR"] = memory
        tempfile.tempdir = None
    folder = Path(tempfile.mkdtemp(prefix="lcm-run-"))
    folder.chmod(0o755)  # PostgreSQL runs as another user where we are root
    os.environ[_RUN] = str(folder)


def once(name: str, start: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
    """What ``start`` told of the thing of that name: called by the first who asks, with a folder for it.

    ``pid``: a process, which ends with the run.
    """
    folder = place(name)
    told = folder.with_name(f"{name}.json")
    with FileLock(folder.with_name(f"{name}.lock")):
        if not told.exists():
            folder.mkdir()
            told.write_text(json.dumps(start(folder)))
        return dict(json.loads(told.read_text()))


def place(name: str) -> Path:
    """Where the thing of that name lies."""
    return Path(os.environ[_RUN]) / name


def end() -> None:
    """End what was started in this run, and remove its folder."""
    folder = Path(os.environ.pop(_RUN))
    for told in folder.glob("*.json"):
        if pid := json.loads(told.read_text()).get("pid"):
            with suppress(ProcessLookupError):
                os.kill(pid, getattr(signal, "SIGQUIT", signal.SIGTERM))  # PostgreSQL: at once
    shutil.rmtree(folder, ignore_errors=True)
