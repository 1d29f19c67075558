"""What every place for a Chroma can do, and the two ways in which one is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lc_memory.errors import FactIndexError, LCMemoryError

if TYPE_CHECKING:
    from chromadb.api import ClientAPI


class LostIndexError(FactIndexError):
    """The files of the index are broken or gone. What is left is set aside, and it is built anew."""


class BrokenIndexError(LostIndexError):
    """Chroma cannot read its files. They are broken, or were just being made: a search that meets the first
    write of a new collection ends like this, too, and succeeds when it is made again."""


class ClosedIndexError(FactIndexError):
    """What was opened is there no more: another collection took its place, or a connection broke."""


class ChromaHome:
    """A place for collections. ``connect`` may be called again after ``close``."""

    name: str
    files = False
    """Whether the files are this process's own to purge."""

    def connect(self) -> ClientAPI:
        raise NotImplementedError

    def holds(self, collection: str) -> None:
        """A collection of this name lies here from now on."""

    def check(self) -> None:
        """LostIndexError where what was opened is not there any more. Cheap: called before each use."""

    def check_room(self) -> None:
        """FactIndexError where there is no room to write. Called before each write."""

    def explain(self, error: Exception) -> FactIndexError:
        """What an error of chromadb means."""
        kind = ClosedIndexError if type(error).__name__ == "NotFoundError" else FactIndexError
        return kind(f"{self.name}: {type(error).__name__}: {error}")

    def set_aside(self) -> Path | None:
        """Move what lies there out of the way, to make room; where it is now."""
        return None

    def purge(self) -> None:
        """Leave no byte of deleted entries in the files, nor of what was set aside. Called while it is
        closed."""

    def opened_again(self) -> None:
        """An index without entries is open after a purge: Chroma has written its files anew, and leave no
        byte in the room that they have."""

    def close(self) -> None:
        pass

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """What chromadb raises becomes an error of ours; ours pass."""
        try:
            yield
        except LCMemoryError:
            raise
        except Exception as error:
            raise self.explain(error) from error


def settings(**more: Any) -> Any:
    from chromadb.config import Settings

    # Without _env_file a .env in the working directory would change where Chroma looks.
    return Settings(_env_file=None, anonymized_telemetry=False, **more)  # type: ignore[call-arg]


__all__ = ["BrokenIndexError", "ChromaHome", "ClosedIndexError", "LostIndexError", "settings"]
