"""A store in each of its homes."""

from __future__ import annotations

import pytest

from lc_memory.store import Store
from tests.helpers.homes import Home


@pytest.fixture
def store(any_home: Home) -> Store:
    return any_home.open()
