"""One async client for each event loop.

An HTTP connection belongs to the event loop it was opened in. ChatOpenAI keeps one pool for all, so the
second ``asyncio.run(chain.ainvoke(…))`` of a script picks up a connection of the first, closed loop and
fails with "Event loop is closed". Here each loop gets a client of its own, which goes when the loop goes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary

import openai


class PerLoop:
    """Stands for what ``made`` builds: a separate one in each event loop, built when first used."""

    def __init__(self, made: Callable[[], Any]) -> None:
        self._made = made
        self._of_loop: WeakKeyDictionary[asyncio.AbstractEventLoop, Any] = WeakKeyDictionary()
        self._lock = Lock()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # copying and pickling ask for these, outside of any loop
            raise AttributeError(name)
        return getattr(self.current(), name)

    def current(self) -> Any:
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._of_loop:
                self._of_loop[loop] = self._made()
            return self._of_loop[loop]


def per_loop(client: openai.AsyncOpenAI) -> PerLoop:
    """``client`` in each event loop, with the same settings and connections of its own."""
    return PerLoop(lambda: client.with_options(http_client=openai.DefaultAsyncHttpxClient()))
