"""Where Chroma is, and what its failures mean: a folder, a server, Chroma Cloud, or this process's memory.

=============================  ==========================================================================
``None``                       a folder beside the store (``<folder>/chroma``)
a folder's path                that folder
``http://host:8000``           a server, ``chroma run --path FOLDER --port 8000``; ``https`` too, with
                               ``user:password@`` for one behind a proxy that asks for it
``cloud://TENANT/DATABASE``    Chroma Cloud, with the key in ``CHROMA_API_KEY``
a chromadb client              as it is
=============================  ==========================================================================

chromadb takes a second to import and is imported when a home is first opened.
"""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import sqlite3
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from lc_memory.errors import FactIndexError, LCMemoryError, MemoryInputError, MissingKeyError
from lc_memory.facts.folder_lock import FolderLock

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

_CONNECT, _ANSWER = 3.0, 30.0  # seconds; chromadb itself would wait for ever
_DATABASE = "chroma.sqlite3"
_ROOM = 64 * 2**20  # bytes that have to be free for an embedded Chroma to be written to


class LostIndexError(FactIndexError):
    """The files of the index are broken or gone. What is left is set aside, and it is built anew."""


class ClosedIndexError(FactIndexError):
    """What was opened is there no more: another collection took its place, or a connection broke."""


class ChromaHome:
    """A place for collections. ``connect`` may be called again after ``close``."""

    name: str
    files = False
    """Whether the files are this process's own to purge."""

    def connect(self) -> ClientAPI:
        raise NotImplementedError

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
        """Leave no byte of deleted entries in the database. Called while it is closed."""

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


def chroma_home(chroma: Any, beside: Path | None) -> ChromaHome:
    """The home that ``chroma`` names (see the module). ``beside``: the folder that None stands for.

    MemoryInputError where it names none.
    """
    if chroma is None:
        if beside is None:
            raise FactIndexError(
                "a store that is no folder of this machine needs a place for its vectors: run "
                "'chroma run --path FOLDER --port 8000' and pass chroma='http://localhost:8000'"
            )
        return FolderHome(beside)
    if chroma == ":memory:":
        return MemoryHome()
    if isinstance(chroma, os.PathLike):
        return FolderHome(Path(chroma))
    if not isinstance(chroma, str):
        if not hasattr(chroma, "get_or_create_collection"):
            raise MemoryInputError(f"chroma: expected a URL, a folder or a client, got {chroma!r:.80}")
        return ClientHome(chroma)
    if "://" not in chroma:
        return FolderHome(Path(chroma).expanduser())
    parts = urlsplit(chroma)
    if parts.scheme == "cloud":
        return CloudHome(parts.netloc, parts.path.strip("/"))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise MemoryInputError(
            f"chroma={chroma!r}: expected http://host:port, cloud://TENANT/DATABASE or a folder"
        )
    return ServerHome(chroma)


def _settings(**more: Any) -> Any:
    from chromadb.config import Settings

    # Without _env_file a .env in the working directory would change where Chroma looks.
    return Settings(_env_file=None, anonymized_telemetry=False, **more)  # type: ignore[call-arg]


class ClientHome(ChromaHome):
    """A client that the caller opened, and closes."""

    def __init__(self, client: Any) -> None:
        self.name = f"the Chroma of {type(client).__name__}"
        self._client = client

    def connect(self) -> ClientAPI:
        return self._client  # type: ignore[no-any-return]


class MemoryHome(ChromaHome):
    """Ends with the process."""

    name = "the Chroma in memory"

    def connect(self) -> ClientAPI:
        import chromadb

        with self.errors():
            return chromadb.EphemeralClient(_settings())


class FolderHome(ChromaHome):
    """An embedded Chroma in a folder that one process has at a time."""

    files = True
    _used_by: int | None = None  # the process whose threads Chroma's Rust part has started

    def __init__(self, folder: Path) -> None:
        self.folder = folder.absolute()
        self.name = str(self.folder)
        self._lock = FolderLock(self.folder)
        self._client: ClientAPI | None = None
        self._opened: tuple[int, int] | None = None

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
                self._client = chromadb.PersistentClient(str(self.folder), settings=_settings())
                self._opened = _identity(self.folder / _DATABASE)
                return self._client
            except BaseException:
                self.close()
                raise

    def check(self) -> None:
        if self._opened is None:
            raise ClosedIndexError(f"{self.name} was closed")
        found = _identity(self.folder / _DATABASE)
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
        return LostIndexError(said)

    def set_aside(self) -> Path | None:
        self.close()
        self._lock.acquire()
        try:
            if not self.folder.exists():
                return None
            aside = self.folder.with_name(f"{self.folder.name}.broken-{time.strftime('%Y%m%d-%H%M%S')}")
            while aside.exists():
                aside = aside.with_name(aside.name + "x")
            os.rename(self.folder, aside)
            return aside
        finally:
            self._lock.release()

    def purge(self) -> None:
        self._lock.acquire()
        try:
            database = sqlite3.connect(self.folder / _DATABASE, timeout=30, isolation_level=None)
            try:
                # Deleted texts stay in the full-text table's segments until these are written as one.
                database.execute(
                    "INSERT INTO embedding_fulltext_search (embedding_fulltext_search) VALUES ('optimize')"
                )
                database.execute("VACUUM")
            finally:
                database.close()
            for header in self.folder.glob("*/header.bin"):
                _blank_unused(header)
        except (sqlite3.Error, OSError) as error:
            raise FactIndexError(f"{self.name} could not be purged: {error}. Run: chroma vacuum") from error
        finally:
            self._lock.release()

    def close(self) -> None:
        client, self._client, self._opened = self._client, None, None
        if FolderHome._used_by == os.getpid():
            with contextlib.suppress(Exception):
                if client is not None:
                    client.close()  # type: ignore[attr-defined]
                else:  # an opening that failed leaves half a system behind, which the next would be given
                    from chromadb.api.shared_system_client import SharedSystemClient

                    SharedSystemClient._identifier_to_system.pop(str(self.folder), None)
        self._lock.release()


class ServerHome(ChromaHome):
    """A server of ``chroma run``, used by any number of processes."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._ssl = parts.scheme == "https"
        self._host = str(parts.hostname)
        self._port = parts.port or (443 if self._ssl else 8000)
        self.name = f"the Chroma server at {self._host}:{self._port}"
        self._headers: dict[str, str] = {}
        if parts.username is not None:
            login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
        self._client: Any = None

    def connect(self) -> ClientAPI:
        import chromadb

        with self.errors():
            self._client = chromadb.HttpClient(
                self._host, self._port, ssl=self._ssl, headers=dict(self._headers), settings=_settings()
            )
            _limit_waiting(self._client)
            return self._client  # type: ignore[no-any-return]

    def explain(self, error: Exception) -> FactIndexError:
        # A connection that was kept open to a server which ended meanwhile says so at the next call only.
        again = type(error).__name__ in ("NotFoundError", "RemoteProtocolError", "ReadError", "WriteError")
        return (ClosedIndexError if again else FactIndexError)(
            f"{self.name} does not answer as it should ({type(error).__name__}: {error}). Start it again: "
            f"chroma run --path FOLDER --port {self._port}"
        )

    def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):
                client.close()


class CloudHome(ChromaHome):
    """Chroma Cloud."""

    def __init__(self, tenant: str, database: str) -> None:
        self._tenant = tenant or os.environ.get("CHROMA_TENANT", "")
        self._database = database or os.environ.get("CHROMA_DATABASE", "")
        if not self._tenant or not self._database:
            raise MemoryInputError("Chroma Cloud is named by cloud://TENANT/DATABASE")
        self.name = f"Chroma Cloud, {self._tenant}/{self._database}"

    def connect(self) -> ClientAPI:
        key = os.environ.get("CHROMA_API_KEY")
        if not key:
            raise MissingKeyError("Chroma Cloud needs a key: set CHROMA_API_KEY in .env")
        import chromadb

        with self.errors():
            client = chromadb.CloudClient(self._tenant, self._database, key, settings=_settings())
            _limit_waiting(client)
            return client


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


def _limit_waiting(client: Any) -> None:
    import httpx

    session = getattr(getattr(client, "_server", None), "_session", None)
    if isinstance(session, httpx.Client):
        session.timeout = httpx.Timeout(_ANSWER, connect=_CONNECT)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


__all__ = ["ChromaHome", "ClosedIndexError", "LostIndexError", "chroma_home"]
