"""FactStore beside LangGraph's own InMemoryStore: equal answers, or an error that says why not."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from lc_memory import Memory, MemoryInputError
from lc_memory.integrations.store import FactStore, namespace_of

U1, U2, S1 = namespace_of("u1"), namespace_of("u2"), namespace_of(session_id="s1")

ITEMS: dict[str, dict[str, Any]] = {
    "a": {"text": "tea", "n": 1, "deep": {"x": 1, "y": {"z": [1, 2]}}, "tags": ["one", "two"], "private": False},
    "b": {"text": "coffee", "n": 2.5, "deep": {"x": 2, "y": None}, "tags": [{"k": 1}, {"k": 2, "l": 3}], "kind": "drink"},
    "c": {"text": "milk", "n": "7", "deep": "flat", "tags": "one", "core": True},
    "d": {"text": "water", "n": True, "deep": [], "flag": None},
    "e": {"text": "juice"},
}


@pytest.fixture
def stores(tmp_path: Path) -> Iterator[tuple[FactStore, InMemoryStore]]:
    with Memory.open(":memory:", recall=()) as memory:
        yield FactStore(memory), InMemoryStore()


def shown(items: Any) -> Any:
    return [(i.namespace, i.key, i.value) for i in items]


FILTERS: list[dict[str, Any]] = [
    {"deep": {"x": 1}},
    {"deep": {"y": {"z": [1, 2]}}},
    {"deep": {"x": {"$gt": 1}}},
    {"deep": {"x": {"$gte": 1, "$lt": 2}}},
    {"deep": {"x": {"$ne": 1}}},
    {"deep": {"y": None}},
    {"deep": {}},
    {"deep": {"missing": None}},
    {"tags": [{"k": 1}, {"l": 3}]},
    {"tags": [{"k": {"$gt": 0}}, {"k": {"$lte": 2}}]},
    {"tags": ("one", "two")},
    {"n": {"$gte": 2}},
    {"n": {"$gt": "2"}},
    {"private": False},
    {"core": False},
    {"text": "tea", "deep": {"x": 1}},
]
FILTERS_BEFORE: list[dict[str, Any]] = [
    {"deep": {"y": {"z": [2, 1]}}},
    {"tags": ["one"]},
    {"n": {"$lt": 2}},
    {"n": {"$eq": 1}},
    {"n": {"$ne": 2.5}},
    {"n": 1},
    {"flag": None},
    {"core": True},
    {"kind": None},
    {"kind": {"$ne": "drink"}},
    {"subject": None},
    {"text": {"$eq": "tea"}},
]


@pytest.mark.parametrize("wanted", FILTERS, ids=str)
def test_a_filter_finds_what_langgraphs_store_finds(wanted: dict[str, Any], stores: Any) -> None:
    _finds_the_same(wanted, stores)


@pytest.mark.parametrize("wanted", FILTERS_BEFORE, ids=str)
def test_guard_filters_that_were_right_before_are_right_still(wanted: dict[str, Any], stores: Any) -> None:
    _finds_the_same(wanted, stores)


def _finds_the_same(wanted: dict[str, Any], stores: Any) -> None:
    mine, theirs = stores
    numbers = [key for key, value in ITEMS.items() if wanted.keys() != {"n"} or "n" in value]  # it raises at None
    for store in stores:
        for key in numbers:
            if not (wanted.get("deep") == {"x": {"$gt": 1}} or "$gte" in str(wanted.get("deep"))) or key in "ab":
                store.put(U1, key, ITEMS[key])
    assert shown(mine.search(U1, filter=wanted)) == shown(theirs.search(U1, filter=wanted))


@pytest.mark.parametrize(
    ("wanted", "what"),
    [
        ({"deep": {"x": {"$regex": "a"}}}, r"\$regex"),
        ({"tags": [{"$exists": True}]}, r"\$exists"),
        ({"n": {"$gt": None}}, "number"),
        ({"n": {"$lte": "2026-01-01"}}, "number"),
        ({"n": {"$gt": [1]}}, "number"),
    ],
    ids=str,
)
@pytest.mark.parametrize("filled", [True, False], ids=["with items", "without any"])
def test_a_filter_that_cannot_be_understood_is_an_error(wanted: Any, what: str, filled: bool, stores: Any) -> None:
    mine, _ = stores
    if filled:
        mine.put(U1, "a", ITEMS["a"])
    with pytest.raises(MemoryInputError, match=what):
        mine.search(U1, filter=wanted)


@pytest.mark.parametrize("name", ["%61lice", "%2e", "100%", "%25%", "a%2", "%%"])
@pytest.mark.parametrize("whose", ["user", "session"])
def test_a_namespace_that_is_written_in_another_way_is_refused_by_every_call(
    whose: str, name: str, stores: Any
) -> None:
    mine, _ = stores
    mine.put(namespace_of("alice"), "k", {"text": "of alice"})
    for call in (
        lambda: mine.put((whose, name), "k", {"text": "x"}),
        lambda: mine.get((whose, name), "k"),
        lambda: mine.delete((whose, name), "k"),
        lambda: mine.search((whose, name)),
    ):
        with pytest.raises(MemoryInputError, match="namespace_of"):
            call()
    assert mine.get(namespace_of("alice"), "k").value == {"text": "of alice"}


def test_a_batch_reads_before_it_writes_and_the_last_of_two_puts_counts(stores: Any) -> None:
    def told(store: Any) -> Any:
        store.put(U1, "a", {"text": "before"})
        found = store.batch([
            PutOp(U1, "a", {"text": "first"}), GetOp(U1, "a"), PutOp(U1, "a", {"text": "second"}),
            PutOp(U1, "b", {"text": "b"}), SearchOp(U1), ListNamespacesOp(), PutOp(U2, "c", {"text": "c"}),
            PutOp(U1, "b", None),
        ])  # fmt: skip
        return found[1].value, shown(found[4]), found[5], shown(store.search(())), store.get(U1, "b")

    mine, theirs = stores
    assert told(mine) == told(theirs)


def test_a_batch_that_cannot_be_written_whole_is_not_written(stores: Any) -> None:
    mine, _ = stores
    with pytest.raises(MemoryInputError):
        mine.batch([PutOp(U1, "a", {"text": "a"}), PutOp(U1, "b", {"text": "b", "n": float("nan")})])
    assert mine.search(U1) == []


def test_an_item_that_is_put_again_keeps_its_place(stores: Any) -> None:
    def told(store: Any) -> Any:
        for key in "abc":
            store.put(U1, key, {"text": key, "n": 1})
        store.put(U1, "a", {"text": "a", "n": 2})
        store.put(U1, "b", {"text": "other"})
        return [shown(store.search(U1, limit=1, offset=i)) for i in range(4)]

    mine, theirs = stores
    assert told(mine) == told(theirs)


def test_a_value_that_is_equal_and_not_the_same_is_put(stores: Any) -> None:
    mine, _ = stores
    mine.put(U1, "a", {"text": "x", "n": 1})
    mine.put(U1, "a", {"text": "x", "n": True})
    assert mine.get(U1, "a").value["n"] is True


@pytest.mark.parametrize("ttl", [1e300, -1e12], ids=str)
def test_a_ttl_that_ends_at_no_time_is_refused(ttl: float, stores: Any) -> None:
    mine, _ = stores
    with pytest.raises(MemoryInputError, match="expires_at"):
        mine.put(U1, "a", {"text": "x"}, ttl=ttl)
    assert mine.get(U1, "a") is None


def test_a_store_without_private_facts_shows_none_by_any_call() -> None:
    with Memory.open(":memory:", recall=()) as memory:
        memory.remember("I have a rare illness", user_id="u1", private=True)
        open_one, closed = FactStore(memory), FactStore(memory, private=False)
        (fact,) = open_one.search(U1, filter={"private": True})
        assert closed.search(U1) == closed.search(U1, filter={"private": True}) == []
        assert closed.get(U1, fact.key) is None
        assert closed.list_namespaces() == []
        closed.delete(U1, fact.key)
        assert open_one.get(U1, fact.key) is not None


# ---------------------------------------------------------------- generated

NAMES = st.sampled_from([U1, U2, S1])
KEYS = st.sampled_from(["a", "b", "c"])
SCALARS = st.sampled_from([None, True, False, 0, 1, 2, 1.5, "1", "tea", ""])
PARTS = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["x", "y"]), inner, max_size=2),
    max_leaves=4,
)
VALUES = st.fixed_dictionaries(
    {"text": st.sampled_from(["tea", "milk"])},
    optional={"n": SCALARS, "deep": PARTS, "kind": st.sampled_from(["drink", "food"]), "private": st.just(False)},
)
CONDITIONS = st.one_of(
    PARTS,
    st.dictionaries(st.sampled_from(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte"]), SCALARS, min_size=1, max_size=2),
    st.dictionaries(
        st.sampled_from(["x", "y"]), st.dictionaries(st.sampled_from(["$eq", "$gt"]), SCALARS, min_size=1), max_size=2
    ),
)
WANTED = st.dictionaries(st.sampled_from(["text", "n", "deep", "kind", "private", "core", "other"]), CONDITIONS, max_size=2)
PATHS = st.lists(st.sampled_from(["user", "session", "u1", "u2", "s1", "*"]), min_size=1, max_size=3).map(tuple)
OPS = st.one_of(
    st.builds(PutOp, NAMES, KEYS, VALUES, index=st.none(), ttl=st.none()),
    st.builds(PutOp, NAMES, KEYS, VALUES, index=st.none(), ttl=st.none()),
    st.builds(PutOp, NAMES, KEYS, st.none(), index=st.none(), ttl=st.none()),
    st.builds(GetOp, NAMES, KEYS, refresh_ttl=st.just(False)),
    st.builds(
        SearchOp,
        st.sampled_from([U1, U2, S1, ("user",), ("session",), ("nobody",), ("*",), ()]),
        query=st.none(), refresh_ttl=st.just(False), filter=st.none() | WANTED, limit=st.integers(0, 5), offset=st.integers(0, 3),
    ),
    st.builds(
        ListNamespacesOp,
        match_conditions=st.none() | st.lists(
            st.builds(MatchCondition, st.sampled_from(["prefix", "suffix"]), PATHS), max_size=2
        ).map(tuple),
        max_depth=st.none() | st.integers(1, 3), limit=st.integers(0, 5), offset=st.integers(0, 2),
    ),
)  # fmt: skip


def answer(store: Any, op: Any) -> Any:
    try:
        (found,) = store.batch([op])
    except (TypeError, ValueError) as error:
        return error
    if isinstance(op, SearchOp):
        return shown(found)
    return found.value if isinstance(op, GetOp) and found is not None else found


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.reuse, Phase.generate], report_multiple_bugs=False)
@given(ops=st.lists(OPS, min_size=4, max_size=25))
def test_any_run_of_calls_gets_equal_answers_or_a_clear_error(ops: list[Any]) -> None:
    theirs = InMemoryStore()
    with warnings.catch_warnings(), Memory.open(":memory:", recall=()) as memory:
        warnings.simplefilter("error")
        mine = FactStore(memory)
        for op in ops:
            for namespace in [n for n, items in theirs._data.items() if not items]:
                del theirs._data[namespace]  # it lists namespaces that somebody once asked for
            got, expected = answer(mine, op), answer(theirs, op)
            if isinstance(got, Exception):
                assert isinstance(got, MemoryInputError), op
                assert isinstance(op, SearchOp), op
                assert "filter" in str(got), op
            elif isinstance(expected, Exception):  # theirs compares what is no number, ours does not find it
                continue
            elif isinstance(op, SearchOp) and len(op.namespace_prefix) < 2:
                # Between namespaces there is no order that LangGraph promises.
                whole = SearchOp(op.namespace_prefix, filter=op.filter, limit=1000)
                assert len(got) == len(expected), op
                assert sorted(map(str, answer(mine, whole))) == sorted(map(str, answer(theirs, whole))), op
            else:
                assert got == expected, op
