"""What of a chain's run is the conversation: the human's words, the tools' work, the answer.

:class:`TurnRecorder` is handed down a run as a callback and only listens: which models were called with
which prompt and what they said, and what tools gave back. :func:`turn_messages` then says what is kept.

The answer is what the user was told: the chain's output where that is text or a message. A model's message
whose text is that answer is kept with its metadata; words that the chain has cleaned are kept as they were
told. Where the output is a dict with the answer beside other things (documents, a title), it is what stands
under the name that such a dict gives it. Where the output is something else (parsed JSON, an object), the
answer is the own message of the model that answered. What other models said on the way (a router, a judge)
is not the conversation.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.messages import AIMessage, BaseMessage, BaseMessageChunk, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, LLMResult

from lc_memory.messages import (
    Message,
    arguments_of,
    from_lc,
    is_deep,
    spoken,
    text_of,
    valid_groups,
    without_calls,
    without_thoughts,
)


@dataclass(frozen=True)
class ModelRun:
    """One call of a model: the messages it was given and the one it answered with."""

    prompt: Sequence[BaseMessage]
    message: AIMessage


class TurnRecorder(BaseCallbackHandler):
    """Listens to one turn. ``turn_of`` names whose turn it is; ``open`` ends with it."""

    run_inline = True  # the order of events is the order of the turn; no thread in between
    ignore_chain = True
    ignore_retriever = True
    ignore_retry = True
    ignore_custom_event = True

    def __init__(self, turn_of: object) -> None:
        self.turn_of = turn_of
        self.open = True
        self.runs: list[ModelRun] = []
        self.results: list[ToolMessage] = []
        self.chunks: list[Any] = []
        """What a streamed turn has handed out so far."""
        self._asides: list[str] = []
        self._told_from = 0
        self._prompts: dict[UUID, Sequence[BaseMessage]] = {}

    def on_chat_model_start(
        self, serialized: Any, messages: list[list[BaseMessage]], *, run_id: UUID, **_: Any
    ) -> None:
        self._prompts[run_id] = messages[0] if messages else []

    def on_llm_start(self, serialized: Any, prompts: list[str], *, run_id: UUID, **_: Any) -> None:
        self._prompts[run_id] = [HumanMessage(p) for p in prompts[:1]]

    def on_llm_end(self, response: LLMResult, *, run_id: UUID, **_: Any) -> None:
        prompt = self._prompts.pop(run_id, ())
        generation = next((g for row in response.generations for g in row), None)
        if isinstance(generation, ChatGeneration) and isinstance(generation.message, AIMessage):
            self.runs.append(ModelRun(prompt, generation.message))
        elif generation is not None:
            self.runs.append(ModelRun(prompt, AIMessage(generation.text)))

    def on_llm_error(self, error: BaseException, *, run_id: UUID, **_: Any) -> None:
        self._prompts.pop(run_id, None)

    def on_tool_end(self, output: Any, **_: Any) -> None:
        if isinstance(output, ToolMessage):
            self.results.append(output)

    def aside(self, words: str) -> None:
        """A loop says: the ``words`` that it streamed last stood beside a call, and are not the answer. Who
        calls invoke does not get them at all, and a turn is the same however it is called."""
        self._asides.append(words)
        self._told_from = len(self.chunks)

    def told(self) -> Any:
        """The output that a stream's chunks make together, without what was said aside."""
        whole = merged(self.chunks)
        if not self._asides or not isinstance(whole, (str, BaseMessage)):
            return whole
        told = self.without_asides(whole)
        return merged(self.chunks[self._told_from :]) if told is whole else told

    def without_asides(self, told: Any) -> Any:
        """What was said aside is streamed in front of the answer."""
        aside = "".join(self._asides)
        if aside and isinstance(told, str) and self.runs and told == aside + str(self.runs[-1].message.text):
            return told[len(aside) :]
        return told


def turn_messages(human: Message, output: Any, recorder: TurnRecorder) -> list[Message]:
    """The turn as dicts: the human's message, whole tool groups, the answer."""
    said = _messages_in(output, human)
    if said is not None:
        # The chain hands out messages of its own (an agent's state): they are the turn.
        kept = [_kept(m) for m in said]
        if kept and kept[-1]["role"] == "assistant":  # with its calls, which nobody has answered
            return [human, *valid_groups(kept[:-1]), kept[-1]]
        return [human, *valid_groups(kept)]
    told = recorder.without_asides(_told_in(output, human, recorder.runs))
    run = _answering(told, human, recorder.runs)
    answer = _answer(told, run)
    return [human, *_tool_traffic(run, human, recorder), answer]


# ---------------------------------------------------------------- the answer

_ANSWERS = ("answer", "output", "output_text", "response", "reply")
"""What LangChain's own chains and agents, and those who write like them, call the answer in a dict."""


def _told_in(output: Any, human: Message, runs: Sequence[ModelRun]) -> Any:
    """The answer in an output that has other things beside it, else the output. One that a model said whole
    is parsed JSON and no such dict, whatever its keys; and the question is never the answer to itself."""
    if not isinstance(output, dict) or any(_says(run.message, output) for run in runs):
        return output
    found = [output[name] for name in _ANSWERS if isinstance(output.get(name), (str, BaseMessage))]
    texts = [str(value.text) if isinstance(value, BaseMessage) else value for value in found]
    question = text_of(human["content"])
    said = [v for v, text in zip(found, texts, strict=True) if text.strip() and text != question]
    return said[0] if said else output


def _answer(output: Any, run: ModelRun | None) -> Message:
    if isinstance(output, BaseMessage):
        return _kept(output)
    if isinstance(output, str):
        # The model's own message carries its usage and reasoning, but only where it is what was told.
        if run is not None and str(run.message.text) == output:
            return _kept(run.message)
        return {"role": "assistant", "content": str(output)}  # a model's .text is a subclass of str
    if run is None:
        return {"role": "assistant", "content": _json_text(output)}
    answer = _kept(run.message)
    if handed_over := arguments_of(answer):
        # A structured output by tool call: nobody will answer that call, its arguments are the answer.
        said = without_calls(answer)
        return {**said, "content": "\n".join(t for t in (spoken(said), handed_over) if t.strip())}
    return answer


def _answering(output: Any, human: Message, runs: Sequence[ModelRun]) -> ModelRun | None:
    """The run whose words the output is; else the last one that was asked the human's question; else
    the last one. A router or a judge is asked something else, and what it says is not the output."""
    if not runs:
        return None
    told = str(output.text) if isinstance(output, BaseMessage) else output
    for run in reversed(runs):
        if _says(run.message, told):
            return run
    question = text_of(human["content"])
    for run in reversed(runs):
        asked = next((m for m in reversed(run.prompt) if isinstance(m, HumanMessage)), None)
        if asked is not None and text_of(asked.content) == question:
            return run
    return runs[-1]


def _says(message: AIMessage, told: Any) -> bool:
    text = str(message.text)
    if isinstance(told, str):
        return text == told
    text = without_thoughts(text)
    if hasattr(told, "model_dump"):
        told = told.model_dump()
    if any(call["args"] == told for call in message.tool_calls):
        return True
    if not isinstance(told, (dict, list)):
        return False
    start = min((i for i in (text.find("{"), text.find("[")) if i >= 0), default=-1)
    try:
        parsed, _ = json.JSONDecoder().raw_decode(text[start:]) if start >= 0 else (None, 0)
    except (ValueError, RecursionError):
        return False
    return bool(parsed == told)


def _json_text(output: Any) -> str:
    if output is None:
        return ""
    if hasattr(output, "model_dump_json"):
        return str(output.model_dump_json())
    return json.dumps(output, ensure_ascii=False, default=str)


# ---------------------------------------------------------------- what stands between


def _tool_traffic(run: ModelRun | None, human: Message, recorder: TurnRecorder) -> list[Message]:
    """The turn's tool calls with their results: as the answering model saw them in its prompt, or, where
    it was told of them in words only, as the models asked and the tools answered. Whole groups only."""
    seen = _since_question(run.prompt, human) if run is not None else []
    if not any(isinstance(m, ToolMessage) for m in seen):
        seen = [*(r.message for r in recorder.runs), *recorder.results]
    traffic = [m for m in seen if isinstance(m, ToolMessage) or (isinstance(m, AIMessage) and _calls(m))]
    whole = valid_groups([_kept(m) for m in traffic])
    return [m for m in whole if m["role"] == "tool" or m.get("tool_calls")]


def _calls(message: AIMessage) -> bool:
    # A call whose arguments nobody can read was made, too, and answered with an error.
    return bool(message.tool_calls or message.invalid_tool_calls)


def _since_question(prompt: Sequence[BaseMessage], human: Message) -> Sequence[BaseMessage]:
    question = text_of(human["content"])
    humans = [i for i, m in enumerate(prompt) if isinstance(m, HumanMessage)]
    asked = [i for i in humans if text_of(prompt[i].content) == question] or humans
    return prompt[asked[-1] + 1 :] if asked else ()


def _messages_in(output: Any, human: Message) -> list[BaseMessage] | None:
    """The turn's messages of an output that is a list of them, or a state with such a list."""
    if isinstance(output, dict):
        output = output.get("messages")
    if not isinstance(output, list) or not output or not all(isinstance(m, BaseMessage) for m in output):
        return None
    return [m for m in _since_question(output, human) or output if not isinstance(m, HumanMessage)]


def _kept(message: BaseMessage) -> Message:
    """The message as it is stored: without the id of LangChain's own run, which names nothing outside."""
    if isinstance(message, ToolMessage) and is_deep(message.artifact):
        # Only a program understands it, and it cannot be a reason to lose the turn.
        message = message.model_copy(update={"artifact": "… (nested too deeply to be kept)"})
    kept = from_lc(message)
    if str(kept.get("id", "")).startswith(("run-", "lc_run-")):
        del kept["id"]
    return kept


def merged(chunks: Sequence[Any]) -> Any:
    """One output from the chunks of a stream: text and messages are joined, dicts of a streaming parser,
    each of which holds all so far, give the last."""
    if not chunks:
        return None
    if all(isinstance(c, str) for c in chunks):
        return "".join(chunks)
    first = chunks[0]
    if isinstance(first, BaseMessageChunk):
        return _joined(chunks) if all(isinstance(c, BaseMessageChunk) for c in chunks) else chunks[-1]
    total = first
    for chunk in chunks[1:]:
        try:
            total = total + chunk
        except TypeError:
            total = chunk
    return total


def _joined(chunks: Sequence[Any]) -> Any:
    # Pairwise, so that a long stream costs n log n and not n².
    while len(chunks) > 1:
        pairs = [chunks[i : i + 2] for i in range(0, len(chunks), 2)]
        chunks = [p[0] + p[1] if len(p) == 2 else p[0] for p in pairs]
    return chunks[0]
