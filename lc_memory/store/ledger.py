"""The facts in the store's database.

A fact said again is the same row with a higher count. A fact of the same kind takes the place of the old
one in the transaction that writes it, and the old one stays as history. What an index has to follow
(new, changed, superseded) is marked until :meth:`Ledger.mark_indexed` says that it has.
"""

from __future__ import annotations

import hashlib
import time
import unicodedata
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, bindparam
from sqlalchemy import text as sql

from lc_memory.errors import MemoryInputError

from .database import Database
from .fact import Fact, FactCounts
from .items import erased_facts
from .rows import SessionKey
from .text import check_text, digest, dump_json, from_column, from_moment, load_json, moment, to_column
from .uninterrupted import undisturbed_calls

_FIELDS = (
    "id, owner, fact_id, text, kind, subject, private, core, source, noted_at, expires_at,"
    " superseded_by, superseded_at, times, indexed, revision"
)
_SELECT = f"SELECT {_FIELDS} FROM lcm_facts WHERE "
_BY_ID = sql(_SELECT + "owner_key = :owner_key AND fact_key = :fact_key")
# No ORDER BY … LIMIT: it tempts PostgreSQL to walk all facts in that order.
_SAME = sql(_SELECT + "owner_key = :owner_key AND same_key = :same_key AND superseded_by IS NULL")
_HISTORY = sql(_SELECT + "owner_key = :owner_key AND kind_key = :kind_key ORDER BY id")
_SUPERSEDED = sql(
    "SELECT text FROM lcm_facts WHERE owner_key = :owner_key AND kind_key IN :kinds"
    " AND superseded_by IS NOT NULL ORDER BY id DESC LIMIT :limit"
).bindparams(bindparam("kinds", expanding=True))
_UNINDEXED = sql(_SELECT + "indexed = 0 AND id > :after ORDER BY id LIMIT :limit")
_LEFT = sql("SELECT COUNT(*) FROM lcm_facts WHERE indexed = 0")
_ITERATE = sql(_SELECT + "id > :after ORDER BY id LIMIT :limit")

_COLUMNS = (
    "owner_key", "owner", "fact_key", "fact_id", "same_key", "kind_key", "kind", "subject", "text", "private",
    "core", "source_key", "source", "noted_at", "expires_at", "superseded_by", "superseded_at", "times",
    "revision", "indexed",
)  # fmt: skip
_INSERT = sql(
    f"INSERT INTO lcm_facts ({', '.join(_COLUMNS)}) VALUES ({', '.join(':' + name for name in _COLUMNS)})"
    f" ON CONFLICT (owner_key, fact_key) DO NOTHING RETURNING {_FIELDS}"
)
_UPDATE = sql(
    f"UPDATE lcm_facts SET {', '.join(f'{name} = :{name}' for name in _COLUMNS)}"
    f" WHERE id = :row RETURNING {_FIELDS}"
)
_RETIRE = (
    "UPDATE lcm_facts SET superseded_by = :successor, superseded_at = :now, indexed = 0,"
    " revision = revision + 1 WHERE owner_key = :owner_key AND kind_key = :kind_key"
    " AND superseded_by IS NULL AND id <> :row AND "
)
_MAKE_CORE = sql(f"UPDATE lcm_facts SET core = 1 WHERE id = :row RETURNING {_FIELDS}")
_MARK = sql("UPDATE lcm_facts SET indexed = 1 WHERE id = :row AND revision = :revision")
_COUNT = (
    "SELECT COUNT(*),"
    " COALESCE(SUM(CASE WHEN superseded_by IS NULL AND (expires_at IS NULL OR expires_at > :now)"
    " THEN 1 END), 0),"
    " COALESCE(SUM(CASE WHEN superseded_by IS NOT NULL THEN 1 END), 0),"
    " COALESCE(SUM(CASE WHEN superseded_by IS NULL AND expires_at <= :now THEN 1 END), 0),"
    " COALESCE(SUM(private), 0), COALESCE(SUM(1 - indexed), 0) FROM lcm_facts"
)
_AT_ONCE = 500


@undisturbed_calls()
class Ledger:
    """The facts of all owners. Got by :meth:`Store.ledger <lc_memory.store.Store.ledger>`.

    Errors are those of the store. An ``owner`` is any string and sees its own facts only.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(
        self,
        owner: str,
        text: str,
        *,
        kind: str | None = None,
        subject: str | None = None,
        private: bool = False,
        core: bool = False,
        source: dict[str, Any] | None = None,
        noted_at: float | None = None,
        expires_at: float | None = None,
        fact_id: str | None = None,
        supersede: bool = False,
        anew: bool = False,
    ) -> Fact:
        """Note a fact, and return it as it then stands.

        Said before (the same text but for case, width, spaces and the full stop, of the same kind and
        subject, still current): the count grows, ``noted_at`` and ``expires_at`` become the new ones,
        private and core stay once set, the first source stays (none, where a program noted it). With a
        ``fact_id`` that the owner has, that fact is written over instead; its own text once more counts as
        said again, unless ``anew``: then nothing of it stays but its place.

        ``supersede``: the owner's other current facts of this kind and subject become history, in the same
        transaction; where one of them was core, this is. A fact that was noted without a kind gets the one
        with which it is said again.

        Without ``fact_id`` the id is ``f`` and twelve hex digits of the text's md5, as the dict-based
        memory has it, or another one where a retired fact holds that.
        """
        if supersede and kind is None:
            raise MemoryInputError("supersede=True needs a kind: only a fact of the same kind is replaced")
        now = time.time() if noted_at is None else moment("noted_at", noted_at)
        owner_key = digest(owner)
        values = _identity(owner, text, kind, subject) | {
            "private": int(private),
            "core": int(core),
            **_source(source),
            "noted_at": now,
            "expires_at": _maybe("expires_at", expires_at),
            "superseded_by": None,
            "superseded_at": None,
        }
        with self._database.write() as connection:
            self._database.serialize(connection, owner_key)
            if fact_id is None:
                old = connection.execute(_SAME, values).first()
                if old is None and kind is not None:  # said before, without its kind
                    unnamed = _identity(owner, text, None, None)
                    old = connection.execute(_SAME, unnamed).first()
                fact_id = _free_id(connection, owner_key, text) if old is None else from_column(old.fact_id)
            else:
                check_text("fact_id", fact_id)
                old = _find(connection, owner_key, fact_id)
            values |= {"fact_id": to_column(fact_id), "fact_key": digest(fact_id)}
            if old is None:
                values |= {"times": 1, "revision": 1, "indexed": 0}
                row = connection.execute(_INSERT, values).one()
            else:
                merged = _merged(old, values, anew)
                row = connection.execute(_UPDATE, {**values, **merged, "row": old.id}).one()
            if supersede:
                where = "subject IS NULL" if subject is None else "subject = :subject"
                retired = {**values, "successor": row.fact_id, "now": now, "row": row.id}
                was_core = connection.execute(sql(_RETIRE + where + " RETURNING core"), retired).scalars()
                if any(was_core.all()) and not row.core:  # what stood in every prompt is replaced there
                    row = connection.execute(_MAKE_CORE, {"row": row.id}).one()
        return _fact(row)

    def restore(self, fact: Fact) -> bool:
        """Write a fact exactly as it was exported, but for its row. False: the owner has that id already."""
        check_text("fact_id", fact.id)
        values = _identity(fact.owner, fact.text, fact.kind, fact.subject) | {
            "fact_key": digest(fact.id),
            "fact_id": to_column(fact.id),
            "private": int(fact.private),
            "core": int(fact.core),
            **_source(fact.source),
            "noted_at": moment("noted_at", fact.noted_at),
            "expires_at": _maybe("expires_at", fact.expires_at),
            "superseded_by": None if fact.superseded_by is None else to_column(fact.superseded_by),
            "superseded_at": _maybe("superseded_at", fact.superseded_at),
            "times": fact.count,
            "revision": 1,
            "indexed": 0,
        }
        with self._database.write() as connection:
            return connection.execute(_INSERT, values).first() is not None

    def get(self, owner: str, ids: Sequence[str]) -> list[Fact]:
        """The owner's facts of these ids, in the order of the ids; what there is not is left out."""
        keys = [digest(fact_id) for fact_id in ids]
        found = self._select("owner_key = :owner_key AND fact_key IN :some", keys, owner_key=digest(owner))
        by_id = {fact.id: fact for fact in found}
        return [by_id[fact_id] for fact_id in ids if fact_id in by_id]

    def by_row(self, rows: Sequence[int]) -> dict[int, Fact]:
        """The facts of these rows; what was erased is missing."""
        return {fact.row: fact for fact in self._select("id IN :some", rows)}

    def current(
        self,
        owner: str,
        *,
        kinds: Sequence[str] | None = None,
        core: bool | None = None,
        include_private: bool = False,
        now: float | None = None,
    ) -> list[Fact]:
        """What holds of the owner at ``now``: neither superseded nor expired; first noted first."""
        where = (
            "owner_key = :owner_key AND superseded_by IS NULL AND (expires_at IS NULL OR expires_at > :now)"
            + ("" if core is None else f" AND core = {int(core)}")
            + ("" if include_private else " AND private = 0")
        )
        bound: dict[str, Any] = {"owner_key": digest(owner), "now": time.time() if now is None else now}
        if kinds is None:
            with self._database.read() as connection:
                return _facts(connection.execute(sql(_SELECT + where + " ORDER BY id"), bound))
        keys = [digest(kind) for kind in kinds]
        return sorted(self._select(where + " AND kind_key IN :some", keys, **bound), key=lambda f: f.row)

    def history(self, owner: str, kind: str | None) -> list[Fact]:
        """All facts of a kind, superseded and expired ones too, first noted first."""
        with self._database.read() as connection:
            return _facts(
                connection.execute(_HISTORY, {"owner_key": digest(owner), "kind_key": digest(kind)})
            )

    def noted_in(self, owner: str, sessions: Iterable[str]) -> list[Fact]:
        """The owner's facts that were noted in these sessions, history included."""
        keys = [digest(session) for session in sessions]
        return self._select("owner_key = :owner_key AND source_key IN :some", keys, owner_key=digest(owner))

    def superseded(self, owner: str, kinds: Iterable[str], limit: int) -> list[str]:
        """The texts of the owner's superseded facts of these kinds, the last noted first."""
        keys = [digest(kind) for kind in kinds]
        if not keys:
            return []
        with self._database.read() as connection:
            found = connection.execute(
                _SUPERSEDED, {"owner_key": digest(owner), "kinds": keys[:_AT_ONCE], "limit": limit}
            )
            return [from_column(text) for text in found.scalars()]

    def remove(self, owner: str, ids: Sequence[str]) -> tuple[int, ...]:
        """Erase facts; the rows that are gone. (:meth:`Store.wipe` then clears the files of them.)

        What a removed fact superseded stays superseded.
        """
        keys = [digest(fact_id) for fact_id in ids]
        return self._delete("owner_key = :owner_key AND fact_key IN :some", keys, owner_key=digest(owner))

    def prune(self, now: float | None = None) -> tuple[int, ...]:
        """Erase the facts that have expired; the rows that are gone."""
        now = time.time() if now is None else now
        with self._database.read() as connection:
            rows = connection.execute(sql("SELECT id FROM lcm_facts WHERE expires_at <= :now"), {"now": now})
            expired = list(rows.scalars())
        return self._delete("id IN :some AND expires_at <= :now", expired, now=now)

    def unindexed(self, limit: int = 200, *, after: int = 0) -> list[Fact]:
        """Facts that the index does not have as they are, by row, those behind the row ``after``;
        superseded ones among them are to leave it."""
        with self._database.read() as connection:
            return _facts(connection.execute(_UNINDEXED, {"limit": limit, "after": after}))

    def count_unindexed(self) -> int:
        """How many :meth:`unindexed` facts there are. Cheap, unlike :meth:`counts`."""
        with self._database.read() as connection:
            return int(connection.execute(_LEFT).scalar_one())

    def mark_indexed(self, facts: Iterable[Fact]) -> None:
        """The index has these facts now. One that changed since it was read stays unindexed."""
        marks = [{"row": fact.row, "revision": fact.revision} for fact in facts]
        if marks:
            with self._database.write() as connection:
                connection.execute(_MARK, marks)

    def reindex(self) -> None:
        """All facts are to be indexed again: the index was lost, or is built anew."""
        with self._database.write() as connection:
            connection.execute(sql("UPDATE lcm_facts SET indexed = 0 WHERE indexed = 1"))

    def iterate(self, *, after: int = 0, limit: int = 500) -> list[Fact]:
        """All facts by row, a page at a time: those behind the row ``after``."""
        with self._database.read() as connection:
            return _facts(connection.execute(_ITERATE, {"after": after, "limit": limit}))

    def counts(self, owner: str | None = None, *, now: float | None = None) -> FactCounts:
        """How many facts the owner has (None: all owners)."""
        bound: dict[str, Any] = {"now": time.time() if now is None else now}
        query = _COUNT
        if owner is not None:
            query += " WHERE owner_key = :owner_key"
            bound["owner_key"] = digest(owner)
        with self._database.read() as connection:
            return FactCounts(*(int(n) for n in connection.execute(sql(query), bound).one()))

    def _select(self, where: str, some: Sequence[Any], **bound: Any) -> list[Fact]:
        statement = sql(_SELECT + where).bindparams(bindparam("some", expanding=True))
        found: list[Fact] = []
        with self._database.read() as connection:
            for start in range(0, len(some), _AT_ONCE):
                part = list(some[start : start + _AT_ONCE])
                found += _facts(connection.execute(statement, {**bound, "some": part}))
        return found

    def _delete(self, where: str, some: Sequence[Any], **bound: Any) -> tuple[int, ...]:
        statement = sql(f"DELETE FROM lcm_facts WHERE {where} RETURNING id, owner").bindparams(
            bindparam("some", expanding=True)
        )
        gone: dict[int, str] = {}
        if some:
            with self._database.write() as connection:
                for start in range(0, len(some), _AT_ONCE):
                    part = list(some[start : start + _AT_ONCE])
                    deleted = connection.execute(statement, {**bound, "some": part})
                    gone |= {row.id: from_column(row.owner) for row in deleted}
                erased_facts(connection, gone)
        return tuple(gone)


def erase_facts(connection: Connection, user_id: str | None, session_id: str | None) -> tuple[int, ...]:
    """The part of :meth:`Store.forget <lc_memory.store.Store.forget>` that concerns facts; the rows gone."""
    bound: dict[str, Any] = {}
    if session_id is not None:
        bound["source_key"] = digest(session_id)
    if user_id is not None:
        bound["owner_key"] = digest(SessionKey("", user_id).owner)
        where = " AND ".join(f"{name} = :{name}" for name in bound)
    else:
        bound["owner_key"] = digest(SessionKey(session_id or "").owner)
        where = "source_key = :source_key OR owner_key = :owner_key"
    deleted = connection.execute(sql(f"DELETE FROM lcm_facts WHERE {where} RETURNING id, owner"), bound)
    owners = {row.id: from_column(row.owner) for row in deleted}
    erased_facts(connection, owners)
    return tuple(owners)


def _maybe(name: str, value: Any) -> float | None:
    return None if value is None else moment(name, value)


def _normalised(words: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", words).casefold().split()).rstrip("。.!~ ")


def _identity(owner: str, words: str, kind: str | None, subject: str | None) -> dict[str, Any]:
    check_text("owner", owner)
    check_text("text", words)
    if not words.strip():
        raise MemoryInputError("a fact needs a text")
    for name, value in (("kind", kind), ("subject", subject)):
        if value is not None:
            check_text(name, value)
    return {
        "owner_key": digest(owner),
        "owner": to_column(owner),
        "same_key": digest(kind, subject, _normalised(words)),
        "kind_key": digest(kind),
        "kind": None if kind is None else to_column(kind),
        "subject": None if subject is None else to_column(subject),
        "text": to_column(words),
    }


def _source(source: dict[str, Any] | None) -> dict[str, Any]:
    column, _ = dump_json("source", source or {})
    session = (source or {}).get("session")
    return {"source": column, "source_key": digest(session) if isinstance(session, str) else None}


def _merged(old: Any, new: dict[str, Any], anew: bool) -> dict[str, Any]:
    """The columns of a fact that is said again, or written over under its id."""
    merged: dict[str, Any] = {"times": 1}
    if not anew and _normalised(from_column(old.text)) == _normalised(from_column(new["text"])):
        merged = {
            "times": old.times + 1,
            "text": old.text,
            "private": max(old.private, new["private"]),
            "core": max(old.core, new["core"]),
        }
        merged |= _source(load_json(old.source))
    after = {**new, **merged}
    same = all(
        getattr(old, name) == after[name]
        for name in ("text", "kind", "subject", "private", "core", "expires_at", "superseded_by")
    )
    return merged | {
        "indexed": old.indexed if same else 0,
        "revision": old.revision if same else old.revision + 1,
    }


def _find(connection: Connection, owner_key: bytes, fact_id: str) -> Any:
    return connection.execute(_BY_ID, {"owner_key": owner_key, "fact_key": digest(fact_id)}).first()


def _free_id(connection: Connection, owner_key: bytes, words: str) -> str:
    usual = "f" + hashlib.md5(words.encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:12]
    return usual if _find(connection, owner_key, usual) is None else "f" + uuid.uuid4().hex


def _facts(rows: Iterable[Any]) -> list[Fact]:
    return [_fact(row) for row in rows]


def _fact(row: Any) -> Fact:
    def optional(column: str | None) -> str | None:
        return None if column is None else from_column(column)

    return Fact(
        row=row.id,
        owner=from_column(row.owner),
        id=from_column(row.fact_id),
        text=from_column(row.text),
        kind=optional(row.kind),
        subject=optional(row.subject),
        private=bool(row.private),
        core=bool(row.core),
        source=load_json(row.source),
        noted_at=from_moment(row.noted_at),
        expires_at=None if row.expires_at is None else from_moment(row.expires_at),
        superseded_by=optional(row.superseded_by),
        superseded_at=None if row.superseded_at is None else from_moment(row.superseded_at),
        count=row.times,
        indexed=bool(row.indexed),
        revision=row.revision,
    )
