"""``lc-memory reindex`` and ``health``, and the import of an old Chroma folder."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lc_memory.errors import FactIndexError, MemoryInputError

if TYPE_CHECKING:
    from lc_memory.facts.privacy import PrivacyMode

from .console import err, out

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)

Where = Annotated[
    str | None,
    typer.Option(help="Folder or database URL of the memory  [default: ~/.lc_memory, or LC_MEMORY_HOME]"),
]
Embedding = Annotated[str, typer.Option(help="local, e5, openai or chroma")]
Server = Annotated[
    str | None, typer.Option(help="Where the vectors are, if not beside the memory: http://host:port")
]


def import_old(
    memory: str | None,
    user: str | None,
    chroma: Path | None,
    collection: str,
    privacy: PrivacyMode,
    skip_bad: bool,
) -> None:
    """``lc-memory import --chroma``: into the ledger, and then into the index. Stopped, it goes on where it
    was when it is called again."""
    from lc_memory.facts import import_chroma
    from lc_memory.store import SessionKey

    from .console import _clean

    if user is None:
        raise MemoryInputError(
            "a dict-based memory knows no users: say whose facts these are, with --user ID"
        )
    with _opened(memory, "local", None, made=True) as opened:
        owner = SessionKey("", user).owner
        with _bar("reading") as tell:
            done = import_chroma(
                opened._sql_store("import")(), owner, chroma or Path(), collection, progress=tell,
                privacy=privacy, skip_bad=skip_bad,
            )  # fmt: skip
        with _bar("indexing") as tell:
            opened._long("import").catch_up(progress=tell)
    for bad in done.bad:
        err.print(_clean(f"skipped {bad}"), style="yellow")
    out.print(
        f"{done.added} facts taken over, {done.known} were there already"
        + (f", {done.empty} without text left out" if done.empty else "")
    )


def index_now(memory: str | None) -> None:
    """After an import: what came in can be recalled. Where that cannot be done now, it is when the memory is
    used next."""
    with _opened(memory, "local", None) as opened, _bar("indexing") as tell:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # told below
                opened._long("import").catch_up(progress=tell)
        except FactIndexError as error:
            err.print(f"not indexed yet, which is done when the memory is used next: {error}", style="yellow")


@app.command()
def forget(
    memory: Where = None,
    user: Annotated[str | None, typer.Option(metavar="ID", help="All of this user.")] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="This session, whoever's; with --user, that user's.")
    ] = None,
) -> None:
    """Erase turns, summaries and facts, from the files too. Says what was erased, or that nothing was there.
    Exit code 1 where bytes of it had to stay in the files."""
    if user is None and session is None:
        raise MemoryInputError("say what to forget: --user ID, --session ID, or both")
    with _opened(memory, "local", None) as opened:
        gone = opened.forget(user_id=user, session_id=session)
    out.print(str(gone))
    if not gone.wiped:
        err.print("bytes of it stay in the files; end other programs that use the memory and call this again")
        raise typer.Exit(1)


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
