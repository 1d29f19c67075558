"""The contract of the ledger of facts, over memory, SQLite and PostgreSQL."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from lc_memory.errors import MemoryInputError
from lc_memory.store import FactCounts, Store
from lc_memory.store.ledger import Ledger

ANY = ["小明", "a.b@example.org", "", "x" * 10_000, "a\0b", "\ud83d half", "\ud83d\ude00"]


@pytest.fixture
def ledger(store: Store) -> Ledger:
    return store.ledger()


def words(facts: Any) -> list[str]:
    return [fact.text for fact in facts]


@pytest.mark.parametrize("text", ANY)
def test_any_string_is_an_owner_a_kind_a_subject_an_id_and_a_text(ledger: Ledger, text: str) -> None:
    said = text or "…"
    source = {"session": text, "turn": text, "quote": text, "more": [1, None]}
    fact = ledger.add(text, said, kind=text, subject=text, fact_id=text, source=source, expires_at=9e9)
    assert (fact.owner, fact.text, fact.kind, fact.subject, fact.id) == (text, said, text, text, text)
    assert (fact.source, fact.count, fact.indexed, fact.superseded_by) == (source, 1, False, None)
    assert (
        ledger.get(text, [text]) == ledger.current(text, kinds=[text]) == ledger.history(text, text) == [fact]
    )
    assert ledger.remove(text, [text, "other"]) == (fact.row,)
    assert ledger.get(text, [text]) == []


def test_a_fact_said_fifty_times_is_one_row_with_a_count(ledger: Ledger) -> None:
    for n in range(50):
        said = ["I like Tea", "i like  tea.", "Ｉ like tea"][n % 3]
        fact = ledger.add("o", said, kind="drink", noted_at=float(n), source={"quote": said})
    assert words(ledger.current("o")) == ["I like Tea"]
    assert (fact.count, fact.noted_at, fact.source) == (50, 49.0, {"quote": "I like Tea"})
    assert ledger.add("o", "I like tea", kind="food").count == 1
    assert ledger.add("p", "I like tea", kind="drink").count == 1


def test_the_id_is_the_one_the_dict_based_memory_gives(ledger: Ledger) -> None:
    import hashlib

    assert ledger.add("o", "我喜欢篮球").id == "f" + hashlib.md5("我喜欢篮球".encode()).hexdigest()[:12]


def test_repeating_a_fact_asks_for_no_new_index_entry_but_changing_it_does(ledger: Ledger) -> None:
    ledger.mark_indexed([ledger.add("o", "I like tea")])
    assert ledger.add("o", "I like tea!").indexed
    assert ledger.unindexed() == []
    assert not ledger.add("o", "I like tea", private=True).indexed
    assert words(ledger.unindexed()) == ["I like tea"]


def test_private_and_core_stay_once_set(ledger: Ledger) -> None:
    ledger.add("o", "I like tea", private=True, core=True)
    fact = ledger.add("o", "I like tea")
    assert (fact.private, fact.core) == (True, True)


def test_a_new_fact_of_the_kind_takes_the_place_of_the_old_one_which_stays_as_history(ledger: Ledger) -> None:
    old = ledger.add("o", "I work at A", kind="job", noted_at=1.0, supersede=True)
    other = ledger.add("o", "I live in X", kind="city", supersede=True)
    ledger.mark_indexed([old])
    new = ledger.add("o", "I work at B", kind="job", noted_at=2.0, supersede=True)
    assert ledger.current("o", kinds=["job"]) == [new]
    assert words(ledger.current("o")) == ["I live in X", "I work at B"]
    history = ledger.history("o", "job")
    assert [(f.text, f.noted_at, f.superseded_by, f.superseded_at) for f in history] == [
        ("I work at A", 1.0, new.id, 2.0),
        ("I work at B", 2.0, None, None),
    ]
    assert [f.row for f in ledger.unindexed()] == [old.row, other.row, new.row]


def test_subjects_of_a_kind_are_replaced_one_by_one(ledger: Ledger) -> None:
    ledger.add("o", "peanuts: mild", kind="allergy", subject="peanuts", supersede=True)
    ledger.add("o", "pollen", kind="allergy", subject="pollen", supersede=True)
    ledger.add("o", "allergic to something", kind="allergy", supersede=True)
    ledger.add("o", "peanuts: severe", kind="allergy", subject="peanuts", supersede=True)
    assert words(ledger.current("o")) == ["pollen", "allergic to something", "peanuts: severe"]
    assert len(ledger.history("o", "allergy")) == 4


def test_going_back_to_an_old_fact_makes_it_current_and_keeps_the_whole_history(ledger: Ledger) -> None:
    for n, city in enumerate(["A", "B", "A", "A"]):
        ledger.add("o", f"I live in {city}", kind="city", noted_at=float(n), supersede=True)
    assert [(f.text, f.count) for f in ledger.current("o")] == [("I live in A", 2)]
    history = ledger.history("o", "city")
    assert [(f.text, f.superseded_at) for f in history] == [
        ("I live in A", 1.0),
        ("I live in B", 2.0),
        ("I live in A", None),
    ]
    assert len({f.id for f in history}) == 3


def test_superseding_needs_a_kind(ledger: Ledger) -> None:
    with pytest.raises(MemoryInputError, match="needs a kind"):
        ledger.add("o", "x", supersede=True)
    with pytest.raises(MemoryInputError, match="needs a text"):
        ledger.add("o", " ")
    assert ledger.counts().total == 0


def test_an_id_the_owner_has_is_written_over(ledger: Ledger) -> None:
    first = ledger.add("o", "one", fact_id="id", private=True)
    again = ledger.add("o", "one", fact_id="id")
    assert (again.row, again.count, again.private) == (first.row, 2, True)
    changed = ledger.add("o", "two", fact_id="id")
    assert (changed.row, changed.text, changed.count, changed.private) == (first.row, "two", 1, False)
    assert ledger.add("p", "other", fact_id="id").row != first.row
    assert words(ledger.get("o", ["id"])) == ["two"]


def test_what_is_current_leaves_out_the_expired_the_private_and_other_owners(ledger: Ledger) -> None:
    ledger.add("o", "for ever", core=True)
    ledger.add("o", "until 10", expires_at=10.0)
    ledger.add("o", "secret", private=True, core=True)
    ledger.add("p", "another's")
    assert words(ledger.current("o", now=5.0)) == ["for ever", "until 10"]
    assert words(ledger.current("o", now=10.0)) == ["for ever"]
    assert words(ledger.current("o", now=10.0, include_private=True)) == ["for ever", "secret"]
    assert words(ledger.current("o", core=True)) == ["for ever"]
    assert words(ledger.current("o", core=False, now=5.0)) == ["until 10"]
    assert words(ledger.current("o", kinds=[])) == []
    assert ledger.counts("o", now=10.0) == FactCounts(
        total=3, current=2, superseded=0, expired=1, private=1, unindexed=3
    )
    assert ledger.counts(now=5.0).current == 4


def test_an_expired_fact_said_again_is_current_again(ledger: Ledger) -> None:
    ledger.add("o", "on holiday", expires_at=10.0)
    assert ledger.add("o", "on holiday", expires_at=30.0).count == 2
    assert words(ledger.current("o", now=20.0)) == ["on holiday"]


def test_pruning_erases_what_has_expired(ledger: Ledger) -> None:
    gone = ledger.add("o", "until 10", expires_at=10.0)
    ledger.add("o", "until 20", expires_at=20.0)
    ledger.add("o", "for ever")
    assert ledger.prune(now=15.0) == (gone.row,)
    assert words(ledger.iterate()) == ["until 20", "for ever"]
    assert ledger.prune(now=15.0) == ()


def test_removing_a_fact_does_not_bring_back_what_it_replaced(ledger: Ledger) -> None:
    ledger.add("o", "A", kind="k", supersede=True)
    new = ledger.add("o", "B", kind="k", supersede=True)
    ledger.remove("o", [new.id])
    assert ledger.current("o") == []
    assert ledger.remove("p", [new.id]) == ledger.remove("o", []) == ()


def test_what_changed_while_it_was_indexed_stays_to_be_indexed(ledger: Ledger) -> None:
    seen = ledger.add("o", "A", fact_id="x")
    changed = ledger.add("o", "B", fact_id="x")
    ledger.mark_indexed([seen])
    assert ledger.unindexed() == [changed]
    ledger.mark_indexed([changed])
    assert ledger.unindexed() == []
    ledger.reindex()
    assert words(ledger.unindexed()) == ["B"]
    ledger.mark_indexed([])


def test_all_facts_are_read_page_by_page_and_by_row(ledger: Ledger) -> None:
    added = [ledger.add(f"o{n % 3}", f"fact {n}") for n in range(25)]
    seen, after = [], 0
    while page := ledger.iterate(after=after, limit=10):
        seen += page
        after = page[-1].row
    assert seen == added
    assert ledger.by_row([fact.row for fact in added] + [10**9]) == {fact.row: fact for fact in added}
    ids = [fact.id for fact in added if fact.owner == "o1"]
    assert [fact.id for fact in ledger.get("o1", [*ids[::-1], "none"])] == ids[::-1]
    assert len(ledger.unindexed(limit=7)) == 7


def test_a_row_is_never_given_twice(ledger: Ledger) -> None:
    last = ledger.add("o", "A")
    ledger.remove("o", [last.id])
    assert ledger.add("o", "A").row > last.row


def test_an_exported_fact_is_restored_exactly_and_once(store: Store, ledger: Ledger) -> None:
    ledger.add("o", "A", kind="k", noted_at=1.5, supersede=True, source={"session": "s", "quote": "q"})
    ledger.add("o", "A", kind="k", noted_at=2.5, supersede=True, private=True, expires_at=8e9)
    ledger.add("o", "B", kind="k", noted_at=3.5, supersede=True, core=True)
    exported = ledger.iterate()
    ledger.remove("o", [fact.id for fact in exported])
    assert [ledger.restore(fact) for fact in exported] == [True, True]
    assert [ledger.restore(fact) for fact in exported] == [False, False]
    restored = ledger.iterate()
    assert [replace(fact, row=0, revision=0) for fact in restored] == [
        replace(fact, row=0, revision=0) for fact in exported
    ]
    assert store.forget(session_id="s").facts == (restored[0].row,)


def test_threads_that_say_the_same_at_once_leave_one_current_fact(ledger: Ledger) -> None:
    def talk(name: int) -> None:
        for n in range(10):
            ledger.add("o", f"I live in {(n + name) % 3}", kind="city", supersede=True)
            ledger.add("o", "I like tea")

    threads = [threading.Thread(target=talk, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ledger.current("o", kinds=["city"])) == 1
    assert [fact.count for fact in ledger.current("o") if fact.kind is None] == [60]
    assert sum(fact.count for fact in ledger.history("o", "city")) == 60
