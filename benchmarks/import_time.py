"""What ``import lc_memory`` costs, beside ``import langchain_core.runnables`` in the same run.

    python benchmarks/import_time.py [rounds]

Each round starts one fresh interpreter for each line, in turn, so that what else the machine does falls on
all of them alike. Shown are medians in milliseconds without the bare interpreter's own start, and the ratio;
ends with 1 when ``import lc_memory`` costs more than TARGET times ``import langchain_core.runnables``.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

TARGET = 1.5
BASE = "import langchain_core.runnables"
LINES = {
    "the interpreter": "",
    "langchain_core.runnables": BASE,
    "lc_memory": "import lc_memory",
    "lc_memory, its four names": "from lc_memory import Memory, with_memory, _to_lc, chat_model",
    "lc_memory.cli": "import lc_memory.cli",
}
ROOT = Path(__file__).resolve().parent.parent


def seconds(code: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
    return time.perf_counter() - began


def main(rounds: int) -> int:
    for code in LINES.values():  # byte code and the file cache: not what is asked
        seconds(code)
    runs: dict[str, list[float]] = {name: [] for name in LINES}
    for _ in range(rounds):
        for name, code in LINES.items():
            runs[name].append(seconds(code))
    start = statistics.median(runs["the interpreter"])
    del runs["the interpreter"]
    cost = {name: statistics.median(taken) - start for name, taken in runs.items()}
    base = cost["langchain_core.runnables"]
    print(f"median of {rounds} rounds, less {start * 1000:.0f} ms for the interpreter itself")
    for name, taken in cost.items():
        print(f"{name:28} {taken * 1000:7.1f} ms {taken / base:7.2f} x")
    ratio = cost["lc_memory"] / base
    verdict = "met" if ratio <= TARGET else "MISSED"
    print(f"import lc_memory: {ratio:.2f} x, target at most {TARGET} x: {verdict}")
    return int(ratio > TARGET)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 15))
