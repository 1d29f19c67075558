"""What cannot be indexed does not stop what can: it is tried three times, and then set aside.

An attempt is written down before it is made and struck out when it has worked, so one that took the whole
process with it counts as well. What failed once, or was under way when a process died, is tried by itself
from then on. What is set aside stands in the store and in the conversation as before; it is not recalled
until a reindex takes it in, and ``health()`` tells of it. An outage of the store or of the index is nobody's
fault and does not count.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from sqlalchemy import bindparam, text

from lc_memory.errors import LCMemoryError
from lc_memory.store import Database

log = logging.getLogger("lc_memory")

MOST = 3
"""Attempts after which an item is set aside."""

T = TypeVar("T")

_OF = text("SELECT item, revision, tries FROM lcm_attempts WHERE item IN :items").bindparams(
    bindparam("items", expanding=True)
)
_BEGIN = text(
    "INSERT INTO lcm_attempts (item, revision, tries) VALUES (:item, :revision, 1)"
    " ON CONFLICT (item) DO UPDATE SET revision = excluded.revision, tries ="
    " CASE WHEN lcm_attempts.revision = excluded.revision THEN lcm_attempts.tries + 1 ELSE 1 END"
)
_UNDO = text("UPDATE lcm_attempts SET tries = tries - 1 WHERE item = :item AND tries > 0")
_DONE = text("DELETE FROM lcm_attempts WHERE item IN :items").bindparams(bindparam("items", expanding=True))
_ASIDE = text("SELECT item FROM lcm_attempts WHERE tries >= :most")


class Attempts:
    """The attempts to index of one store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def made(
        self,
        things: Sequence[T],
        known_as: Callable[[T], tuple[str, int]],
        work: Callable[[Sequence[T]], None],
        leave: Callable[[T], object],
    ) -> None:
        """``work`` on all things: at once, or one by one where that fails or failed before.

        ``known_as``: a thing's item and revision; a new revision is a new thing. ``leave`` is called for one
        that is set aside. Raises LCMemoryError where the store or the index is out of reach.
        """
        named = [(thing, *known_as(thing)) for thing in things]
        tried = self._tried([(item, revision) for _, item, revision in named])
        if not any(tried.values()):
            try:
                self._attempt(things, [(item, revision) for _, item, revision in named], work)
                return
            except LCMemoryError:
                raise
            except Exception as error:
                log.warning("one of %d memories cannot be indexed (%s)", len(named), type(error).__name__)
                tried = {item: 1 for _, item, _ in named}
        for thing, item, revision in named:
            for _ in range(tried[item], MOST):
                try:
                    self._attempt([thing], [(item, revision)], work)
                    break
                except LCMemoryError:
                    raise
                except Exception as error:
                    log.warning("the memory %s cannot be indexed (%s)", item, type(error).__name__)
            else:
                log.warning("the memory %s is set aside: lc-memory reindex tries it again", item)
                leave(thing)

    def again(self, items: Iterable[str]) -> None:
        """They are to be tried again."""
        self._forget(list(items))

    def aside(self) -> list[str]:
        """The items that are set aside."""
        with self._database.read() as connection:
            return list(connection.execute(_ASIDE, {"most": MOST}).scalars())

    def _tried(self, items: Sequence[tuple[str, int]]) -> dict[str, int]:
        with self._database.read() as connection:
            rows = connection.execute(_OF, {"items": [item for item, _ in items]}).all()
        found = {(row.item, row.revision): row.tries for row in rows}
        return {item: found.get((item, revision), 0) for item, revision in items}

    def _attempt(
        self, things: Sequence[T], items: Sequence[tuple[str, int]], work: Callable[[Sequence[T]], None]
    ) -> None:
        with self._database.write() as connection:
            connection.execute(_BEGIN, [{"item": item, "revision": revision} for item, revision in items])
        try:
            work(things)
        except LCMemoryError:
            with contextlib.suppress(LCMemoryError), self._database.write() as connection:
                connection.execute(_UNDO, [{"item": item} for item, _ in items])
            raise
        self._forget([item for item, _ in items])

    def _forget(self, items: Sequence[str]) -> None:
        if items:
            with self._database.write() as connection:
                connection.execute(_DONE, {"items": list(items)})


__all__ = ["MOST", "Attempts"]
