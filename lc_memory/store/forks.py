"""Nothing of a database is open while the process forks.

A child that inherits connections is in danger whatever it does with them: PostgreSQL would see two
processes on one socket, and SQLite believes that locks are held which the system has given to the parent
alone, so that the parent, ending, removes the log that the child is writing. Closing them in the child is
no better. So the forking thread waits for the calls in progress, closes what is open, and both sides open
anew when they need to.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable
from typing import Any

_gates: weakref.WeakSet[ForkGate] = weakref.WeakSet()

_PATIENCE = 10.0
"""Seconds that a fork waits for calls in progress. A call that takes longer must not hold up the program."""


class ForkGate:
    """Calls go in and out; a fork happens while none is inside."""

    def __init__(self, before_fork: Callable[[], Any] | None) -> None:
        self._before_fork = before_fork
        self._renew()
        _gates.add(self)

    def _renew(self) -> None:
        self._changed = threading.Condition()
        self._inside: dict[int, int] = {}  # how often, by thread
        self._forking = False

    def __enter__(self) -> None:
        me = threading.get_ident()
        with self._changed:
            # Or a busy program would keep a fork waiting until its patience is over. Who is inside has to
            # come to his end.
            if self._forking and me not in self._inside:
                self._changed.wait_for(lambda: not self._forking, timeout=_PATIENCE)
            self._inside[me] = self._inside.get(me, 0) + 1

    def __exit__(self, *exc: object) -> None:
        me = threading.get_ident()
        with self._changed:
            left = self._inside.get(me, 1) - 1
            if left:
                self._inside[me] = left
            else:
                self._inside.pop(me, None)
                if self._forking:
                    self._changed.notify_all()

    def _close(self) -> None:
        me = threading.get_ident()
        self._changed.acquire()
        self._forking = True
        self._changed.wait_for(lambda: not self._inside.keys() - {me}, timeout=_PATIENCE)
        if self._before_fork is not None:
            self._before_fork()

    def _open(self) -> None:
        self._forking = False
        self._changed.notify_all()
        self._changed.release()


_closed: list[ForkGate] = []
_one_fork = threading.Lock()


def _before() -> None:
    _one_fork.acquire()
    for gate in list(_gates):
        gate._close()
        _closed.append(gate)


def _in_parent() -> None:
    while _closed:
        _closed.pop()._open()
    _one_fork.release()


def _in_child() -> None:
    while _closed:
        _closed.pop()._renew()
    _one_fork.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
