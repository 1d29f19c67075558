"""Who a run is of: the one place that decides it.

A run names its user and its conversation by ``user_id`` and ``session_id`` (else ``thread_id``), in
``config["configurable"]`` or in what LangGraph and create_agent take as ``context=``: a dict, a dataclass, a
pydantic model or any object with these names. Once each: two places that disagree are refused. So is a run
that names somebody where nobody reads it (a misspelt key, metadata alone, a keyword of ``invoke``), because
it would read and write the words of those who name nobody.

Ids are text, any text. Whole numbers and UUIDs are taken as theirs, so 7 and "7" are one user; anything else
is refused. Empty text and None name nobody.
"""

from __future__ import annotations

import dataclasses
import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any
from uuid import UUID

from langchain_core.runnables.config import CONFIG_KEYS, var_child_runnable_config

from lc_memory.errors import MemoryInputError
from lc_memory.store import SessionKey

DEFAULT_SESSION = "default"
UNNAMED = SessionKey(DEFAULT_SESSION)

_RUNTIME = (
    "__pregel_runtime"  # where LangGraph keeps a run's context; it has no other way to a plain Runnable
)
_READ = frozenset({"user_id", "session_id", "thread_id"})
NOTHING: Mapping[str, Any] = {}

# Keys as people write them, in small letters and without - _ . and blanks, under the key that is read.
_SPELLINGS = {
    "user_id": "userid xuserid usrid userids iduser",
    "session_id": "sessionid xsessionid sessionids sessid idsession",
    "thread_id": "threadid xthreadid threadids idthread",
}
"""The key itself, written otherwise."""
_SYNONYMS = {
    "user_id": "user uid usr enduser enduserid useruuid userkey currentuser currentuserid langfuseuserid "
    "用户 用户id 用户编号",
    "session_id": "session sid sessionkey sessionname sessionuuid conversation conversationid "
    "conversationkey convid convoid chat chatid chatsession chatsessionid chatsessionkey dialog dialogid "
    "dialogue dialogueid thread threadkey threadname threaduuid langfusesessionid "
    "会话 会话id 会话编号 对话 对话id",
}
"""Other words of the field for it. They may be a program's own where the key that is read is there, too."""
_HINTS = {
    "user_id": "username login loginid account accountid customer customerid member memberid ownerid owner "
    "personid profileid email useremail langgraphauthuserid tenant tenantid 用户名 账号 手机号",
}
"""What may tell users apart. It is a program's own where a run names anybody at all."""
_TRACED = frozenset({"conversationid", "langfuseuserid", "langfusesessionid"})
"""Synonyms that metadata carries to say whose a trace is."""


def _table(words: Mapping[str, str]) -> dict[str, str]:
    return {word: key for key, some in words.items() for word in some.split()}


_MEANT = {
    **{word: (key, "spelling") for word, key in _table(_SPELLINGS).items()},
    **{word: (key, "synonym") for word, key in _table(_SYNONYMS).items()},
    **{word: (key, "hint") for word, key in _table(_HINTS).items()},
}


def session_key(
    config: Mapping[str, Any] | None,
    kwargs: Mapping[str, Any] = NOTHING,
    given: Any = None,
) -> SessionKey:
    """The session that a run is of.

    ``config``: the run's; None, or one without ``configurable``, is that of the run under way, if any.
    ``kwargs``: what ``invoke`` was called with beside it; ``context`` is read. ``given``: the run's input.
    MemoryInputError: an id that is none, two places that disagree, a name in a place that is not read.
    """
    configurable, metadata = _of(config)
    context = kwargs.get("context")
    if context is None:
        context = getattr(configurable.get(_RUNTIME), "context", None)
    user = _id(configurable.get("user_id"), "configurable['user_id']")
    session = _id(configurable.get("session_id"), "configurable['session_id']")
    thread = _id(configurable.get("thread_id"), "configurable['thread_id']")
    if context is not None:
        user = _agreed("user_id", user, context)
        session = _agreed("session_id", session, context)
        thread = _agreed("thread_id", thread, context)
    named = {"user_id": user, "session_id": session, "thread_id": thread}
    _check("configurable", configurable.items(), named)
    if context is not None:
        _check("context", _fields(context), named)
    if kwargs:
        for name, value in kwargs.items():
            key = _same_key(name)
            if key is not None and _says(value) and _text(value) != named[key]:
                raise _misplaced("the call has the keyword", name, key)
    if user is session is thread is None:
        _check_others(metadata, given)
        _check_within("configurable", configurable.items())
        if context is not None:
            _check_bare(context)
            _check_within("context", _fields(context))
        return UNNAMED
    return SessionKey(session or thread or DEFAULT_SESSION, user)


def named(session_id: Any, user_id: Any) -> SessionKey:
    """The session that a chain means by these: empty text is no name there either, and 7 is "7"."""
    return SessionKey(_id(session_id, "session_id") or DEFAULT_SESSION, _id(user_id, "user_id"))


def identified(config: Any, key: SessionKey) -> Any:
    """``config`` with ``key`` in its configurable, so that all that runs under it is of the same session."""
    configurable = {**(config.get("configurable") or {}), "session_id": key.session_id}
    if key.user_id is not None:
        configurable["user_id"] = key.user_id
    return {**config, "configurable": configurable}


# ---------------------------------------------------------------- where it stands


def _of(config: Mapping[str, Any] | None) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The configurable and the metadata of a config, as LangChain reads one: what is neither configurable nor
    one of its own keys is configurable, too."""
    if config is not None and not isinstance(config, Mapping):
        raise MemoryInputError(
            f'expected a config like {{"configurable": {{"session_id": …}}}}, got {type(config).__name__} '
            f"{config!r:.80}"
        )
    given = config or NOTHING
    configurable = given.get("configurable")
    if configurable is None:
        around = var_child_runnable_config.get() or {}
        configurable = around.get("configurable") or {}
        given = {"metadata": around.get("metadata"), **given}
    flat = {k: v for k, v in given.items() if k not in _CONFIG_KEYS}
    return ({**configurable, **flat} if flat else configurable), given.get("metadata") or NOTHING


_CONFIG_KEYS = frozenset(CONFIG_KEYS)


def _agreed(key: str, told: str | None, context: Any) -> str | None:
    """The id under ``key`` of a configurable that says ``told``, and of ``context``."""
    value = context.get(key) if isinstance(context, Mapping) else getattr(context, key, None)
    also = _id(value, f"{key} of the context")
    if told is not None and also is not None and told != also:
        raise MemoryInputError(
            f"configurable has {key}={told!r} and the context has {key}={also!r}: name it in one of them"
        )
    return also if told is None else told


def _fields(context: Any) -> Iterable[tuple[str, Any]]:
    """What a context holds, by name. Properties are not asked: they may cost something."""
    if isinstance(context, Mapping):
        return ((k, v) for k, v in context.items() if isinstance(k, str))
    names: Iterable[str] = (
        getattr(context, "_fields", None) or getattr(type(context), "model_fields", None) or ()
    )
    if dataclasses.is_dataclass(context):
        names = [field.name for field in dataclasses.fields(context)]
    held = {**{name: getattr(context, name, None) for name in names}, **getattr(context, "__dict__", {})}
    return held.items()


# ---------------------------------------------------------------- names in other places


def _check(place: str, held: Iterable[tuple[str, Any]], named: Mapping[str, str | None]) -> None:
    """MemoryInputError where ``place`` says who it is under a key that nobody reads."""
    for name, value in held:
        if name in _READ or name.startswith("__") or (meant := _meant(name)) is None:
            continue
        key, how = meant
        if how == "spelling":
            missed = _says(value) and _text(value) != named[key]
        elif how == "slip":
            missed = named[key] is None and _is_id(value)
        elif how == "synonym" and key == "user_id":
            missed = named[key] is None and _says(value)
        elif how == "synonym":  # a database session is no name of one
            missed = named["session_id"] is named["thread_id"] is None and _is_id(value)
        else:
            missed = not any(named.values()) and _says(value)
        if missed:
            raise _misplaced(f"{place} has", name, key)


def _check_others(metadata: Mapping[str, Any], given: Any) -> None:
    """The same for a run that names nobody: there even what lies beside it must not name anybody."""
    for name, value in metadata.items():
        if _says(value) and (key := _same_key(name, _TRACED)) is not None:
            raise _misplaced("only metadata has", name, key)
    if isinstance(given, Mapping):
        for name, value in given.items():
            if isinstance(name, str) and _is_id(value) and (key := _same_key(name)) is not None:
                raise _misplaced("only the input has", name, key)


def _check_within(place: str, held: Iterable[tuple[str, Any]]) -> None:
    """The same one level down: ``{"configuarble": {"user_id": …}}``, or a context with it in its ``auth``."""
    for name, value in held:
        if name.startswith("__"):
            continue
        within = value if isinstance(value, Mapping) else getattr(value, "__dict__", NOTHING)
        for key in _READ:
            if _is_id(found := within.get(key)) and _says(found):
                raise _misplaced(f"{place} has, in {name!r},", key, key)


def _check_bare(context: Any) -> None:
    if _is_id(context) and _says(context):
        raise MemoryInputError(
            f"the context is {type(context).__name__} {context!r:.80}, which is not read, so this run would "
            "be filed under nobody's name. Call it with a context that has user_id, such as "
            '{"user_id": …}'
        )


def _same_key(name: str, others: frozenset[str] = frozenset()) -> str | None:
    """The key that ``name`` is, however it is written, or one of ``others`` is."""
    if name in _READ:
        return name
    meant = _meant(name)
    if meant is None or (meant[1] not in ("spelling", "slip") and _plain(name) not in others):
        return None
    return meant[0]


@lru_cache(1024)
def _meant(name: str) -> tuple[str, str] | None:
    plain = _plain(name)
    return _MEANT.get(plain) or next(
        ((key, "slip") for key in sorted(_READ) if _is_slip(plain, _plain(key))), None
    )


def _plain(name: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKC", name).casefold() if c not in "-_. ")


def _is_slip(typed: str, meant: str) -> bool:
    """One letter too many, too few or wrong, or two in each other's place."""
    while typed and meant and typed[0] == meant[0]:
        typed, meant = typed[1:], meant[1:]
    while typed and meant and typed[-1] == meant[-1]:
        typed, meant = typed[:-1], meant[:-1]
    return max(len(typed), len(meant)) < 2 or (len(typed) == 2 and typed == meant[::-1])


def _misplaced(where: str, name: str, key: str) -> MemoryInputError:
    return MemoryInputError(
        f"{where} {name!r}, which is not read, so this run would be filed under nobody's name. Call it with "
        f'{{"configurable": {{"{key}": …}}}}, or with a context that has {key}'
    )


# ---------------------------------------------------------------- what an id is


def _id(value: Any, where: str) -> str | None:
    if value is None:
        return None
    if not _is_id(value):
        raise MemoryInputError(
            f"{where}: expected text, got {type(value).__name__} {value!r:.80}; write str(…) of what names it"
        )
    return _text(value) or None


def _is_id(value: Any) -> bool:
    return isinstance(value, (str, int, UUID)) and not isinstance(value, bool)


def _text(value: Any) -> str | None:
    """The id as text: of an enum of texts its value, as the text itself would be written."""
    if type(value) is str:
        return value
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__repr__(value)
    return str(value) if isinstance(value, UUID) else None


def _says(value: Any) -> bool:
    return value is not None and value != ""
