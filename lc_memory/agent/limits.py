"""So many seconds for a tool, and then the turn goes on without it.

A plain function cannot be stopped. It runs in a thread of its own, which it keeps when it hangs, and which
keeps neither the program alive nor a place in a pool that others wait for (an event loop's has half a dozen:
a few hanging tools would stop everything else that runs there).
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, TypeVar

from langchain_core.tools import BaseTool, StructuredTool, Tool, ToolException

T = TypeVar("T")

_WAIT_IN_A_POOL = {BaseTool._arun, StructuredTool._arun, Tool._arun}


class ToolHangsError(ToolException):
    """A tool has not answered in time. It is not tried again: it may still be at work."""

    def __init__(self, name: str, seconds: float) -> None:
        super().__init__(f"{name} has not answered within {seconds:g} s; it may still be at work")


def within(seconds: float, run: Callable[[], T], name: str) -> T:
    """What ``run`` gives, in at most so many seconds; then ToolHangsError."""
    outcome = _in_a_thread(run, name)
    try:
        return outcome.result(seconds)
    except FutureTimeout:
        if outcome.done():  # the tool's own TimeoutError, or it came in this very moment
            return outcome.result()
        raise ToolHangsError(name, seconds) from None


async def awithin(seconds: float, run: Coroutine[Any, Any, T], name: str, tool: BaseTool | None) -> T:
    """What ``run``, a call of ``tool``, gives, in at most so many seconds; then it is cancelled, where that
    is possible, and ToolHangsError raised."""
    running: asyncio.Future[T]
    if tool is not None and _is_plain(tool):
        running = asyncio.wrap_future(_in_a_thread(lambda: _to_its_end(run), name))
    else:
        running = asyncio.ensure_future(run)
    try:
        done, _ = await asyncio.wait([running], timeout=seconds)
    except asyncio.CancelledError:
        running.cancel()
        raise
    if not done:
        running.cancel()
        raise ToolHangsError(name, seconds)
    return running.result()


def _in_a_thread(run: Callable[[], T], name: str) -> Future[T]:
    outcome: Future[T] = Future()
    context = contextvars.copy_context()

    def work() -> None:
        if not outcome.set_running_or_notify_cancel():
            return
        try:
            result = context.run(run)
        except BaseException as error:
            outcome.set_exception(error)
        else:
            outcome.set_result(result)

    threading.Thread(target=work, name=f"tool-{name}", daemon=True).start()
    return outcome


def _is_plain(tool: BaseTool) -> bool:
    """Whether a tool, called on an event loop, would wait for its function in the loop's pool."""
    return getattr(tool, "coroutine", None) is None and type(tool)._arun in _WAIT_IN_A_POOL


def _to_its_end(run: Coroutine[Any, Any, T]) -> T:
    """``run`` on a loop of its own, with this thread as its pool."""

    async def main() -> T:
        asyncio.get_running_loop().set_default_executor(_ThisThread())
        return await run

    return asyncio.run(main())


class _ThisThread(ThreadPoolExecutor):
    """Runs what is submitted at once. (A loop takes nothing but a ThreadPoolExecutor.)"""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        outcome: Future[Any] = Future()
        try:
            outcome.set_result(fn(*args, **kwargs))
        except BaseException as error:
            outcome.set_exception(error)
        return outcome


__all__ = ["ToolHangsError", "awithin", "within"]
