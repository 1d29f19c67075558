"""The homes of the store: in memory, SQLite, PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lc_memory.store import Store, open_store


@dataclass
class Home:
    """Where the stores of one test lie. ``open()`` gives another store on the same data."""

    kind: str
    where: str
    opened: list[Store] = field(default_factory=list)

    def open(self) -> Store:
        self.opened.append(open_store(self.where))
        return self.opened[-1]

    @classmethod
    @contextmanager
    def of(cls, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
        """The home that the parameter of a fixture names."""
        where = {
            "memory": lambda: ":memory:",
            "sqlite": lambda: str(tmp_path / "store"),
            "postgres": lambda: str(request.getfixturevalue("postgres_url")),
        }[request.param]()
        found = cls(request.param, where)
        yield found
        for store in found.opened:
            store.close()
