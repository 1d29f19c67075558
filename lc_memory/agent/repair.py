"""Small mistakes in the arguments of a tool call, put right where only one thing can have been meant.

First names: another word for the same thing (``ALIASES``), another spelling (``userName`` for ``user_name``),
or the one name left over for the one argument that is missing. Then values: a number written as text, a
text that is a number, an object written as a text of JSON. What is wrong after that stays wrong, and
:func:`flaw` says what, for the model and for the caller; nothing is dropped or made up.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

ALIASES: Mapping[str, str] = {
    "user_fact": "fact",
    "preference": "fact",
    "question": "query",
    "keyword": "query",
    "city": "place",
    "location": "place",
    "lat": "latitude",
    "lon": "longitude",
    "lng": "longitude",
    "expression": "expr",
}
"""Words models use for an argument, and the word the tools here use. A tool that has both is left alone."""


def repair(
    args: Mapping[str, Any], parameters: Mapping[str, Any], aliases: Mapping[str, str] = ALIASES
) -> dict[str, Any]:
    """``args`` as the JSON schema ``parameters`` (an object's) wants them, as far as that is plain.

    Not touched: an argument whose name is known, where its value fits. The order stays.
    """
    known: Mapping[str, Any] = parameters.get("properties") or {}
    names = {name: _name(name, args, known, aliases) for name in args}
    missing = [n for n in parameters.get("required") or () if n not in names.values()]
    strangers = [n for n in args if names[n] not in known]
    if len(missing) == len(strangers) == 1 and _fits(args[strangers[0]], known.get(missing[0], {})):
        names[strangers[0]] = missing[0]
    return {names[n]: _value(value, known.get(names[n], {})) for n, value in args.items()}


def flaw(args: Mapping[str, Any], parameters: Mapping[str, Any]) -> str | None:
    """What no tool with these parameters should be run with: a name that it does not know (most tools
    would leave it out without a word), or a missing one. None: nothing."""
    known: Mapping[str, Any] = parameters.get("properties") or {}
    unknown = [] if parameters.get("additionalProperties") else [n for n in args if n not in known]
    missing = [n for n in parameters.get("required") or () if n not in args]
    said = [f"there is no argument {n!r}" for n in unknown]
    said += [f"the argument {n!r} is missing" for n in missing]
    return f"{'; '.join(said)}. Its arguments: {', '.join(known) or 'none'}" if said else None


def _name(name: str, args: Mapping[str, Any], known: Mapping[str, Any], aliases: Mapping[str, str]) -> str:
    if name in known:
        return name
    alias = aliases.get(name)
    if alias is not None and alias in known and alias not in args:
        return alias
    alike = [k for k in known if _letters(k) == _letters(name) and k not in args]
    return alike[0] if len(alike) == 1 else name


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _types(schema: Mapping[str, Any]) -> set[str]:
    """The JSON types a schema allows; empty: it does not say."""
    kind = schema.get("type")
    types = {kind} if isinstance(kind, str) else set(kind or ())
    for sub in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        types |= _types(sub)
    return types


def _type(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, (int, float)):
        return "integer" if isinstance(value, int) else "number"
    if isinstance(value, (str, list, dict)):
        return "string" if isinstance(value, str) else "array" if isinstance(value, list) else "object"
    return "null"


def _fits(value: Any, schema: Mapping[str, Any]) -> bool:
    allowed = _types(schema)
    kind = _type(_value(value, schema))
    return not allowed or kind in allowed or (kind == "integer" and "number" in allowed)


def _value(value: Any, schema: Mapping[str, Any]) -> Any:
    allowed = _types(schema)
    kind = _type(value)
    if not allowed or kind in allowed or (kind == "integer" and "number" in allowed):
        return value
    if kind in ("integer", "number") and "string" in allowed:
        return str(value)
    if kind == "string":
        try:
            read = json.loads(value.strip())
        except (ValueError, RecursionError):
            return value
        kind = _type(read)
        if kind in allowed or (kind == "integer" and "number" in allowed):
            return read
    return value


__all__ = ["ALIASES", "flaw", "repair"]
