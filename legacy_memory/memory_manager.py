"""The manager: it keeps nothing itself and only decides which part does what, and when."""

from __future__ import annotations

import hashlib
from typing import Any

from .compress import maybe_compress as _maybe_compress
from .long_term import LongTermMemory
from .shortmemory import ShortTermMemory


def _fid(text: str) -> str:
    """An id made of the content: the same in every process, unlike ``hash()``."""
    return "f" + hashlib.md5(text.encode("utf-8")).hexdigest()[:12]


class MemoryManager:
    """Short-term window (``stm``), long-term facts (``ltm``) and the rolling summary behind four calls."""

    def __init__(self, window: int = 8, max_tokens: int = 2000, keep: int = 4, llm: Any = None) -> None:
        self.stm = ShortTermMemory(window=window, max_tokens=max_tokens)
        self.ltm = LongTermMemory()
        self.keep = keep
        self.max_tokens = max_tokens
        self.llm = llm

    def add(self, msg: dict[str, Any], persist: bool = False) -> None:
        """Every message enters the window; a user's becomes a long-term fact too when ``persist``."""
        self.stm.add(msg)
        if persist and msg.get("role") == "user":
            self.ltm.add_fact(msg["content"], fid=_fid(msg["content"]))

    def get_context(self, query: str | None = None) -> list[dict[str, Any]]:
        """System messages, facts that bear on ``query``, then the window.

        The facts are spliced into what is returned and never written back: a buffer that took them
        would grow by the same facts with every question.
        """
        base = self.stm.context()
        facts = self.ltm.recall(query, k=3) if query else []
        if not facts:
            return base
        known = {"role": "system", "content": "已知用户长期事实：" + "|".join(facts)}
        system = [m for m in base if m.get("role") in self.stm.system_roles]
        others = [m for m in base if m.get("role") not in self.stm.system_roles]
        return [*system, known, *others]

    def maybe_compress(self, llm: Any = None) -> list[dict[str, Any]]:
        """Compress when there is enough to compress; the buffer is replaced only by a new list."""
        llm = llm or self.llm
        if llm is None:
            return self.stm.buffer
        messages = _maybe_compress(self.stm.buffer, llm, max_tokens=self.max_tokens, keep=self.keep)
        if messages is not self.stm.buffer:
            self.stm.buffer = messages
        return self.stm.buffer

    def recall(self, query: str, k: int = 3) -> list[str]:
        return self.ltm.recall(query, k=k)
