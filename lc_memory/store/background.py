"""Work that no turn waits for."""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

log = logging.getLogger("lc_memory")


class Background:
    """Work that no turn waits for, at most one piece a session at a time. ``close`` waits for all of it."""

    def __init__(self) -> None:
        self._begin()
        _all.add(self)

    def _begin(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._running: dict[object, Future[None]] = {}
        self._guard = threading.Lock()

    def submit(self, key: object, work: Callable[[], None]) -> None:
        with self._guard:
            if key in self._running:
                return
            if self._pool is None:
                # Not daemon threads: the interpreter waits for them when the program ends.
                self._pool = ThreadPoolExecutor(2, thread_name_prefix="lc-memory")
            future = self._pool.submit(self._run, key, work)
            self._running[key] = future

    def _run(self, key: object, work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:
            log.warning("%s: background work failed: %s: %s", key, type(error).__name__, error)
        finally:
            with self._guard:
                self._running.pop(key, None)

    def wait(self) -> None:
        while True:
            with self._guard:
                running = list(self._running.values())
            if not running:
                return
            for future in running:
                future.result()

    def close(self) -> None:
        self.wait()
        with self._guard:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()


_all: weakref.WeakSet[Background] = weakref.WeakSet()


def _in_child() -> None:
    for background in list(_all):  # threads are not forked; the work is the parent's
        background._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)


def _at_exit() -> None:
    for background in list(_all):
        background.wait()


# Before concurrent.futures closes its pools for good, and not after, as atexit would be: work under way may
# start threads of its own (chromadb does when it is first imported), which is refused from then on. These
# calls are made last come, first served, and concurrent.futures.thread, imported above, came first.
_register = getattr(threading, "_register_atexit", atexit.register)
_register(_at_exit)
