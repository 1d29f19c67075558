"""Tree of thought: propose several ways, judge them, decide. Three calls of the model."""

from __future__ import annotations

from typing import Any

from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import Runnable, RunnablePassthrough

from lc_memory.errors import MemoryInputError
from lc_memory.memory import Memory

from ..prompts import DECIDE, DECIDE_ASK, JUDGE, JUDGE_ASK, PROPOSE, PROPOSE_ASK
from .shape import prompt


def tot(memory: Memory, model: Any, n: int = 3) -> Runnable[Any, dict[str, str]]:
    """A chain from ``{"question": …}`` to ``{"proposals", "scores", "answer"}``, all text.

    ``n``: how many proposals. Who proposes and who decides knows the conversation; the judge sees the
    question and the proposals alone. What with_memory saves is the question and the decision.
    """
    if n < 2:
        raise MemoryInputError(f"n={n}: a choice needs at least two proposals")
    key = memory.question_key
    ask = PROPOSE_ASK.replace("{n}", str(n)).replace("{question}", f"{{{key}}}")
    propose = prompt(memory, PROPOSE, asked=ask, name="propose")
    judge = ChatPromptTemplate.from_messages(
        [("system", JUDGE), ("human", JUDGE_ASK.replace("{question}", f"{{{key}}}"))]
    )
    judge.name = "judge"
    decide = prompt(memory, DECIDE, asked=DECIDE_ASK.replace("{question}", f"{{{key}}}"), name="decide")
    text = StrOutputParser()
    chain: Runnable[Any, Any] = (
        memory.load_mem
        | RunnablePassthrough.assign(proposals=propose | model | text)
        | RunnablePassthrough.assign(scores=judge | model | text)
        | RunnablePassthrough.assign(answer=decide | model | text)
    )
    return chain.pick(["proposals", "scores", "answer"])
