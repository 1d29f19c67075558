"""What threads of this package need is imported by whoever opens the memory, on his thread.

A module is otherwise imported where it is first needed. In a thread that is dangerous: the caller imports too
(openai's client does with the first request), and where two imports wait for each other Python gives one of
them a module that is half made ("partially initialized module 'httpx'").
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

_STORE = ("lc_memory.store.sql", "lc_memory.facts.lexical_sql")
_SQLITE = ("sqlalchemy.dialects.sqlite", "lc_memory.facts.lexical_sqlite")
_POSTGRES = ("sqlalchemy.dialects.postgresql.psycopg", "psycopg", "lc_memory.facts.lexical_postgres")
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
    "lc_memory.facts.chroma",
    "lc_memory.facts.reindexing",
    "lc_memory.facts.scale",
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


__all__ = ["import_all", "import_for"]
