"""An embedded Chroma: a folder that one process has at a time, whose files may be full, broken or gone."""

from __future__ import annotations

import contextlib
import glob
import os
import shutil
import sqlite3
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING

from lc_memory.errors import FactIndexError
from lc_memory.store import identity, when_dropped

from .base import BrokenIndexError, ChromaHome, ClosedIndexError, LostIndexError, settings
from .lock import FolderLock

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

_DATABASE = "chroma.sqlite3"
_ASIDE = ".broken-"
_ROOM = 64 * 2**20  # bytes that have to be free for an embedded Chroma to be written to


class FolderHome(ChromaHome):
    """An embedded Chroma in a folder that one process has at a time."""

    files = True
    _used_by: int | None = None  # the process whose threads Chroma's Rust part has started

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.name = str(self.folder)
        self._open = _Open(self.folder)
        self._lock = self._open.lock
        self._opened: tuple[int, int] | None = None
        when_dropped(self, self._open.close)

    def connect(self) -> ClientAPI:
        if FolderHome._used_by not in (None, os.getpid()):
            raise FactIndexError(
                f"{self.name}: this process was forked from one that had Chroma open, which Chroma does not "
                "survive. Start worker processes with 'spawn', or before the memory is used, or run "
                f"'chroma run --path {self.folder}' and pass chroma='http://localhost:8000'"
            )
        import chromadb

        with self.errors():
            self._lock.acquire()
            try:
                self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                self.check_room()
                # The first thing that is written: a file of no bytes would open as an empty Chroma.
                if _size(self.folder / _DATABASE) == 0:
                    raise LostIndexError(f"{self.name}: {_DATABASE} has lost its content")
                FolderHome._used_by = os.getpid()
                self._open.client = client = chromadb.PersistentClient(str(self.folder), settings=settings())
                self._opened = identity(self.folder / _DATABASE)
                return client
            except BaseException:
                self.close()
                raise

    def check(self) -> None:
        if self._opened is None:
            raise ClosedIndexError(f"{self.name} was closed")
        found = identity(self.folder / _DATABASE)
        if found != self._opened or not _size(self.folder / _DATABASE):
            raise LostIndexError(f"{self.name} was deleted, moved or emptied while it was open")

    def check_room(self) -> None:
        # On a full disk Chroma's writes do not fail: they never return.
        with self.errors():
            free = shutil.disk_usage(self.folder).free
        if free < _ROOM:
            raise FactIndexError(
                f"{self.name}: the disk has {free // 2**20} MB left, and the index needs {_ROOM // 2**20}. "
                "Free some space"
            )

    def explain(self, error: Exception) -> FactIndexError:
        said = f"{self.name}: {type(error).__name__}: {error}"
        if type(error).__name__ == "NotFoundError":
            return ClosedIndexError(said)
        if isinstance(error, OSError):
            return FactIndexError(f"{said}. Check that the folder can be written and the disk has room")
        text = str(error).lower()
        if any(words in text for words in ("is full", "no space", "locked", "readonly", "too many open")):
            return FactIndexError(said)
        if isinstance(error, (ValueError, TypeError)):
            return FactIndexError(said)
        # InternalError, a panic of the Rust part, a failed segment reader: the files are not what they were.
        return BrokenIndexError(said)

    def set_aside(self) -> Path | None:
        self.close()
        self._lock.acquire()
        try:
            if not self.folder.exists():
                return None
            aside = self.folder.with_name(f"{self.folder.name}{_ASIDE}{time.strftime('%Y%m%d-%H%M%S')}")
            while aside.exists():
                aside = aside.with_name(aside.name + "x")
            os.rename(self.folder, aside)
            return aside
        finally:
            self._lock.release()

    def purge(self) -> None:
        self._lock.acquire()
        try:
            for aside in self.folder.parent.glob(f"{glob.escape(self.folder.name)}{_ASIDE}*"):
                shutil.rmtree(aside)
            database = sqlite3.connect(self.folder / _DATABASE, timeout=30, isolation_level=None)
            try:
                # Deleted texts stay in the full-text table's segments until these are written as one.
                database.execute(
                    "INSERT INTO embedding_fulltext_search (embedding_fulltext_search) VALUES ('optimize')"
                )
                database.execute("VACUUM")
                used = {name for (name,) in database.execute("SELECT id FROM segments")}
            finally:
                database.close()
            for header in self.folder.glob("*/header.bin"):
                if header.parent.name in used:
                    _blank_unused(header)
                else:  # of a collection that was deleted: Chroma leaves its vectors there
                    shutil.rmtree(header.parent)
        except (sqlite3.Error, OSError) as error:
            raise FactIndexError(f"{self.name} could not be purged: {error}. Run: chroma vacuum") from error
        finally:
            self._lock.release()

    def opened_again(self) -> None:
        try:
            for header in self.folder.glob("*/header.bin"):
                _blank_unused(header)
        except OSError as error:
            raise FactIndexError(f"{self.name} could not be purged: {error}. Run: chroma vacuum") from error

    def close(self) -> None:
        self._opened = None
        self._open.close()


class _Open:
    """What is open of a folder: the client, and the lock."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.lock = FolderLock(folder)
        self.client: ClientAPI | None = None

    def close(self) -> None:
        client, self.client = self.client, None
        if FolderHome._used_by == os.getpid():
            with contextlib.suppress(Exception):
                if client is not None:
                    client.close()  # type: ignore[attr-defined]
                elif self.lock.held:  # an opening that failed leaves half a system, which the next would get
                    from chromadb.api.shared_system_client import SharedSystemClient

                    SharedSystemClient._identifier_to_system.pop(str(self._folder), None)
        self.lock.release()


def _blank_unused(header: Path) -> None:
    """Blank what the vector files have room for but do not hold yet. Chroma writes that room as it got it
    from the system's memory, with whatever stood there before: SQL, texts, vectors."""
    with open(header, "rb") as file:
        _, _, capacity, count, size = struct.unpack("<IQQQQ", file.read(36))
    for name, each in (("length.bin", 4), ("data_level0.bin", size)):
        path = header.with_name(name)
        if count < capacity and _size(path) == capacity * each:
            with open(path, "r+b") as file:
                file.seek(count * each)
                file.write(bytes((capacity - count) * each))


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


__all__ = ["FolderHome"]
