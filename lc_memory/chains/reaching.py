"""Whether what is remembered can reach a model of a chain, as far as that can be seen without running it.

A chain without ``memory.load_mem``, or whose prompt has no place for the history, answers as if nothing had
ever been said, and nobody is told. :func:`out_of_reach` finds those; whatever it cannot look into (a function
that uses what it is not given, a graph, an agent, a tool) may use the memory, and is left alone.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from langchain_core.language_models import BaseLanguageModel
from langchain_core.output_parsers import BaseOutputParser
from langchain_core.prompts import BasePromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import (
    Runnable,
    RunnableAssign,
    RunnableBranch,
    RunnableLambda,
    RunnableParallel,
    RunnablePassthrough,
    RunnablePick,
    RunnableSequence,
    RunnableWithFallbacks,
)
from langchain_core.runnables.base import RunnableBindingBase, RunnableEachBase
from langchain_core.runnables.configurable import DynamicRunnable, RunnableConfigurableAlternatives
from langchain_core.runnables.history import RunnableWithMessageHistory
from langchain_core.runnables.router import RouterRunnable

from .load_mem import ChainMemory as Memory
from .load_mem import LoadMem

_SEEN_THROUGH = (BaseLanguageModel, BaseOutputParser, BasePromptTemplate, RunnablePick)


def out_of_reach(chain: Runnable[Any, Any], memory: Memory) -> str | None:
    """What to tell the builder of a chain that what ``memory`` holds never reaches a model; None where it
    does, or may."""
    found = _Found(memory)
    try:
        found.walk(chain)
    except Exception:  # a Runnable of somebody's own, which need not like to be looked at
        return None
    if not found.loads:
        if found.opaque:
            return None
        return (
            "this chain has no memory.load_mem of the memory it is wrapped with, so no prompt shows what is "
            "saved: put it at the head, with_memory(memory.load_mem | prompt | model, memory)"
        )
    key = memory.history_key
    if not found.prompts or found.opaque or any(key in names for names in found.prompts):
        return None
    others = sorted({name for names in found.placeholders for name in names})
    named = f" (it has one for {', '.join(map(repr, others))}; Memory takes history_key=…)" if others else ""
    return (
        f"no prompt of this chain has a place for {key!r}, so no model sees what is remembered: put "
        f'MessagesPlaceholder("{key}") into it{named}'
    )


def takes_questions(chain: Runnable[Any, Any], memory: Memory) -> bool:
    """Whether the first step of a chain is ``memory.load_mem``, which takes a dict and no bare question."""
    while True:
        if isinstance(chain, LoadMem):
            return chain.memory is memory
        if isinstance(chain, RunnableSequence):
            chain = chain.first
        elif isinstance(chain, (RunnableBindingBase, RunnableEachBase)):
            chain = chain.bound
        elif isinstance(chain, RunnableWithFallbacks):
            chain = chain.runnable
        else:
            return False


class _Found:
    """What there is in a chain."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._seen: set[int] = set()
        self.loads = False
        self.opaque = False
        """There is something that may read the memory or the history in its own way."""
        self.prompts: list[set[str]] = []
        self.placeholders: list[set[str]] = []

    def walk(self, step: Any) -> None:
        if id(step) in self._seen:
            return
        self._seen.add(id(step))
        if isinstance(step, LoadMem):
            self.loads |= step.memory is self._memory
        elif isinstance(step, BasePromptTemplate):
            self._prompt(step)
        elif isinstance(step, RunnableLambda):
            self._functions(step)
        elif isinstance(step, RunnablePassthrough) and step.func is None and step.afunc is None:
            pass
        elif isinstance(step, BaseRetriever):
            self.opaque |= getattr(step, "memory", None) is self._memory  # it remembers in its own way
        elif isinstance(step, _SEEN_THROUGH):
            pass
        elif isinstance(step, RunnableWithMessageHistory):
            self.opaque = True  # it remembers by itself
        elif (inside := list(_inside(step))) or isinstance(step, RunnableParallel):
            for one in inside:
                self.walk(one)
        else:
            self.opaque = True

    def _prompt(self, prompt: BasePromptTemplate[Any]) -> None:
        named = {*prompt.input_variables, *prompt.optional_variables, *prompt.partial_variables}
        self.prompts.append(named)
        messages = getattr(prompt, "messages", ())
        self.placeholders.append({m.variable_name for m in messages if hasattr(m, "variable_name")})

    def _functions(self, step: RunnableLambda[Any, Any]) -> None:
        for name in ("func", "afunc"):
            function = getattr(step, name, None)
            if function is not None and not _minds_its_input(function, self._memory.history_key):
                self.opaque = True
        for one in step.deps:
            self.walk(one)


def _inside(step: Any) -> Iterator[Any]:
    """The steps of a Runnable that is made of others."""
    if isinstance(step, RunnableSequence):
        yield from step.steps
    elif isinstance(step, RunnableParallel):
        yield from step.steps__.values()
    elif isinstance(step, RunnableAssign):
        yield step.mapper
    elif isinstance(step, (RunnableBindingBase, RunnableEachBase)):
        yield step.bound
    elif isinstance(step, RunnableWithFallbacks):
        yield from step.runnables
    elif isinstance(step, RunnableBranch):
        for condition, branch in step.branches:
            yield condition
            yield branch
        yield step.default
    elif isinstance(step, RouterRunnable):
        yield from step.runnables.values()
    elif isinstance(step, DynamicRunnable):
        yield step.default
        if isinstance(step, RunnableConfigurableAlternatives):
            for other in step.alternatives.values():
                if isinstance(other, Runnable):
                    yield other


_GETTERS = (operator.itemgetter, operator.attrgetter)
_TAKES_ALL = frozenset({"values", "items", "format", "format_map", "globals", "locals", "eval", "exec"})


def _minds_its_input(function: Callable[..., Any], key: str, depth: int = 3) -> bool:
    """Whether a function plainly does nothing with the memory or the history: it uses nothing but what it is
    given, and of that neither everything nor the history."""
    if isinstance(function, _GETTERS) or function in (str, len, dict, list):
        return True
    if not isinstance(function, FunctionType):
        return False
    for code in _codes(function.__code__):
        if key in code.co_consts or _TAKES_ALL & set(code.co_names):
            return False
    used = [function.__globals__.get(name) for code in _codes(function.__code__) for name in code.co_names]
    used += [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
    used += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    return all(_harmless(value, key, depth) for value in used)


def _harmless(value: Any, key: str, depth: int) -> bool:
    if value is None or isinstance(value, (str, int, float, bytes, Runnable)):
        return True  # a Runnable is among the deps
    if isinstance(value, FunctionType):
        return depth > 0 and _minds_its_input(value, key, depth - 1)
    if isinstance(value, type):
        return value.__module__.startswith(("langchain_core", "builtins", "json"))
    return getattr(value, "__name__", "") in ("json", "re", "datetime", "time")


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


__all__ = ["out_of_reach", "takes_questions"]
