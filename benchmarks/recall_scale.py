"""Recall with many memories, beside raw chromadb with the same vectors and the same filter.

::

    python benchmarks/recall_scale.py                      # 100,000 of one user; 1,000 users x 1,000
    python benchmarks/recall_scale.py --one 5000 --users 50 --each 100 --checked 500

Vectors are of the default embedding's size and drawn at random by text (no time is spent on embedding them;
the time of embedding one question with the default embedding is measured by itself and printed). Random
vectors are the harder case: in 512 dimensions all are about equally far. The raw query is the one that
langchain_chroma makes for ``n`` results of one owner.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import resource
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from lc_memory import Memory
from lc_memory.facts.index import scope
from lc_memory.facts.recall import CANDIDATES

SIZE = 512
WORDS = [
    "tea", "garden", "violin", "harbour", "bicycle", "winter", "letter", "market", "bridge", "candle",
    "river", "orange", "teacher", "window", "mountain", "ticket", "bread", "island", "museum", "train",
]  # fmt: skip


class Drawn(Embeddings):
    """A vector drawn at random for each text, always the same one."""

    model = "drawn"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")
        vector = np.random.default_rng(seed).standard_normal(SIZE)
        return (vector / np.linalg.norm(vector)).tolist()  # type: ignore[no-any-return]


def text_of(user: int, n: int) -> str:
    draw = random.Random(user * 1_000_003 + n)
    return f"{' '.join(draw.choices(WORDS, k=6))} of u{user} number {n}"


def filled(folder: Path, users: int, each: int) -> tuple[Memory, float]:
    """A memory with ``each`` facts of ``users``; how many a second were written and indexed."""
    memory = Memory.open(folder, embedding=Drawn())
    store: Any = memory._stored("").store
    longterm: Any = memory._long("")
    began = time.perf_counter()
    for user in range(users):
        ledger = store.ledger()
        for n in range(each):
            ledger.add(f"user:u{user}", text_of(user, n))
    noted = time.perf_counter()
    longterm.catch_up()
    memory.flush()
    ended = time.perf_counter()
    total = users * each
    print(f"  noted     {total / (noted - began):8.0f} facts/s (each its own commit)")
    print(f"  indexed   {total / (ended - noted):8.0f} facts/s (words and vectors)")
    return memory, total / (ended - began)


def timed(calls: list[Callable[[], Any]]) -> tuple[float, float]:
    """p50 and p95 in ms."""
    times = []
    for call in calls:
        began = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times), sorted(times)[int(len(times) * 0.95)]


def measure(users: int, each: int, queries: int, checked: int, embedding_ms: float) -> None:
    print(f"{users:,} user{'s' if users > 1 else ''} x {each:,} memories")
    folder = Path(tempfile.mkdtemp(prefix="lc-memory-scale-"))
    try:
        memory, _ = filled(folder, users, each)
        longterm: Any = memory._long("")
        draw = random.Random(7)
        asked = [
            (draw.randrange(users), f"where is the {' and the '.join(draw.choices(WORDS, k=2))}?")
            for _ in range(queries)
        ]
        embed = Drawn().embed_query
        for user, question in asked[:3]:
            longterm.find(f"user:u{user}", question, 4)
        index: Any = longterm._vectors._open()
        drawn_ms = timed([lambda q=q: embed(q) for _, q in asked])[0]
        raw = timed(
            [
                lambda u=u, q=q: index._search(embed(q), CANDIDATES, {"scope": scope(f"user:u{u}")})
                for u, q in asked
            ]
        )
        bare = timed([lambda q=q: index._search(embed(q), CANDIDATES, None) for _, q in asked])
        ours = timed([lambda u=u, q=q: longterm.find(f"user:u{u}", q, 4) for u, q in asked])
        target = 2 * raw[0] + embedding_ms
        print(f"  raw chromadb, of one owner   p50 {raw[0]:7.1f} ms   p95 {raw[1]:7.1f} ms")
        print(f"  raw chromadb, of everybody   p50 {bare[0]:7.1f} ms   p95 {bare[1]:7.1f} ms")
        print(
            f"  recall                       p50 {ours[0]:7.1f} ms   p95 {ours[1]:7.1f} ms   "
            f"+ one embedding {embedding_ms - drawn_ms:.1f} ms; target <= {target:.1f} ms"
        )
        wrong = 0
        for n in range(checked if users > 1 else 0):
            user = n % users
            found = longterm.find(f"user:u{user}", text_of((user + 1) % users, n % each), 4)
            wrong += sum(
                one.memory.owner != f"user:u{user}" or f" of u{user} " not in one.text for one in found
            )
        if users > 1:
            print(
                f"  {checked:,} questions in another user's words: {wrong} memories of another user returned"
            )
        memory.close()
        disk = {
            name: sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) / 2**20
            for name, path in (("all", folder), ("chroma", folder / "chroma"))
        }
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  disk {disk['all']:.0f} MB (vectors {disk['chroma']:.0f} MB); memory {peak:.0f} MB at most")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--one", type=int, default=100_000, help="memories of the one user; 0 leaves this out"
    )
    parser.add_argument("--users", type=int, default=1_000, help="0 leaves this out")
    parser.add_argument("--each", type=int, default=1_000, help="memories of each of them")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--checked", type=int, default=10_000, help="questions about another user's memories")
    options = parser.parse_args()

    from lc_memory.models.embeddings import embeddings

    local = embeddings("local")
    local.embed_query("loads the model")
    embedding_ms = timed([lambda n=n: local.embed_query(f"where is the {WORDS[n]}?") for n in range(20)])[0]
    print(f"one embedding of a question: {embedding_ms:.1f} ms")
    if options.one:
        measure(1, options.one, options.queries, 0, embedding_ms)
    if options.users:
        measure(options.users, options.each, options.queries, options.checked, embedding_ms)


if __name__ == "__main__":
    main()
