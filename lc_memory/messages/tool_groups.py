"""Tool groups: what of a list of messages stays whole or goes whole.

A *group* is an assistant message with tool calls together with the results of all of them, or any other
single message. Chat services refuse a request in which a call is not answered, or an answer has no call.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from .convert import Message

Group: TypeAlias = list[Message]
_PLAIN = frozenset({"user", "assistant", "system"})
Missing: TypeAlias = Counter[str] | None  # results a group still waits for; None: it can't be answered


def valid_groups(messages: Sequence[Message]) -> list[Message]:
    """``messages`` as a chat service accepts them: each tool call directly followed by its results.

    A result further down is moved up to its call. A result without a call is left out, and so is a call
    that is not answered in full; the words an assistant said beside such a call stay. The pass is
    idempotent, leaves the dicts it is given untouched and returns those it does not change as they are.
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
            _give(message, out)
        elif role == "assistant" and message.get("tool_calls"):
            out.append(([message], _call_ids(message)))
        else:
            out.append(([message], Counter()))
    return [kept for group, missing in out if (kept := _answered(group, missing))]


def _is_plain(message: Message) -> bool:
    """Certainly neither a call nor a result. A window mostly holds nothing else."""
    if type(message) is not dict or "tool_calls" in message:
        return False
    role = message.get("role")
    return type(role) is str and role in _PLAIN


def _role(message: Message) -> str:
    role = message.get("role") if isinstance(message, dict) else None
    if not isinstance(role, str):
        return "user"
    role = role.strip().lower()
    return "assistant" if role == "ai" else role


def _call_ids(message: Message) -> Missing:
    """How many results each id waits for; None where a call has no id, and so can't be answered."""
    calls = message["tool_calls"]
    ids = [c.get("id") if isinstance(c, dict) else None for c in calls] if isinstance(calls, list) else []
    named = [i for i in ids if isinstance(i, str) and i]
    return Counter(named) if named and len(named) == len(ids) else None


def _give(result: Message, out: list[tuple[Group, Missing]]) -> None:
    """Put a result behind the newest call that waits for it; one that nobody waits for is dropped."""
    call_id = result.get("tool_call_id")
    if not isinstance(call_id, str):
        return
    for group, missing in reversed(out):
        if missing and missing[call_id] > 0:
            missing[call_id] -= 1
            group.append(result)
            return


def _answered(group: Group, missing: Missing) -> Group:
    if missing is not None and not any(missing.values()):
        return group
    # Not answered in full: the calls go, what was said beside them stays.
    call = group[0]
    return [{k: v for k, v in call.items() if k != "tool_calls"}] if call.get("content") else []
