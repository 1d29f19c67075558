"""Mail addresses, and the names people have in messengers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .reading import Span
from .told import told

_FLAGS = re.ASCII | re.IGNORECASE
_LOCAL = r"(?<![A-Za-z0-9._%+\-])(?P<local>[A-Za-z0-9][A-Za-z0-9._%+\-]{0,63})"
_ENDINGS = r"(?:com|cn|net|org|edu|gov|io|co|me|de|uk|jp|hk|tw|fr|es|us|eu|dev|app|ai|info|xyz|top)"
_PROVIDERS = (
    r"(?:gmail|outlook|hotmail|yahoo|icloud|qq|163|126|sina|foxmail|proton(?:mail)?|aol)\.(?:com|cn|net|me)"
)
_MAIL = re.compile(_LOCAL + r"@(?:[A-Za-z0-9\-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])", re.ASCII)
_MAIL_HAN = re.compile(r"[\w.+\-]{1,64}@(?:[\w\-]{1,63}\.){1,8}[^\W\d_]{2,24}")
_MAIL_SPACED = re.compile(
    _LOCAL + r"(?:\s{0,2}@\s{0,2}|\s?[(\[{]\s?(?:at|arobase|arroba)\s?[)\]}]\s?|\s?艾特\s?)"
    r"(?:[A-Za-z0-9\-]{1,63}(?:\s{0,2}[.。]\s{0,2}|\s?[(\[{]\s?dot\s?[)\]}]\s?|\s{1,2}dot\s{1,2}|\s?点\s?)){1,4}"
    + _ENDINGS + r"(?![A-Za-z0-9])",
    _FLAGS,
)  # fmt: skip
_MAIL_WORDS = re.compile(
    r"(?<![A-Za-z0-9._%+\-])(?P<local>[A-Za-z0-9][A-Za-z0-9._%+\-]{0,63}?)"
    r"(?:(?:\s{1,3}at\s{1,3}|_at_)(?:[A-Za-z0-9\-]{1,63}(?:\s{1,3}dot\s{1,3}|_dot_)){1,4}"
    r"|\s{1,3}arroba\s{1,3}(?:[A-Za-z0-9\-]{1,63}(?:\s{1,3}punto\s{1,3}|\.)){1,4}"
    r"|\s{1,3}arobase\s{1,3}(?:[A-Za-z0-9\-]{1,63}(?:\s{1,3}point\s{1,3}|\.)){1,4})" + _ENDINGS + r"\b",
    _FLAGS,
)
# Only with those everybody has: "hosted at example.com" and "issue#12.com" are no addresses.
_MAIL_HINTED = re.compile(
    _LOCAL
    + r"(?:#|(?<!\bup)(?<!\bin)(?<!\bon)(?<!\bis)(?<!\bme)(?<!\bit)(?<!work)(?<!works)(?<!look)(?<!mail)"
    rf"(?<!account)(?<!inbox)(?<!hosted)(?<!working)\s{{1,2}}at\s{{1,2}}){_PROVIDERS}\b",
    _FLAGS,
)
_MAIL_LETTERS = re.compile(
    r"(?<![a-z0-9._\-] )\b(?:[a-z0-9._\-] ){2,40}@(?: [a-z0-9\-]){1,40}"
    r"(?: \.(?: [a-z0-9\-]){2,20}){1,4}(?![a-z0-9])",
    _FLAGS,
)
# Versions stand behind an "@" too; a few providers are called by a number.
_VERSION = re.compile(r"@(?!(?:163|126|139|188|189)\.)[\d.]+\.[a-z]+$", _FLAGS)

_MESSENGER = re.compile(
    rf"(?:微信号|加我微信|wechat id|\b[vw]x号?(?![\w\-])){told()}"
    r"(?P<value>[a-z](?=[a-z]{0,19}[\d_\-])[\w\-]{5,19})(?![\w\-])"
    r"|\b(?P<wxid>wxid_\w{6,})",
    _FLAGS,
)


def addresses(text: str) -> Iterator[Span]:
    """Mail addresses, however their "@" is written."""
    patterns = [_MAIL_SPACED, _MAIL_WORDS, _MAIL_HINTED]
    if "@" in text:
        patterns += [_MAIL, _MAIL_HAN, _MAIL_LETTERS]
    for pattern in patterns:
        for m in pattern.finditer(text):
            if not m[0].lower().startswith("git@") and not _VERSION.search(m[0]):  # where code is, not who
                yield "mail", m.start(), m.end()


def messengers(text: str) -> Iterator[Span]:
    """Names in messengers; those that are numbers are found as numbers."""
    for m in _MESSENGER.finditer(text):
        group = "wxid" if m["wxid"] else "value"
        yield "phone", m.start(group), m.end(group)
