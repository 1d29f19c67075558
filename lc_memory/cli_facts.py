"""The part of the command line that concerns facts and files: export, import, facts list, facts prune."""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from .cli_store import must_exist
from .errors import MemoryInputError

if TYPE_CHECKING:
    from .facts import Fact
    from .store import Store

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
facts = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="What is known of users.")
app.add_typer(facts, name="facts")

out = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
err = Console(highlight=False, markup=False, emoji=False, soft_wrap=True, stderr=True)

Where = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="WHERE",
        help="Folder or database URL of the memory. Without it LC_MEMORY_HOME, else ~/.lc_memory.",
    ),
]
User = Annotated[str | None, typer.Option(metavar="ID", help="Of this user alone.")]
Session = Annotated[
    str | None,
    typer.Option(metavar="ID", help="Of this session, where it has no user (its facts are its own)."),
]


@contextmanager
def _store(where: str | None, *, made: bool = False) -> Iterator[Store]:
    from .script import home
    from .store import open_store

    if not made:
        must_exist(where or home())
    store = open_store(where or home())
    try:
        yield store
    finally:
        store.close()


def _owner(user: str | None, session: str | None) -> str | None:
    from .store import SessionKey

    if user is not None and session is not None:
        raise MemoryInputError("--user or --session, not both: a user's facts are not a session's")
    if user is not None:
        return SessionKey("", user).owner
    return None if session is None else SessionKey(session).owner


@app.command("export")
def export_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to write; - is the standard output.")],
    memory: Where = None,
    user: User = None,
    notes: Annotated[
        bool,
        typer.Option("--notes", help="Only what is true of the user now: a list of kind, content, noted_at."),
    ] = False,
) -> None:
    """Write sessions and facts, history included, as JSON Lines."""
    from .portable import export_lines, export_notes

    if notes and user is None:
        raise MemoryInputError("--notes writes what is known of one user: say whose, with --user ID")
    with _store(memory) as store:
        if notes:
            owner = _owner(user, None) or ""
            lines: Iterator[str] = iter(
                [json.dumps(export_notes(store, owner), ensure_ascii=False, indent=2)]
            )
        else:
            lines = export_lines(store, user)
        if file == "-":
            for line in lines:
                sys.stdout.write(line + "\n")
            return
        count = 0
        with _written(Path(file)) as handle:
            for line in lines:
                handle.write((line + "\n").encode())
                count += 1
    out.print(f"wrote {file}" if notes else f"wrote {count - 1} records to {file}")


@contextmanager
def _written(path: Path) -> Iterator[tempfile._TemporaryFileWrapper[bytes]]:
    """A file that takes its place only when it is whole; for its owner's eyes."""
    try:
        with tempfile.NamedTemporaryFile(
            dir=path.absolute().parent, prefix=path.name, delete=False
        ) as handle:
            unfinished = Path(handle.name)
            try:
                yield handle
                handle.close()
                unfinished.replace(path)
            except BaseException:
                unfinished.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise MemoryInputError(f"{path}: cannot be written ({error.strerror or error})") from error


@app.command("import")
def import_(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="An export, a fan_memory.json, or conversations held elsewhere; - is the standard input.",
        ),
    ] = None,
    memory: Where = None,
    user: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Whose notes they are, in a fan_memory.json or a Chroma folder."),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="The session a conversation from elsewhere becomes (several: ID-1, ID-2 …); else its name.",
        ),
    ] = None,
    chroma: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Instead of a file: the Chroma folder of a dict-based memory."),
    ] = None,
    collection: Annotated[str, typer.Option(metavar="NAME", help="The collection in it.")] = "long_term",
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave bad lines out, and name them.")] = False,
) -> None:
    """Bring an export back; or a list of notes; or conversations held elsewhere (JSON or JSON Lines of
    OpenAI, LangChain, ShareGPT and others: one conversation or one message a line); or the facts of a
    dict-based memory (mem_store), with ids, private flags and times; its folder stays as it is. What is there
    already stays, too."""
    if (file is None) == (chroma is None):
        raise MemoryInputError("import takes a FILE, or --chroma FOLDER for the facts of a dict-based memory")
    if file is None:
        from .cli_store import import_old

        import_old(memory, user, chroma, collection)
        return
    from .histories_file import holds_conversations, import_conversations
    from .portable import import_file

    with tempfile.TemporaryDirectory(prefix="lc-memory-") as folder:
        path = Path(file)
        if file == "-":
            path = Path(folder) / "standard input"
            path.write_bytes(sys.stdin.buffer.read())
        with _store(memory, made=True) as store:
            if path.is_file() and holds_conversations(path):
                done = import_conversations(store, path, user_id=user, session_id=session, skip_bad=skip_bad)
            elif session is not None:
                raise MemoryInputError(
                    "--session is for a conversation held elsewhere, and this file has none"
                )
            else:
                done = import_file(store, path, owner=_owner(user, None), skip_bad=skip_bad)
    for bad in done.bad:
        err.print(f"skipped {bad}", style="yellow")
    known = f", {done.known} were there already" if done.known else ""
    out.print(f"{done.sessions} sessions, {done.turns} turns, {done.facts} facts{known}")


@facts.command("list")
def list_(
    memory: Where = None,
    user: User = None,
    session: Session = None,
    history: Annotated[
        bool, typer.Option("--history", help="What is no longer true or has expired, too.")
    ] = False,
    private: Annotated[bool, typer.Option("--private", help="Private ones, too.")] = False,
) -> None:
    """Show facts, a line each: date, whose, kind, words."""
    from .portable import all_facts

    owner, now = _owner(user, session), time.time()
    with _store(memory) as store:
        shown = 0
        for fact in all_facts(store):
            expired = fact.expires_at is not None and fact.expires_at <= now
            if owner not in (None, fact.owner) or (fact.private and not private):
                continue
            if (expired or fact.superseded_by is not None) and not history:
                continue
            out.out(_shown(fact, expired))
            shown += 1
    if not shown:
        out.print("nothing yet", style="dim")


@facts.command("prune")
def prune(memory: Where = None) -> None:
    """Erase the facts that have expired, from the files too."""
    with _store(memory) as store:
        gone = store.ledger().prune()
        wiped = not gone or store.wipe()
    out.print(f"{len(gone)} facts had expired and are erased")
    if not wiped:
        err.print(
            "another program reads the memory: bytes of them stay in its files until it ends", style="yellow"
        )


def _shown(fact: Fact, expired: bool) -> str:
    from .cli import _clean

    day = datetime.fromtimestamp(fact.noted_at).date().isoformat()
    kind = "" if fact.kind is None else fact.kind if fact.subject is None else f"{fact.kind} ({fact.subject})"
    marks = [
        *(["core"] if fact.core else []),
        *(["private"] if fact.private else []),
        *([f"said {fact.count} times"] if fact.count > 1 else []),
        *(["expired"] if expired else []),
    ]
    if fact.superseded_at is not None:
        marks.append(f"until {datetime.fromtimestamp(fact.superseded_at).date().isoformat()}")
    about = f"  [{', '.join(marks)}]" if marks else ""
    return _clean(f"{day}  {fact.owner}  {kind or '-'}: {' '.join(fact.text.split())}{about}")
