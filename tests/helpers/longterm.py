"""Memories for the tests of long-term recall: an embedding that costs nothing, and a store full of facts."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

from langchain_core.embeddings import Embeddings

from lc_memory import Memory

DIMENSION = 64

FACTS = [
    "我喜欢打篮球",
    "我家的狗叫豆豆",
    "我对花生过敏",
    "我住在杭州的西湖边",
    "我妹妹在北京读大学",
    "My favourite food is Sichuan hot pot",
    "I drive a green bicycle to work",
    "My brother plays the violin in Vienna",
]


class Bags(Embeddings):
    """Words and Chinese characters, each in its own direction: texts are near that share them.

    For tests of everything but the quality of recall. ``fails``: raise instead. ``name`` makes another
    space of the same dimension.
    """

    def __init__(self, name: str = "bags", dimension: int = DIMENSION) -> None:
        self.model = name
        self.dimension = dimension
        self.fails: Exception | None = None
        self.calls = 0

    def _vector(self, text: str) -> list[float]:
        self.calls += 1
        if self.fails is not None:
            raise self.fails
        vector = [0.01] * self.dimension
        for word in re.findall(r"[a-z0-9]+|[\u3400-\u9fff]", text.lower()):
            digest = hashlib.sha256(f"{self.model}:{word}".encode()).digest()
            for i in range(4):
                vector[digest[i] % self.dimension] += 1.0 if digest[8 + i] % 2 else -1.0
        length = sum(x * x for x in vector) ** 0.5
        return [x / length for x in vector]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._vector(text)


def opened(where: Path | str, **options: Any) -> Memory:
    """A memory that tries a failed index again at once."""
    memory = Memory.open(where, **{"embedding": Bags(), "window": 1, **options})
    if memory._longterm is not None:
        memory._longterm._vectors.first_pause = 0.0
    return memory


def with_facts(where: Path | str, user: str = "u1", **options: Any) -> Memory:
    memory = opened(where, **options)
    for fact in FACTS:
        memory.remember(fact, user_id=user)
    return memory


def say(memory: Memory, question: str, answer: str, session: str = "s1", user: str | None = "u1") -> None:
    memory.session(session, user).add(
        [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    )


def recalled(memory: Memory, question: str, user: str | None = "u1", session: str = "other") -> str:
    """What the prompt of a question in a fresh session holds before it."""
    messages = memory.session(session, user).context(question)
    return "\n".join(str(m.content) for m in messages)


def in_order(memory: Memory) -> None:
    """Everything that is stored is in the index, and nothing else."""
    memory.flush()
    health = memory.health()
    assert health.ok, str(health)
    assert health.entries == health.facts + health.turns
    memory.flush()
