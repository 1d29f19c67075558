"""The whole thing without a line of set-up: ``from lc_memory import load_mem, get_history, chain, ask``.

::

    from lc_memory import ask, chain

    ask("我叫小明，喜欢打篮球")
    ask("我刚说的爱好是什么？")
    chain.get_graph().print_ascii()

Built when first touched, on the default memory (the folder ``LC_MEMORY_HOME`` names, else ``.lc_memory`` in
the home directory) and the configured model (``lc_memory.models.chat_model()``: the provider whose key is
set, else the offline model). ``chain`` reads the memory and saves nothing; ``ask`` saves the turn.
"""

from __future__ import annotations

import os
import threading
import warnings
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import BaseMessage
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import Runnable

    from lc_memory.memory import Memory

    load_mem: Runnable[dict[str, Any], dict[str, Any]]
    chain: Runnable[Any, str]

T = TypeVar("T")
_building = threading.RLock()

SYSTEM = "你是一个有记忆的助手，记得之前聊过的内容。"


def _once(build: Callable[[], T]) -> Callable[[], T]:
    """``build``, called once, by whichever thread comes first: two memories would know nothing of each
    other's turns. What fails is tried again the next time."""
    built: list[T] = []

    @wraps(build)
    def get() -> T:
        with _building:
            if not built:
                built.append(build())
            return built[0]

    return get


def home() -> Path:
    """Where the default memory lies: ``LC_MEMORY_HOME``, else ``~/.lc_memory``."""
    return Path(os.environ.get("LC_MEMORY_HOME") or Path.home() / ".lc_memory").expanduser().absolute()


def chat_prompt(system: str = SYSTEM) -> ChatPromptTemplate:
    """System, history, question: the prompt of the default chain."""
    from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder

    # Not ("placeholder", "{history}"): that one is optional, and with it a mistyped key
    # silently drops the memory.
    return ChatPromptTemplate.from_messages(
        [("system", system), MessagesPlaceholder("history"), ("human", "{question}")]
    )


@_once
def default_model() -> BaseChatModel:
    from lc_memory.models import chat_model

    return chat_model()


@_once
def default_memory() -> Memory:
    """The memory of this module. Where its folder cannot be written, one that ends with the process takes
    its place, with a warning: the chain always runs."""
    from lc_memory.errors import StoreError
    from lc_memory.memory import Memory

    memory = Memory.open(home(), summarizer=default_model())
    try:
        memory.sessions()
    except StoreError as error:
        memory.close()
        warnings.warn(
            f"the memory in {home()} cannot be used, so what is said is lost when this program ends: {error}",
            RuntimeWarning,
            stacklevel=2,
        )
        memory = Memory.open(":memory:", summarizer=default_model())
    return memory


@_once
def _chain() -> Runnable[Any, str]:
    from langchain_core.output_parsers import StrOutputParser

    return default_memory().load_mem | chat_prompt() | default_model() | StrOutputParser()


@_once
def _bot() -> Runnable[Any, str]:
    from lc_memory.chains import with_memory

    return with_memory(_chain(), default_memory())


def get_history(x: Mapping[str, Any]) -> list[BaseMessage]:
    """The history for an input such as ``{"question": …}``, as messages."""
    memory = default_memory()
    return memory.history(memory._question(x))


def ask(question: str, **configurable: str) -> str:
    """Answer from memory, and save the turn. ``user_id=…``, ``session_id=…`` name whose and which."""
    return _bot().invoke({"question": question}, {"configurable": configurable})


def __getattr__(name: str) -> Any:
    if name == "load_mem":
        return default_memory().load_mem
    if name == "chain":
        return _chain()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
