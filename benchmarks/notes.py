"""What the write filter keeps, and what of private data is found.

    python benchmarks/notes.py                       the corpus with a perfect and with a careless model
    python benchmarks/notes.py --disguises           forty ways to write private data, found or not
    python benchmarks/notes.py --cost                microseconds a character of the search for private data
    python benchmarks/notes.py --url http://127.0.0.1:8098/v1 --rows 60 --at-once 5      a real model

The corpus is tests/excerpts/turns_worth_keeping.jsonl: 300 turns with the right answer beside each, written
by the same hands as the word lists of the filter, so that its figures are an upper bound of what to expect
of other people's talk. The careless model proposes every turn, whole, split and rewritten, under any kind,
and invents names, numbers, places and illnesses beside it.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lc_memory import chat_model
from lc_memory.facts.privacy import private_in
from tests.helpers.notes_corpus import careless, corpus, measure, perfect, scripted
from tests.test_privacy import DISGUISES


def disguises() -> None:
    print(f"{'what':9} {'how it is written':34} found")
    for kind, how, text, _ in DISGUISES:
        found = kind in [p.kind for p in private_in(text)]
        print(f"{kind:9} {how:34} {'yes' if found else 'no'}")


def cost() -> None:
    samples = {
        "Chinese talk": "我在深圳南山开了家 60 平米的面馆，上个月刚开业，现在每天流水四千左右。" * 200,
        "English talk": "We moved to a farm outside Lyon two years ago, with 12 goats and a dog. " * 200,
        "a table of numbers": "2024-11-30 12:45:59 1234567 89.5 1,024 " * 200,
        "digits, one by one": "1 2 3 4 5 6 7 8 9 0 " * 400,
    }
    for name, text in samples.items():
        started = time.perf_counter()
        private_in(text)
        spent = time.perf_counter() - started
        print(f"{name:20} {spent / len(text) * 1e6:8.1f} µs a character")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--disguises", action="store_true")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--url", help="of an OpenAI-compatible service")
    parser.add_argument("--model", default="m")
    parser.add_argument("--profile", default="compatible")
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--at-once", type=int, default=5)
    parser.add_argument(
        "--show", action="store_true", help="what was kept for nothing, what was missed and why"
    )
    args = parser.parse_args()
    if args.disguises:
        return disguises()
    if args.cost:
        return cost()
    rows = corpus()
    random.Random(7).shuffle(rows)
    rows = sorted(rows[: args.rows], key=lambda row: row.lang)  # a conversation is in one language
    if args.url:
        where = {
            "base_url": args.url,
            "api_key": "k",
            "model": args.model,
            "profile": args.profile,
            "max_tokens": 800,
        }
        model = chat_model(**where, temperature=0)
        outcome = measure(
            rows,
            model,
            args.at_once,
            lambda done, so_far: print(f"{done} turns, {so_far}", file=sys.stderr, flush=True),
        )
        print(f"{len(rows)} turns, {args.at_once} a call: {outcome}")
        for name in ("junk", "missed") if args.show else ():
            print(name, *getattr(outcome, name), sep="\n  ")
        return None
    for proposes in (perfect, careless):
        for at_once in (1, args.at_once):
            outcome = measure(rows, scripted(rows, proposes), at_once)
            print(f"{proposes.__name__}, {at_once} turns a call: {outcome}")
    return None


if __name__ == "__main__":
    main()
