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
import functools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from lc_memory.errors import FactIndexError, MemoryInputError, MissingKeyError
from lc_memory.store import when_dropped

from .base import ChromaHome, ClosedIndexError, settings
from .folder import FolderHome

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

_CONNECT, _ANSWER = 3.0, 30.0  # seconds; chromadb itself would wait for ever


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


class ClientHome(ChromaHome):
    """A client that the caller opened, and closes."""

    def __init__(self, client: Any) -> None:
        self.name = f"the Chroma of {type(client).__name__}"
        self._client = client

    def connect(self) -> ClientAPI:
        return self._client  # type: ignore[no-any-return]


class MemoryHome(ChromaHome):
    """Ends when it is closed, and is filled anew from the store when it is needed again. Chroma has one for
    the whole process, which keeps what is deleted from it: it goes when nobody has it open."""

    name = "the Chroma in memory"

    def __init__(self) -> None:
        self._collections: set[str] = set()
        self._client: list[Any] = []
        when_dropped(self, functools.partial(_clear, self._client, self._collections))

    def connect(self) -> ClientAPI:
        import chromadb

        with self.errors():
            if not self._client:
                self._client.append(chromadb.EphemeralClient(settings()))
            return self._client[0]  # type: ignore[no-any-return]

    def holds(self, collection: str) -> None:
        self._collections.add(collection)

    def close(self) -> None:
        _clear(self._client, self._collections)


def _clear(clients: list[Any], collections: set[str]) -> None:
    while clients:
        client = clients.pop()
        while collections:
            with contextlib.suppress(Exception):
                client.delete_collection(collections.pop())
        with contextlib.suppress(Exception):
            client.close()


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
        self._clients: list[Any] = []
        when_dropped(self, functools.partial(_close, self._clients))

    def connect(self) -> ClientAPI:
        import chromadb

        with self.errors():
            client = chromadb.HttpClient(
                self._host, self._port, ssl=self._ssl, headers=dict(self._headers), settings=settings()
            )
            self._clients.append(client)
            _limit_waiting(client)
            return client

    def explain(self, error: Exception) -> FactIndexError:
        # A connection that was kept open to a server which ended meanwhile says so at the next call only.
        again = type(error).__name__ in ("NotFoundError", "RemoteProtocolError", "ReadError", "WriteError")
        return (ClosedIndexError if again else FactIndexError)(
            f"{self.name} does not answer as it should ({type(error).__name__}: {error}). Start it again: "
            f"chroma run --path FOLDER --port {self._port}"
        )

    def close(self) -> None:
        _close(self._clients)


class CloudHome(ChromaHome):
    """Chroma Cloud."""

    def __init__(self, tenant: str, database: str) -> None:
        self._tenant = tenant or os.environ.get("CHROMA_TENANT", "")
        self._database = database or os.environ.get("CHROMA_DATABASE", "")
        if not self._tenant or not self._database:
            raise MemoryInputError("Chroma Cloud is named by cloud://TENANT/DATABASE")
        self.name = f"Chroma Cloud, {self._tenant}/{self._database}"
        self._clients: list[Any] = []
        when_dropped(self, functools.partial(_close, self._clients))

    def connect(self) -> ClientAPI:
        key = os.environ.get("CHROMA_API_KEY")
        if not key:
            raise MissingKeyError("Chroma Cloud needs a key: set CHROMA_API_KEY in .env")
        import chromadb

        with self.errors():
            client = chromadb.CloudClient(self._tenant, self._database, key, settings=settings())
            self._clients.append(client)
            _limit_waiting(client)
            return client

    def close(self) -> None:
        _close(self._clients)


def _limit_waiting(client: Any) -> None:
    import httpx

    for session in _sessions(client):
        session.timeout = httpx.Timeout(_ANSWER, connect=_CONNECT)


def _close(clients: list[Any]) -> None:
    while clients:
        client = clients.pop()
        with contextlib.suppress(Exception):
            client.close()
        for session in _sessions(client):  # chromadb leaves their connections open
            session.close()


def _sessions(client: Any) -> list[Any]:
    """What a client of chromadb asks its server with: itself, and for the names of databases."""
    import httpx

    asking = (client, getattr(client, "_admin_client", None))
    found = [getattr(getattr(one, "_server", None), "_session", None) for one in asking]
    return [session for session in found if isinstance(session, httpx.Client)]


__all__ = ["chroma_home"]
