"""One process of a scene: a shopkeeper talks to a chain with memory, and the process ends.

    python -m tests.helpers.scene URL PROFILE FOLDER SESSION < questions, a line each

Each answer is printed on a line. Any OpenAI-compatible service will do; a real one shows how it works by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder

from lc_memory import Memory, chat_model, with_memory

KINDS = {"开店计划": "想开什么店、预算、城市", "经营现状": "已经开的店现在怎样", "咨询结论": "已经定下来的事"}
SYSTEM = "你是餐饮顾问，说话直接。粉丝来咨询开店的事。"


def talk(url: str, profile: str, folder: str, session: str, questions: Iterable[str]) -> Iterator[str]:
    """The answers, a line each, and the core facts at the end."""
    model = chat_model(
        base_url=url,
        api_key="k",
        model="m",
        profile=profile,
        temperature=0,
        max_retries=0,
        timeout=300,
        max_tokens=300,
    )
    prompt = ChatPromptTemplate.from_messages(
        [("system", SYSTEM), MessagesPlaceholder("history"), ("human", "{question}")]
    )
    config: Any = {"configurable": {"user_id": "fan", "session_id": session}}
    with Memory.open(folder, window=2, notes=model, notes_every=2, kinds=KINDS) as memory:
        bot = with_memory(memory.load_mem | prompt | model | StrOutputParser(), memory)
        for question in questions:
            yield " ".join(bot.invoke({"question": question.strip()}, config).split())
    with Memory.open(folder) as memory:
        for fact in memory.core("fan").all():
            yield f"# {fact.kind}: {fact.text}"


if __name__ == "__main__":
    for line in talk(*sys.argv[1:], sys.stdin):  # type: ignore[misc, arg-type]
        print(line, flush=True)
