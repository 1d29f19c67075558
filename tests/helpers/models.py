"""A chat model that answers from a script, streams word by word, and fails where it is told to."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from pydantic import PrivateAttr

USAGE = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}


class Scripted(BaseChatModel):
    """Each call gives the next of ``answers``: a text, an AIMessage, or an exception to raise.

    An exception is raised in the middle of a stream, after its first word. ``hang``: wait before the
    second word until the task is cancelled. ``prompts`` keeps what it was given.
    """

    answers: list[Any]
    hang: bool = False
    _prompts: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _lock: Any = PrivateAttr(default_factory=threading.Lock)
    _hanging: threading.Event = PrivateAttr(default_factory=threading.Event)

    @property
    def prompts(self) -> list[list[BaseMessage]]:
        return self._prompts

    @property
    def hanging(self) -> threading.Event:
        """Set when a call has begun to hang."""
        return self._hanging

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _next(self, messages: list[BaseMessage]) -> AIMessage | BaseException:
        with self._lock:
            self._prompts.append(list(messages))
            answer = self.answers[(len(self._prompts) - 1) % len(self.answers)]
        if isinstance(answer, str):
            return AIMessage(answer, usage_metadata=USAGE)
        return answer

    def _generate(
        self,
        messages: list[BaseMessage],
        stop: Any = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        answer = self._next(messages)
        if isinstance(answer, BaseException):
            raise answer
        return ChatResult(generations=[ChatGeneration(message=answer.model_copy())])

    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: Any = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **_: Any,
    ) -> ChatResult:
        if self.hang:
            self._hanging.set()
            await asyncio.Event().wait()
        return self._generate(messages)

    def _stream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any
    ) -> Iterator[ChatGenerationChunk]:
        answer = self._next(messages)
        if isinstance(answer, BaseException):
            yield ChatGenerationChunk(message=AIMessageChunk("half "))
            raise answer
        for chunk in _chunks(answer):
            if run_manager:
                run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk

    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        answer = self._next(messages)
        if isinstance(answer, BaseException):
            yield ChatGenerationChunk(message=AIMessageChunk("half "))
            raise answer
        for chunk in _chunks(answer):
            if run_manager:
                await run_manager.on_llm_new_token(chunk.text, chunk=chunk)
            yield chunk
            if self.hang:
                self._hanging.set()
                await asyncio.Event().wait()

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        return self.bind()


def _chunks(answer: AIMessage) -> list[ChatGenerationChunk]:
    text = str(answer.content)
    cuts = [i for i, c in enumerate(text) if i and c in " ，,"] or [len(text) // 2]
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    chunks = [AIMessageChunk(content=p) for p in pieces]
    calls = [
        {
            "name": c["name"],
            "args": __import__("json").dumps(c["args"]),
            "id": c["id"],
            "index": i,
            "type": "tool_call_chunk",
        }
        for i, c in enumerate(answer.tool_calls)
    ]
    chunks.append(
        AIMessageChunk(
            content="",
            tool_call_chunks=calls,
            usage_metadata=answer.usage_metadata,
            additional_kwargs=answer.additional_kwargs,
        )
    )
    return [ChatGenerationChunk(message=c) for c in chunks]
