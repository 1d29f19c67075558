"""Short-term memory: the messages of this conversation, seen through a sliding window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class ShortTermMemory:
    """A plain list of messages (``buffer``) and two ways of making it smaller.

    ``context()`` only looks at less of it; ``trim()`` throws away. System messages survive both.
    """

    def __init__(
        self, window: int = 10, max_tokens: int = 500, system_roles: Sequence[str] = ("system",)
    ) -> None:
        self.window = window
        self.max_tokens = max_tokens
        self.system_roles = system_roles
        self.buffer: list[dict[str, Any]] = []

    def add(self, msg: dict[str, Any]) -> None:
        self.buffer.append(msg)

    def context(self) -> list[dict[str, Any]]:
        """All system messages, then the last ``window`` others."""
        system, others = self._split()
        return system + (others[-self.window :] if self.window > 0 else [])

    def trim(self) -> list[dict[str, Any]]:
        """Drop the oldest others until the estimate fits ``max_tokens``; at least one stays."""
        system, others = self._split()
        while len(others) > 1 and self._tokens(others) > self.max_tokens:
            others.pop(0)
        self.buffer = system + others
        return self.buffer

    def _split(self) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        system = [m for m in self.buffer if m.get("role") in self.system_roles]
        others = [m for m in self.buffer if m.get("role") not in self.system_roles]
        return system, others

    @staticmethod
    def _tokens(messages: list[dict[str, Any]]) -> int:
        """A rough count: a third of the characters, one at the least for each message."""
        return sum(max(1, len(str(m.get("content") or "")) // 3) for m in messages)
