"""When things are imported: names when they are first touched, and what threads need before that.

A room's ``__init__`` says twice what it hands out: to type checkers, by imports under ``TYPE_CHECKING``, and
to Python, by the table it gives to :func:`lazy`. ``tests/test_rooms.py`` holds the two against each other.

What threads of this package need is imported by whoever opens the memory, on his thread. Elsewhere a module
is imported where it is first needed; in a thread that is dangerous: the caller imports too (openai does
with the first request), and where two imports wait for each other Python gives one of them a module that is
half made ("partially initialized module 'httpx'").
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
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


_STORE = ("lc_memory.store.sql", "lc_memory.store.lexical.index")
_SQLITE = ("sqlalchemy.dialects.sqlite", "lc_memory.store.lexical.sqlite")
_POSTGRES = ("sqlalchemy.dialects.postgresql.psycopg", "psycopg", "lc_memory.store.lexical.postgres")
_ANY = (
    "snowballstemmer",
    "stdnum.cn.ric",
    "stdnum.us.ssn",
    "stdnum.iban",
    "stdnum.luhn",
    "phonenumbers",
    "langchain_core.runnables.fallbacks",  # the structured output of a chat model
)
_RECALL = (
    "httpx",  # first: chromadb imports it in the middle of its own import
    "chromadb",
    "chromadb.api.rust",
    "chromadb.api.fastapi",
    "chromadb.telemetry.product.posthog",
    "chromadb.errors",
    "langchain_chroma",
    "numpy",
    "lc_memory.index.chroma.places",
    "lc_memory.index.reindexing",
    "lc_memory.index.scale",
    "lc_memory.retriever",
)


def import_for(where: str, *, recall: bool) -> None:
    """What a memory of this store needs, with ``recall`` that of the indexes too. What cannot be imported is
    told where it is needed."""
    import_all(_STORE)
    import_all(_POSTGRES if where.startswith("postgres") else _SQLITE)
    import_all(_ANY)
    if recall:
        import_all(_RECALL)


def import_all(names: Iterable[str]) -> None:
    for name in names:
        try:
            import_module(name)
        except Exception:  # a broken package is told of where it is used
            continue
