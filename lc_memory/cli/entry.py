"""The command line: ``lc-memory demo`` shows the main job, ``lc-memory chat`` is a session of one's own.

Exit codes: 0, done; 1, something failed and stderr says what; 2, the command line was not understood;
130, Ctrl-C.
"""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Sequence

import typer

from lc_memory.errors import LCMemoryError

from . import chat, facts, index
from .console import _clean, _in_one_line, err

app = typer.Typer(
    help="Memory at the head of LangChain chains.", no_args_is_help=True, add_completion=False,
    pretty_exceptions_enable=False, rich_markup_mode=None,
)  # fmt: skip
for group in (chat, facts, index):
    app.add_typer(group.app)


def main(args: Sequence[str] | None = None) -> None:
    """The console script. Our own errors are one line on stderr and exit code 1."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        # A character that the terminal cannot show, or half of one from the keyboard, is a "?", not the end.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    warnings.showwarning = lambda message, *_, **__: err.print(_clean(str(message)), style="yellow")
    try:
        app(args=list(sys.argv[1:] if args is None else args))
    except LCMemoryError as error:
        err.print(_in_one_line(error), style="red")
        sys.exit(1)
