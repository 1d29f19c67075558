"""Work that no turn waits for: done soon, in a thread, and where there is none to be had, later."""

from __future__ import annotations

import atexit
import concurrent.futures.thread  # noqa: F401  # before _at_exit is registered; see below
import logging
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable

from .uninterrupted import stay_here

log = logging.getLogger("lc_memory")

_THREADS = 2
_LOOK = 1.0  # seconds after which one who waits looks whether there still is a thread at work
_TROUBLES = 16


class _Job:
    def __init__(self, work: Callable[[], None]) -> None:
        self.work = work
        self.ended = threading.Event()


class Background:
    """Work that no turn waits for, one piece of a ``key`` at a time.

    Asked for while it waits, it is done once; while it runs, once more afterwards. So whoever asks knows that
    all of it happens after he asked. Nothing of this raises: what cannot be done is done later, and
    :meth:`problems` tells of it.
    """

    def __init__(self) -> None:
        self._begin()
        _all.add(self)

    def _begin(self) -> None:
        self._waiting: dict[object, _Job] = {}  # in the order in which it was asked for
        self._running: dict[object, _Job] = {}
        self._threads: list[threading.Thread] = []  # they end when there is nothing to do
        self._doing: set[int] = set()  # the threads that are at a piece of work
        self._troubles: OrderedDict[object, tuple[str, Callable[[], None] | None]] = OrderedDict()
        self._no_thread: str | None = None
        self._guard = threading.Lock()

    def submit(self, key: object, work: Callable[[], None]) -> None:
        with self._guard:
            if key not in self._waiting:
                self._waiting[key] = _Job(work)
        self._staffed()

    def wait(self) -> None:
        """Until all that was asked for before this call is done. What comes later is not waited for.

        Where no thread can be had it is done here. Inside of such work it returns at once: it would wait for
        itself.
        """
        if threading.get_ident() in self._doing:
            return
        with self._guard:
            jobs = [*self._running.values(), *self._waiting.values()]
        for job in jobs:
            while not job.ended.is_set():
                if self._staffed():
                    job.ended.wait(_LOOK)
                elif not self._do_one():
                    job.ended.wait(_LOOK)  # another one who waits is at it

    def close(self) -> None:
        self.wait()

    def trouble(self, key: object, what: str | None, again: Callable[[], None] | None = None) -> None:
        """Note what of this key could not be done, until it is (None). ``again``: see :meth:`retry`."""
        with self._guard:
            self._troubles.pop(key, None)
            if what is not None:
                self._troubles[key] = what, again
                while len(self._troubles) > _TROUBLES:
                    self._troubles.popitem(last=False)

    def retry(self) -> None:
        """Ask once more for what failed before."""
        with self._guard:
            failed = [(key, again) for key, (_, again) in self._troubles.items() if again is not None]
        for key, again in failed:
            self.submit(key, again)

    def problems(self) -> list[str]:
        """What could not be done so far, for people."""
        with self._guard:
            told = [what for what, _ in self._troubles.values()]
            if self._no_thread is not None and self._waiting:
                told.append(
                    f"{len(self._waiting)} pieces of background work wait for a thread ({self._no_thread}); "
                    "they are done with the next turn, or by flush()"
                )
            return told

    def _staffed(self) -> bool:
        """Start a thread where one is needed. Whether there is any at work."""
        with self._guard:
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            if self._next() is not None and len(self._threads) < _THREADS:
                # Not a daemon: the interpreter waits for it when the program ends.
                thread = threading.Thread(target=self._serve, name="lc-memory", daemon=False)
                try:
                    thread.start()
                except RuntimeError as error:
                    if self._no_thread is None:
                        log.warning("background work is put off until a thread can be had: %s", error)
                    self._no_thread = str(error)
                else:
                    self._threads.append(thread)
                    self._no_thread = None
            return bool(self._threads)

    def _next(self) -> object | None:
        return next((key for key in self._waiting if key not in self._running), None)

    def _serve(self) -> None:
        stay_here()
        while self._do_one(leave=True):
            pass

    def _do_one(self, *, leave: bool = False) -> bool:
        """Do what is next. False where there is nothing; then, with ``leave``, this thread counts no more."""
        with self._guard:
            key = self._next()
            if key is None:
                if leave and (me := threading.current_thread()) in self._threads:
                    self._threads.remove(me)
                return False
            job = self._running[key] = self._waiting.pop(key)
            self._doing.add(threading.get_ident())
        try:
            job.work()
        except Exception as error:
            told = f"{key}: background work failed: {type(error).__name__}: {error!s:.300}"
            self.trouble(key, told, job.work)
            log.warning("%s: background work failed: %s: %s", key, type(error).__name__, error)
        else:
            self.trouble(key, None)
        finally:
            with self._guard:
                self._running.pop(key, None)
                self._doing.discard(threading.get_ident())
            job.ended.set()
        return True


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
