"""Which model, and which way of thinking, a question asks for.

::

    chat_model(route_model("用 kimi 回答：…"))          # "kimi"
    auto_select("帮我查一下杭州的天气")                  # "react"
    bot = with_memory(by_mode({"cot": …, "react": …}, llm=model), memory)
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from typing import Any, Literal, cast, get_args

from langchain_core.messages import BaseMessage
from langchain_core.runnables import (
    Runnable,
    RunnableBranch,
    RunnableConfig,
    RunnableLambda,
    RunnablePassthrough,
)
from langchain_core.runnables.graph import Graph
from pydantic import BaseModel, Field

from lc_memory.errors import MemoryInputError
from lc_memory.messages import text_of

from .prompts import ROUTE

log = logging.getLogger("lc_memory")

Mode = Literal["cot", "few_shot", "react", "tot"]
DEFAULT: Mode = "cot"

_MODELS: Mapping[str, str] = {
    "deepseek": r"deep\s?seek|深度求索",
    "kimi": r"kimi|moonshot|月之暗面",
    "qwen": r"qwen|tongyi|通义|千问",
    "openai": r"(?<![a-z])(?:chat)?gpt|openai",
}
"""A provider of ``lc_memory.chat_model``, and what people call it."""

_KEYWORDS: tuple[tuple[Mode, str], ...] = (
    (
        "react",
        r"帮我|执行|查询|查一下|查查|搜索|搜一下|天气|气温|计算|算一下|算算|等于多少|记住|记得吗|提醒"
        r"|\bsearch\b|\blook(?:ing)? up\b|\bweather\b|\bcalculate\b|\bcompute\b|\bremember\b|\bfind out\b"
        r"|\bremind\b|\d\s*[-+*/×÷^]\s*\d",
    ),
    (
        "tot",
        r"如果|方案|计划|规划|怎么选|该不该|利弊|权衡|策略|决定"
        r"|\bplan(?:s|ning)?\b|\boptions?\b|\bwhat if\b|\bstrateg|\bshould (?:i|we)\b|\bpros and cons\b"
        r"|\btrade-?offs?\b|\bdecide\b",
    ),
    (
        "few_shot",
        r"比较|对比|哪个|提取|抽取|分类|归类|照着|按格式|表格|例子"
        r"|\bcompare\b|\bversus\b|\bvs\b|\bwhich one\b|\bextract\b|\bclassify\b|\bformat\b|\btable\b"
        r"|\bexamples?\b",
    ),
)
"""Looked through in this order; the first that fits decides."""


class _Choice(BaseModel):
    """The way of answering that fits the message."""

    mode: Mode = Field(description="one of cot, few_shot, react, tot")


def route_model(question: str, default: str = "deepseek") -> str:
    """The provider that the question names first, else ``default``."""
    said = question.lower()
    found = {name: m.start() for name, words in _MODELS.items() if (m := re.search(words, said))}
    return min(found, key=found.__getitem__) if found else default


def auto_select(question: str, llm: Any = None) -> Mode:
    """The way of thinking for a question: cot, few_shot, react or tot.

    ``llm``: a chat model, which is asked for a structured answer; where it cannot give one, its words are
    searched for a mode; without one, and where none can be told (an odd answer, a service that is down:
    logged), Chinese and English key words in the question decide. Never raises for what a model says.
    """
    chosen = _asked(question, llm, None) if llm is not None else None
    return chosen or _by_keywords(question)


def by_mode(
    modes: Mapping[str, Runnable[Any, Any]], llm: Any = None, *, question_key: str = "question"
) -> Runnable[Any, Any]:
    """A chain that answers each question by the mode that :func:`auto_select` picks: ``modes`` holds a chain
    for each of them, or for some; a mode that is missing is answered by ``cot``, or the first there is."""
    if not modes:
        raise MemoryInputError("by_mode({}): at least one mode is needed")
    spare = modes.get(DEFAULT) or next(iter(modes.values()))

    def is_mode(name: str) -> Callable[[Mapping[str, Any]], bool]:
        return lambda given: given["mode"] == name

    branches = [(RunnableLambda(is_mode(name), name=name), chain) for name, chain in modes.items()]
    select_mode: Any = RunnableLambda(_Selector(llm, question_key).select, name="select_mode")
    branch: Runnable[Any, Any] = cast(Any, _Modes)(*branches, spare)
    return RunnablePassthrough.assign(mode=select_mode) | branch


class _Modes(RunnableBranch[Any, Any]):
    """A RunnableBranch that is drawn with its branches."""

    def get_graph(self, config: RunnableConfig | None = None) -> Graph:
        graph = Graph()
        first = graph.add_node(self.get_input_schema(config))
        last = graph.add_node(self.get_output_schema(config))
        for condition, chain in self.branches:
            inner = chain.get_graph(config)
            inner.trim_first_node()
            inner.trim_last_node()
            start, end = graph.extend(inner, prefix=condition.get_name())
            if start is not None and end is not None:
                graph.add_edge(first, start, condition.get_name(), conditional=True)
                graph.add_edge(end, last)
        return graph


class _Selector:
    """A method, not a closure: LangChain would draw the model in the place of a function that holds it."""

    def __init__(self, llm: Any, question_key: str) -> None:
        self._llm = llm
        self._key = question_key

    def select(self, given: Mapping[str, Any], config: RunnableConfig) -> Mode:
        question = _text(given.get(self._key))
        chosen = _asked(question, self._llm, config) if self._llm is not None else None
        return chosen or _by_keywords(question)


def _by_keywords(question: str) -> Mode:
    said = question.lower()
    return next((mode for mode, words in _KEYWORDS if re.search(words, said)), DEFAULT)


def _asked(question: str, llm: Any, config: RunnableConfig | None) -> Mode | None:
    """What the model chooses: by a structured answer, and if there is none, in words."""
    prompt = ROUTE.format(question=question)
    ways: tuple[Callable[[], Any], ...] = (
        lambda: llm.with_structured_output(_Choice).invoke(prompt, config),
        lambda: llm.invoke(f"{prompt}\n\nAnswer with the one word.", config),
    )
    for way in ways:
        try:
            mode = _mode_in(way())
        except Exception as error:
            log.info("the model chose no mode (%s: %s)", type(error).__name__, error)
            continue
        if mode is not None:
            return mode
    log.warning("the model could not say which mode fits; key words decide")
    return None


def _mode_in(answer: Any) -> Mode | None:
    """The one mode that an answer of whatever kind names; None where it names none, or several."""
    if isinstance(answer, _Choice):
        return answer.mode
    text = answer.text if isinstance(answer, BaseMessage) else answer
    said = re.sub(r"[\s-]", "_", str(text).lower())
    named = {mode for mode in get_args(Mode) if re.search(rf"(?<![a-z]){mode}(?![a-z])", said)}
    return cast(Mode, named.pop()) if len(named) == 1 else None


def _text(question: Any) -> str:
    if isinstance(question, BaseMessage):
        return str(question.text)
    if isinstance(question, list):
        return text_of(question)
    return "" if question is None else str(question)


__all__ = ["Mode", "auto_select", "by_mode", "route_model"]
