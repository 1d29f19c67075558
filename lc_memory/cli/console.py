"""The two consoles, and text that is safe to print on them."""

from __future__ import annotations

import re

from rich.console import Console

from lc_memory.errors import LCMemoryError

# What is printed is mostly other people's words: brackets and :colons: in them are not markup.
out = Console(highlight=False, markup=False, emoji=False, soft_wrap=True)
err = Console(highlight=False, markup=False, emoji=False, soft_wrap=True, stderr=True)

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def _clean(text: str) -> str:
    """Without control characters: what a model says must not be able to steer the terminal. Nor half of an
    emoji, which no output takes."""
    return _CONTROL.sub("", text).encode("utf-8", "replace").decode()


def _in_one_line(error: BaseException) -> str:
    said = " ".join(_clean(str(error)).split())
    if not isinstance(error, LCMemoryError):
        said = f"{type(error).__name__}: {said}"
    return said if len(said) <= 600 else f"{said[:599]}…"
