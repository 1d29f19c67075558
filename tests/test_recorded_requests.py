"""Recorded conversations go through: cut anywhere, to five services, none refuses and nothing is changed.

The way of a message is the real one: the tool-group pass, ``_to_lc``, the chat model. The full sweep hands
each request, as the model would send it, to the server's own check; each whole conversation also goes over
HTTP. The recorded sets are not part of the repository; a few lines of them are (``tests/excerpts``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import BaseMessage
from langchain_openai import ChatOpenAI

from lc_memory.errors import MemoryInputError
from lc_memory.messages import _to_lc
from lc_memory.messages.tool_groups import valid_groups
from lc_memory.models import PROFILES, ServiceChatModel
from tests.data import EXCERPTS, data_dir
from tests.servers.chat import ChatServer
from tests.servers.rules import PARTS, refusal
from tests.servers.rules import PROFILES as SERVICES

Message = dict[str, Any]
EXCERPT = EXCERPTS / "recorded.jsonl"

NO_PLACE_ON_THE_WIRE = {
    "prefix": "a wish to have this message continued (Mistral); no other service has the field",
    "reasoning": "another name of reasoning_content in answers; requests have no such field",
    "annotations": "links that belong to an answer; requests have no such field",
    "reasoning_details": "an answer's thoughts in OpenRouter's form; requests to these services have none",
    "extra_content, thought_signature": "Google's signature of a thought; the others refuse unknown fields",
    "executed_tools": "what Groq ran by itself while it answered",
    "audio": "what was said aloud goes back to OpenAI by its id; no other service has the field",
    "refusal, function_call": "null or hollow in every recording",
    "name: null, tool_calls: null, []": "null is the same as nothing",
    "tool_calls[].index": "the place of a call in a stream",
    "reasoning_content": "only where a turn called tools, and only DeepSeek and Kimi; see _reasoning_is_right",
    "content beside tool_calls": "'', null, [] and no content are one; each service has its own spelling of it",
    "content: null, []": "where no tool is called, nothing is spelled ''",
    "cache_control, null keys of a part": "a part has its type and what the type names, nothing else",
    "part: thinking": "a model's thoughts are not given back as content; LangChain leaves them out",
    "part the service has no type for": "a line of text that names it goes instead (document_url; images "
    "and files where only text is taken)",
    "empty assistant message": "Kimi refuses one that neither says nor calls anything; it is left out",
    "broken argument JSON": "Qwen and Gemma take JSON objects only; what was written goes into one",
}
"""All that does not arrive as it was recorded, and why."""

_IN_WORDS = re.compile(r"^\[(file|document_url|input_audio|video_url|image_url)\b[^\]]*\]?$")
_ANSWER_KEYS = {
    "prefix", "reasoning", "annotations", "refusal", "audio", "function_call", "reasoning_content",
    "reasoning_details", "extra_content", "thought_signature", "executed_tools",
}  # fmt: skip


# ---------------------------------------------------------------- the conversations


def _from_sharegpt(turns: list[dict[str, str]]) -> list[Message]:
    out: list[Message] = []
    roles = {"human": "user", "gpt": "assistant"}
    for i, turn in enumerate(turns):
        kind, value = turn["from"], turn["value"]
        if kind == "function_call":
            made = json.loads(value)
            arguments = json.dumps(made["arguments"], ensure_ascii=False)
            function = {"name": made["name"], "arguments": arguments}
            called = {"id": f"call_{i}", "type": "function", "function": function}
            out.append({"role": "assistant", "content": None, "tool_calls": [called]})
        elif kind == "observation":
            out.append({"role": "tool", "tool_call_id": f"call_{i - 1}", "content": value})
        else:
            out.append({"role": roles[kind], "content": value})
    return out


def _conversations(paths: list[Path]) -> Iterator[list[Message]]:
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if isinstance(row, list):
                yield row
            elif "conversations" in row:
                yield _from_sharegpt(row["conversations"])
            else:
                answer = row.get("response_message")  # the next request would give it back
                yield [*row["messages"], *([answer] if answer else [])]


def _all_of(where: str) -> list[list[Message]]:
    if where == "excerpt":
        return list(_conversations([EXCERPT]))
    data = data_dir()
    if data is None:
        pytest.skip("the recorded sets are not here (see tests/data.py)")
    return list(_conversations(sorted((data / "messages").glob("*.jsonl"))))


def _windows(conversation: list[Message]) -> Iterator[list[Message]]:
    """Every beginning of a conversation, every end of it, and every five in a row from its middle."""
    for i in range(1, len(conversation) + 1):
        yield conversation[:i]
    for i in range(1, len(conversation)):
        yield conversation[i:]
    for i in range(1, len(conversation) - 5):
        yield conversation[i : i + 5]


def _model(service: str, url: str = "http://127.0.0.1:9/v1") -> ServiceChatModel:
    return ServiceChatModel(
        base_url=url, api_key="k", model="m", service=PROFILES[service], max_retries=0, use_responses_api=False
    )


# ---------------------------------------------------------------- what should arrive


def _part_as_sent(part: Message, role: str, service: str) -> Message | None:
    kind = part["type"]
    if kind == "thinking":
        return None
    if kind in (PARTS[service] if role == "user" else {"text"}):
        return {"type": kind, kind: part[kind]}
    return {"type": "text", "text": f"[{kind}"}  # the beginning of the line that names it


def _as_sent(message: Message, service: str) -> Message | None:
    role, content, calls = message["role"], message.get("content"), message.get("tool_calls")
    out = {k: v for k, v in message.items() if v is not None and k not in _ANSWER_KEYS and k != "content"}
    out.pop("tool_calls", None)
    if (message.get("audio") or {}).get("id") and service == "openai":
        out["audio"] = {"id": message["audio"]["id"]}
    if calls:
        out["tool_calls"] = [{k: v for k, v in c.items() if k != "index"} for c in calls]
        if service in ("qwen", "gemma"):
            for made in out["tool_calls"]:
                made["function"] = {**made["function"], "arguments": _object(made["function"]["arguments"])}
    if isinstance(content, list):
        content = [p for part in content if (p := _part_as_sent(part, role, service)) is not None]
    if content:
        return {**out, "content": content}
    if calls:
        return out if service == "kimi" else {**out, "content": None}
    return None if service == "kimi" and role == "assistant" else {**out, "content": ""}


def _object(arguments: str) -> str:
    try:
        if isinstance(json.loads(arguments), dict):
            return arguments
    except ValueError:
        pass
    return json.dumps({"arguments": arguments} if arguments else {}, ensure_ascii=False)


def _same(arrived: Any, expected: Any) -> bool:
    """Equality, but that an attachment put into words need only name its type."""
    if isinstance(expected, dict) and str(expected.get("text")).startswith("[") and expected.get("type") == "text":
        return bool(arrived["type"] == "text" and arrived["text"].startswith(expected["text"]))
    if isinstance(expected, list):
        return isinstance(arrived, list) and len(arrived) == len(expected) and all(map(_same, arrived, expected))
    if isinstance(expected, dict):
        return arrived.keys() == expected.keys() and all(_same(arrived[k], v) for k, v in expected.items())
    return bool(arrived == expected and type(arrived) is type(expected))


def _flat(messages: list[Message]) -> str:
    """All that is said, called and answered, in order, without who speaks: what is left when messages are
    merged. Fillers are left out, and of an attachment put into words only the type counts."""
    out: list[str] = []
    for m in messages:
        if m.get("content") == "…":
            continue
        content = m.get("content") or []
        for part in [content] if isinstance(content, str) else content:
            text = part if isinstance(part, str) else part.get("text")
            out.append(json.dumps(part, sort_keys=True) if text is None else _IN_WORDS.sub(r"[\1]", text))
        out += [json.dumps(c, sort_keys=True) for c in m.get("tool_calls", ())]
        out += [str(m[k]) for k in ("tool_call_id", "name") if k in m]
    return "\n\n".join(out)


def _reasoning_is_right(arrived: list[Message], recorded: list[Message], service: str) -> bool:
    """What was thought comes back as it was, and something comes wherever it is demanded (by the check)."""
    known = {m["reasoning_content"] for m in recorded if m.get("reasoning_content")}
    given = {m["reasoning_content"] for m in arrived if "reasoning_content" in m}
    if service not in ("deepseek", "kimi"):
        return not given
    called = {m["reasoning_content"] for m in recorded if m.get("reasoning_content") and m.get("tool_calls")}
    return called <= given and given - known <= {"" if service == "deepseek" else " "}


def _arrives(arrived: list[Message], recorded: list[Message], service: str) -> bool:
    if not _reasoning_is_right(arrived, recorded, service):
        return False
    bare = [{k: v for k, v in m.items() if k != "reasoning_content"} for m in arrived]
    expected = [m for r in recorded if (m := _as_sent(r, service)) is not None]
    if service in ("openai", "deepseek", "kimi"):
        return _same(bare, expected)
    return _flat(bare) == _flat(expected)


# ---------------------------------------------------------------- the tests


@pytest.mark.parametrize("where", ["excerpt", "all"])
@pytest.mark.parametrize("service", SERVICES)
def test_no_conversation_is_refused_wherever_it_is_cut_and_all_of_it_arrives(service: str, where: str) -> None:
    model = _model(service)
    sent = 0
    for conversation in _all_of(where):
        converted = {id(m): _to_lc(m) for m in conversation}
        for window in _windows(conversation):
            recorded = valid_groups(window)
            messages = [converted.get(id(m)) or _to_lc(m) for m in recorded]
            if not _says_something(recorded, service):
                with pytest.raises(MemoryInputError):
                    model._get_request_payload(messages)
                continue
            body = model._get_request_payload(messages)
            assert refusal(body, service) is None
            assert _arrives(body["messages"], recorded, service), (recorded, body["messages"])
            sent += 1
    assert sent > 20


def _says_something(recorded: list[Message], service: str) -> bool:
    return any(_as_sent(m, service) is not None for m in recorded)


@pytest.mark.parametrize("where", ["excerpt", "all"])
@pytest.mark.parametrize("service", SERVICES)
def test_every_whole_conversation_is_answered_over_http(service: str, where: str) -> None:
    with ChatServer(service) as server:
        model = _model(service, server.url)
        for conversation in _all_of(where):
            recorded = valid_groups(conversation)
            assert model.invoke([_to_lc(m) for m in recorded]).content == "ok"
            assert _arrives(server.requests[-1]["messages"], recorded, service)
        assert server.refusals == []


@pytest.mark.parametrize("service", SERVICES)
def test_a_plain_chatopenai_is_refused_on_the_same_conversations(service: str) -> None:
    plain = ChatOpenAI(base_url="http://127.0.0.1:9/v1", api_key="k", model="m")
    refusals = []
    for conversation in _all_of("excerpt"):
        messages = [_without_nulls(_to_lc(m)) for m in conversation]
        refusals.append(refusal(plain._get_request_payload(messages), service))
    assert any(refusals)


def _without_nulls(message: BaseMessage) -> BaseMessage:
    """ChatOpenAI cannot write a message with ``"audio": null`` at all."""
    kept = {k: v for k, v in message.additional_kwargs.items() if v is not None}
    return message.model_copy(update={"additional_kwargs": kept})


def test_what_has_no_place_on_the_wire_is_all_that_the_recordings_lose() -> None:
    """A key the table does not name would have shown as a difference above; here the table names no more
    than there is: every key in it is one some recording has."""
    rows = [m for c in _all_of("all") for m in c]
    keys = {k for m in rows for k in m} - {"role", "content", "tool_calls", "tool_call_id", "name"}
    assert keys == _ANSWER_KEYS
    assert set(", ".join(NO_PLACE_ON_THE_WIRE).split(", ")) >= _ANSWER_KEYS
    assert not any(m.get("refusal") or (m.get("function_call") or {}).get("name") for m in rows)
