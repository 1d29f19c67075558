"""Whether a file is still the one that was opened."""

from __future__ import annotations

from pathlib import Path


def identity(path: Path) -> tuple[int, int] | None:
    """What tells a file from another one of the same name; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


__all__ = ["identity"]
