"""``lc-memory reindex`` and ``health``, and the import of an old Chroma folder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lc_memory.errors import MemoryInputError

from .console import out

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Where = Annotated[
    str | None,
    typer.Option(help="Folder or database URL of the memory  [default: ~/.lc_memory, or LC_MEMORY_HOME]"),
]
Embedding = Annotated[str, typer.Option(help="local, e5, openai or chroma")]
Server = Annotated[
    str | None, typer.Option(help="Where the vectors are, if not beside the memory: http://host:port")
]


def import_old(memory: str | None, user: str | None, chroma: Path | None, collection: str) -> None:
    """``lc-memory import --chroma``: into the ledger, and then into the index. Stopped, it goes on where it
    was when it is called again."""
    from lc_memory.facts import import_chroma
    from lc_memory.store import SessionKey

    if user is None:
        raise MemoryInputError(
            "a dict-based memory knows no users: say whose facts these are, with --user ID"
        )
    with _opened(memory, "local", None, made=True) as opened:
        owner = SessionKey("", user).owner
        with _bar("reading") as tell:
            done = import_chroma(
                opened._sql_store("import")(), owner, chroma or Path(), collection, progress=tell
            )
        with _bar("indexing") as tell:
            opened._long("import").catch_up(progress=tell)
    out.print(
        f"{done.added} facts taken over, {done.known} were there already"
        + (f", {done.empty} without text left out" if done.empty else "")
    )


@app.command()
def reindex(memory: Where = None, embedding: Embedding = "local", server: Server = None) -> None:
    """Build the vector index anew, or move it to another embedding. The old one serves until the new one is
    complete. Can be stopped and called again."""
    with _opened(memory, embedding, server) as opened, _bar("indexing") as tell:
        entries = opened.reindex(progress=tell)
    out.print(f"{entries} memories indexed with the embedding {embedding}")


@app.command()
def health(memory: Where = None, embedding: Embedding = "local", server: Server = None) -> None:
    """How the long-term memory is. Exit code 1 where something is wrong."""
    with _opened(memory, embedding, server) as opened:
        found = opened.health()
    out.print(str(found))
    if not found.ok:
        raise typer.Exit(1)


@contextmanager
def _opened(memory: str | None, embedding: str, server: str | None, *, made: bool = False) -> Iterator[Any]:
    from lc_memory.memory import Memory
    from lc_memory.script import home

    where = memory or str(home())
    if where == ":memory:":
        raise MemoryInputError("--memory: a folder or a database URL; one in memory ends with this command")
    if not made:
        must_exist(where)
    with Memory.open(where, embedding=embedding, chroma=server) as opened:
        yield opened


def must_exist(where: str | os.PathLike[str]) -> None:
    """MemoryInputError for a folder that is not there: a mistyped path must not become an empty memory."""
    folder = Path(where).expanduser()
    if "://" not in str(where) and not folder.exists():
        raise MemoryInputError(f"there is no memory in {folder}; --memory names its folder or database URL")


@contextmanager
def _bar(what: str) -> Iterator[Callable[[int, int], None]]:
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task(what, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)
