"""The vector index by itself: what it takes, what it refuses, and whose it finds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lc_memory.errors import EmbeddingMismatchError, FactIndexError
from lc_memory.index.chroma.collection import Item, VectorIndex, open_index
from lc_memory.index.chroma.lock import FolderLock
from lc_memory.index.chroma.places import chroma_home
from lc_memory.store import items, open_store
from lc_memory.store.sql import SqlStore
from tests.helpers.longterm import Bags


def item(row: int, text: str, owner: str = "o", **more: Any) -> Item:
    return Item(f"f{row}", owner, "fact", text, row, **more)


def store_at(where: Path | str) -> SqlStore:
    store = open_store(where)
    assert isinstance(store, SqlStore)
    return store


@pytest.fixture
def index(tmp_path: Path) -> Iterator[VectorIndex]:
    store = store_at(tmp_path)
    opened = open_index(store.database, chroma_home(None, tmp_path / "chroma"), Bags())
    yield opened
    opened.close()
    store.close()


def near(index: VectorIndex, query: str, owner: str = "o", limit: int = 5, **options: Any) -> list[str]:
    return [hit.id for hit in index.nearest(query, owner, limit, **options)]


def test_an_item_put_again_is_written_over_and_one_that_is_twice_in_a_list_is_there_once(
    index: VectorIndex,
) -> None:
    index.put([item(1, "red apples"), item(1, "green pears")])
    index.put([])
    index.put([item(1, "blue plums", kind="fruit")])
    assert index.count() == 1
    assert near(index, "blue plums", kinds=["fruit"]) == ["f1"]
    index.put([item(1, "blue plums", revision=7)])
    assert index.revisions(["f1", "f2"]) == {"f1": 7}
    index.remove(["f1", "f2"])
    index.remove([])
    assert index.count() == 0


def test_more_than_chroma_takes_in_one_call_goes_in_batches(index: VectorIndex) -> None:
    many = [item(n, f"thing number {n}") for n in range(1, 5600)]
    index.put(many)
    assert index.count() == 5599
    assert sorted(i for page in index.ids() for i in page) == sorted(i.id for i in many)
    index.remove([i.id for i in many[1:]])
    assert index.count() == 1


def test_filters_are_built_for_every_choice_and_empty_parts_are_left_out(index: VectorIndex) -> None:
    index.put(
        [
            item(1, "red apples", kind="记忆"),
            item(2, "red apples", private=True, kind="a@b.cn"),
            item(3, "red apples", owner="p", kind="记忆"),
            Item("t4", "o", "turn", "red apples", 4, session="s" * 900),
        ]
    )
    assert set(near(index, "apples")) == {"f1", "t4"}
    assert set(near(index, "apples", include_private=True)) == {"f1", "f2", "t4"}
    assert near(index, "apples", sources=["turn"]) == ["t4"]
    assert near(index, "apples", kinds=["记忆"]) == ["f1"]
    assert near(index, "apples", kinds=["记忆", "a@b.cn"], include_private=True, sources=["fact"])
    assert near(index, "apples", owner="nobody") == []
    assert set(near(index, "apples", owned=2)) == {"f1", "t4"}


@pytest.mark.parametrize("owned", [0, 1, 30, 1000])
def test_the_owners_nearest_are_found_whatever_share_of_all_is_the_owners(
    index: VectorIndex, owned: int
) -> None:
    index.put([item(n, f"red apples and thing {n}", owner="other") for n in range(1, 400)])
    index.put([item(n, f"thing {n} of mine", owner="me") for n in range(1000, 1030)])
    found = near(index, "red apples", owner="me", limit=10, owned=owned)
    assert len(found) == 10
    assert all(int(i[1:]) >= 1000 for i in found)
    assert found == near(index, "red apples", owner="me", limit=10)


def test_few_among_many_are_read_and_compared_and_give_what_a_filter_gives(index: VectorIndex) -> None:
    index.put([item(n, f"red apples and thing {n}", owner="other") for n in range(1, 900)])
    mine = [
        item(n, f"thing {n} of mine with {'apples' if n % 3 else 'pears'}", owner="me", kind="ab"[n % 2])
        for n in range(1000, 1020)
    ]
    index.put(mine)
    calls: list[int] = []

    def ids() -> list[str]:
        calls.append(1)
        return [*(one.id for one in mine), "f77777"]  # one that has no vector yet

    for kinds in (None, ["a"], ["a", "b"], ["c"]):
        filtered = index.nearest("red apples", "me", 7, kinds=kinds)
        compared = index.nearest("red apples", "me", 7, kinds=kinds, owned=20, ids=ids)
        assert [hit.cosine for hit in compared] == pytest.approx([h.cosine for h in filtered], abs=1e-5)
        assert {hit.id for hit in compared} <= {one.id for one in mine if kinds is None or one.kind in kinds}
    assert len(calls) == 4


class Long(Bags):
    """Vectors that are not normalised."""

    def _vector(self, text: str) -> list[float]:
        return [500 * x for x in super()._vector(text)]


def test_vectors_that_are_not_normalised_give_cosines_all_the_same(tmp_path: Path) -> None:
    index = open_index(store_at(tmp_path).database, chroma_home(None, tmp_path / "chroma"), Long())
    index.put([item(1, "red apples"), item(2, "red apples"), item(3, "my bicycle")])
    hits = index.nearest("red apples", "o", 3)
    assert all(-1 <= hit.cosine <= 1 for hit in hits)
    assert hits[0].cosine == pytest.approx(1, abs=1e-4)
    index.close()


@pytest.mark.parametrize("other", [Bags("other"), Bags("bags", 32)])
def test_an_index_of_another_embedding_is_refused(tmp_path: Path, other: Bags) -> None:
    store = store_at(tmp_path)
    index = open_index(store.database, chroma_home(None, tmp_path / "chroma"), Bags())
    index.put([item(1, "red apples")])
    index.close()
    with pytest.raises(EmbeddingMismatchError, match="lc-memory reindex"):
        open_index(store.database, chroma_home(None, tmp_path / "chroma"), other)
    again = open_index(store.database, chroma_home(None, tmp_path / "chroma"), Bags())
    assert near(again, "apples") == ["f1"]
    again.close()


def test_many_threads_write_read_and_purge_at_once(index: VectorIndex) -> None:
    errors: list[Exception] = []

    def work(n: int) -> None:
        try:
            for m in range(5):
                row = 10 * n + m + 1
                index.put([item(row, f"word{n} number {m}", owner=f"o{n}")])
                assert f"f{row}" in near(index, f"word{n} number {m}", owner=f"o{n}", limit=9)
                if m == 3:
                    index.remove([f"f{row}"], purge=n % 2 == 0)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert index.count() == 24


def test_the_folders_lock_is_shared_within_a_process_and_ends_with_its_last_user(tmp_path: Path) -> None:
    one, two = FolderLock(tmp_path / "chroma"), FolderLock(tmp_path / "chroma")
    one.acquire()
    one.acquire()
    two.acquire()
    one.release()
    two.release()
    two.release()
    one.acquire()
    one.release()


def test_the_list_for_the_vectors_keeps_its_order_and_lets_go_by_entry(tmp_path: Path) -> None:
    store = store_at(tmp_path)
    with store.database.write() as connection:
        items.put_on_list(connection, ["f1", "t2", "f1"])
    with store.database.read() as connection:
        entries = items.listed(connection, 2)
    assert [i for _, i in entries] == ["f1", "t2"]
    with store.database.write() as connection:
        items.take_off_list(connection, [entry for entry, _ in entries])
        assert [i for _, i in items.listed(connection, 9)] == ["f1"]
        assert items.count_listed(connection) == 1
    assert items.rows_of(["f1", "t2", "x3", "f", "fx"]) == ([1], [2])
    store.close()


def test_a_folder_that_cannot_be_written_is_an_error_that_says_so(tmp_path: Path) -> None:
    (tmp_path / "chroma").write_text("a file is in the way")
    with pytest.raises(FactIndexError, match="chroma"):
        open_index(store_at(tmp_path / "store").database, chroma_home(tmp_path / "chroma", None), Bags())
