"""What all tests of a run share: one PostgreSQL, the folder of the run, and which tests are slow."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

from lc_memory.store import Store
from tests.helpers import run
from tests.helpers.homes import Home
from tests.servers.postgres import PostgresServer, own_server, shared_server

# An example may take as long as it takes: how long that is depends on what else the machine does.
hypothesis.settings.register_profile("tests", deadline=None)
hypothesis.settings.load_profile("tests")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", action="store_true", help="run what takes minutes, too")


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        run.begin()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        run.end()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--slow"):
        for item in items:
            if "slow" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="minutes; run by --slow"))


@pytest.fixture(scope="session")
def postgres() -> PostgresServer:
    """The server that all tests of a run share. A test that stops it takes ``mortal_postgres``."""
    return shared_server()


@pytest.fixture
def postgres_url(postgres: PostgresServer) -> Iterator[str]:
    """A database of the test's own."""
    with postgres.database() as url:
        yield url


@pytest.fixture(scope="session")
def _mortal() -> Iterator[PostgresServer]:
    with own_server() as server:
        yield server


@pytest.fixture
def mortal_postgres(_mortal: PostgresServer) -> PostgresServer:
    """A server that runs, and that the test may stop and start."""
    if not _mortal.running():
        _mortal.start()
    return _mortal


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def any_home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """Each home of a store in turn."""
    with Home.of(request, tmp_path) as home:
        yield home


@pytest.fixture(params=["sqlite", "postgres"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    """Each home that outlives the process."""
    with Home.of(request, tmp_path) as home:
        yield home


@pytest.fixture
def any_store(any_home: Home) -> Store:
    """A store in each home."""
    return any_home.open()


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users can reach; pytest closes its own again with every run that begins."""
    folder = Path(tempfile.mkdtemp(prefix="lcm-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def small_disk(open_folder: Path) -> Iterator[Path]:
    """A disk of 16 MB; only root can mount one."""
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("needs root, to mount a small disk")
    disk = open_folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)
