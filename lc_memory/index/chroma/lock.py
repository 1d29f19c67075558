"""One process at a time has an embedded Chroma folder.

Two processes that write to one folder lose vectors without a word (227 of 3,000 were seen lost), and one
that only reads goes on finding what the other has deleted. The lock is one of the operating system, on a
file beside the folder: it ends with its process, however that ends, and a fork does not inherit it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from pathlib import Path

from lc_memory.errors import FactIndexError

_guard = threading.Lock()
_held: dict[Path, _Held] = {}  # the locks of this process: record locks know processes, not objects


class _Held:
    def __init__(self, descriptor: int, pid: int) -> None:
        self.descriptor = descriptor
        self.pid = pid
        self.users = 0


class FolderLock:
    """Held from ``acquire`` to ``release``; several objects of one process share it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder.with_name(folder.name + ".lock").absolute()
        self._folder = folder
        self._mine: _Held | None = None

    def acquire(self) -> None:
        """Take the lock. FactIndexError where another process has it; never waits."""
        with _guard:
            held = _held.get(self.path)
            if held is not None and held.pid != os.getpid():  # of the parent, before a fork
                held = None
            if self._mine is not None and self._mine is held:
                return
            if held is None:
                held = _held[self.path] = _Held(self._lock(), os.getpid())
            held.users += 1
            self._mine = held

    @property
    def held(self) -> bool:
        return self._mine is not None

    def release(self) -> None:
        with _guard:
            mine, self._mine = self._mine, None
            if mine is None or mine.pid != os.getpid():
                return
            mine.users -= 1
            if not mine.users:
                _held.pop(self.path, None)
                os.close(mine.descriptor)  # which gives the lock back

    def _lock(self) -> int:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            _lock_file(descriptor)
        except OSError as error:
            other = _holder(descriptor)
            os.close(descriptor)
            raise FactIndexError(
                f"{self._folder} is in use by another process{other}, and an embedded Chroma has one at a "
                f"time. For several, run a server: chroma run --path {self._folder} --port 8000, and open "
                "the memory with chroma='http://localhost:8000' in each of them"
            ) from error
        with contextlib.suppress(OSError):  # for people; the lock is what counts
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
        return descriptor


def _holder(descriptor: int) -> str:
    with contextlib.suppress(OSError, ValueError):
        return f" (process {int(os.read(descriptor, 20))})"
    return ""


if sys.platform == "win32":  # pragma: no cover
    import msvcrt

    def _lock_file(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock_file(descriptor: int) -> None:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
