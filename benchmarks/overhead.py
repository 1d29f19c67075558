"""What a turn costs beside the bare chain: median CPU time, everything in memory, one run.

    python benchmarks/overhead.py [--turns 400]

The chain is prompt | model | StrOutputParser() with a model that answers at once, and 20 messages of
history. Beside ours stands LangChain's RunnableWithMessageHistory. Times are CPU time of this process
(``time.process_time``), taken round by round so that a noisy machine is noisy to all; what counts are the
ratios. The second table: the same with 20 and with 100,000 messages behind the window.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnableWithMessageHistory

from lc_memory import Memory, with_memory

warnings.simplefilter("ignore")
PROMPT = ChatPromptTemplate.from_messages(
    [("system", "You remember."), ("placeholder", "{history}"), ("human", "{question}")]
)
MODEL = FakeListChatModel(responses=["an answer of some words"])
CONFIG: Any = {"configurable": {"session_id": "s"}}


class Windowed:
    """A manager whose window is a slice: it never walks the messages behind it."""

    def __init__(self, behind: int, window: int = 20) -> None:
        roles = ("user", "assistant")
        self.messages = [{"role": roles[i % 2], "content": f"message {i}"} for i in range(behind)]
        self.window = window

    def add(self, msg: dict[str, Any]) -> None:
        self.messages.append(msg)

    def get_context(self, query: str | None = None) -> list[dict[str, Any]]:
        return self.messages[-self.window :]


def chain() -> Runnable[Any, Any]:
    return PROMPT | MODEL | StrOutputParser()


def bare() -> Callable[[], Any]:
    history = [(HumanMessage, AIMessage)[i % 2](f"message {i}") for i in range(20)]
    built = chain()
    return lambda: built.invoke({"question": "q", "history": history}, CONFIG)


def load_only(behind: int = 20) -> Callable[[], Any]:
    built = Memory(Windowed(behind)).load_mem | chain()
    return lambda: built.invoke({"question": "q"}, CONFIG)


def load_and_save(behind: int = 20) -> Callable[[], Any]:
    memory = Memory(Windowed(behind))
    bot = with_memory(memory.load_mem | chain(), memory)
    return lambda: bot.invoke({"question": "q"}, CONFIG)


def langchain() -> Callable[[], Any]:
    history = InMemoryChatMessageHistory()
    start = [(HumanMessage, AIMessage)[i % 2](f"message {i}") for i in range(20)]
    bot = RunnableWithMessageHistory(
        chain(), lambda session_id: history, input_messages_key="question", history_messages_key="history"
    )

    def turn() -> None:
        history.messages = list(start)  # it has no window: keep it at 20 messages
        bot.invoke({"question": "q"}, CONFIG)

    return turn


def medians(cases: dict[str, Callable[[], Any]], turns: int) -> dict[str, float]:
    spent: dict[str, list[float]] = {name: [] for name in cases}
    for i in range(turns + 20):
        for name, turn in cases.items():
            before = time.process_time()
            turn()
            if i >= 20:  # the first rounds warm caches up
                spent[name].append(time.process_time() - before)
    return {name: statistics.median(times) * 1e6 for name, times in spent.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--turns", type=int, default=400)
    turns = parser.parse_args().turns

    cases = {
        "bare chain": bare(),
        "load_mem": load_only(),
        "load_mem + with_memory": load_and_save(),
        "RunnableWithMessageHistory": langchain(),
    }
    found = medians(cases, turns)
    base, theirs = found["bare chain"], found["RunnableWithMessageHistory"] - found["bare chain"]
    print(f"{'20 messages of history':30} {'µs/turn':>9} {'adds':>9} {'of theirs':>10}")
    for name, micros in found.items():
        added = micros - base
        share = "" if name == "bare chain" else f"{added / theirs:10.3f}"
        print(f"{name:30} {micros:9.0f} {added:9.0f} {share}")

    lengths = medians({"20": load_and_save(20), "100,000": load_and_save(100_000)}, turns)
    print(f"\n{'messages behind the window':30} {'µs/turn':>9} {'ratio':>9}")
    for name, micros in lengths.items():
        print(f"{name:30} {micros:9.0f} {micros / lengths['20']:9.2f}")


if __name__ == "__main__":
    main()
