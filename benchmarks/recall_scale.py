"""Recall with many memories, beside raw chromadb with the same vectors and the same filter.

::

    python benchmarks/recall_scale.py                      # 100,000 of one user; 1,000 users x 1,000
    python benchmarks/recall_scale.py --one 5000 --users 50 --each 100 --checked 500
    python benchmarks/recall_scale.py --one 0 --keep FOLDER      # filled once (an hour), measured again

Memories are sentences of ten words, drawn from 5,000 with the frequencies that words have in a language
(Zipf's law), and end in a number and a name that no other has. The vector of a text, of the default
embedding's size, is the sum of its words' vectors, each drawn at random, so that texts with words in common
are near each other and no time is spent on embedding them; the time of embedding one question with the
default embedding is measured by itself and printed. The raw query is the one that langchain_chroma makes for
as many results, of one owner. How many of the truly nearest it finds is counted by comparing with all of the
owner's vectors.

All but the first thousand facts are written to the ledger by the thousand, to save an hour; the indexing of
all of them is the package's own.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import itertools
import random
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from langchain_core.embeddings import Embeddings

from lc_memory import Memory
from lc_memory.index.chroma.collection import BATCH, scope
from lc_memory.recall.ranking import CANDIDATES
from lc_memory.store import ledger as ledgers
from lc_memory.store.text import digest, dump_json

SIZE = 512
SYLLABLES = [
    "ba",
    "co",
    "di",
    "fu",
    "ge",
    "ha",
    "li",
    "mo",
    "nu",
    "pe",
    "ra",
    "so",
    "ti",
    "vu",
    "we",
    "za",
    "ky",
]
WORDS = [f"{a}{b}{c}n" for a in SYLLABLES for b in SYLLABLES for c in SYLLABLES][::-1]
random.Random(1).shuffle(WORDS)
FREQUENCIES = list(itertools.accumulate(1 / rank for rank in range(3, len(WORDS) + 3)))
IN_A_SENTENCE = 10
COMPARED = 100_000


@functools.lru_cache(10_000)
def vector_of(word: str) -> np.ndarray[Any, np.dtype[np.float64]]:
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "big")
    return np.random.default_rng(seed).standard_normal(SIZE)


class Drawn(Embeddings):
    """The sum of the vectors of a text's words."""

    model = "drawn"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        vector = np.sum([vector_of(word) for word in text.split()], axis=0)
        return (vector / np.linalg.norm(vector)).tolist()  # type: ignore[no-any-return]


def text_of(user: int, n: int) -> str:
    draw = random.Random(user * 1_000_003 + n)
    return f"{' '.join(draw.choices(WORDS, cum_weights=FREQUENCIES, k=IN_A_SENTENCE))} {n} u{user}"


def write(database: Any, user: int, numbers: range) -> None:
    """Facts of a user, in one transaction; as Ledger.add would have written each."""
    now = time.time()
    rows = []
    for n in numbers:
        said = text_of(user, n)
        rows.append(
            ledgers._identity(f"user:u{user}", said, None, None)
            | dict.fromkeys(("expires_at", "superseded_by", "superseded_at", "source_key"))
            | {"fact_id": f"f{n}", "fact_key": digest(f"f{n}"), "source": dump_json("source", {})[0]}
            | {"noted_at": now, "private": 0, "core": 0, "times": 1, "revision": 1, "indexed": 0}
        )
    with database.write() as connection:
        connection.execute(ledgers.sql(ledgers._INSERT.text.partition(" RETURNING")[0]), rows)


def raw_writes(users: int, each: int) -> float:
    """How many of the same memories (their first :data:`COMPARED`) raw chromadb takes in a second."""
    import chromadb

    folder = tempfile.mkdtemp(prefix="lc-memory-raw-")
    client = chromadb.PersistentClient(folder, settings=chromadb.Settings(anonymized_telemetry=False))
    collection = client.create_collection(
        "raw", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
    )
    everything = [(user, n) for user in range(users) for n in range(each)][:COMPARED]
    try:
        began = time.perf_counter()
        for start in range(0, len(everything), BATCH):
            some = everything[start : start + BATCH]
            texts = [text_of(*one) for one in some]
            collection.add(
                [f"{user}-{n}" for user, n in some],
                embeddings=Drawn().embed_documents(texts),
                documents=texts,
                metadatas=[{"user": user} for user, _ in some],
            )
        return len(everything) / (time.perf_counter() - began)
    finally:
        client.close()
        shutil.rmtree(folder, ignore_errors=True)


def filled(folder: Path, users: int, each: int) -> Memory:
    """A memory with ``each`` facts of ``users``."""
    memory = Memory.open(folder, embedding=Drawn())
    if memory._stored("").store.ledger().counts().total == users * each:
        print("  (filled before)")
        return memory
    store: Any = memory._stored("").store
    longterm: Any = memory._long("")
    total, done, indexing, first_part = users * each, 0, 0.0, 0.0
    first = min(1000, each)
    ledger = store.ledger()
    began = time.perf_counter()
    for n in range(first):
        ledger.add("user:u0", text_of(0, n))
    noting = time.perf_counter() - began
    everyone = time.perf_counter()
    for user in range(users):
        for start in range(first if user == 0 else 0, each, 1000):
            write(store.database, user, range(start, min(start + 1000, each)))
        if user % 10 == 9 or user == users - 1:
            before = done
            began = time.perf_counter()
            longterm._indexer().facts()
            indexing += time.perf_counter() - began
            done = (user + 1) * each
            if before < COMPARED <= done:
                first_part = indexing
            if user % 50 == 49:
                spent = time.perf_counter() - everyone
                print(f"  {done:,} indexed, {done / indexing:.0f} a second, {spent:.0f} s", file=sys.stderr)
    memory.flush()
    ours = min(total, COMPARED) / (first_part or indexing)
    raw = raw_writes(users, each)
    print(f"  noted     {first / noting:8.0f} facts/s (each its own commit)")
    print(f"  indexed   {total / indexing:8.0f} facts/s (words and vectors)")
    print(
        f"  the first {min(total, COMPARED):,}: {ours:.0f} facts/s, raw chromadb {raw:.0f}: {ours / raw:.2f}"
    )
    sys.stdout.flush()
    return memory


def truly_nearest(user: int, each: int, questions: list[str], n: int) -> list[set[str]]:
    """The texts of the ``n`` nearest of a user's memories to each question."""
    texts = [text_of(user, i) for i in range(each)]
    vectors = np.empty((each, SIZE), dtype=np.float32)
    for i, text in enumerate(texts):
        vectors[i] = Drawn().embed_query(text)
    asked = np.array([Drawn().embed_query(q) for q in questions], dtype=np.float32)
    return [{texts[i] for i in row} for row in np.argsort(-(asked @ vectors.T), axis=1)[:, :n]]


def timed(calls: list[Callable[[], Any]]) -> tuple[float, float]:
    """p50 and p95 in ms."""
    times = []
    for call in calls:
        began = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times), sorted(times)[int(len(times) * 0.95)]


def measure(
    users: int, each: int, queries: int, checked: int, embedding_ms: float, keep: Path | None = None
) -> None:
    print(f"{users:,} user{'s' if users > 1 else ''} x {each:,} memories", flush=True)
    folder = keep or Path(tempfile.mkdtemp(prefix="lc-memory-scale-"))
    try:
        memory = filled(folder, users, each)
        longterm: Any = memory._long("")
        store: Any = memory._stored("").store
        draw = random.Random(7)
        asked = [
            (draw.randrange(users), " ".join(draw.choices(WORDS, cum_weights=FREQUENCIES, k=4)))
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
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        hit = same = 0
        for user in sorted({u for u, _ in asked})[:20]:
            questions = [q for u, q in asked if u == user][:20]
            for q, true in zip(questions, truly_nearest(user, each, questions, 10), strict=True):
                found = longterm._nearest(f"user:u{user}", q, 10, ("facts", "turns"), None, False, each)
                rows = store.ledger().by_row([int(item[1:]) for item in found])
                hit += sum(fact.text in true for fact in rows.values())
                same += len(true)
        print(f"  of the ten truly nearest memories {hit / same:.1%} were found by vectors")
        wrong = empty = 0
        for n in range(checked if users > 1 else 0):
            user = n % users
            found = longterm.find(f"user:u{user}", text_of((user + 1) % users, n % each), 4)
            empty += not found
            wrong += sum(
                one.memory.owner != f"user:u{user}" or not one.text.endswith(f" u{user}") for one in found
            )
        if users > 1:
            print(
                f"  {checked:,} questions in another user's words: {wrong} of another user returned; "
                f"{empty} answered with nothing"
            )
        memory.close()
        disk = {
            name: sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) / 2**20
            for name, path in (("all", folder), ("chroma", folder / "chroma"))
        }
        print(f"  disk {disk['all']:.0f} MB (vectors {disk['chroma']:.0f} MB); memory {peak:.0f} MB at most")
    finally:
        if keep is None:
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
    parser.add_argument("--keep", type=Path, help="a folder for the many users' memory, kept and used again")
    options = parser.parse_args()

    from lc_memory.models.embedding_names import embeddings

    local = embeddings("local")
    local.embed_query("loads the model")
    embedding_ms = timed([lambda n=n: local.embed_query(f"where does {WORDS[n]} live?") for n in range(20)])[
        0
    ]
    print(f"one embedding of a question: {embedding_ms:.1f} ms")
    if options.one:
        measure(1, options.one, options.queries, 0, embedding_ms)
    if options.users:
        measure(options.users, options.each, options.queries, options.checked, embedding_ms, options.keep)


if __name__ == "__main__":
    main()
