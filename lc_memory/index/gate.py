"""Many callers at a time, or one alone."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class Gate:
    """Many may be inside, or one alone. Who is inside may not enter again.

    Whoever waits, waits for those who were inside before him: those who come later would keep him waiting
    for ever.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._inside: set[object] = set()
        self._alone = 0  # who are, or wait to be

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        me = object()
        with self._changed:
            self._changed.wait_for(lambda: not self._alone)
            self._inside.add(me)
        try:
            yield
        finally:
            with self._changed:
                self._inside.discard(me)
                self._changed.notify_all()

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Nobody else is inside, and who comes waits outside."""
        with self._changed:
            self._alone += 1
            try:
                self._changed.wait_for(lambda: not self._inside)
                yield
            finally:
                self._alone -= 1
                self._changed.notify_all()

    def settled(self) -> None:
        """Wait until all who are inside now have left. Who comes meanwhile may enter."""
        with self._changed:
            before = set(self._inside)
            self._changed.wait_for(lambda: not before & self._inside)


__all__ = ["Gate"]
