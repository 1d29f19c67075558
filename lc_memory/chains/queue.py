"""Turns of one session run one after another, in the order they came; different sessions do not wait.

A line for each session that threads and event loops can share. Everybody in it has a *place*: a lock that he
holds from before he gets in line until he has left, by ``with place: …``, which the interpreter itself gives
back whatever happens in between. A place that nobody holds is empty: its owner was interrupted or cancelled,
wherever that was. The session is had by the first place in line that is held; everything else (the futures
that wake the next one) only saves time. No thread sleeps for an async waiter.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Hashable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import asynccontextmanager, contextmanager, suppress

from lc_memory.errors import SessionBusyError

Place = threading.Lock
"""``place = Place()``; then ``with place, queue.hold(key, place): …``."""

_LOOK = 1.0  # seconds after which one who waits looks whether he was passed over by somebody interrupted


class _InLine:
    __slots__ = ("called", "place")

    def __init__(self, place: threading.Lock) -> None:
        self.place = place
        self.called: Future[None] | None = None
        """Wakes one who waits when it is his turn."""

    def call(self) -> None:
        called, self.called = self.called, None
        # Not set_result alone: a loop that ended has cancelled it.
        if called is not None and called.set_running_or_notify_cancel():
            called.set_result(None)


class SessionQueue:
    """``with queue.hold(key): …`` in a thread, ``async with queue.ahold(key): …`` on a loop.

    ``wait``: seconds a turn waits for the one before it; then SessionBusyError, which names the session.
    """

    def __init__(self, wait: float = 60.0) -> None:
        self.wait = wait
        self._guard = threading.Lock()
        self._lines: dict[Hashable, deque[_InLine]] = {}  # a key is here while somebody is in line

    @contextmanager
    def hold(self, key: Hashable, place: threading.Lock | None = None) -> Iterator[None]:
        """The session, for the length of the block. ``place``: one that the caller holds around it; without,
        an interrupt at the very edge of the block may leave the session held."""
        if place is None:
            place = Place()
            with place, self.hold(key, place):
                yield
            return
        me = _InLine(place)
        try:
            if self._first_in_line(key, me):
                yield
                return
            until = time.monotonic() + self.wait
            while (called := self._called(key, me)) is not None:
                left = until - time.monotonic()
                if left <= 0:
                    raise self._busy(key)
                with suppress(FutureTimeout):
                    called.result(min(left, _LOOK))
            yield
        finally:
            self._leave(key, me)

    @asynccontextmanager
    async def ahold(self, key: Hashable, place: threading.Lock | None = None) -> AsyncIterator[None]:
        if place is None:
            place = Place()
            with place:
                async with self.ahold(key, place):
                    yield
            return
        me = _InLine(place)
        try:
            if self._first_in_line(key, me):
                yield
                return
            until = time.monotonic() + self.wait
            while (called := self._called(key, me)) is not None:
                left = until - time.monotonic()
                if left <= 0:
                    raise self._busy(key)
                # Not wait_for: up to Python 3.11 it can swallow a cancellation.
                await asyncio.wait([asyncio.wrap_future(called)], timeout=min(left, _LOOK))
            yield
        finally:
            self._leave(key, me)

    def _first_in_line(self, key: Hashable, me: _InLine) -> bool:
        """Get in line; whether nobody is before me."""
        with self._guard:
            line = self._lines.get(key)
            if line is None:
                self._lines[key] = deque((me,))
                return True
            line.append(me)
            return self._first(key) is me

    def _called(self, key: Hashable, me: _InLine) -> Future[None] | None:
        """None where it is this one's turn; else what is done when it is."""
        with self._guard:
            if self._first(key) is me:
                return None
            if me.called is None or me.called.cancelled():
                me.called = Future()
            return me.called

    def _first(self, key: Hashable) -> _InLine | None:
        """Who has the session. Empty places in front of him are taken away."""
        line = self._lines.get(key)
        while line:
            if line[0].place.locked():
                return line[0]
            line.popleft()
        if line is not None:
            del self._lines[key]
        return None

    def _leave(self, key: Hashable, me: _InLine) -> None:
        with self._guard:
            line = self._lines.get(key)
            if line is None or me not in line:
                return
            if len(line) == 1:
                del self._lines[key]
                return
            line.remove(me)
            first = self._first(key)
            if first is not None:
                first.call()

    def _busy(self, key: Hashable) -> SessionBusyError:
        return SessionBusyError(
            f"{key}: another turn of this session has not finished within {self.wait:g} s. A stream of it "
            "may be open still (close it), or a chain calls itself in the same session without passing its "
            "config on. A longer wait is session_wait=…"
        )
