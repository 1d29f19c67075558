"""Bringing one message's content into line with a service's profile."""

from __future__ import annotations

from functools import lru_cache
from logging import getLogger
from typing import Any

from lc_memory.messages import Message, in_words

from .profiles import Profile

_PART_EXTRAS = ("prompt_cache_breakpoint",)  # which ChatOpenAI knows
_TEXT = frozenset({"text"})
_logger = getLogger("lc_memory")


def with_sendable_content(message: Message, profile: Profile) -> Message | None:
    """None for a message that says nothing, where the service refuses one."""
    role, content = message["role"], message.get("content")
    if isinstance(content, list) and profile.parts is not None:
        allowed = profile.parts if role == "user" else _TEXT
        parts = [_sendable_part(p, allowed, profile.name) for p in content]
        if profile.bare_call == "omit":
            parts = [p for p in parts if p.get("text") != ""]
        if parts != content:
            message = {**message, "content": parts}
            content = parts
    if content or profile.bare_call is None:
        return message
    if not message.get("tool_calls"):
        if role == "assistant" and profile.bare_call == "omit":
            return None
        return message if content == "" else {**message, "content": ""}
    if profile.bare_call == "omit":
        return {k: v for k, v in message.items() if k != "content"}
    return message if content is None and "content" in message else {**message, "content": None}


def _sendable_part(part: Any, allowed: frozenset[str], service: str) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = part.get("type") if isinstance(part, dict) else None
    body = part.get(kind) if isinstance(part, dict) and isinstance(kind, str) else None
    if kind == "text":
        body = body if isinstance(body, str) else ""
    elif kind in ("image_url", "video_url") and isinstance(body, str):
        body = {"url": body}
    if kind == "text" or (kind in allowed and isinstance(body, dict)):
        extra = {k: part[k] for k in _PART_EXTRAS if part.get(k) is not None}
        return {"type": kind, kind: body, **extra}
    _say_left_out(str(kind), service)
    return {"type": "text", "text": in_words(part)}


@lru_cache(maxsize=256)  # said once for each kind and service, not with every request
def _say_left_out(kind: str, service: str) -> None:
    _logger.warning(
        "a content part of type %r cannot be sent to %s here; a line of text that names it goes instead",
        kind,
        service,
    )
