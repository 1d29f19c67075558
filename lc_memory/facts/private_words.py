"""What is private because the text says so, or by its form: papers, passwords, keys, mail addresses."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lc_memory.facts.reading import Kind, Span

_PAPER = re.compile(
    r"(?:身份证|护照|驾照|驾驶证|社保卡?|通行证|passport|\bssn\b|social security|\bid card|"
    r"national id|driver'?s? licen[cs]e)"
    r"(?P<part>(?:\s|号码?|numbers?|no\.|是|为|的|了|\bis\b|\bof\b|[:=\"'#]|"
    r"尾号|[后末][三四五六]位(?:数字)?|last (?:four|4|six|6)|digits|ending (?:in|with)|ends (?:in|with))*)"
    r"(?P<value>[a-z]{0,2}\d[\d \-]{2,20}x?)(?!\d|\s*[年月日岁块元])",
    re.IGNORECASE,
)
_CARD = re.compile(
    r"(?:卡号|卡的?(?:尾号|[后末][四六]位(?:数字)?)|card (?:number|no\.?|ending(?: in| with)?"
    r"|ends (?:in|with))"
    r"|\bcvv2?|\bcvc|安全码|iban)"
    r"(?:\s|号码?|number|是|为|的|\bis\b|[:=\"'#])*(?P<value>\d[\d \-]{2,24})(?!\d|\s*[年月日块元])",
    re.IGNORECASE,
)
_TAIL = re.compile(r"尾号|位|last|ending|ends|digits", re.IGNORECASE)
_IBAN = re.compile(r"\b[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{4}){2,7}(?: ?[A-Za-z0-9]{1,4})?\b")

_PASSWORD = re.compile(
    r"(?:密码|口令|passwords?|passwd|passphrase|passcode|\bpwd|\bpin(?: code| number)?\b|验证码|动态码)"
    r"(?: (?:for|of|to) (?:the |my |our )?[\w.\-]+(?: [\w.\-]+)?(?= (?:is|was)\b))?"
    r"(?P<told>(?:\s|[\"'：:=>是为]|改成|换成|设成|设置为|就是|叫|还是|\bis\b|\bwas\b|\bto\b|\bto be\b)*)"
    r"(?P<value>[\x21-\x7e]{3,64})",
    re.IGNORECASE,
)
# What follows "the password is" in talk about passwords.
_TALK = frozenset(
    [
        "wrong",
        "too",
        "not",
        "expired",
        "weak",
        "strong",
        "safe",
        "secure",
        "required",
        "incorrect",
        "invalid",
        "forgotten",
        "lost",
        "reset",
        "the",
        "a",
        "an",
        "in",
        "on",
        "stored",
        "never",
        "always",
        "my",
        "your",
        "very",
        "so",
        "case",
        "saved",
        "hashed",
        "encrypted",
        "good",
        "bad",
        "fine",
        "ok",
        "okay",
        "hard",
        "easy",
        "long",
        "short",
        "old",
        "new",
        "same",
        "different",
        "manager",
        "managers",
        "protected",
        "field",
        "policy",
        "box",
        "page",
        "prompt",
        "and",
        "or",
        "for",
        "of",
        "by",
        "with",
        "from",
        "that",
        "this",
        "there",
        "being",
        "been",
        "what",
        "which",
        "how",
        "empty",
        "blank",
        "correct",
        "unknown",
        "changed",
        "shared",
        "needed",
        "broken",
        "leaked",
        "compromised",
        "exposed",
        "visible",
        "hidden",
        "optional",
        "gone",
        "missing",
        "still",
        "only",
        "just",
        "really",
        "quite",
        "reset.",
        "wrong.",
        "what?",
        "called",
        "stuck",
        "working",
        "rejected",
        "accepted",
        "written",
        "kept",
        "unsafe",
        "plain",
        "null",
        "none",
    ]
)


def named(text: str) -> Iterator[Span]:
    for m in _PAPER.finditer(text):
        enough = 4 if _TAIL.search(m["part"]) else 6
        if sum(c.isdigit() for c in m["value"]) >= enough:
            yield _value("id", m)
    for m in _CARD.finditer(text):
        yield _value("card", m)
    for m in _IBAN.finditer(text):
        from stdnum import iban

        if iban.is_valid(m[0]):
            yield "card", m.start(), m.end()
    for m in _PASSWORD.finditer(text):
        value = m["value"].strip("\"'`,.;!?()<>{}[]")
        if not value or not _is_password(m[0][0], m["told"], value, text[m.end() : m.end() + 2].lstrip()):
            continue
        at = m.start("value") + m["value"].index(value)
        yield "password", at, at + len(value)


def _is_password(before: str, told: str, value: str, after: str) -> bool:
    mixed = any(c.isdigit() for c in value) or any(not c.isalnum() for c in value)
    if after and after[0] in "年月日位次个天岁":  # "密码 8 位"
        return False
    if not told.strip():  # "密码 abc123", but not "password manager", "password-protected"
        return (told != "" or not before.isascii()) and any(c.isdigit() for c in value) and len(value) >= 4
    if any(c in told for c in "=:：\"'"):
        return value.lower() not in ("null", "none", "true", "false", "str", "string")
    return (mixed and len(value) >= 4 and "'" not in value) or value.lower() not in _TALK


def _value(kind: Kind, m: re.Match[str]) -> Span:
    return kind, m.start("value"), m.start("value") + len(m["value"].rstrip(" -"))


# ---------------------------------------------------------------- keys

_KEY = re.compile(
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_\-]{16,}|\bgh[opsur]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_\-]{30,}|\bxox[abeprs]-[A-Za-z0-9\-]{10,}"
    r"|\bglpat-[A-Za-z0-9_\-]{16,}|\bhf_[A-Za-z0-9]{20,}|\bLTAI[A-Za-z0-9]{12,}|\bAKID[A-Za-z0-9]{13,}"
    r"|\b(?:npm_|pypi-|whsec_|SG\.)[A-Za-z0-9_\-.]{20,}|\beyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]{8,}(?:\.[A-Za-z0-9_\-]*)?"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[\s\S]{0,8000}?-----END [A-Z ]*PRIVATE KEY-----)?"
)
_CALLED_KEY = re.compile(
    r"(?:api[ _-]?key|secret(?:[ _-]?key)?|access[ _-]?(?:key|token)|\btokens?|\bbearer|密钥|令牌|私钥)"
    r"(?:\s|[\"'：:=>是为]|\bis\b)+(?P<value>[A-Za-z0-9+/_\-.=~]{8,})",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"://(?P<value>[^\s/:@]{1,64}:[^\s/@]{1,128})@")


def secrets(text: str) -> Iterator[Span]:
    for m in _KEY.finditer(text):
        yield "key", m.start(), m.end()
    for m in _CALLED_KEY.finditer(text):
        letters, digits = (any(f(c) for c in m["value"]) for f in (str.isalpha, str.isdigit))
        if letters and digits:
            yield "key", m.start("value"), m.end("value")
    for m in _IN_URL.finditer(text):
        yield "password", m.start("value"), m.end("value")


# ---------------------------------------------------------------- addresses

_LOCAL = r"(?<![A-Za-z0-9._%+\-])(?P<local>[A-Za-z0-9][A-Za-z0-9._%+\-]{0,63})"
_ENDINGS = r"(?:com|cn|net|org|edu|gov|io|co|me|de|uk|jp|hk|tw|fr|us|eu|dev|app|ai|info|xyz|top)"
_MAIL = re.compile(_LOCAL + r"@(?:[A-Za-z0-9\-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9])", re.ASCII)
_MAIL_HAN = re.compile(r"[\w.+\-]{1,64}@(?:[\w\-]{1,63}\.){1,8}[^\W\d_]{2,24}")
_MAIL_SPACED = re.compile(
    _LOCAL + r"(?:\s{0,2}@\s{0,2}|\s?[(\[{]\s?at\s?[)\]}]\s?|\s?艾特\s?)"
    r"(?:[A-Za-z0-9\-]{1,63}(?:\s{0,2}\.\s{0,2}|\s?[(\[{]\s?dot\s?[)\]}]\s?|\s+dot\s+|\s?点\s?)){1,4}"
    + _ENDINGS + r"(?![A-Za-z0-9])",
    re.IGNORECASE | re.ASCII,
)  # fmt: skip
_MAIL_WORDS = re.compile(
    _LOCAL + r"\s+at\s+(?:[A-Za-z0-9\-]{1,63}\s+dot\s+){1,4}" + _ENDINGS + r"\b", re.IGNORECASE | re.ASCII
)


def addresses(text: str) -> Iterator[Span]:
    for pattern in (
        (_MAIL, _MAIL_HAN, _MAIL_SPACED, _MAIL_WORDS) if "@" in text else (_MAIL_SPACED, _MAIL_WORDS)
    ):
        for m in pattern.finditer(text):
            if not m[0].lower().startswith("git@"):  # where code is, not who somebody is
                yield "mail", m.start(), m.end()
