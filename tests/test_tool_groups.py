"""The pass that makes tool calls and their results valid: its edge cases as a numbered table."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lc_memory.messages.tool_groups import groups, valid_groups

U = {"role": "user", "content": "q"}
U2 = {"role": "user", "content": "q2"}
S = {"role": "system", "content": "s"}
A = {"role": "assistant", "content": "a"}


def C(*ids: Any, said: Any = None) -> dict[str, Any]:
    calls = [{"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": said, "tool_calls": calls}


def T(call_id: Any, text: str = "r") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


SAID = {"role": "assistant", "content": "let me look"}

TABLE: list[tuple[str, list[Any], list[Any]]] = [
    ("01 nothing", [], []),
    ("02 no tools at all", [S, U, A], [S, U, A]),
    ("03 one call, answered", [U, C("a"), T("a"), A], [U, C("a"), T("a"), A]),
    ("04 parallel calls, answered", [U, C("a", "b"), T("a"), T("b"), A], [U, C("a", "b"), T("a"), T("b"), A]),
    ("05 parallel calls, results in another order", [C("a", "b"), T("b"), T("a")], [C("a", "b"), T("b"), T("a")]),
    ("06 part of the results missing: the group goes", [U, C("a", "b"), T("a"), A], [U, A]),
    ("07 part missing, but something was said beside the call", [U, C("a", "b", said="let me look"), T("a"), A],
     [U, SAID, A]),
    ("08 no result at all", [U, C("a"), U2], [U, U2]),
    ("09 a result before its call", [T("a"), C("a"), U], [U]),
    ("10 a result that comes later is moved to its call", [C("a"), U, T("a"), A], [C("a"), T("a"), U, A]),
    ("11 the call is the last message", [U, C("a")], [U]),
    ("12 the call is the last message, with words", [U, C("a", said="let me look")], [U, SAID]),
    ("13 two groups with the same id", [C("a"), T("a", "1"), C("a"), T("a", "2")],
     [C("a"), T("a", "1"), C("a"), T("a", "2")]),
    ("14 two groups with the same id, the second unanswered", [C("a"), T("a"), C("a"), U], [C("a"), T("a"), U]),
    ("15 two groups with the same id, the first unanswered", [C("a"), U, C("a"), T("a")], [U, C("a"), T("a")]),
    ("16 the window begins in the middle of a group", [T("b"), A, U], [A, U]),
    ("17 the window begins behind one of two results", [T("a"), T("b"), A, U], [A, U]),
    ("18 one id for two parallel calls, two results", [C("a", "a"), T("a", "1"), T("a", "2")],
     [C("a", "a"), T("a", "1"), T("a", "2")]),
    ("19 one id for two parallel calls, one result", [C("a", "a"), T("a"), U], [U]),
    ("20 a second result for the same call: the first counts", [C("a"), T("a", "1"), T("a", "2")],
     [C("a"), T("a", "1")]),
    ("21 a result without id", [C("a"), {"role": "tool", "content": "r"}, U], [U]),
    ("22 a call without id", [C(None), T(None), U], [U]),
    ("23 an empty id is none", [C(""), T(""), U], [U]),
    ("24 tool_calls null or empty is a plain message", [{**A, "tool_calls": None}, {**A, "tool_calls": []}],
     [{**A, "tool_calls": None}, {**A, "tool_calls": []}]),
    ("25 calls in a row, answered in reverse", [C("a"), C("b"), T("b"), T("a")], [C("a"), T("a"), C("b"), T("b")]),
    ("26 only orphans", [T("a"), T("b")], []),
    ("27 a chain of rounds", [U, C("a"), T("a"), C("b"), T("b"), A], [U, C("a"), T("a"), C("b"), T("b"), A]),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_the_table(before: list[Any], after: list[Any]) -> None:
    untouched = copy.deepcopy(before)
    assert valid_groups(before) == after
    assert valid_groups(after) == after
    assert before == untouched


def test_the_groups_are_the_units_of_cutting() -> None:
    assert groups([U, C("a", "b"), T("b"), T("a"), A]) == [[U], [C("a", "b"), T("b"), T("a")], [A]]


ids = st.sampled_from(["a", "b", "c", "", None])
any_message = (
    st.sampled_from([U, S, A, SAID])
    | st.builds(T, ids, st.sampled_from(["1", "2"]))
    | st.lists(ids, min_size=1, max_size=3).map(lambda i: C(*i))
    | st.lists(ids, min_size=1, max_size=3).map(lambda i: C(*i, said="let me look"))
)


@settings(max_examples=1000, deadline=None)
@given(st.lists(any_message, max_size=12))
def test_any_list_becomes_one_that_services_accept_and_then_stays(messages: list[Any]) -> None:
    result = valid_groups(messages)
    assert valid_groups(result) == result
    pending: list[Any] = []
    for message in result:
        if message["role"] == "tool":
            assert message["tool_call_id"] in pending
            pending.remove(message["tool_call_id"])
            continue
        assert not pending
        pending = [c["id"] for c in message.get("tool_calls", [])]
    assert not pending
    plain = [m for m in messages if m["role"] != "tool" and "tool_calls" not in m]
    assert [m for m in result if m in plain or m == SAID][: len(result)] == [
        m for m in result if m["role"] != "tool" and "tool_calls" not in m
    ]
    assert sum(m in (U, S, A) for m in result) == sum(m in (U, S, A) for m in messages)
