"""``记住:…`` and ``remember: …``: what a user wants kept is kept at once, without a model being asked."""

from __future__ import annotations

import re

_PREFIX = re.compile(r"\s*(?:请?记住|remember)\s*[:：]\s*(?P<fact>\S.*)", re.IGNORECASE | re.DOTALL)


def said_to_remember(text: str) -> str | None:
    """The fact in a message that starts with ``记住:`` or ``remember:``, else None."""
    found = _PREFIX.match(text)
    return found["fact"].strip() if found else None
