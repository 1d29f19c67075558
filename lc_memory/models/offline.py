"""A chat model that needs no key and no network: it answers by quoting its prompt.

It stands in where no provider is configured: the chain runs, the memory can be seen at work, and nobody is
led to believe that a model thought about it, since every answer says that it only quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, cast

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import BaseChatModel, LangSmithParams
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr

from lc_memory.errors import EmbeddingUnavailableError
from lc_memory.messages import count_tokens

from .embedding import LocalEmbeddings
from .quoting import (
    Likeness,
    Said,
    asks,
    by_embedding,
    by_words,
    central,
    closest,
    is_chinese,
    sentences,
    tells,
)

# The best match of an unrelated sentence has a cosine of .24 in the middle of the cases and .34 in the worst
# tenth; that of the right one .37 and .23. Below this, saying that there is nothing is right more often.
_FLOOR = 0.22
_FLOOR_WORDS = 0.1
# A second sentence is quoted where it is nearly as close as the first.
_NEARLY = 0.08
# More is not looked through: at 0.8 ms a sentence this takes a third of a second.
_NEWEST = 400

_SAYS = {
    "zh": {
        "quotes": "（离线模式，我只会引用原话）",
        "words": "（离线模式，我只会引用原话；嵌入模型不可用，只比较了字词）",
        "user": "你说过：",
        "other": "这里写着：",
        "open": "「",
        "close": "」",
        "nothing": "前面没有可以引用来回答的话。",
        "told": "收到。我不会思考，但你可以问我你说过什么。",
    },
    "en": {
        "quotes": "(Offline: I can only quote.)",
        "words": "(Offline: I can only quote; no embedding is available, so only words were compared.)",
        "user": "You said: ",
        "other": "It says here: ",
        "open": "“",
        "close": "”",
        "nothing": "I find nothing above to quote for that.",
        "told": "Noted. I do not think, but you can ask me what you said.",
    },
}
# One of its own answers, wherever it turns up again (the history, a recalled turn): to the end of its line.
_OWN = re.compile(r"（离线模式，我只会引用原话.*|\(Offline: I can only quote.*")
_SUMMARY = re.compile(r"总结|摘要|概括|归纳|压缩|summar", re.IGNORECASE)
_LIMIT = re.compile(r"(\d{2,4})\s*(?:个?字|characters?|chars?|words?)", re.IGNORECASE)
_TOKEN = re.compile(r"[A-Za-z0-9']+\s*|.", re.DOTALL)


class OfflineChatModel(BaseChatModel):
    """Answers a question with the sentences of its prompt that are closest to it, and says that it quotes.

    The question is the last human message. What may be quoted is what was told before it (and beside it, in
    a prompt that carries its documents in that message): the user's own words, then summaries, recalled
    facts, system and tool texts; questions, requests and this model's own answers are not. A statement
    is acknowledged; where nothing is close, it says so. Chinese is answered in Chinese, all else in English.

    A prompt that asks for a summary of at most so many characters (a last human message, or a system message
    before a single human one, with "总结 / 摘要 / summary" and "200 字 / 200 characters" in it) is answered
    by :meth:`summarize`. It calls no tools and has no structured output.
    """

    embedding: Embeddings | None = None
    """What tells how close two texts are; the local embedding by default. Without it, words are compared."""

    _likeness: Likeness | None = PrivateAttr(default=None)
    _floor: float = PrivateAttr(default=_FLOOR)

    @property
    def _llm_type(self) -> str:
        return "lc-memory-offline"

    def _get_ls_params(self, stop: list[str] | None = None, **kwargs: Any) -> LangSmithParams:
        params = super()._get_ls_params(stop=stop, **kwargs)
        params["ls_provider"] = "lc-memory"
        params.setdefault("ls_model_name", "offline")
        return params

    def summarize(self, text: str, limit: int = 200) -> str:
        """The most central sentences of a transcript, in their order, in at most ``limit`` characters.

        Extractive: every sentence stands in ``text``. A single sentence longer than ``limit`` is cut. Where
        nothing was told, it is what was asked. Empty where nothing was said.
        """
        said = list(dict.fromkeys(sentences(_OWN.sub("", text))))
        told = ([s for s in said if tells(s)] or said)[-_NEWEST:]
        likeness, _ = self._ready()
        chosen = central(told, limit, likeness)
        return "\n".join(chosen) if chosen else (min(told, key=len)[:limit] if told else "")

    def answer(self, messages: list[BaseMessage]) -> str:
        """The answer to a prompt, as text."""
        place = next(
            (i for i in reversed(range(len(messages))) if isinstance(messages[i], HumanMessage)),
            len(messages) - 1,
        )
        last = _text(messages[place]) if messages else ""
        asked = self._asked_summary(messages, last)
        if asked is not None:
            return asked
        says = _SAYS["zh" if is_chinese(last) else "en"]
        lines = sentences(last)
        questions = [line for line in lines if asks(line)]
        if not questions:
            return f"{says['quotes']}{_gap(says)}{says['told']}"

        likeness, degraded = self._ready()
        said = _said(messages[:place]) + [Said(s, by_user=False) for s in lines if tells(s)]
        ranked = closest(questions[-1], said[-_NEWEST:], likeness)
        floor = _FLOOR_WORDS if degraded else _FLOOR
        quoted = [one for score, one in ranked[:2] if score >= max(floor, ranked[0][0] - _NEARLY)]
        head = says["words" if degraded else "quotes"]
        return f"{head}{_gap(says)}{_quote(quoted, says) or says['nothing']}"

    def _asked_summary(self, messages: list[BaseMessage], last: str) -> str | None:
        instruction = last.strip().split("\n", 1)[0]
        if _is_summary_request(instruction):
            body = last.strip()[len(instruction) :].strip()
            text = body or "\n".join(s.text for s in _said(messages[:-1]))
        elif len(messages) == 2 and _is_summary_request(_text(messages[0])):
            instruction, text = _text(messages[0]), last
        else:
            return None
        limits = [int(number) for number in _LIMIT.findall(instruction)]
        return self.summarize(text, max(limits))

    def _ready(self) -> tuple[Likeness, bool]:
        """How texts are compared, and whether that is by words for want of an embedding."""
        if self._likeness is None:
            embedding = self.embedding or LocalEmbeddings()
            try:
                embedding.embed_query("你好")
            except EmbeddingUnavailableError:
                return by_words, True
            self._likeness = by_embedding(embedding.embed_documents)
        return self._likeness, False

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        text = _until(stop, self.answer(messages))
        message = AIMessage(
            content=text,
            usage_metadata=_usage(messages, text),
            response_metadata={"model_name": "offline", "finish_reason": "stop"},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        text = _until(stop, self.answer(messages))
        for token in _TOKEN.findall(text):
            chunk = ChatGenerationChunk(message=AIMessageChunk(content=token))
            if run_manager:
                run_manager.on_llm_new_token(token, chunk=chunk)
            yield chunk
        yield ChatGenerationChunk(
            message=AIMessageChunk(
                content="",
                usage_metadata=_usage(messages, text),
                response_metadata={"model_name": "offline", "finish_reason": "stop"},
                chunk_position="last",
            )
        )


def _text(message: BaseMessage) -> str:
    """The text of a message; pictures and other parts are left out."""
    return str(message.text)


def _said(messages: list[BaseMessage]) -> list[Said]:
    """What was told in these messages but by the assistant, each sentence once, in order."""
    told: dict[str, Said] = {}
    for message in messages:
        if isinstance(message, AIMessage):
            continue
        by_user = isinstance(message, HumanMessage)
        for sentence in sentences(_OWN.sub("", _text(message))):
            if tells(sentence):
                told.setdefault(sentence, Said(sentence, by_user))
    return list(told.values())


def _quote(quoted: list[Said], says: dict[str, str]) -> str:
    parts = []
    for one in quoted:
        text = one.text.strip("「」“”\"' 。")
        parts.append(f"{says['user' if one.by_user else 'other']}{says['open']}{text}{says['close']}")
    return _gap(says).join(parts)


def _gap(says: dict[str, str]) -> str:
    return "" if says is _SAYS["zh"] else " "


def _is_summary_request(text: str) -> bool:
    return bool(_SUMMARY.search(text) and _LIMIT.search(text))


def _until(stop: list[str] | None, text: str) -> str:
    for word in stop or []:
        text = text.split(word, 1)[0]
    return text


def _usage(messages: list[BaseMessage], text: str) -> UsageMetadata:
    asked, answered = sum(count_tokens(_text(m)) for m in messages), count_tokens(text)
    usage = {"input_tokens": asked, "output_tokens": answered, "total_tokens": asked + answered}
    return cast(UsageMetadata, usage)
