"""Mail addresses, and the names people have in messengers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .reading import Span
from .told import told

_FLAGS = re.ASCII | re.IGNORECASE
_LOCAL = r"(?<![A-Za-z0-9._%+\-])(?P<local>[A-Za-z0-9][A-Za-z0-9._%+\-]{0,63})"
_ENDINGS = r"(?:com|cn|net|org|edu|gov|io|co|me|de|uk|jp|hk|tw|fr|es|us|eu|dev|app|ai|info|xyz|top)"
_PROVIDER_NAMES = (
    "gmail", "outlook", "hotmail", "yahoo", "icloud", "qq", "163", "126", "sina", "foxmail", "protonmail",
    "proton", "aol",
)  # fmt: skip
_PROVIDERS = rf"(?:{'|'.join(_PROVIDER_NAMES)})\.(?:com|cn|net|me)"
_AT = re.compile(r"@|艾特|[(\[{]\s?(?:at|arobase|arroba)", re.IGNORECASE)
_MAIL = re.compile(_LOCAL + r"@(?:[A-Za-z0-9\-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])", re.ASCII)
_MAIL_HAN = re.compile(r"[\w.+\-]{1,64}@(?:[\w\-]{1,63}\.){1,8}[^\W\d_]{2,24}")
_MAIL_SPACED = re.compile(
    _LOCAL + r"(?:\s{0,2}@\s{0,2}|\s?[(\[{]\s?(?:at|arobase|arroba)\s?[)\]}]\s?|\s?艾特\s?)"
    r"(?:[A-Za-z0-9\-]{1,63}(?:\s{0,2}[.。]\s{0,2}|\s?[(\[{]\s?dot\s?[)\]}]\s?|\s{1,2}dot\s{1,2}|\s?点\s?)){1,4}"
    + _ENDINGS + r"(?![A-Za-z0-9])",
    _FLAGS,
)  # fmt: skip
# "anna at firma dot de": the domain behind the word, then the name in front of it.
_AT_WORD = re.compile(r"\s{1,3}(?P<at>at|arroba|arobase)\s{1,3}|_(?P<joined>at)_", _FLAGS)
_DOMAINS = {
    word: re.compile(rf"(?:[A-Za-z0-9\-]{{1,63}}(?:{dot})){{1,4}}{_ENDINGS}\b", _FLAGS)
    for word, dot in {
        "at": r"\s{1,3}dot\s{1,3}|_dot_",
        "arroba": r"\s{1,3}punto\s{1,3}|\.",
        "arobase": r"\s{1,3}point\s{1,3}|\.",
    }.items()
}
_DOMAIN_WORDS = ("dot", "arroba", "arobase")
_LOCAL_BEFORE = re.compile(_LOCAL + "$", _FLAGS)
_LONGEST_LOCAL = 65  # characters, and the one that stands before it
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
_VERSION = re.compile(r"@(?!(?:163|126|139|188|189)\.)\d{1,9}(?:\.\d{1,9}){0,9}\.[a-z]{1,24}$", _FLAGS)

_MESSENGER = re.compile(
    r"微信号|加我微信|wechat id|\b[vw]x号?(?![\w\-])",
    _FLAGS,
)
_CALLED = re.compile(r"[a-z](?=[a-z]{0,19}[\d_\-])[\w\-]{5,19}(?![\w\-])", _FLAGS)
_WXID = re.compile(r"\bwxid_\w{6,}", _FLAGS)


def addresses(text: str) -> Iterator[Span]:
    """Mail addresses, however their "@" is written."""
    lower = text.lower()
    patterns = [_MAIL_SPACED] if _AT.search(text) else []
    if any(provider in lower for provider in _PROVIDER_NAMES):
        patterns.append(_MAIL_HINTED)
    if "@" in text:
        patterns += [_MAIL, _MAIL_HAN, _MAIL_LETTERS]
    for pattern in patterns:
        for m in pattern.finditer(text):
            if not m[0].lower().startswith("git@") and not _VERSION.search(m[0]):  # where code is, not who
                yield "mail", m.start(), m.end()
    for at in _AT_WORD.finditer(text) if any(word in lower for word in _DOMAIN_WORDS) else ():
        if domain := _DOMAINS[(at["at"] or at["joined"]).lower()].match(text, at.end()):
            begin = max(0, at.start() - _LONGEST_LOCAL)
            if local := _LOCAL_BEFORE.search(text, begin, at.start()):
                yield "mail", local.start(), domain.end()


def messengers(text: str) -> Iterator[Span]:
    """Names in messengers; those that are numbers are found as numbers."""
    for name in _MESSENGER.finditer(text):
        if called := _CALLED.match(text, told.end(text, name.end())):
            yield "phone", called.start(), called.end()
    for m in _WXID.finditer(text):
        yield "phone", m.start(), m.end()
