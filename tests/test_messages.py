"""Dicts and messages: everything real programs send becomes a message, and comes back as it was."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from lc_memory.errors import LCMemoryError, MemoryInputError
from lc_memory.messages import _to_lc, from_lc, messages_from_lc, messages_to_lc
from tests.data import data_dir


def call(arguments: Any, call_id: Any = "c1", name: Any = "f") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ({"role": "user", "content": "我叫小明"}, HumanMessage),
        ({"role": "human", "content": "hi"}, HumanMessage),
        ({"role": "User", "content": "hi"}, HumanMessage),
        ({"content": "no role"}, HumanMessage),
        ({"role": None, "content": "null role"}, HumanMessage),
        ({"role": "assistant", "content": "你好"}, AIMessage),
        ({"role": "AI", "content": "你好"}, AIMessage),
        ({"role": "system", "content": "s"}, SystemMessage),
        ({"role": "developer", "content": "s"}, SystemMessage),
        ({"role": "tool", "content": "r", "tool_call_id": "c1"}, ToolMessage),
        ({"role": "tool", "content": "a result without id"}, ToolMessage),
        ({"role": "function", "name": "f", "content": "r"}, FunctionMessage),
        ({"role": "function", "content": "a function without name"}, ChatMessage),
        ({"role": "critic", "content": "an unknown role"}, ChatMessage),
        ({"role": "remove", "id": "m1", "content": ""}, RemoveMessage),
        ({}, HumanMessage),
    ],
)
def test_each_role_has_its_message(message: dict[str, Any], kind: type[BaseMessage]) -> None:
    built = _to_lc(message)
    assert type(built) is kind
    assert from_lc(built) == {"role": "user", **{k: v for k, v in message.items() if v is not None}}


@pytest.mark.parametrize(
    ("content", "becomes"),
    [
        (None, ""),
        (0, "0"),
        (3.5, "3.5"),
        (True, "true"),
        ("", ""),
        ({"type": "text", "text": "one part"}, [{"type": "text", "text": "one part"}]),
        ({"city": "杭州"}, '{"city": "杭州"}'),
        (["a", "b"], ["a", "b"]),
        (["a", 1, None], ["a", "1", "null"]),
        ([{"type": "image_url", "image_url": {"url": "data:,"}}],
         [{"type": "image_url", "image_url": {"url": "data:,"}}]),
    ],
)  # fmt: skip
def test_each_content_reaches_the_message_and_comes_back(content: Any, becomes: Any) -> None:
    built = _to_lc({"role": "user", "content": content})
    assert built.content == becomes
    back = from_lc(built)
    assert back == {"role": "user", "content": content}
    assert type(back["content"]) is type(content)


def test_a_missing_content_comes_back_missing() -> None:
    message = {"role": "assistant", "tool_calls": [call("{}")]}
    assert from_lc(_to_lc(message)) == message


@pytest.mark.parametrize(
    ("arguments", "args"),
    [
        ('{"city": "北京"}', {"city": "北京"}),
        ('{"city":"北京"}', {"city": "北京"}),  # compact, as services write it
        ('{"city": "\\u5317\\u4eac"}', {"city": "北京"}),
        ("", {}),
        (None, {}),
        ({"city": "北京"}, {"city": "北京"}),
        ('{"a": "line\nbreak"}', {"a": "line\nbreak"}),
    ],
)
def test_arguments_that_hold_an_object_become_a_tool_call(arguments: Any, args: dict[str, Any]) -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [call(arguments)]}
    built = _to_lc(message)
    assert isinstance(built, AIMessage)
    assert built.tool_calls == [{"name": "f", "args": args, "id": "c1", "type": "tool_call"}]
    assert from_lc(built) == message


@pytest.mark.parametrize("arguments", ['{"city": ', "[1]", "not json", "3", [1], 3])
def test_arguments_that_hold_none_become_an_invalid_call_with_their_text(arguments: Any) -> None:
    message = {"role": "assistant", "content": "", "tool_calls": [call(arguments), call("{}", "c2")]}
    built = _to_lc(message)
    assert isinstance(built, AIMessage)
    assert [c["id"] for c in built.tool_calls] == ["c2"]
    assert [c["id"] for c in built.invalid_tool_calls] == ["c1"]
    assert from_lc(built) == message


def test_calls_in_langchains_own_form_are_taken_too() -> None:
    calls = [{"name": "f", "args": {"x": 1}, "id": "c1", "type": "tool_call"}]
    message = {"role": "assistant", "content": "", "tool_calls": calls}
    built = _to_lc(message)
    assert isinstance(built, AIMessage)
    assert built.tool_calls == calls
    assert from_lc(built) == message


def test_nulls_that_a_plain_chat_model_stumbles_over_stay_out_of_the_message_and_come_back() -> None:
    message = {"role": "assistant", "content": "a", "audio": None, "function_call": None, "refusal": None}
    built = _to_lc(message)
    assert not {"audio", "function_call"} & built.additional_kwargs.keys()
    assert from_lc(built) == message


def test_langchains_own_dicts_name_the_role_in_their_type() -> None:
    built = _to_lc({"type": "ai", "content": "你好"})
    assert type(built) is AIMessage
    assert from_lc(built) == {"role": "assistant", "type": "ai", "content": "你好"}


def test_extra_keys_survive() -> None:
    message = {
        "role": "assistant", "content": "42", "refusal": None, "annotations": [], "is_summary": True,
        "reasoning_content": "想了想", "additional_kwargs": None, "message_type": "x", "type": "message",
    }  # fmt: skip
    built = _to_lc(message)
    assert built.additional_kwargs["is_summary"] is True
    assert built.additional_kwargs["reasoning_content"] == "想了想"
    assert from_lc(built) == message


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ("hi", "expected a dict"),
        (["role", "user"], "expected a dict"),
        ({1: 2}, "the key 1"),
        ({"role": 3, "content": ""}, "['role']"),
        ({"role": "", "content": ""}, "['role']"),
        ({"role": "assistant", "tool_calls": {}}, "['tool_calls']"),
        ({"role": "assistant", "tool_calls": [1]}, "['tool_calls'][0]"),
    ],
)
def test_what_no_message_can_carry_is_one_error_that_names_the_place(message: Any, says: str) -> None:
    with pytest.raises(MemoryInputError) as caught:
        _to_lc(message)
    assert says in str(caught.value)


def test_the_error_of_a_list_names_the_index() -> None:
    with pytest.raises(MemoryInputError, match=r"messages\[1\]\['role'\]"):
        messages_to_lc([{"role": "user", "content": "a"}, {"role": 7}])


@pytest.mark.parametrize("thing", ["hi", b"hi", {"role": "user", "content": "a"}, None, 3, HumanMessage("hi")])
def test_a_single_thing_where_a_list_belongs_is_an_error(thing: Any) -> None:
    with pytest.raises(MemoryInputError):
        messages_to_lc(thing)
    with pytest.raises(MemoryInputError):
        messages_from_lc(thing)


def test_everything_langchain_takes_is_taken_with_the_same_result() -> None:
    taken: list[Any] = [
        {"role": "user", "content": "a", "name": "bob", "id": "m1"},
        {"role": "assistant", "content": None, "tool_calls": [call('{"x": 1}')]},
        {"role": "tool", "content": "r", "tool_call_id": "c1", "name": "f"},
        {"role": "developer", "content": "d"},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]},
        ("human", "pair"),
        "bare",
        AIMessage("object"),
    ]
    ours, theirs = messages_to_lc(taken), convert_to_messages(taken)
    for mine, other in zip(ours, theirs, strict=True):
        mine.additional_kwargs.pop("lc_memory", None)
        assert mine == other


def test_the_dict_is_not_touched_and_shares_nothing_with_the_message() -> None:
    message = {"role": "user", "content": [{"type": "text", "text": "a"}], "meta": {"x": [1]}}
    before = copy.deepcopy(message)
    built = _to_lc(message)
    built.content[0]["text"] = "changed"  # type: ignore[index]
    built.additional_kwargs["meta"]["x"].append(2)
    assert message == before


def test_an_edited_message_stays_edited() -> None:
    built = _to_lc({"role": "User", "content": None, "tool_calls": None})
    built.content = "now there are words"
    assert from_lc(built) == {"role": "User", "content": "now there are words", "tool_calls": None}


def test_chunks_come_back_as_whole_messages() -> None:
    merged = AIMessageChunk(content="a", id="x") + AIMessageChunk(content="b", id="x")
    assert from_lc(merged) == {"role": "assistant", "content": "ab", "id": "x"}


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
known_values = {
    "role": st.sampled_from(
        ["user", "assistant", "system", "tool", "developer", "function", "Remove", "critic", ""]
    )
    | json_like,
    "content": st.text(max_size=8) | json_like,
    "type": st.sampled_from(["ai", "human", "constructor"]) | json_like,
    "tool_calls": st.lists(
        st.builds(call, st.sampled_from(["{}", "", '{"a":1}', "[1]", "{"]) | json_like, json_like, json_like)
        | st.dictionaries(st.sampled_from(["id", "function", "name", "args", "type", "custom"]), json_like),
        max_size=3,
    )
    | json_like,
}
other_keys = ["name", "id", "tool_call_id", "status", "artifact", "usage_metadata", "response_metadata",
              "additional_kwargs", "lc_memory", "function_call", "example", "__openai_role__", "refusal",
              "reasoning_content", "message_type", "is_summary", "invalid_tool_calls", "audio"]  # fmt: skip
dicts = st.fixed_dictionaries({}, optional={**known_values, **dict.fromkeys(other_keys, json_like)})


def equal(a: Any, b: Any) -> bool:
    return json.dumps(a, sort_keys=True) == json.dumps(b, sort_keys=True)


@settings(max_examples=600, deadline=None)
@given(dicts | json_like)
def test_any_json_is_a_message_that_comes_back_whole_or_one_clear_error(message: Any) -> None:
    before = copy.deepcopy(message)
    try:
        built = _to_lc(message)
    except MemoryInputError:
        return
    finally:
        assert equal(message, before)
    back = from_lc(built)
    if message.get("role") is None:
        message = {**message, "role": back["role"]}
    assert equal(back, message)
    assert isinstance(_to_lc(back), type(built))


@settings(max_examples=200, deadline=None)
@given(st.lists(dicts | json_like, max_size=4) | json_like)
def test_any_json_list_raises_nothing_but_our_own_error(messages: Any) -> None:
    try:
        built = messages_to_lc(messages)
    except LCMemoryError:
        return
    assert all(isinstance(m, BaseMessage) for m in built)


@pytest.mark.skipif(data_dir() is None, reason="the recorded requests are not here")
def test_every_recorded_message_comes_back_as_it_was() -> None:
    folder = data_dir()
    assert folder is not None
    seen = 0
    for line in (folder / "messages" / "recorded-requests.jsonl").read_text("utf-8").splitlines():
        record = json.loads(line)
        for message in [*record["messages"], record.get("response_message")]:
            if message:
                assert equal(from_lc(_to_lc(message)), {"role": "user", **message})
                seen += 1
    for line in (folder / "messages" / "tool-trajectories.jsonl").read_text("utf-8").splitlines():
        for message in json.loads(line):
            assert equal(from_lc(_to_lc(message)), message)
            seen += 1
    assert seen > 2000
