"""Managers of the user's own: the original one with a conversation in it and no long-term part that would
open Chroma, and the smallest that there is."""

from __future__ import annotations

from typing import Any

from legacy_memory import MemoryManager

EARLIER = [{"role": "user", "content": "我叫小明，喜欢打篮球"}, {"role": "assistant", "content": "记住了"}]


class NoFacts:
    """A long-term part with nothing in it."""

    def recall(self, query: str, k: int = 3, include_private: bool = False) -> list[str]:
        return []


class Words:
    """The smallest manager: two lists of words."""

    def __init__(self) -> None:
        self.said: list[dict[str, str]] = []

    def add_user(self, text: str) -> None:
        self.said.append({"role": "user", "content": text})

    def add_ai(self, text: str) -> None:
        self.said.append({"role": "assistant", "content": text})

    def get_context(self, query: str | None = None) -> list[dict[str, str]]:
        return self.said[-6:]


def manager(**kwargs: Any) -> MemoryManager:
    mm = MemoryManager(**kwargs)
    mm.ltm = NoFacts()  # type: ignore[assignment]
    for message in EARLIER:
        mm.add(dict(message))
    return mm


def plain(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what streaming adds to a message's own metadata."""
    return [{k: v for k, v in m.items() if k != "response_metadata"} for m in messages]
