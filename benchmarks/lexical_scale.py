"""The lexical index with 100,000 memories of one owner, and with 1,000 owners of 1,000 each in one table.

    python benchmarks/lexical_scale.py [--postgres URL] [--small]

The texts are drawn from the words of ``tests/excerpts`` and of a made-up vocabulary whose frequencies fall as
those of a language do (Zipf); one memory in ten holds the owner's own name, as messages do. Times are wall
clock beside the CPU time of this process, which in SQLite is all the work: on a busy machine look there.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from sqlalchemy import Connection, create_engine, text

from benchmarks.recall_sets import EXCERPTS
from lc_memory.store.lexical.index import DatabaseLexicalIndex, create_lexical
from lc_memory.store.lexical.scoring import LexicalItem

INDEX = DatabaseLexicalIndex()


class Language:
    """Sentences of some 12 words in one language or the other."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        lines = [json.loads(line) for line in EXCERPTS.read_text("utf-8").splitlines()]
        english = " ".join(line["fact"] for line in lines if line.get("lang") == "en" and "fact" in line)
        chinese = "".join(line["fact"] for line in lines if line.get("lang") == "zh" and "fact" in line)
        syllables = ("ba", "ro", "ti", "mel", "san", "dor", "ki", "vu", "lan", "pe", "gra", "sto", "fi", "nu")
        made = ["".join(some) for some in itertools.product(syllables, repeat=3)]
        words = sorted(set(english.split())) + made
        self._english = words, list(itertools.accumulate(1 / (rank + 5) for rank in range(len(words))))
        self._chinese = [chinese[i : i + 4] for i in range(0, len(chinese) - 4, 4)]

    def sentence(self, length: int = 12) -> str:
        if self._random.random() < 0.3:
            return "".join(self._random.choices(self._chinese, k=length // 3))
        words, weights = self._english
        named = ["Melanie"] if self._random.random() < 0.1 else []
        return " ".join(named + self._random.choices(words, cum_weights=weights, k=length))

    def items(self, n: int) -> list[LexicalItem]:
        said = [self.sentence() for _ in range(n)]
        return [
            LexicalItem(f"t{i}", "turn", text, "\n".join(said[max(0, i - 2) : i]))
            for i, text in enumerate(said)
        ]


def quantiles(call: Callable[[int], object], times: int) -> str:
    wall, cpu = [], []
    for i in range(times):
        start, spent = time.perf_counter(), time.process_time()
        call(i)
        cpu.append(1e3 * (time.process_time() - spent))
        wall.append(1e3 * (time.perf_counter() - start))
    cut = {name: statistics.quantiles(values, n=20) for name, values in (("wall", wall), ("CPU", cpu))}
    return ", ".join(f"{name} p50 {q[9]:.2f} ms p95 {q[18]:.2f} ms" for name, q in cut.items())


def run(connection: Connection, owners: int, each: int, size: Callable[[], float]) -> None:
    language = Language(1)
    spent = 0.0
    for owner in range(owners):
        items = language.items(each)
        start = time.perf_counter()
        for place in range(0, each, 1_000):
            INDEX.add(connection, f"user {owner}", items[place : place + 1_000])
            connection.commit()
        spent += time.perf_counter() - start
    total = owners * each
    if connection.dialect.name == "postgresql":
        connection.commit()
        connection.exec_driver_sql("ANALYZE lcm_lexical_items")
    print(f"{connection.dialect.name}: {owners:,} owner(s) with {each:,} memories each")
    print(f"  written at {total / spent:,.0f} a second, {size() / 1e6:,.0f} MB")
    questions = [f"{language.sentence(5)} Melanie?" for _ in range(300)]
    pick = random.Random(2)
    print("  search: " + quantiles(
        lambda i: INDEX.search(connection, f"user {pick.randrange(owners)}", questions[i], 32), 300
    ))  # fmt: skip
    one = [LexicalItem(f"new {i}", "turn", language.sentence()) for i in range(200)]

    def add(i: int) -> None:
        INDEX.add(connection, "user 0", [one[i]])
        connection.commit()

    print("  one more memory: " + quantiles(add, 200))
    start = time.perf_counter()
    INDEX.forget(connection, "user 0")
    connection.commit()
    print(f"  forgetting one owner: {time.perf_counter() - start:.2f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--postgres", help="URL of an empty database, postgresql+psycopg://…")
    parser.add_argument("--small", action="store_true", help="a tenth of everything")
    options = parser.parse_args()
    n = 10 if options.small else 1
    for owners, each in ((1, 100_000 // n), (1_000 // n, 1_000)):
        with tempfile.TemporaryDirectory() as folder:
            url = options.postgres or f"sqlite:///{folder}/lexical.db"
            engine = create_engine(url)
            with engine.connect() as connection:
                if options.postgres:
                    connection.exec_driver_sql("DROP TABLE IF EXISTS lcm_lexical_owners, lcm_lexical_items")
                else:
                    connection.exec_driver_sql("PRAGMA journal_mode = WAL")
                    connection.exec_driver_sql("PRAGMA synchronous = NORMAL")
                create_lexical(connection)
                connection.commit()

                def size(connection: Connection = connection, folder: str = folder) -> float:
                    if connection.dialect.name == "sqlite":
                        return float(sum(path.stat().st_size for path in Path(folder).iterdir()))
                    asked = text("SELECT pg_total_relation_size('lcm_lexical_items')")
                    return float(connection.execute(asked).scalar_one())

                run(connection, owners, each, size)
            engine.dispose()


if __name__ == "__main__":
    main()
