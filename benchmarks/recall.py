"""How well the right memories are recalled: one fixed setting on all sets, beside what one would use instead.

    python benchmarks/recall.py              the table (about a minute)
    python benchmarks/recall.py --moved      the same with each number of the ranking moved by 30 %
    python benchmarks/recall.py --halves     the weight of words chosen on one half, measured on the other

R@k is the mean share of a question's gold memories among the first k. Every corpus is ranked on its own. All
systems use the default embedding. "ours" is what a memory answers: Chroma and the database's full text find,
:func:`lc_memory.recall.ranking.rank` orders, the floor is on. Times are medians over LoCoMo's questions and
contain the embedding of the question; what counts is their ratio. The large sets are read from
``LC_MEMORY_DATA`` (see tests/data.py).
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import chromadb
import numpy as np
from sqlalchemy import Connection, create_engine

from benchmarks.recall_sets import Corpus, excerpts, locomo, madial
from lc_memory.index import texts
from lc_memory.index.chroma import collection as vectors_of
from lc_memory.index.chroma.collection import joined
from lc_memory.language.phatic import is_phatic
from lc_memory.models.embedding_names import embeddings
from lc_memory.recall import ranking as recall
from lc_memory.store.lexical import scoring as lexical
from lc_memory.store.lexical.index import DatabaseLexicalIndex, create_lexical
from tests.data import data_dir

MODEL = embeddings("local")
System = Callable[[str, int], Sequence[int]]  # (question, k) -> places of memories, best first
_vectors: dict[str, list[float]] = {}


def vectors(texts: list[str]) -> list[list[float]]:
    """Vectors of memories; what was embedded before is not embedded again."""
    new = [text for text in dict.fromkeys(texts) if text not in _vectors]
    _vectors.update(zip(new, MODEL.embed_documents(new), strict=True))
    return [_vectors[text] for text in texts]


def collection(texts: list[str], before: Sequence[Sequence[str]] = ()) -> Any:
    """A Chroma collection in memory, as one makes it by hand: cosine, ids by place. ``before``: what was said
    before each text, of which the last is in its vector as it is in a turn's."""
    client = chromadb.EphemeralClient(chromadb.Settings(anonymized_telemetry=False))
    made = client.create_collection(
        f"c{time.monotonic_ns()}", embedding_function=None, metadata={"hnsw:space": "cosine"}
    )
    own = vectors(texts)
    if before:
        last = dict(zip(found := sorted({b[-1] for b in before if b}), vectors(found), strict=True))
        own = [joined(v, last[b[-1]] if b else None) for v, b in zip(own, before, strict=True)]
    made.add(ids=[str(i) for i in range(len(texts))], embeddings=own)
    return made


def ours(corpus: Corpus, connection: Connection, asked: Callable[[str], list[float]]) -> System:
    contexts = corpus.contexts()
    pairs = list(zip(corpus.texts, contexts, strict=True))
    made = collection(corpus.texts, corpus.before)
    index, owner = DatabaseLexicalIndex(), f"{corpus.name} {id(corpus)}"
    items = [lexical.LexicalItem(str(i), "fact", *pair) for i, pair in enumerate(pairs)]
    index.forget(connection, owner)
    index.add(connection, owner, items)

    def answer(question: str, k: int) -> list[int]:
        if is_phatic(question):
            return []
        n = min(recall.CANDIDATES, len(corpus.texts))
        near = made.query(query_embeddings=[asked(question)], n_results=n, include=["distances"])
        cosine = {id_: 1 - d for id_, d in zip(near["ids"][0], near["distances"][0], strict=True)}
        hits = {hit.id: hit for hit in index.search(connection, owner, question, recall.CANDIDATES)}
        found = [
            recall.Candidate(
                id_,
                corpus.texts[int(id_)],
                cosine.get(id_),
                hits[id_].score if id_ in hits else 0.0,
                hits[id_].overlap if id_ in hits else 0.0,
                hits[id_].words if id_ in hits else (),
            )
            for id_ in {**cosine, **hits}
        ]
        return [int(ranked.id) for ranked in recall.rank(question, found, k=k)]

    return answer


def raw_chroma(corpus: Corpus, asked: Callable[[str], list[float]]) -> System:
    made = collection(corpus.texts)

    def answer(question: str, k: int) -> list[int]:
        found = made.query(query_embeddings=[asked(question)], n_results=min(k, len(corpus.texts)))
        return [int(id_) for id_ in found["ids"][0]]

    return answer


def embedding_alone(corpus: Corpus, asked: Callable[[str], list[float]]) -> System:
    matrix = np.asarray(vectors(corpus.texts))
    return lambda question, k: [int(i) for i in np.argsort(-(matrix @ asked(question)), kind="stable")[:k]]


_WORD = re.compile(r"[\u3400-\u9fff]+|[^\W_\u3400-\u9fff]+")


def bm25(corpus: Corpus) -> System:
    """Textbook BM25: lower-cased words, pairs of Chinese characters, nothing left out."""

    def split(text: str) -> list[str]:
        found = []
        for run in _WORD.findall(text.lower()):
            chinese = "\u3400" <= run[0] <= "\u9fff" and len(run) > 1
            found.extend([run[i : i + 2] for i in range(len(run) - 1)] if chinese else [run])
        return found

    counts = [Counter(split(text)) for text in corpus.texts]
    lengths = [sum(count.values()) for count in counts]
    mean, having = sum(lengths) / len(lengths), Counter(term for count in counts for term in count)

    def answer(question: str, k: int) -> list[int]:
        scores = np.zeros(len(counts))
        for term in set(split(question)):
            idf = math.log(1 + (len(counts) - having[term] + 0.5) / (having[term] + 0.5))
            for i, count in enumerate(counts):
                if n := count[term]:
                    scores[i] += idf * n * 2.2 / (n + 1.2 * (0.25 + 0.75 * lengths[i] / mean))
        return [int(i) for i in np.argsort(-scores, kind="stable")[:k] if scores[i] > 0]

    return answer


def measure(system: System, questions: list[tuple[str, list[int]]], ks: Sequence[int]) -> list[list[float]]:
    """For each question its recall at each k."""
    rows = []
    for question, gold in questions:
        found = system(question, max(ks))
        rows.append([len(set(found[:k]) & set(gold)) / len(gold) for k in ks])
    return rows


class Bench:
    def __init__(self) -> None:
        folder = data_dir()
        self.facts, self.unrelated = excerpts()
        self.sets = [*madial(folder), *locomo(folder)] if folder else []
        if folder is None:
            print("No large sets found: set LC_MEMORY_DATA. Only the excerpts are measured.\n")
        self._asked: dict[str, list[float]] = {}
        engine = create_engine("sqlite://")
        self.connection = engine.connect()
        create_lexical(self.connection)

    def asked(self, question: str) -> list[float]:
        if question not in self._asked:
            self._asked[question] = MODEL.embed_query(question)
        return self._asked[question]

    def ours(self, corpus: Corpus) -> System:
        return ours(corpus, self.connection, self.asked)

    def by_name(
        self,
        corpora: list[Corpus],
        make: Callable[[Corpus], System],
        ks: Sequence[int],
        half: int | None = None,
    ) -> dict[str, list[float]]:
        """Mean recall for each name. ``half``: only the questions at even (0) or odd (1) places."""
        rows: dict[str, list[list[float]]] = {}
        for corpus in corpora:
            questions = corpus.questions if half is None else corpus.questions[half::2]
            rows.setdefault(corpus.name, []).extend(measure(make(corpus), questions, ks))
        return {
            name: [statistics.fmean(column) for column in zip(*r, strict=True)] for name, r in rows.items()
        }

    def table(self) -> None:
        systems: dict[str, Callable[[Corpus], System]] = {
            "BM25": bm25,
            "embedding alone": lambda corpus: embedding_alone(corpus, self.asked),
            "raw Chroma": lambda corpus: raw_chroma(corpus, self.asked),
            "ours": self.ours,
        }
        for corpora, ks in ((self.sets, (5, 10)), (self.facts, (1, 3))):
            if not corpora:
                continue
            names = list(dict.fromkeys(corpus.name for corpus in corpora))
            print(f"{f'R@{ks[0]} / R@{ks[1]}':<18}" + "".join(f"{name:>14}" for name in names))
            for label, make in systems.items():
                result = self.by_name(corpora, make, ks)
                print(f"{label:<18}" + "".join(f"{result[n][0]:>8.3f} {result[n][1]:.3f}" for n in names))
            print()

    def floor(self) -> None:
        print(
            f"of {len(self.unrelated)} unrelated messages: how many recall something; memories each (k = 5)"
        )
        for corpus in [*self.facts, *self.sets[:2], *self.sets[-1:]]:
            system = self.ours(corpus)
            given = [len(system(message, 5)) for message in self.unrelated]
            print(f"  {corpus.name:<14}{sum(map(bool, given)):>3}  {statistics.fmean(given):.2f}")
        print()

    def speed(self) -> None:
        """Both answer in turn, so that a busy machine is busy for both."""
        if not self.sets:
            return
        corpus = self.sets[-1]
        pair = {
            "raw Chroma": raw_chroma(corpus, MODEL.embed_query),
            "ours": ours(corpus, self.connection, MODEL.embed_query),
        }
        times: dict[str, list[float]] = {name: [] for name in pair}
        for question, _ in corpus.questions:
            for name, system in pair.items():
                start = time.perf_counter()
                system(question, 10)
                times[name].append(1e3 * (time.perf_counter() - start))
        middle = {name: statistics.median(values) for name, values in times.items()}
        print(
            f"median ms a question: raw Chroma {middle['raw Chroma']:.2f}, ours {middle['ours']:.2f}, ",
            end="",
        )
        print(f"ratio {middle['ours'] / middle['raw Chroma']:.2f}\n")

    def moved(self) -> None:
        names = list(dict.fromkeys(corpus.name for corpus in [*self.sets, *self.facts]))
        print(f"{'R@5 (locomo also R@10)':<26}" + "".join(f"{name:>13}" for name in names))
        changes: list[tuple[Any, str, Any]] = [(recall, "WORDS", recall.WORDS)]
        for module, name in (
            (recall, "WORDS"), (recall, "FLOOR"), (recall, "USUAL_LENGTH"), (recall, "LONGEST"),
            (recall, "OF_THE_ASKER"), (texts, "CONTEXT_CHARS"), (recall, "CANDIDATES"),
            (vectors_of, "BEFORE"), (lexical, "B_TURNS"), (lexical, "COMMON"), (lexical, "RARE"),
            (lexical, "FEW_TERMS"),
            (lexical, "MANY_TERMS"), (lexical, "FEW_ITEMS"), (lexical, "OWN"), (lexical, "K1"),
            (lexical, "B"),
            (lexical, "LEAST_INFORMATION"), (lexical, "SINGLE"),
        ):  # fmt: skip
            value = getattr(module, name)
            changes += [
                (module, name, type(value)(value * f) if name != "OWN" else value * f) for f in (0.7, 1.3)
            ]
        changes += [(texts, "CONTEXT_MESSAGES", n) for n in (1, 3)]
        for module, name, value in changes:
            with changed(module, name, value):
                result = self.by_name([*self.sets, *self.facts], self.ours, (5, 10))
            cells = [
                f"{result[n][0]:.3f}/{result[n][1]:.3f}" if n == "locomo" else f"{result[n][0]:.3f}"
                for n in names
            ]
            print(f"{name + f' = {value:g}':<26}" + "".join(f"{cell:>13}" for cell in cells), flush=True)

    def halves(self) -> None:
        grid = (1.0, 1.4, 2.0, 2.6, 3.0, 4.0)
        everything = [*self.sets, *self.facts]
        results = {}
        for weight in grid:
            with changed(recall, "WORDS", weight):
                results[weight] = [self.by_name(everything, self.ours, (5,), half) for half in (0, 1)]
        for half in (0, 1):
            best = max(grid, key=lambda w: statistics.fmean(v[0] for v in results[w][half].values()))
            cells = ", ".join(f"{name} {value[0]:.3f}" for name, value in results[best][1 - half].items())
            print(f"chosen on half {half}: WORDS = {best:g}; R@5 on the other: {cells}")
            cells = ", ".join(f"{name} {v[0]:.3f}" for name, v in results[recall.WORDS][1 - half].items())
            print(f"  with WORDS = {recall.WORDS:g} there: {cells}")


@contextmanager
def changed(module: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(module, name)
    defaults = recall.rank.__kwdefaults__
    setattr(module, name, value)
    if name == "FLOOR":  # a default is bound when the function is made
        recall.rank.__kwdefaults__ = {**defaults, "floor": value}
    try:
        yield
    finally:
        setattr(module, name, before)
        recall.rank.__kwdefaults__ = defaults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moved", action="store_true")
    parser.add_argument("--halves", action="store_true")
    options = parser.parse_args()
    bench = Bench()
    if options.moved:
        bench.moved()
    elif options.halves:
        bench.halves()
    else:
        bench.table()
        bench.floor()
        bench.speed()


if __name__ == "__main__":
    main()
