"""Where a service is, for people."""

from __future__ import annotations


def without_login(url: str) -> str:
    """A URL for people: without a user and password in it, or what its query holds."""
    scheme, mark, rest = url.rpartition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme}{mark}{host.rpartition('@')[2]}{slash}{path.partition('?')[0]}"
