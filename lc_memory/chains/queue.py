"""Turns of one session run one after another, in the order they came; different sessions do not wait.

A lock per session that threads and event loops can share: who waits holds a future, who leaves hands the
session to the first future in line that has not given up. No thread sleeps for an async waiter, and a
waiter that is cancelled or runs out of time can never take the session with it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Hashable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import asynccontextmanager, contextmanager

from lc_memory.errors import SessionBusyError


class SessionQueue:
    """``with queue.hold(key): …`` in a thread, ``async with queue.ahold(key): …`` on a loop.

    ``wait``: seconds a turn waits for the one before it; then SessionBusyError, which names the session.
    """

    def __init__(self, wait: float = 60.0) -> None:
        self.wait = wait
        self._guard = threading.Lock()
        self._lines: dict[Hashable, deque[Future[None]]] = {}  # a key is here while somebody holds it

    @contextmanager
    def hold(self, key: Hashable) -> Iterator[None]:
        ticket = self._enter(key)
        if ticket is not None:
            try:
                ticket.result(self.wait)
            except FutureTimeout:
                if ticket.cancel():
                    raise self._busy(key) from None
                # The session was handed over in the very moment we gave up: it is ours.
            except BaseException:  # KeyboardInterrupt while waiting
                self._give_up(ticket, key)
                raise
        try:
            yield
        finally:
            self._leave(key)

    @asynccontextmanager
    async def ahold(self, key: Hashable) -> AsyncIterator[None]:
        ticket = self._enter(key)
        if ticket is not None:
            try:
                # Not wait_for: up to Python 3.11 it can swallow a cancellation.
                called, _ = await asyncio.wait([asyncio.wrap_future(ticket)], timeout=self.wait)
            except BaseException:  # CancelledError while waiting
                self._give_up(ticket, key)
                raise
            if not called and ticket.cancel():
                raise self._busy(key)
        try:
            yield
        finally:
            self._leave(key)

    def _enter(self, key: Hashable) -> Future[None] | None:
        with self._guard:
            line = self._lines.get(key)
            if line is None:
                self._lines[key] = deque()
                return None
            ticket: Future[None] = Future()
            line.append(ticket)
            return ticket

    def _leave(self, key: Hashable) -> None:
        with self._guard:
            line = self._lines[key]
            while line:
                ticket = line.popleft()
                if ticket.set_running_or_notify_cancel():
                    break
            else:
                del self._lines[key]
                return
        ticket.set_result(None)

    def _give_up(self, ticket: Future[None], key: Hashable) -> None:
        if not ticket.cancel():  # handed over in the meantime: pass it on
            self._leave(key)

    def _busy(self, key: Hashable) -> SessionBusyError:
        return SessionBusyError(
            f"{key}: another turn of this session has not finished within {self.wait:g} s. A stream of it "
            "may be open still (close it), or a chain calls itself in the same session without passing its "
            "config on. A longer wait is session_wait=…"
        )
