"""The homes of the store: in memory, SQLite, PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lc_memory.store import Store, open_store
from tests.servers.postgres import postgres, postgres_url

__all__ = ["postgres", "postgres_url"]


@dataclass
class Home:
    """Where the stores of one test lie. ``open()`` gives another store on the same data."""

    kind: str
    where: str
    opened: list[Store] = field(default_factory=list)

    def open(self) -> Store:
        self.opened.append(open_store(self.where))
        return self.opened[-1]


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def any_home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """Each home in turn."""
    yield from _home(request, tmp_path)


@pytest.fixture(params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """Each home that outlives the process."""
    yield from _home(request, tmp_path)


@pytest.fixture
def store(any_home: Home) -> Store:
    """A store in each home."""
    return any_home.open()


def _home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    where = {
        "memory": lambda: ":memory:",
        "sqlite": lambda: str(tmp_path / "store"),
        "postgres": lambda: str(request.getfixturevalue("postgres_url")),
    }[request.param]()
    found = Home(request.param, where)
    yield found
    for store in found.opened:
        store.close()
