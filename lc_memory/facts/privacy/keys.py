"""Keys and tokens: by how their issuers write them, or by a name in front of something random."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from .reading import Span
from .told import told

_PEM = r"PRIVATE KEY(?: BLOCK)?-----"
_ISSUED = re.compile(
    r"\bgh[opsur]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_\-]{30,}|\bxox[abeprs]-[A-Za-z0-9\-]{10,}"
    r"|\bglpat-[A-Za-z0-9_\-]{16,}|\bhf_[A-Za-z0-9]{20,}|\bLTAI[A-Za-z0-9]{12,}|\bAKID[A-Za-z0-9]{13,}"
    r"|\b(?:npm_|pypi-|whsec_)[A-Za-z0-9_\-.]{20,}|\bSG\.[\w\-]{16,}\.[\w\-]{16,}|\b\d{8,10}:AA[\w\-]{30,}"
    r"|(?<![\w\-])eyJ[\w\-]{8,}\.[\w\-]{8,}(?:\.[\w\-]*)?"
    r"|hooks\.slack\.com/services/[\w/]{16,}|\bdiscord(?:app)?\.com/api/webhooks/\d{8,}/[\w\-]{16,}"
    r"|\bs ?k ?[\-_] (?:[A-Za-z0-9] ){15,}[A-Za-z0-9]\b"  # a letter at a time
    # Where the end was cut off, all lines that may be of the key.
    rf"|-----BEGIN [A-Z ]{{0,40}}{_PEM}(?:[\s\S]{{0,8000}}?-----END [A-Z ]{{0,40}}{_PEM}"
    r"|(?:(?:\s|\\[rn]){1,4}(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash): [^\n]{0,80}"
    r"|[A-Za-z0-9+/]{12,}={0,2}|[A-Za-z0-9+/]{1,11}={1,2}))*)",
    re.ASCII,
)
_PREFIXED = re.compile(r"\b[spr]k[\-_](?P<value>[A-Za-z0-9_\-]{16,})", re.ASCII)
_NAMED = re.compile(
    r"(?:api[ _-]?key|secret(?:[ _-]?key)?|access[ _-]?(?:key|token)|(?<![a-z])tokens?|\bbearer"
    r"|密钥|令牌|私钥|(?P<vague>(?<!primary )(?<!foreign )(?<!public )\bkey|\bbasic(?= )"
    r"|(?:j|php)?sess(?:ion)?[ _-]?id|\bsid|[?&][\w\-]{0,20}(?:key|sig|signature|ticket)))"
    # Ahead, as it may be the rest of a longer name: secret_access_key. No key has more characters.
    rf"(?P<told>{told()})(?=(?P<value>(?:0x)?[A-Za-z0-9+/_\-.~]{{8,1024}}={{0,2}}))",
    re.ASCII | re.IGNORECASE,
)
_IN_URL = re.compile(r"://(?P<value>[^\s/:@]{0,64}:(?!\d{1,5}[?#])(?P<password>[^\s/]{1,128}))@")
_PLACEHOLDER = re.compile(
    r"[<{$*\[]|(?:your.*|user|password|passwd|pass|pwd|token|secret|xxx+)$", re.IGNORECASE
)
_RUN = re.compile(r"[A-Za-z0-9]{16,}")
_HEX = re.compile(r"(?:0x)?[0-9a-f]{12,}", re.IGNORECASE)


def keys(text: str) -> Iterator[Span]:
    """Keys, tokens, and what opens the door in a URL."""
    for m in _ISSUED.finditer(text):
        yield "key", m.start(), m.end()
    for m in _PREFIXED.finditer(text):
        if _is_random(m["value"]) or any(_has_both(run) for run in _RUN.findall(m["value"])):
            yield "key", m.start(), m.end()
    for m in _NAMED.finditer(text):
        called = text[m.end("value") : m.end("value") + 1] == "("  # a function
        if called or (not m["told"] and m[0][0].isascii()):
            continue
        if len(m["value"]) >= (16 if m["vague"] else 8) and _is_random(m["value"]):
            yield "key", m.start("value"), m.end("value")
    for m in _IN_URL.finditer(text):
        if not _PLACEHOLDER.match(m["password"]):
            yield "password", m.start("value"), m.end("value")


def _has_both(value: str) -> bool:
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _is_random(value: str) -> bool:
    """Digits and letters in turns, as nobody names things: three changes between them, or hexadecimal."""
    if not _has_both(value):
        return False
    changes = sum(a.isdigit() != b.isdigit() for a, b in pairwise(value) if (a + b).isalnum())
    return changes >= 3 or _HEX.fullmatch(value.replace("-", "")) is not None
