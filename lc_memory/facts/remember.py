"""``记住:…`` and ``remember: …``: what a user wants kept is kept at once, without a model being asked."""

from __future__ import annotations

import re

_PREFIX = re.compile(
    r"(?:请|麻烦)?(?:你)?(?:帮我)?记住(?:一下)?\s*[:：,，]"
    r"|(?:please )?remember\s*[:：]|please remember that\s",
    re.IGNORECASE,
)


def said_to_remember(text: str) -> str | None:
    """The fact in a message that starts with ``记住:`` or ``remember:``, else None. A question is none."""
    text = text.strip()
    found = _PREFIX.match(text)
    fact = text[found.end() :].lstrip() if found else ""
    return None if not fact or fact.endswith(("?", "？")) else fact
