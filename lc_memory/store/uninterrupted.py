"""Calls that an interrupt cannot break off in the middle.

A KeyboardInterrupt is raised between any two steps of the main thread: behind a BEGIN and before the ``try``
that would roll it back, inside a ``finally``, in the clean-up of another library. What was taken then (a
write transaction, a lock) is not given back for as long as somebody keeps the traceback, and no ``try`` can
rule that out. So what takes something that has to be given back runs in a thread of ours, which no interrupt
reaches. The caller waits, and is interrupted when the call has ended.
"""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import functools
import inspect
import os
import queue
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")
C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])

_PATIENCE = 5.0
"""Seconds that an interrupted caller waits for a call that was begun. It then leaves; the call goes on."""

_IDLE = 1.0  # seconds after which a thread that nobody needs ends

_here = threading.local()  # .undisturbed: no interrupt reaches this thread, or it may not change threads now


class _Call:
    """A call on its way. Begun by one of two: the thread it was given to, or an interrupted caller who takes
    it back, and then never."""

    def __init__(self, work: Callable[[], Any], then: Callable[[], None] | None = None) -> None:
        self._work: Callable[[], Any] | None = functools.partial(copy_context().run, work)
        self._then = then
        self._begun = threading.Lock()
        self._running = threading.Lock()
        self._running.acquire()
        self._result: Any = None
        self._error: BaseException | None = None
        self.over = False

    def begin(self) -> bool:
        """True for the first who asks."""
        return self._begun.acquire(blocking=False)

    def run(self) -> None:
        work, self._work = self._work, None
        assert work is not None
        try:
            self._result = work()
        except BaseException as error:
            self._error = error

    def end(self) -> None:
        self.over = True
        self._running.release()
        if self._then is not None:
            self._then()

    def wait(self, seconds: float = -1) -> None:
        if not self.over:  # or an interrupt behind the acquire would make the next one wait for ever
            self._running.acquire(timeout=seconds)

    def answer(self) -> Any:
        if self._error is None:
            return self._result
        error, self._error = self._error, None
        try:
            raise error
        finally:
            del error, self  # the traceback would hold the frame that holds the error


class _Helper:
    """A thread that runs one call after another, and ends when none has come for a while."""

    def __init__(self) -> None:
        self._inbox: queue.SimpleQueue[_Call] = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._gone = False
        threading.Thread(target=self._serve, name="lc-memory-call", daemon=True).start()

    def take(self, call: _Call) -> bool:
        with self._guard:
            if not self._gone:
                self._inbox.put(call)
            return not self._gone

    def _serve(self) -> None:
        _here.undisturbed = True
        while True:
            try:
                call = self._inbox.get(timeout=_IDLE)
            except queue.Empty:
                with self._guard:
                    self._gone = self._inbox.empty()
                if self._gone:
                    with contextlib.suppress(ValueError):
                        _idle.remove(self)
                    return
                continue
            if call.begin():
                call.run()
                _idle.append(self)  # first: the caller's next call finds this thread
                call.end()
            else:
                _idle.append(self)
            del call


_idle: deque[_Helper] = deque()


def _given(call: _Call) -> bool:
    """Whether there is a thread that takes ``call``."""
    while True:
        try:
            helper = _idle.pop()
        except IndexError:
            try:
                helper = _Helper()
            except RuntimeError:  # no thread can be had, now or any more
                return False
        if helper.take(call):
            return True


def run_undisturbed(work: Callable[[], T], *, to_the_end: bool = True) -> T:
    """What ``work()`` returns or raises; run in another thread, in the caller's context.

    A caller that is interrupted waits until it has ended, ``_PATIENCE`` seconds at the longest, or leaves at
    once where not ``to_the_end``. One call inside another runs where that does.
    """
    if getattr(_here, "undisturbed", False):
        return work()
    call = _Call(work)
    try:
        given = _given(call)
        if given:
            call.wait()
    except BaseException:
        if not call.begin() and to_the_end:
            _see_it_end(call)
        raise
    result: T = call.answer() if given else work()
    return result


def _see_it_end(call: _Call) -> None:
    until = time.monotonic() + _PATIENCE
    while not call.over and (left := until - time.monotonic()) > 0:
        # More interrupts change nothing: the first one is on its way.
        with contextlib.suppress(BaseException):
            call.wait(left)


async def finished(work: Callable[[], T]) -> T:
    """What ``work()`` returns or raises, run in a thread. It is waited for until it has ended, however often
    the caller is cancelled meanwhile; the cancellation is passed on then."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[None] = loop.create_future()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the loop was closed: nobody waits any more
            loop.call_soon_threadsafe(_set, ended)

    call = _Call(work, wake)
    if not _given(call):
        return work()
    cancelled: asyncio.CancelledError | None = None
    while not call.over:
        try:
            await asyncio.wait([ended])
        except asyncio.CancelledError as error:
            cancelled = cancelled or error
    if cancelled is not None:
        try:
            raise cancelled
        finally:
            del cancelled
    result: T = call.answer()
    return result


def when_dropped(owner: object, work: Callable[[], object]) -> None:
    """Have ``work()`` done when nobody holds ``owner`` any more. It must not hold it either.

    In a thread: the garbage collector comes at any moment, and the thread it comes in may hold any lock.
    """
    weakref.finalize(owner, _in_a_thread, work).atexit = False  # the system takes everything back then


def _in_a_thread(work: Callable[[], object]) -> None:
    def run() -> None:
        stay_here()
        with contextlib.suppress(Exception):
            work()

    with contextlib.suppress(RuntimeError):  # none can be had: the program is at its end
        _thread.start_new_thread(run, ())  # threading's own would take locks


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


@contextlib.contextmanager
def staying_here() -> Iterator[None]:
    """Inside, calls run in this thread: it holds what belongs to a thread, such as a transaction."""
    before = getattr(_here, "undisturbed", False)
    _here.undisturbed = True
    try:
        yield
    finally:
        _here.undisturbed = before


def stay_here() -> None:
    """From now on, calls of this thread run in it: it is one of ours."""
    _here.undisturbed = True


def undisturbed(method: F) -> F:
    """``method``, run to its end whatever interrupts the caller."""
    return _wrapped(method, to_the_end=True)


def apart(method: F) -> F:
    """``method``, which a caller who is interrupted leaves to itself: it may take long, and what it was to
    return is not wanted any more."""
    return _wrapped(method, to_the_end=False)


def _wrapped(method: F, *, to_the_end: bool) -> F:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        if getattr(_here, "undisturbed", False):
            return method(*args, **kwargs)
        return run_undisturbed(lambda: method(*args, **kwargs), to_the_end=to_the_end)

    return call  # type: ignore[return-value]


def undisturbed_calls(*left_out: str) -> Callable[[C], C]:
    """A class whose public methods are :func:`undisturbed`, but for generators and those ``left_out``."""

    def wrap(cls: C) -> C:
        for name, method in list(vars(cls).items()):
            if name.startswith("_") or name in left_out or not inspect.isfunction(method):
                continue
            if not inspect.isgeneratorfunction(method):
                setattr(cls, name, undisturbed(method))
        return cls

    return wrap


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # threads are not forked
