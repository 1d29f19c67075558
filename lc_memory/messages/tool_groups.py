"""Tool groups: what of a list of messages stays whole or goes whole.

A *group* is an assistant message with tool calls together with the results of all of them, or any other
single message. Chat services refuse a request in which a call is not answered, or an answer has no call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .convert import Message
from .speech import answered_id, call_id, is_call, is_result, is_thought

Group: TypeAlias = list[Message]
_PLAIN = frozenset({"user", "assistant", "system"})
Missing: TypeAlias = Counter[str] | None  # results a group still waits for; None: it can't be answered


def valid_groups(messages: Sequence[Message]) -> list[Message]:
    """``messages`` as a chat service accepts them: each tool call directly followed by its results.

    A result further down is moved up to its call. A result without a call is left out, and so is a call
    that is not answered in full, wherever in a message it stands (``tool_calls``, a part of the content,
    ``function_call``); the words an assistant said beside such a call stay. The pass is idempotent, leaves
    the dicts it is given untouched and returns those it does not change as they are.
    """
    if all(_is_plain(m) for m in messages):
        return list(messages)
    return [message for group in groups(messages) for message in group]


def groups(messages: Sequence[Message]) -> list[Group]:
    """``valid_groups`` before it is made flat again: the units in which a window may be cut."""
    out: list[tuple[Group, Missing]] = []
    for message in messages:
        role = _role(message)
        if role == "tool":
            _give(message, [_text_id(message.get("tool_call_id"))], out)
        elif role == "function" and any(m and f"{_LEGACY}{message.get('name')}" in m for _, m in out):
            _give(message, [f"{_LEGACY}{message.get('name')}"], out)
        elif role == "assistant":
            out.append(([message], _call_ids(message)))
        elif results := _parts(message, is_result):
            if not _give(message, [_text_id(answered_id(part)) for part in results], out):
                rest = without_calls(message)
                out += [([rest], Counter())] if rest.get("content") else []
        else:
            out.append(([message], Counter()))
    return [kept for group, missing in out if (kept := _answered(group, missing))]


_LEGACY = "function_call: "  # before the name by which a function_call of 2023 is answered


def _is_plain(message: Message) -> bool:
    """Certainly neither a call nor a result. A window mostly holds nothing else."""
    if type(message) is not dict or "tool_calls" in message or "function_call" in message:
        return False
    role = message.get("role")
    return type(role) is str and role in _PLAIN and type(message.get("content")) is str


def _role(message: Message) -> str:
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str):
        return "user"
    role = role.strip().lower()
    return "assistant" if role == "ai" else role


def _parts(message: Message, wanted: Callable[[Any], bool]) -> list[Any]:
    content = message.get("content") if isinstance(message, dict) else None
    return [part for part in content if wanted(part)] if isinstance(content, list) else []


def _text_id(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _call_ids(message: Message) -> Missing:
    """How many results each id waits for; None where a call has no id, and so can't be answered."""
    calls = message.get("tool_calls")
    if not calls:
        legacy = message.get("function_call")
        if isinstance(legacy, dict) and legacy.get("name"):
            return Counter([f"{_LEGACY}{legacy['name']}"])
        here = {answered_id(part) for part in _parts(message, is_result)}
        ids = [i for i in map(call_id, _parts(message, is_call)) if i not in here]
    elif isinstance(calls, list):
        ids = [c.get("id") if isinstance(c, dict) else None for c in calls]
    else:
        return None
    named = [i for i in ids if isinstance(i, str) and i]
    return Counter(named) if len(named) == len(ids) else None


def _give(result: Message, ids: Sequence[str], out: list[tuple[Group, Missing]]) -> bool:
    """Put a result behind the newest call that waits for it; one that nobody waits for is dropped."""
    for group, missing in reversed(out):
        if missing and (found := [i for i in ids if missing[i] > 0]):
            missing.subtract(found)
            group.append(result)
            return True
    return False


def _answered(group: Group, missing: Missing) -> Group:
    call, results = group[0], group[1:]
    if missing is not None and not any(missing.values()):
        stale = _parts(call, is_call) and _without_stale(call, _known(call, results))
        return group if not stale or stale is call else [stale, *results]
    # Not answered in full: the calls go, what was said beside them stays.
    left = [without_calls(m) for m in group if m is call or _role(m) not in ("tool", "function")]
    return [m for m in left if m.get("content")]


def _known(call: Message, results: Sequence[Message]) -> set[str | None]:
    """The ids of the calls of a message that are answered."""
    ids = {c.get("id") for c in call.get("tool_calls") or () if isinstance(c, dict)}
    ids |= {answered_id(part) for m in (call, *results) for part in _parts(m, is_result)}
    return (ids | {m.get("tool_call_id") for m in results}) - {None}


def _without_stale(message: Message, known: set[str | None]) -> Message:
    """The message without parts that call what is no call of it any more."""
    content = message["content"]
    kept = [p for p in content if not is_call(p) or call_id(p) in known]
    return message if len(kept) == len(content) else {**message, "content": kept}


_CALL_KEYS = frozenset({"tool_calls", "function_call", "tool_outputs", "reasoning"})


def without_calls(message: Message) -> Message:
    """What was said beside the calls of a message (or beside its results). What was thought on the way to a
    call goes with it: a service takes the one only with the other."""
    out = {k: v for k, v in message.items() if k not in _CALL_KEYS}
    nested = out.get("additional_kwargs")
    if isinstance(nested, dict):  # ChatOpenAI reads calls there, too
        out["additional_kwargs"] = {k: v for k, v in nested.items() if k not in _CALL_KEYS}
    if isinstance(out.get("content"), list):
        dropped = {call_id(p) for p in _parts(message, is_call)}
        out["content"] = [
            p for p in out["content"] if not (is_call(p) or is_result(p) or (dropped and is_thought(p)))
        ]
    return out
