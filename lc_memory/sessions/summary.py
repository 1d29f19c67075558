"""The rolling summary: one text that stands for what has left the window, old summary merged in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, TypeAlias

from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable

from lc_memory.errors import LCMemoryError, MemoryInputError
from lc_memory.language import EARLIER_SUMMARY, NEW_PART, SHORTEN, SPEAKERS, SUMMARISE, language_of, unmarked
from lc_memory.messages import Message, spoken, without_thoughts

Summarise: TypeAlias = Callable[[str], Any]

# Characters of a message that a summary is made from: no single one may be more than a model can read.
_LONGEST = 4000
_LONGEST_TOOL_RESULT = 500


class SummaryFailed(LCMemoryError):
    """No usable summary came back; the history stays as it is and it is tried again later."""


class Summariser:
    """Makes the summary with ``model``: a chat model or any Runnable that takes text, or any object with
    ``summarize(text) -> str``, as the dict-based memory has it.

    ``limit``: the longest summary that is taken, in characters. A model is asked for three quarters of it,
    since models count badly; one that answers with more is asked once to shorten its own text.
    """

    def __init__(self, model: Any, limit: int = 200) -> None:
        if limit < 40:
            raise MemoryInputError(f"summary_chars={limit}: a summary needs at least 40 characters")
        self.limit = limit
        self._asked = limit * 3 // 4
        self._own = None
        if hasattr(model, "summarize"):
            # One that takes a limit (our offline model) is told it; looked up once, here.
            takes_limit = "limit" in inspect.signature(model.summarize).parameters
            self._own = partial(model.summarize, limit=limit) if takes_limit else model.summarize
        elif isinstance(model, Runnable):
            self._model = model
        else:
            raise MemoryInputError(
                f"summarizer: expected a chat model, a Runnable or an object with summarize(text), "
                f"got {type(model).__name__}"
            )

    def __call__(self, earlier: str | None, messages: Sequence[Message]) -> str:
        """The summary of ``earlier`` and ``messages`` together, 1 to ``limit`` characters.

        Raises SummaryFailed for an empty or too long answer, and whatever the model raises.
        """
        text = transcript(earlier, messages)
        language = language_of(text)
        if self._own is not None:
            summary = _clean(self._own(text))
        else:
            summary = self._ask(SUMMARISE[language].format(asked=self._asked), text)
        if len(summary) > self.limit:
            shorten = SHORTEN[language].format(asked=self._asked)
            summary = _clean(self._own(summary)) if self._own is not None else self._ask(shorten, summary)
        if len(summary) > self.limit:
            raise SummaryFailed(f"the summary has {len(summary)} characters, more than {self.limit}")
        if not summary:
            raise SummaryFailed("the summary came back empty")
        return summary

    def _ask(self, instruction: str, text: str) -> str:
        answer = self._model.invoke(f"{instruction}\n\n<conversation>\n{text}\n</conversation>")
        return _clean(answer)


def transcript(earlier: str | None, messages: Iterable[Message]) -> str:
    """What a summary is made from: who said what, a line each, the earlier summary in front."""
    said = [(m, words) for m in messages if (words := spoken(m)).strip()]
    language = language_of(" ".join(words for _, words in said))
    names = SPEAKERS[language]
    lines = []
    for message, words in said:
        longest = _LONGEST_TOOL_RESULT if message.get("role") == "tool" else _LONGEST
        text = _shortened(words, longest)
        lines.append(f"{names.get(message.get('role', 'user'), message.get('role'))}: {unmarked(text)}")
    body = "\n".join(lines)
    if earlier:
        return f"{EARLIER_SUMMARY[language]}{unmarked(earlier)}\n{NEW_PART[language]}\n{body}"
    return body


def _shortened(text: str, longest: int) -> str:
    """``text`` without its middle: what a message is about stands at its beginning, what is wanted at its
    end."""
    if len(text) <= longest:
        return text
    return f"{text[: longest * 3 // 4]} … {text[-longest // 4 :]}"


def _clean(answer: Any) -> str:
    if isinstance(answer, BaseMessage):
        answer = str(answer.text)
    if not isinstance(answer, str):
        raise SummaryFailed(f"the summariser answered with {type(answer).__name__}, not text")
    return without_thoughts(answer).strip()
