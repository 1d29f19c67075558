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
    r"|\b(?:npm_|pypi-|whsec_)[A-Za-z0-9_\-.]{20,}|\bSG\.[\w\-]{16,64}\.[\w\-]{16,}|\b\d{8,10}:AA[\w\-]{30,}"
    r"|(?<![\w\-])eyJ[\w\-]{8,}\.[\w\-]{8,}(?:\.[\w\-]*)?"
    r"|hooks\.slack\.com/services/[\w/]{16,}|\bdiscord(?:app)?\.com/api/webhooks/\d{8,24}/[\w\-]{16,}",
    re.ASCII,
)
_SPELT = re.compile(r"\bs ?k ?[\-_](?: [A-Za-z0-9]){16,200}\b", re.ASCII)  # a letter at a time
_ANY = re.compile(r"[A-Za-z0-9_\-./]{15}")  # as many in a row as the shortest of them has
_BEGINS = re.compile(rf"-----BEGIN [A-Z ]{{0,40}}{_PEM}")
_ENDS = re.compile(rf"-----END [A-Z ]{{0,40}}{_PEM}")
_LONGEST_PEM = 8000
# Where the end was cut off, all lines that may be of the key.
_LINES = re.compile(
    r"(?:(?:\s|\\[rn]){1,4}(?:(?:Proc-Type|DEK-Info|Version|Comment|Hash): [^\n]{0,80}"
    r"|[A-Za-z0-9+/]{12,}={0,2}|[A-Za-z0-9+/]{1,11}={1,2})){0,400}",
    re.ASCII,
)
_PREFIXED = re.compile(r"\b[spr]k[\-_](?P<value>[A-Za-z0-9_\-]{16,})", re.ASCII)
_NAMED = re.compile(
    r"(?:api[ _-]?key|secret(?:[ _-]?key)?|access[ _-]?(?:key|token)|(?<![a-z])tokens?|\bbearer"
    r"|密钥|令牌|私钥|(?P<vague>(?<!primary )(?<!foreign )(?<!public )\bkey|\bbasic(?= )"
    r"|(?:j|php)?sess(?:ion)?[ _-]?id|\bsid|[?&][\w\-]{0,20}(?:key|sig|signature|ticket)))",
    re.ASCII | re.IGNORECASE,
)
# Behind the name, but the next name is looked for in it: it may be the rest of a longer one, as in
# secret_access_key. No key has more characters.
_GIVEN = re.compile(r"(?P<value>(?:0x)?[A-Za-z0-9+/_\-.~]{8,1024}={0,2})", re.ASCII)
_TELLING = 100  # characters from which it is seen whether it is random
_IN_URL = re.compile(r"://(?P<value>[^\s/:@]{0,64}:(?!\d{1,5}[?#])(?P<password>[^\s/]{1,128}))@")
_PLACEHOLDER = re.compile(
    r"\A(?:[<{$*\[]|your|(?:user|password|passwd|pass|pwd|token|secret|xxx+)$)", re.IGNORECASE
)
_RUN = re.compile(r"[A-Za-z0-9]{16,}")
_HEX = re.compile(r"(?:0x)?[0-9a-f]{12,}", re.IGNORECASE)


def keys(text: str) -> Iterator[Span]:
    """Keys, tokens, and what opens the door in a URL."""
    any_key = _ANY.search(text) is not None
    for pattern in (_ISSUED, _SPELT) if any_key else (_SPELT,):
        for m in pattern.finditer(text):
            yield "key", m.start(), m.end()
    yield from _pem(text)
    for m in _PREFIXED.finditer(text) if any_key else ():
        if _is_random(m["value"]) or any(_has_both(run) for run in _RUN.findall(m["value"])):
            yield "key", m.start(), m.end()
    for name in _NAMED.finditer(text):
        at = told.end(text, name.end())
        given = _GIVEN.match(text, at) if at > name.end() or not name[0][0].isascii() else None
        if given is None or text[given.end() : given.end() + 1] == "(":  # a function
            continue
        if len(given["value"]) >= (16 if name["vague"] else 8) and _is_random(given["value"][:_TELLING]):
            yield "key", given.start(), given.end()
    for m in _IN_URL.finditer(text):
        if not _PLACEHOLDER.match(m["password"]):
            yield "password", m.start("value"), m.end("value")


def _pem(text: str) -> Iterator[Span]:
    at = 0
    while begins := _BEGINS.search(text, at):
        ends = _ENDS.search(text, begins.end(), begins.end() + _LONGEST_PEM)
        lines = ends or _LINES.match(text, begins.end())
        at = lines.end() if lines else begins.end()
        yield "key", begins.start(), at


def _has_both(value: str) -> bool:
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value))


def _is_random(value: str) -> bool:
    """Digits and letters in turns, as nobody names things: three changes between them, or hexadecimal."""
    if not _has_both(value):
        return False
    changes = sum(a.isdigit() != b.isdigit() for a, b in pairwise(value) if (a + b).isalnum())
    return changes >= 3 or _HEX.fullmatch(value.replace("-", "")) is not None
