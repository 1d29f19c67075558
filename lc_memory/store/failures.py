"""What a database error means, and what to do about it.

The databases report a full disk, a lost server or a file that is no database each in its own words, many
of them under one exception class. Here they become one :class:`~lc_memory.errors.StoreError` whose message
names the store, says which it is, and tells the way out; the original stays its cause.
"""

from __future__ import annotations

from lc_memory.errors import StoreError

_SQLITE = (
    (
        ("database or disk is full",),
        "the disk is full. Nothing of this call was stored; free some space and call again",
    ),
    (
        ("file is not a database", "malformed", "file is encrypted", "unsupported file format"),
        "the file is damaged or not a database of lc-memory. Restore it from a backup, or move it away to "
        "begin with an empty store",
    ),
    (
        ("no such table: lcm_",),
        "the file has lost its content while it was open. Restore it from a backup, or move it away to "
        "begin with an empty store",
    ),
    (
        ("readonly database", "read-only"),
        "the file or its folder cannot be written by this user. Give it write permission, or choose another "
        "folder",
    ),
    (
        ("database is locked", "database table is locked", "locking protocol"),
        "another process kept it locked for longer than the timeout. End that process's write (an open "
        "sqlite3 shell, a backup), or open the store with a larger timeout",
    ),
    (
        ("unable to open database file",),
        "the file cannot be opened. If it was deleted or moved, put it back or open the store anew; else "
        "check the permissions of the folder (SQLite must create files next to it)",
    ),
    (
        ("disk i/o error",),
        "the disk reported an error (or is full). Check the disk's space and health, then call again",
    ),
)

_POSTGRES = (
    (
        ("53100",),
        "the database server's disk is full. Nothing of this call was stored; free some space there",
    ),
    (("53300",), "the server takes no more connections. Raise its max_connections, or run fewer processes"),
    (("28",), "the server refused the login. Check the user and the password in the URL"),
    (("3D000",), "there is no database of that name. Create it first: createdb NAME"),
    (("42501",), "the user may not do this. Grant it CREATE and USAGE on the schema, and use of its tables"),
    (("25006",), "the server is read-only (a standby?). Use the URL of the primary"),
    (
        ("55P03", "57014", "40P01"),
        "another transaction kept rows locked for longer than the timeout. Call again, or open the store "
        "with a larger timeout",
    ),
    (
        ("57P", "08"),
        "the server went away. What was acknowledged is stored; call again when it is back",
    ),
)

_REFUSED = (  # what a refused login says; psycopg gives no code for it
    ("too many", "53300"),
    ("remaining connection slots", "53300"),
    ("authentication", "28"),
    ("password", "28"),
    ("role", "28"),
    ("does not exist", "3D000"),
)

_LOST = ("OperationalError", "InterfaceError")  # of psycopg, with no code of the server's

_UNREACHABLE = (
    "the server cannot be reached, or the connection broke. Check that it runs and that the URL is right; "
    "what was acknowledged is stored, and the store reconnects by itself"
)


def explain(error: BaseException, name: str) -> StoreError:
    """The :class:`StoreError` for an error that SQLAlchemy or a driver raised; ``raise`` it ``from`` that."""
    original = getattr(error, "orig", None) or error
    return StoreError(
        f"{name}: {_advice(error, original)}. ({type(original).__name__}: {_first_line(original)})"
    )


def locked(name: str, seconds: float) -> StoreError:
    """Other threads or processes wrote for longer than the timeout."""
    return StoreError(
        f"{name}: other writers kept the store busy for {seconds:g} s. Call again, or open it with a larger "
        "timeout"
    )


def is_lasting(error: BaseException) -> bool:
    """Whether connections may hold on to what failed, so that they should be opened anew."""
    return "locked" not in str(getattr(error, "orig", None) or error)


def _advice(error: BaseException, original: BaseException) -> str:
    said = str(original).lower()
    if type(original).__module__.startswith("sqlite3"):
        for signs, advice in _SQLITE:
            if any(sign in said for sign in signs):
                return advice
    elif type(original).__module__.startswith("psycopg"):
        state = getattr(original, "sqlstate", None) or next(
            (state for sign, state in _REFUSED if "fatal:" in said and sign in said), ""
        )
        for signs, advice in _POSTGRES:
            if any(state.startswith(sign) for sign in signs):
                return advice
        if not state and any(kind.__name__ in _LOST for kind in type(original).__mro__):
            return _UNREACHABLE
    elif type(error).__name__ == "TimeoutError":
        return (
            "all connections were in use for longer than the timeout. Call again, or open the store with a "
            "larger timeout"
        )
    return "the database refused the call"


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or "no message").splitlines()[0]
