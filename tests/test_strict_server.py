"""The strict chat server: it refuses what the services refuse, answers by script and fails on demand."""

from __future__ import annotations

import json
import threading
from typing import Any

import httpx
import pytest

from tests.servers.chat import Answer, ChatServer, Fault, call
from tests.servers.rules import FORCED, NO_CALL, PROFILES, REASONING, refusal, refusals

Message = dict[str, Any]

USER: Message = {"role": "user", "content": "几点了？"}
SYSTEM: Message = {"role": "system", "content": "简短回答。"}
SAID: Message = {"role": "assistant", "content": "三点。"}
TOOL = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}}}}


def _called(*ids: str, **extra: Any) -> Message:
    return {"role": "assistant", "tool_calls": [call("clock", id=i) for i in ids], **extra}


def _result(call_id: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": "15:00"}


def _body(*messages: Any, **fields: Any) -> Message:
    return {"model": "m", "messages": list(messages), **fields}


# (services, request, a part of what they answer)
REFUSED: list[tuple[tuple[str, ...], Message, str]] = [
    (PROFILES, _body(), "empty array"),
    (PROFILES, _body(USER, model=""), "model"),
    (PROFILES, _body({"role": "critic", "content": "x"}), "Supported values are"),
    (PROFILES, _body({"content": "x"}), "Supported values are"),
    (PROFILES, _body({"role": "user"}), "content"),
    (PROFILES, _body({"role": "user", "content": 3}), "Invalid type"),
    (PROFILES, _body({"role": "user", "content": []}), "empty array"),
    (PROFILES, _body({"role": "user", "content": None}), "expected a string, got null"),
    (PROFILES, _body(USER, {"role": "assistant", "content": None}, USER), "got null"),
    (PROFILES, _body({**USER, "mood": "good"}), "Unknown parameter: 'messages[0].mood'"),
    (PROFILES, _body({**USER, "name": "小 明"}), "does not match pattern"),
    (PROFILES, _body(USER, colour="red"), "colour"),
    (PROFILES, _body({"role": "user", "content": [{"type": "document_url", "document_url": "x"}]}), "document_url"),
    (PROFILES, _body({"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {}}]}), "cache_control"),
    (PROFILES, _body(USER, _result("c1")), NO_CALL),
    (PROFILES, _body(USER, _called("c1"), USER), "must be followed by tool messages"),
    (PROFILES, _body(USER, _called("c1", "c2"), _result("c1"), USER), "c2"),
    (PROFILES, _body(USER, _called("c1")), "must be followed by tool messages"),
    (PROFILES, _body(USER, {"role": "assistant", "content": "x", "tool_calls": []}), "minimum length 1"),
    (PROFILES, _body(USER, stream_options={"include_usage": True}), "stream_options"),
    (PROFILES, _body(USER, tool_choice="auto"), "tool_choice"),
    (PROFILES, _body(USER, tools=[]), "tools"),
    (PROFILES, _body(USER, response_format={"type": "json_object"}), "'json'"),
    (("openai",), _body(USER, {"role": "assistant", "content": "x", "audio": {"id": ""}}), "audio.id"),
    (("openai", "qwen", "gemma"), _body(USER, {**SAID, "reasoning_content": "x"}, USER), "reasoning_content"),
    (("deepseek", "kimi", "qwen", "gemma"), _body({"role": "developer", "content": "x"}, USER), "developer"),
    (("deepseek", "kimi", "qwen", "gemma"), _body(USER, max_completion_tokens=5), "max_completion_tokens"),
    (("deepseek",), _body({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "u"}}]}),
     "unknown variant `image_url`, expected `text`"),
    (("kimi",), _body(USER, _called("c1", content="", reasoning_content=" "), _result("c1")), "text content is empty"),
    (("kimi",), _body(USER, {"role": "assistant", "content": ""}, USER), "text content is empty"),
    (("qwen",), _body(SYSTEM, SYSTEM, USER), "System message must be at the beginning."),
    (("qwen",), _body(SYSTEM, USER, SAID, SYSTEM, USER), "System message must be at the beginning."),
    (("qwen",), _body(SYSTEM), "No user query"),
    (("qwen",), _body(SAID), "No user query"),
    (("qwen", "gemma"), _body(USER, {**_called("c1"), "tool_calls": [call("clock", id="c1", arguments="{")]},
                              _result("c1")), "JSON format"),
    (("gemma",), _body(SYSTEM, USER), "System role not supported"),
    (("gemma",), _body(USER, USER), "Conversation roles must alternate"),
    (("gemma",), _body(SAID, USER), "Conversation roles must alternate"),
    (("gemma",), _body(USER, _called("c1"), _result("c1"), USER), "Conversation roles must alternate"),
    (("deepseek",), _body(USER, _called("c1"), _result("c1")), REASONING["deepseek"]),
    (("deepseek",), _body(USER, _called("c1", reasoning_content=""), _result("c1"), SAID, USER), REASONING["deepseek"]),
    (("kimi",), _body(USER, _called("c1"), _result("c1")), REASONING["kimi"].format(1)),
    (("kimi",), _body(USER, _called("c1", reasoning_content=""), _result("c1")), REASONING["kimi"].format(1)),
    *(((s,), _body(USER, tools=[TOOL], tool_choice=c), FORCED[s]) for s in FORCED
      for c in ("required", {"type": "function", "function": {"name": "clock"}})),
    (("deepseek", "qwen"), _body(USER, response_format={"type": "json_schema", "json_schema": {}}), "unavailable"),
    (("qwen",), _body({"role": "user", "content": "in JSON"}, response_format={"type": "json_object"}), "enable_thinking"),
    *((("kimi",), _body(USER, tools=[{"type": "function", "function": {"name": "f", "parameters": p}}]), "moonshot")
      for p in (
          {"type": "object", "properties": {"a": {"description": "no type"}}},
          {"type": "object", "properties": {"a": {"type": "array", "items": {}}}},
          {"type": "object", "properties": {"a": {"type": "string", "anyOf": [{"type": "string"}]}}},
      )),
]  # fmt: skip

ACCEPTED: list[tuple[tuple[str, ...], Message]] = [
    (PROFILES, _body(USER)),
    (PROFILES, _body(USER, SAID, USER)),
    (("openai", "deepseek", "kimi"), _body(SYSTEM, SYSTEM, USER, SAID, SYSTEM, USER)),
    (("openai", "qwen"), _body(SYSTEM, USER, _called("c1", "c2", content=None), _result("c2"), _result("c1"), SAID)),
    (("gemma",), _body(USER, _called("c1", content=None), _result("c1"), SAID, USER)),
    (("deepseek",), _body(USER, _called("c1", reasoning_content=""), _result("c1"), {**SAID, "reasoning_content": ""})),
    (("deepseek", "kimi"), _body(USER, _called("c1"), _result("c1"), thinking={"type": "disabled"})),
    (("kimi",), _body(USER, _called("c1", reasoning_content=" "), _result("c1"), SAID)),
    (("openai",), _body(USER, tools=[TOOL], tool_choice="required")),
    (("deepseek", "kimi"), _body(USER, tools=[TOOL], tool_choice="required", thinking={"type": "disabled"})),
    (("qwen",), _body(USER, tools=[TOOL], tool_choice="required", enable_thinking=False)),
    (("openai",), _body({"role": "developer", "content": "x"}, USER, max_completion_tokens=5)),
]


@pytest.mark.parametrize(
    ("service", "body", "words"),
    [pytest.param(s, b, w, id=f"{i}-{s}") for i, (ss, b, w) in enumerate(REFUSED) for s in ss],
)
def test_each_service_refuses_what_it_refuses(service: str, body: Message, words: str) -> None:
    said = refusal(body, service)
    assert said is not None
    with ChatServer(service) as server:
        answer = httpx.post(f"{server.url}/chat/completions", json=body)
        assert answer.status_code == 400
        assert answer.json()["error"]["message"] == said
        assert server.refusals == [said]
    assert any(words in r for r in refusals(body, service))


@pytest.mark.parametrize(
    ("service", "body"), [pytest.param(s, b, id=f"{i}-{s}") for i, (ss, b) in enumerate(ACCEPTED) for s in ss]
)
def test_each_service_takes_what_it_takes(service: str, body: Message) -> None:
    assert refusal(body, service) is None


def _post(server: ChatServer, **fields: Any) -> httpx.Response:
    return httpx.post(f"{server.url}/chat/completions", json=_body(USER, **fields))


def _events(answer: httpx.Response) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines() if line]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def test_answers_come_in_the_order_of_the_script_and_then_ok() -> None:
    with ChatServer() as server:
        server.script("你好", lambda body: f"{len(body['messages'])} message")
        said = [_post(server).json()["choices"][0]["message"]["content"] for _ in range(3)]
        assert said == ["你好", "1 message", "ok"]
        assert [b["messages"] for b in server.requests] == [[USER]] * 3


def test_a_stream_says_the_same_as_the_whole_answer_and_usage_only_where_asked() -> None:
    scripted = Answer("四点了。", reasoning="看看钟", tool_calls=[call("clock", zone="上海")])
    with ChatServer("deepseek") as server:
        server.script(scripted, scripted, scripted)
        whole = _post(server).json()
        plain = _events(_post(server, stream=True))
        used = _events(_post(server, stream=True, stream_options={"include_usage": True}))
    message = whole["choices"][0]["message"]
    deltas = [c["delta"] for e in plain[:-1] for c in e["choices"]]
    assert "".join(d.get("content") or "" for d in deltas) == message["content"]
    assert "".join(d.get("reasoning_content") or "" for d in deltas) == message["reasoning_content"]
    parts = [d["tool_calls"][0]["function"]["arguments"] for d in deltas if "tool_calls" in d]
    assert "".join(parts) == message["tool_calls"][0]["function"]["arguments"] == '{"zone":"上海"}'
    assert plain[-1] == used[-1] == "[DONE]"
    assert not any("usage" in e for e in plain[:-1])
    assert used[-2]["usage"] == whole["usage"]


def test_faults_come_as_they_were_scripted() -> None:
    with ChatServer() as server:
        server.script(Fault(429, retry_after=2), Fault(500), Fault(garbage=True))
        limited, broken, garbage = _post(server), _post(server), _post(server)
        assert (limited.status_code, limited.headers["retry-after"], broken.status_code) == (429, "2", 500)
        assert garbage.text.startswith("<html>")

        server.script(Fault(cut=2), Fault(cut=2, abrupt=False), Fault(cut=1))
        with pytest.raises(httpx.RemoteProtocolError):
            _post(server, stream=True)
        assert len(_events(_post(server, stream=True))) == 2
        with pytest.raises(httpx.RemoteProtocolError):
            _post(server)


def test_a_hanging_request_is_seen_and_goes_on_when_released() -> None:
    said: list[httpx.Response] = []
    with ChatServer() as server:
        server.script(Fault(hang=True, answer=Answer("late")))
        asking = threading.Thread(target=lambda: said.append(_post(server)))
        asking.start()
        assert server.hanging.wait(30)
        assert said == []
        server.release()
        asking.join(30)
    assert said[0].json()["choices"][0]["message"]["content"] == "late"
