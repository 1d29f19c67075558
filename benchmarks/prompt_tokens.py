"""What a long conversation costs in tokens: sent in all, and sent anew.

    python benchmarks/prompt_tokens.py [--conversations 5] [--window 12] [--budget 8000] [--recall]

Each conversation of LoCoMo (about 600 messages of two people) is held through a real chain: what the first
speaker says is the question, what the second says the answer that a scripted model gives. Recorded is each
request as the model gets it, and counted with ``lc_memory.messages.tokens``.

``repeats`` is the share of a request that stands at the beginning of the one before it already, in whole
messages, on average over all requests: chat services bill such a prefix at a fraction. ``of all`` compares
the tokens of all requests with those of sending the whole conversation each time. Ours is given with the
tokens that the summaries cost on top.

Beside it: a sliding window of the last N messages, and LangChain's RunnableWithMessageHistory with
trim_messages under a budget that lets as many tokens through as ours takes on average.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from langchain_core.chat_history import InMemoryChatMessageHistory
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, trim_messages
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough, RunnableWithMessageHistory
from pydantic import PrivateAttr

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lc_memory import Memory, from_lc, with_memory
from lc_memory.messages.tokens import count_message_tokens
from lc_memory.models.offline import OfflineChatModel
from tests.data import data_dir

warnings.simplefilter("ignore")
SYSTEM = "You are a friendly companion with a memory. Answer briefly, in the language of the question."
PROMPT = ChatPromptTemplate.from_messages(
    [("system", SYSTEM), ("placeholder", "{history}"), ("human", "{question}")]
)
CONFIG: Any = {"configurable": {"session_id": "s", "user_id": "u"}}
SLIDING = 20  # messages


class Script(BaseChatModel):
    """Gives the answers of a conversation in turn, and keeps the requests."""

    answers: list[str]
    _requests: list[list[BaseMessage]] = PrivateAttr(default_factory=list)

    @property
    def requests(self) -> list[list[BaseMessage]]:
        return self._requests

    @property
    def _llm_type(self) -> str:
        return "script"

    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any
    ) -> ChatResult:
        self._requests.append(messages)
        answer = AIMessage(self.answers[len(self._requests) - 1])
        return ChatResult(generations=[ChatGeneration(message=answer)])


@dataclass
class Cost:
    """What the requests of one conversation take."""

    sent: int = 0
    largest: int = 0
    beside: int = 0
    """Tokens that went to another model: summaries, asked for and answered."""
    repeats: list[float] = field(default_factory=list)
    seconds: float = 0.0


def conversations(path: Path) -> list[tuple[list[str], list[str]]]:
    """Questions and answers: the words of the first and the second speaker, in turn."""
    found = []
    for entry in json.loads(path.read_text("utf-8")):
        talk = entry.get("conversation", entry)
        sessions = sorted(
            (
                k
                for k in talk
                if k.startswith("session_") and k.split("_")[1].isdigit() and isinstance(talk[k], list)
            ),
            key=lambda k: int(k.split("_")[1]),
        )
        said: list[list[str]] = [[], []]
        who = 0
        for turn in (t for s in sessions for t in talk[s]):
            speaker = 0 if turn["speaker"] == talk.get("speaker_a", turn["speaker"]) else 1
            if speaker == who:
                said[who].append(turn["text"])
                who = 1 - who
            elif said[1 - who]:  # the same speaker once more
                said[1 - who][-1] += "\n" + turn["text"]
        pairs = min(map(len, said))
        found.append((said[0][:pairs], said[1][:pairs]))
    return found


def cost_of(requests: Sequence[Sequence[BaseMessage]]) -> Cost:
    cost = Cost()
    known: dict[tuple[str, str], int] = {}
    before: list[tuple[str, str]] = []
    for request in requests:
        now = [(m.type, str(m.content)) for m in request]
        for key, message in zip(now, request, strict=True):
            if key not in known:
                known[key] = count_message_tokens(
                    {"role": from_lc(message)["role"], "content": message.content}
                )
        sizes = [known[key] for key in now]
        same = 0
        for a, b, size in zip(now, before, sizes, strict=False):
            if a != b:
                break
            same += size
        if before:
            cost.repeats.append(same / sum(sizes))
        cost.sent += sum(sizes)
        cost.largest = max(cost.largest, sum(sizes))
        before = now
    return cost


def ours(questions: list[str], answers: list[str], window: int, budget: int, recall: bool) -> Cost:
    offline, beside = OfflineChatModel(), 0

    def summarise(text: str) -> str:
        nonlocal beside
        summary = str(offline.invoke(text).content)
        beside += sum(count_message_tokens({"content": t}) for t in (text, summary))
        return summary

    memory = Memory.open(
        ":memory:",
        summarizer=RunnableLambda(summarise),
        window=window,
        max_context_tokens=budget,
        recall=("facts", "turns") if recall else (),
    )
    model = Script(answers=answers)
    bot = with_memory(memory.load_mem | PROMPT | model, memory)
    begun = time.perf_counter()
    for question in questions:
        bot.invoke({"question": question}, CONFIG)
        memory.flush()  # as if the next question came when the summary is done
    memory.close()
    cost = cost_of(model.requests)
    cost.beside, cost.seconds = beside, time.perf_counter() - begun
    return cost


def everything(questions: list[str], answers: list[str]) -> Cost:
    return sliding(questions, answers, len(questions) * 2)


def sliding(questions: list[str], answers: list[str], last: int = SLIDING) -> Cost:
    requests: list[list[BaseMessage]] = []
    history: list[BaseMessage] = []
    for question, answer in zip(questions, answers, strict=True):
        messages = PROMPT.invoke({"history": history[-last:], "question": question}).to_messages()
        requests.append(messages)
        history += [messages[-1], AIMessage(answer)]
    return cost_of(requests)


def trimmed(questions: list[str], answers: list[str], budget: int) -> Cost:
    model, history = Script(answers=answers), InMemoryChatMessageHistory()
    sizes: dict[int, int] = {}

    def counter(messages: list[BaseMessage]) -> int:
        for m in messages:
            if id(m) not in sizes:
                sizes[id(m)] = count_message_tokens({"content": m.content})
        return sum(sizes[id(m)] for m in messages)

    trim = RunnableLambda(
        lambda given: trim_messages(
            given["history"], max_tokens=budget, token_counter=counter, strategy="last", start_on="human"
        )
    )
    bot = RunnableWithMessageHistory(
        RunnablePassthrough.assign(history=trim) | PROMPT | model,
        lambda session_id: history,
        input_messages_key="question",
        history_messages_key="history",
    )
    for question in questions:
        bot.invoke({"question": question}, CONFIG)
    return cost_of(model.requests)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--conversations", type=int, default=5)
    parser.add_argument("--window", type=int, default=12, help="turns; it grows to twice that")
    parser.add_argument("--budget", type=int, default=8000)
    parser.add_argument("--recall", action="store_true", help="also ours with recalled turns")
    chosen = parser.parse_args()
    data = data_dir()
    if data is None or not (data / "locomo").is_dir():
        sys.exit("LoCoMo is not there: set LC_MEMORY_DATA to a folder with locomo/ in it (see tests/data.py)")
    talks = conversations(data / "locomo" / "locomo-first5.json")[: chosen.conversations]

    rows: dict[str, list[Cost]] = {}
    for questions, answers in talks:
        mine = ours(questions, answers, chosen.window, chosen.budget, recall=False)
        costs = {
            "everything each time": everything(questions, answers),
            f"the last {SLIDING} messages": sliding(questions, answers),
            "RunnableWithMessageHistory + trim_messages": trimmed(
                questions, answers, mine.sent // len(questions)
            ),
            "ours": mine,
        }
        if chosen.recall:
            costs["ours, with recall"] = ours(questions, answers, chosen.window, chosen.budget, recall=True)
        for name, cost in costs.items():
            rows.setdefault(name, []).append(cost)

    turns = [len(questions) for questions, _ in talks]
    print(f"LoCoMo, {len(talks)} conversations of {min(turns)} to {max(turns)} questions and answers")
    print(
        f"ours: window {chosen.window} to {2 * chosen.window} turns, max_context_tokens {chosen.budget}, "
        "summaries offline\n"
    )
    print(f"{'':44} {'a turn':>7} {'largest':>8} {'of all':>7} {'+ sums':>7} {'repeats':>8} {'worst':>6}")
    whole = sum(cost.sent for cost in rows["everything each time"])
    for name, costs in rows.items():
        sent, beside = sum(c.sent for c in costs), sum(c.beside for c in costs)
        per_talk = [statistics.mean(c.repeats) for c in costs]
        print(
            f"{name:44} {sent / sum(turns):7.0f} {max(c.largest for c in costs):8} {sent / whole:7.3f} "
            f"{(sent + beside) / whole:7.3f} {statistics.mean(per_talk):8.2f} {min(per_talk):6.2f}"
        )
    print("\nof all: tokens sent, of sending everything each time (target for ours: .167 at the most)")
    print("+ sums: with those that making the summaries took")
    print("repeats: share of a request that repeats the one before (target: .70); worst: conversation")


if __name__ == "__main__":
    main()
