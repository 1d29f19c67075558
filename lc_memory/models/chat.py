"""ChatOpenAI that keeps a service's rules.

It shapes requests and reads answers; everything else (tools, streaming, async, retries, callbacks) is
ChatOpenAI's own. Read from an answer, beside what ChatOpenAI reads:

- the model's ``reasoning_content``, in ``additional_kwargs["reasoning_content"]``, streamed too. Services
  that think refuse the next request if it is not given back;
- the exact text of each tool call's arguments. A request that repeats the last one to the letter is
  answered from the service's cache, at a fraction of the price;
- a stream that breaks off: without a reason to finish, what came is half an answer;
- a service that cannot be reached: the error is the client library's own, and names the address.

And it may be used from any number of event loops (``loops.py``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import openai
from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable, RunnableLambda
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_openai import ChatOpenAI
from pydantic import Field, model_validator
from typing_extensions import Self

from lc_memory.errors import LCMemoryError
from lc_memory.messages import NOTE, Message, _to_lc, from_lc

from .addresses import without_login
from .loops import PerLoop, per_loop
from .profiles import PROFILES, Profile
from .request import schema_in_words, shape_request

REASONING = "reasoning_content"


class ServiceChatModel(ChatOpenAI):
    """A chat model of a service with a profile. ``chat_model()`` builds it."""

    service: Profile = Field(default=PROFILES["compatible"], repr=False)
    """The rules of the service it speaks to."""

    @classmethod
    def is_lc_serializable(cls) -> bool:
        """No: LangChain would load it back as a plain ChatOpenAI, without the rules."""
        return False

    @model_validator(mode="after")
    def _give_each_loop_its_client(self) -> Self:
        if self.http_async_client is None and isinstance(self.root_async_client, openai.AsyncOpenAI):
            root = per_loop(self.root_async_client)
            self.root_async_client = root
            self.async_client = PerLoop(lambda: root.current().chat.completions)
        return self

    # ------------------------------------------------------------ the request

    def _get_request_payload(
        self, input_: LanguageModelInput, *, stop: list[str] | None = None, **kwargs: Any
    ) -> dict[str, Any]:
        messages = [_without_hollow(m) for m in self._convert_input(input_).to_messages()]
        payload = super()._get_request_payload(messages, stop=stop, **kwargs)
        if "messages" not in payload:  # OpenAI's Responses API has rules of its own
            return payload
        sent = [_completed(wire, m) for wire, m in zip(payload["messages"], messages, strict=True)]
        return shape_request({**payload, "messages": sent}, self.service)

    def with_structured_output(
        self,
        schema: dict[str, Any] | type | None = None,
        *,
        method: str | None = None,
        include_raw: bool = False,
        strict: bool | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, Any]:
        """As ChatOpenAI's, by a method the service takes.

        ``method``: json_schema, function_calling or json_mode; one the service refuses, like None, means
        the best it takes. Under json_mode the schema is put into words behind the prompt.
        """
        if method not in self.service.structured:
            method = self.service.structured[0] if schema is not None else "json_mode"
        if method == "json_mode":
            strict = None
        bound: Runnable[LanguageModelInput, Any] = super().with_structured_output(
            schema, method=method, include_raw=include_raw, strict=strict, **kwargs
        )
        if method != "json_mode" or schema is None:
            return bound
        words = schema_in_words(convert_to_openai_tool(schema)["function"]["parameters"])

        def ask_in_words(value: LanguageModelInput) -> list[BaseMessage]:
            return [*self._convert_input(value).to_messages(), HumanMessage(content=words)]

        return RunnableLambda(ask_in_words, name="ask_for_json") | bound

    # ------------------------------------------------------------ the answer

    def _create_chat_result(
        self, response: dict[str, Any] | openai.BaseModel, generation_info: dict[str, Any] | None = None
    ) -> ChatResult:
        with _no_object_is_no_call(response):
            result = super()._create_chat_result(response, generation_info)
        for generation, choice in zip(result.generations, _choices(response), strict=True):
            message = choice["message"] if isinstance(choice, dict) else choice.message.model_dump(
                exclude={"parsed"}, warnings=False
            )  # fmt: skip
            _keep(generation.message, message)
        return result

    def _get_generation_chunk_from_completion(self, completion: openai.BaseModel) -> ChatGenerationChunk:
        # The parsed end of a stream; what was thought and called has been streamed already.
        chunk = super()._get_generation_chunk_from_completion(completion)
        for key in (REASONING, NOTE):
            chunk.message.additional_kwargs.pop(key, None)
        return chunk

    def _convert_chunk_to_generation_chunk(
        self, chunk: dict[str, Any], default_chunk_class: type, base_generation_info: dict[str, Any] | None
    ) -> ChatGenerationChunk | None:
        generation = super()._convert_chunk_to_generation_chunk(
            chunk, default_chunk_class, base_generation_info
        )
        if generation is not None and isinstance(generation.message, AIMessageChunk):
            choices = chunk.get("choices") or (chunk.get("chunk") or {}).get("choices") or []
            thought = _reasoning_in(choices[0].get("delta") or {}) if choices else None
            if thought is not None:
                generation.message.additional_kwargs[REASONING] = thought
        return generation

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        with self._naming_the_address():
            return super()._generate(*args, **kwargs)

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        with self._naming_the_address():
            return await super()._agenerate(*args, **kwargs)

    def _stream(self, *args: Any, **kwargs: Any) -> Iterator[ChatGenerationChunk]:
        end = _End()
        with self._naming_the_address():
            for chunk in super()._stream(*args, **kwargs):
                end.see(chunk)
                yield chunk
        yield from end.rest()

    async def _astream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ChatGenerationChunk]:
        end = _End()
        with self._naming_the_address():
            async for chunk in super()._astream(*args, **kwargs):
                end.see(chunk)
                yield chunk
        for chunk in end.rest():
            yield chunk

    @contextmanager
    def _naming_the_address(self) -> Iterator[None]:
        # The same error object: with_retry and with_fallbacks choose by its class.
        try:
            yield
        except (openai.APIConnectionError, openai.NotFoundError, httpx.TransportError) as error:
            url = without_login(self.openai_api_base or str(self.root_client.base_url))
            said = str(error)
            if url not in said:
                first: BaseException = error
                while first.__cause__ is not None:
                    first = first.__cause__
                why = "" if first is error else f" ({type(first).__name__}: {first})"
                told = f"{said.rstrip('.')}{why}: {url}. {_what_to_do(error)}"
                error.args = (told, *error.args[1:])
                if isinstance(error, openai.APIError):
                    error.message = told
            raise


def _what_to_do(error: Exception) -> str:
    if isinstance(error, openai.NotFoundError):
        return "Check the model's name and the path of this address, which usually ends in /v1"
    return "Check that the service runs there and can be reached, and that the address is right (BASE_URL)"


class _End:
    """What only the end of a stream shows: whether it is one, and the tool calls in full."""

    def __init__(self) -> None:
        self._finished = False
        self._calls: AIMessageChunk | None = None

    def see(self, chunk: ChatGenerationChunk) -> None:
        info, message = chunk.generation_info or {}, chunk.message
        metadata = message.response_metadata
        # The Responses API says "status" where chat completions say "finish_reason".
        self._finished |= bool(info.get("finish_reason") or metadata.get("status"))
        if isinstance(message, AIMessageChunk) and message.tool_call_chunks:
            part = AIMessageChunk(content="", tool_call_chunks=message.tool_call_chunks)
            self._calls = part if self._calls is None else self._calls + part

    def rest(self) -> Iterator[ChatGenerationChunk]:
        if not self._finished:
            raise LCMemoryError(
                "the answer broke off: its stream ended without a finish_reason, so a part is missing. "
                "Ask again; if it stays so, look at the service or the proxy in between"
            )
        if self._calls is None:
            return
        raw = [
            {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["args"]}}
            for c in self._calls.tool_call_chunks
        ]
        # Of a stream LangChain makes other calls than of an answer: JSON that broke off is completed there.
        read = from_lc(self._calls).get("tool_calls")
        note = {} if read == raw else {"tool_calls": {"natural": read, "original": raw}}
        if note:
            yield ChatGenerationChunk(message=AIMessageChunk(content="", additional_kwargs={NOTE: note}))


def _choices(response: Any) -> Any:
    return response["choices"] if isinstance(response, dict) else response.choices


@contextmanager
def _no_object_is_no_call(response: Any) -> Iterator[None]:
    """Arguments that are JSON but no object (``[1]``, ``"杭州"``) make ChatOpenAI raise; in here they are no
    JSON, and so become one of ``invalid_tool_calls``. ``_keep`` puts the text as it was back in its place."""
    changed: list[tuple[Any, str]] = []
    for choice in _choices(response) or ():
        message = _part(choice, "message")
        for call in (_part(message, "tool_calls") if message else None) or ():
            function = _part(call, "function")
            text = _part(function, "arguments") if function else None
            if isinstance(text, str) and text.strip()[:1] not in ("{", ""):
                changed.append((function, text))
                _set_part(function, "arguments", f"{text}{_NO_JSON}")
    try:
        yield
    finally:
        for function, text in changed:
            _set_part(function, "arguments", text)


_NO_JSON = "\x00"


def _part(of: Any, name: str) -> Any:
    return of.get(name) if isinstance(of, dict) else getattr(of, name, None)


def _set_part(of: Any, name: str, value: Any) -> None:
    if isinstance(of, dict):
        of[name] = value
    else:
        setattr(of, name, value)


def _keep(message: BaseMessage, raw: dict[str, Any]) -> None:
    """Put on ``message`` what ChatOpenAI does not read of the service's answer."""
    thought = _reasoning_in(raw)
    if thought is not None:
        message.additional_kwargs[REASONING] = thought
    if raw.get("tool_calls") and isinstance(message, AIMessage):
        for call in message.invalid_tool_calls:
            call["args"] = (call["args"] or "").removesuffix(_NO_JSON)
        note = _note_of_calls(raw["tool_calls"])
        if note:
            message.additional_kwargs[NOTE] = note


def _reasoning_in(raw: dict[str, Any]) -> str | None:
    # "reasoning" is what vLLM and several hosts call the same thing.
    for key in (REASONING, "reasoning"):
        if isinstance(raw.get(key), str):
            return str(raw[key])
    return None


def _note_of_calls(raw: list[dict[str, Any]]) -> dict[str, Any]:
    """The note with which ``lc_memory.messages`` remembers how calls were written, empty when LangChain
    would write them just so."""
    exact = [
        {"id": c.get("id"), "type": "function", "function": {
            "name": c["function"].get("name"), "arguments": c["function"].get("arguments")}}
        for c in raw
        if isinstance(c.get("function"), dict)
    ]  # fmt: skip
    built = _to_lc({"role": "assistant", "content": "", "tool_calls": exact})
    return dict(built.additional_kwargs.get(NOTE, {}))


def _without_hollow(message: BaseMessage) -> BaseMessage:
    """Some services answer with every field there is, ``"audio": null`` or ``"function_call": {"name": ""}``;
    kept with the message, it breaks ChatOpenAI's way back or is refused."""
    extras = message.additional_kwargs
    hollow = {k for k, v in extras.items() if v is None}
    for key, needed in (("audio", "id"), ("function_call", "name")):
        if isinstance(extras.get(key), dict) and not extras[key].get(needed):
            hollow.add(key)
    if not hollow:
        return message
    kept = {k: v for k, v in extras.items() if k not in hollow}
    return message.model_copy(update={"additional_kwargs": kept})


def _completed(wire: Message, message: BaseMessage) -> Message:
    """``wire``, ChatOpenAI's dict of ``message``, with what the wire has a place for and it leaves out."""
    if isinstance(message, ToolMessage):
        name = message.name or message.additional_kwargs.get("name")
        return {**wire, "name": name} if name else wire
    if not isinstance(message, AIMessage):
        return wire
    out = wire
    thought = message.additional_kwargs.get(REASONING)
    if isinstance(thought, str):
        out = {**out, REASONING: thought}
    if out.get("tool_calls"):
        exact = from_lc(message).get("tool_calls") or []
        if [c.get("id") for c in exact] == [c.get("id") for c in out["tool_calls"]]:
            calls = [_exact_call(w, e) for w, e in zip(out["tool_calls"], exact, strict=True)]
            out = {**out, "tool_calls": calls}
    return out


def _exact_call(wire: dict[str, Any], exact: dict[str, Any]) -> dict[str, Any]:
    arguments = (exact.get("function") or {}).get("arguments")
    if not isinstance(arguments, str) or "function" not in wire:
        return wire
    return {**wire, "function": {**wire["function"], "arguments": arguments}}
