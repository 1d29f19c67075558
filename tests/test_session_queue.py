"""One turn of a session at a time, in order, from threads and loops alike; nobody is left holding it."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from lc_memory.chains.queue import SessionQueue
from lc_memory.errors import SessionBusyError


def waiting(queue: SessionQueue, key: str, count: int) -> None:
    """Return once ``count`` others stand in line."""
    while len(queue._lines.get(key, ())) < count:
        threading.Event().wait(0.001)


def test_threads_come_in_the_order_in_which_they_stood_in_line() -> None:
    queue, order = SessionQueue(), []

    def turn(name: int) -> None:
        with queue.hold("s"):
            order.append(name)

    with ThreadPoolExecutor(8) as pool:
        with queue.hold("s"):
            for name in range(8):
                pool.submit(turn, name)
                waiting(queue, "s", name + 1)
    assert order == list(range(8))
    assert queue._lines == {}


def test_never_two_at_once_with_threads_and_loops_mixed() -> None:
    queue, inside, seen = SessionQueue(), 0, []

    def work() -> None:
        nonlocal inside
        inside += 1
        seen.append(inside)
        inside -= 1

    def thread() -> None:
        for _ in range(50):
            with queue.hold("s"):
                work()

    async def task() -> None:
        for _ in range(50):
            async with queue.ahold("s"):
                work()

    async def loop() -> None:
        await asyncio.gather(*(task() for _ in range(4)))

    with ThreadPoolExecutor(6) as pool:
        for future in [*(pool.submit(thread) for _ in range(4)), *(pool.submit(asyncio.run, loop()) for _ in range(2))]:
            future.result()
    assert seen == [1] * 600
    assert queue._lines == {}


def test_other_sessions_do_not_wait() -> None:
    queue = SessionQueue(wait=0)
    with queue.hold("a"), queue.hold("b"):
        assert set(queue._lines) == {"a", "b"}


def test_a_stuck_turn_is_an_error_that_names_the_session() -> None:
    queue = SessionQueue(wait=0.01)
    with queue.hold("s1"):
        with pytest.raises(SessionBusyError, match="s1.*0.01 s"), queue.hold("s1"):
            pass
    with queue.hold("s1"):  # and who gave up does not hold it
        pass


async def test_a_stuck_turn_is_an_error_on_a_loop_too() -> None:
    queue = SessionQueue(wait=0.01)
    async with queue.ahold("s1"):
        with pytest.raises(SessionBusyError, match="s1"):
            async with queue.ahold("s1"):
                pass
    async with queue.ahold("s1"):
        pass


async def test_a_cancelled_waiter_leaves_the_line() -> None:
    queue = SessionQueue()

    async def turn() -> None:
        async with queue.ahold("s"):
            raise AssertionError("was cancelled before its turn")

    async with queue.ahold("s"):
        task = asyncio.create_task(turn())
        while "s" not in queue._lines or not queue._lines["s"]:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert queue._lines == {}


async def test_a_waiter_cancelled_just_after_it_was_called_passes_the_session_on() -> None:
    queue = SessionQueue()
    reached = []

    async def turn(name: str) -> None:
        async with queue.ahold("s"):
            reached.append(name)

    async with queue.ahold("s"):
        first = asyncio.create_task(turn("first"))
        second = asyncio.create_task(turn("second"))
        while len(queue._lines["s"]) < 2:
            await asyncio.sleep(0)
    first.cancel()  # its future is done, but the task has not run since
    await asyncio.gather(first, second, return_exceptions=True)
    assert reached == ["second"]
    assert queue._lines == {}
