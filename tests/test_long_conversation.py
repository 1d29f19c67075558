"""A thousand turns through a whole chain: the budget holds, one summary, what was said first is still there."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate

from lc_memory import Memory, from_lc, with_memory
from lc_memory.messages.tokens import count_message_tokens, count_tokens
from lc_memory.models.offline import OfflineChatModel
from tests.data import data_dir
from tests.helpers.models import Scripted

BUDGET = 1500
WINDOW = 6
CONFIG: Any = {"configurable": {"session_id": "s", "user_id": "u"}}
PROMPT = ChatPromptTemplate.from_messages([("placeholder", "{history}"), ("human", "{question}")])
FIRST = "记住：我对花生过敏"
CORE = ("预算", "40万，不含车位")


class Speaker(Scripted):
    """Answers each question with what stands behind it in the conversation."""

    talk: dict[str, str] = {}  # noqa: RUF012 - a pydantic field

    def _next(self, messages: list[BaseMessage]) -> Any:
        self._prompts.append(list(messages))
        return Scripted(answers=[self.talk.get(str(messages[-1].content), "好的")])._next(messages)


def locomo() -> Iterator[tuple[str, str]]:
    data = data_dir()
    assert data is not None
    for entry in json.loads((data / "locomo" / "locomo-first5.json").read_text("utf-8")):
        talk = entry["conversation"]
        sessions = [k for k in talk if k.startswith("session_") and isinstance(talk[k], list)]
        said = [t["text"] for k in sorted(sessions, key=lambda k: int(k.split("_")[1])) for t in talk[k]]
        yield from zip(said[::2], said[1::2], strict=False)


def madial() -> Iterator[tuple[str, str]]:
    data = data_dir()
    assert data is not None
    for name in ("dialogues-zh.jsonl", "dialogues-en.jsonl"):
        for line in (data / "madial" / name).read_text("utf-8").splitlines():
            said = [line.strip().partition(">:")[2].strip('"') for line in json.loads(line)["dialogue"][1:-1]]
            yield from zip(said[::2], said[1::2], strict=False)


def synthetic() -> Iterator[tuple[str, str]]:
    rng = random.Random(3)
    things = ["the house", "杭州的地铁", "my dog Rex", "周末打篮球", "the budget", "一本小说"]
    for n in range(400):
        thing = rng.choice(things)
        yield f"Turn {n}: I want to tell you about {thing}. " + "长 word " * rng.randrange(30), f"好的 {n}"


def hold(folder: Path, talk: list[tuple[str, str]]) -> None:
    model = Speaker(answers=["x"], talk=dict(talk))
    memory = Memory.open(
        folder, summarizer=OfflineChatModel(), window=WINDOW, max_context_tokens=BUDGET, recall=()
    )
    bot = with_memory(memory.load_mem | PROMPT | model | StrOutputParser(), memory)
    memory.core("u").set(*CORE)
    bot.invoke({"question": FIRST}, CONFIG)
    summaries = []
    for n, (question, _) in enumerate(talk):
        bot.invoke({"question": question}, CONFIG)
        if n % 7 == 0:  # most often the next question comes while the summary is being made
            memory.flush()
            summaries.append(memory.session("s", "u").summary)
    memory.flush()

    for prompt in model.prompts:
        dicts = [from_lc(m) for m in prompt]
        assert sum(map(count_message_tokens, dicts)) <= BUDGET
        assert f"- {CORE[0]}: {CORE[1]}" in str(prompt[0].content)
        marked = [m for m in dicts if m.get("is_summary")]
        assert len(marked) <= 1
        assert all(len(str(m["content"])) <= 200 + 120 for m in marked)
        assert len([m for m in dicts if m["role"] == "system"]) == 1 + len(marked)
        assert len([m for m in dicts if m["role"] == "user"]) <= 2 * WINDOW + 1 + WINDOW
    assert len(set(summaries)) > len(talk) // 100
    assert summaries[-1]
    assert len(summaries[-1]) <= 200
    # The last prompt begins with the core fact and one summary, and the window ends with the last answer.
    last = [from_lc(m) for m in memory.history("我的预算是多少？", CONFIG)]
    assert CORE[1] in last[0]["content"]
    assert last[1]["is_summary"]
    assert last[-1]["content"] == dict(talk)[talk[-1][0]]
    # What was said first is kept: as a fact, and in the history.
    facts = memory._stored("test").store.ledger().current("user:u")
    assert [f.text for f in facts if not f.core] == [FIRST.partition("：")[2]]
    turns = memory.session("s", "u").messages()
    assert turns[0].content == FIRST
    assert [m.content for m in turns[2::2]] == [q for q, _ in talk]
    explained = memory.explain("我的预算是多少？", CONFIG)
    assert explained.tokens <= BUDGET
    assert [p.kind for p in explained.parts if p.kind in ("core", "summary")] == ["core", "summary"]
    memory.close()
    again = Memory.open(folder, window=WINDOW, max_context_tokens=BUDGET, recall=())
    assert [from_lc(m) for m in again.history("我的预算是多少？", CONFIG)] == last
    again.close()
    # A question brings back what was asked to be remembered in the first turn, within the same budget.
    recalling = Memory.open(folder, window=WINDOW, max_context_tokens=BUDGET)
    recalling.flush()
    explained = recalling.explain("我对什么东西过敏？", CONFIG)
    assert explained.tokens <= BUDGET
    assert any(p.kind == "recalled" and p.included and "花生" in p.text for p in explained.parts), explained
    recalling.close()


@pytest.mark.skipif(data_dir() is None, reason="needs the measuring data")
@pytest.mark.parametrize("source", [locomo, madial], ids=["locomo", "madial"])
def test_a_thousand_recorded_turns(tmp_path: Path, source: Any) -> None:
    talk = [(q, a) for q, a in source() if q and count_tokens(q) < BUDGET // 2]
    assert len(talk) > 150
    distinct = list(dict(talk).items())
    thousand = [
        (q if n < len(distinct) else f"{q} ({n})", a)
        for n, (q, a) in enumerate(islice(cycle(distinct), 1000))
    ]
    hold(tmp_path, thousand)


def test_four_hundred_made_up_turns_of_every_size(tmp_path: Path) -> None:
    hold(tmp_path, list(synthetic()))
