"""Names of a package that are imported when they are first touched.

A room's ``__init__`` says twice what it hands out: to type checkers, by imports under ``TYPE_CHECKING``, and
to Python, by the table it gives to :func:`lazy`. ``tests/test_rooms.py`` holds the two against each other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of ``package``.

    ``names``: by module of the package, the names that it gives, with spaces between them. A module may
    stand for itself: ``{"items": "items"}``, where it holds no such name.
    """
    where = {name: module for module, some in names.items() for name in some.split()}

    def get(name: str) -> Any:
        if name not in where:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{where[name]}")
        value = module if name == where[name] else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    def names_there() -> list[str]:
        return sorted({*vars(sys.modules[package]), *where})

    return get, names_there, sorted(name for name in where if not name.startswith("_"))
