"""What was forgotten is in no file any more."""

from __future__ import annotations

import random
import re
import sqlite3
import string
from collections import Counter
from pathlib import Path

import pytest

from lc_memory.store import DATABASE_FILE, SessionKey, Store, open_store
from tests.servers.postgres import PostgresServer

MARK = "Xq7Zv"


def _words(rng: random.Random, who: str, size: int) -> str:
    """Text in which the owner's mark stands every few characters, so that no fragment hides it."""
    return "".join(f"{MARK}{who}-{''.join(rng.choices(string.ascii_lowercase, k=9))} " for _ in range(size))


def _live(store: Store, users: list[str], rng: random.Random, turns: int) -> None:
    """Sessions of all users, grown side by side, with summaries and facts that replace each other."""
    ledger = store.ledger()
    for n in range(turns):
        user = rng.choice(users)
        key = SessionKey(f"s{rng.randrange(3)}", user)
        size = rng.choice([1, 3, 20, 300, 900])
        store.append(key, [{"role": "user", "content": _words(rng, user, size)}])
        if n % 3 == 0:
            snapshot = store.load(key)
            store.commit_summary(
                key, _words(rng, user, rng.randrange(1, 40)), snapshot.covers + 1, based_on=snapshot
            )
        if n % 2 == 0:
            kind = f"kind{rng.randrange(4)}"
            source = {"session": key.session_id, "quote": _words(rng, user, 1)}
            text = _words(rng, user, rng.randrange(1, 9))
            fact = ledger.add(key.owner, text, kind=kind, source=source, supersede=True)
            if n % 10 == 0:
                ledger.remove(key.owner, [fact.id])


def _marks(folder: Path) -> Counter[str]:
    """Whose marks are in the files, and how often."""
    found: Counter[str] = Counter()
    for path in folder.rglob("*"):
        if path.is_file():
            found.update(m.decode() for m in re.findall(rb"Xq7Zv(u\d\d)", path.read_bytes()))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_sqlite_no_byte_of_a_forgotten_user_is_in_any_file(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    users = [f"u{n:02}" for n in range(8)]
    store = open_store(tmp_path / "store")
    other_process_would = open_store(tmp_path / "store")
    _live(store, users, rng, 400)
    while users:
        user = users.pop(rng.randrange(len(users)))
        assert other_process_would.sessions(user)
        assert _marks(tmp_path)[user] > 0
        assert store.forget(user_id=user).wiped
        assert _marks(tmp_path)[user] == 0, f"{_marks(tmp_path)[user]} marks of {user} are left"
        if users:
            _live(store, users, rng, 40)
    store.close()
    other_process_would.close()
    assert not _marks(tmp_path)


def test_sqlite_clearing_and_removing_leave_no_byte_once_wiped(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    key = SessionKey("s", "u")
    store.append(key, [{"role": "user", "content": f"{MARK}u01"}])
    fact = store.ledger().add("o", f"{MARK}u02")
    expiring = store.ledger().add("o", f"{MARK}u03", expires_at=1.0)
    assert set(_marks(tmp_path)) == {"u01", "u02", "u03"}
    assert not store.clear(key).wiped
    assert store.wipe()
    assert set(_marks(tmp_path)) == {"u02", "u03"}
    assert store.ledger().remove("o", [fact.id]) == (fact.row,)
    assert store.ledger().prune() == (expiring.row,)
    assert store.wipe()
    assert not _marks(tmp_path)


def test_sqlite_an_open_read_is_reported_and_wiping_succeeds_after_it(tmp_path: Path) -> None:
    store = open_store(tmp_path, timeout=0.05)
    key = SessionKey("s", "u")
    store.append(key, [{"role": "user", "content": f"{MARK}u01"}])
    reader = sqlite3.connect(tmp_path / DATABASE_FILE, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM lcm_turns").fetchall()
    gone = store.forget(user_id="u")
    assert not gone.wiped
    assert gone.sessions == (key,)
    assert store.load(key).turns == ()
    reader.execute("COMMIT")
    assert store.wipe()
    assert not _marks(tmp_path)
    reader.close()


def test_postgres_wiping_leaves_no_byte_in_the_data_files(
    postgres: PostgresServer, postgres_url: str
) -> None:
    rng = random.Random(0)
    store = open_store(postgres_url)
    _live(store, ["u01", "u02"], rng, 200)
    postgres.sql("CHECKPOINT")
    files = postgres.data / "base"
    assert _marks(files)["u01"] > 0
    assert store.forget(user_id="u01").wiped
    postgres.sql("CHECKPOINT")
    assert _marks(files)["u01"] == 0
    assert _marks(files)["u02"] > 0
    assert store.sessions("u02")
    store.close()
