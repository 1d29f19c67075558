"""Passwords and codes, which only the text around them gives away."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .reading import DIGIT_WORDS, Span
from .told import COUNTED, SURE, are_dates, told

_FLAGS = re.ASCII | re.IGNORECASE  # ASCII: a Chinese character beside a word is no part of it
_WORD = f"(?:{'|'.join(DIGIT_WORDS)})"
_WORDS = rf"{_WORD}(?:[\s,\-]{{1,2}}{_WORD}){{3,15}}"
_VALUE = (
    r"(?:(?<=[\"'`“「『【《])(?! )[ !#-&(-_a-~]{3,64}(?<! )(?=[\"'`”」』】》])"  # in quotes, with spaces
    r"|(?<![\d.])\d(?: \d){2,11}(?!\w|\.\d)|\d{3,8}(?:[ \-]\d{3,8}){1,20}(?!\w|\.\d)"  # digits in groups
    rf"|{_WORDS}\b"
    r"|(?:(?!</)[\x21-\x7e]){3,64})"
)
_KIND_OF_CODE = r"(?:verification|security|access|gate|door|backup|one[- ]time|login|alarm|entry)"
_NAMED = re.compile(
    r"(?:密 ?码锁?|口令|password(?:'?s)?|passwd|passphrase|pass ?code|\bpwd|passwort|kennwort|mot de passe"
    r"|contrase[ñn]a|パスワード|비밀번호"
    r"|(?P<short>(?<![a-z])(?:pass|pw)(?=[\"'*`]{0,3}\s{0,3}[:=|]))"
    rf"|(?P<code>\bpin(?: code| number)?\b|验证码|动态码|校验码|短信码|\b{_KIND_OF_CODE} codes?\b|\botp\b))"
    r"(?: (?:for|of|to) (?:the |my |our )?[\w.\-]{1,32}(?: [\w.\-]{1,32}){0,5}?(?= (?:is|was)\b)"
    r"|[1-9](?=\s?[:=]))?"
    rf"(?P<told>{told()})(?=(?P<value>{_VALUE}))",  # ahead: the value may be the name of the next one
    _FLAGS,
)
_NEXT = re.compile(
    rf"[,\s]{{0,2}}(?:改成|改为|换成|换为|变成|而是|是|和|与|、|and |to |->|→)了?\s?(?P<value>{_VALUE})",
    _FLAGS,
)
_MOST = 10  # that are given one behind the other
_EDGES = "\"'`,.;!?()<>{}[]"

_COUNTED = 5  # characters, of a year or "8-16"
_NUMERIC = re.compile(r"[\d+~.\-]+")
# A chip has pins, a building gates and an error a code too: these are told by being numbers.
_CODE = re.compile(rf"(?:(?:[A-Z]{{1,3}}-)?[\d#*][\d #*\-]{{1,}}[\d#*]|{_WORDS})(?![\w=/]|\.\d)", _FLAGS)
_MIXED_CODE = re.compile(r"(?=[A-Z]{0,12}\d)[A-Z\d]{6,12}", _FLAGS)

# What stands in the place of a password in forms, programs and their messages.
_NONE = re.compile(
    r"[*x.•_\-]{3,}$|\$[{(]|\$[A-Z_]+\W*$|%[sd(]|<[a-z_\- ]|[{\[,;)}\]]|your(?:[_\-\s]|$)"
    r"|(?:os|process|self|config|settings|env|request|args)\.|[a-z_][\w.]*(?:\[[\"']|\([\"')]|\(.*\))"
    r"|[a-z_.]+[\[(][a-z_.]*\W*(?:=\w+)?\W*$"
    r"|1password|[a-z_]+[:=]$|[a-z_]+_(?:password|passwd|pwd|secret|token)\W*$|\d+-(?:bits?|char)"
    r"|(?:sha-?(?:[123]|256|384|512)|md5|aes-?\d{3}|rsa-?\d{4}|utf-?8|base64|argon2)\b"
    r"|(?:case|auto|non|pre|hard|well|long|short)-[a-z]+\W*$|[a-z]+-(?:based|only|protected|encrypted)\b",
    _FLAGS,
)
_EMPTY = re.compile(r"(?:\"\"|''|``)\s*$")
# What follows "the password is" in talk about passwords.
_TALK = frozenset([
    "a", "about", "accepted", "actually", "again", "all", "already", "also", "always", "an", "and",
    "as", "asked", "at", "bad", "bcrypt", "because", "been", "being", "blank", "both", "box",
    "broken", "but", "by", "called", "case", "changed", "column", "compromised", "correct",
    "default", "different", "easy", "empty", "encrypted", "entered", "expired", "exposed", "false",
    "field", "fine", "for", "forgotten", "from", "generated", "gone", "good", "hard", "hashed",
    "hidden", "how", "if", "in", "incorrect", "invalid", "it", "just", "kept", "known", "leaked",
    "leave", "like", "long", "longer", "lost", "manager", "managers", "mandatory", "maybe",
    "missing", "my", "needed", "never", "new", "no", "none", "not", "null", "of", "ok", "okay",
    "old", "on", "only", "optional", "or", "page", "pass", "password", "plain", "plaintext",
    "policy", "probably", "prompt", "protected", "quite", "really", "rejected", "required", "reset",
    "rotated", "safe", "same", "saved", "secure", "sent", "set", "shared", "short", "shorter",
    "shown", "so", "sometimes", "still", "stored", "str", "string", "strong", "stuck", "text",
    "that", "the", "there", "this", "to", "too", "true", "typed", "unchanged", "undefined",
    "unique", "unknown", "unsafe", "used", "usually", "valid", "very", "visible", "weak", "what",
    "which", "with", "working", "works", "written", "wrong", "yes", "you", "your",
])  # fmt: skip


def passwords(text: str) -> Iterator[Span]:
    """Passwords that are named before they are given, behind them, or by where they stand."""
    for m in _NAMED.finditer(text):
        given = _given(m)
        for _ in range(_MOST):
            if given is None:
                break
            yield "password", *given
            more = _NEXT.match(text, given[1])
            given = more and _with_digit(more)
    for pattern in (_NAMED_BEHIND_ZH, _NAMED_BEHIND_EN):
        for m in pattern.finditer(text):
            if given := _with_digit(m):
                yield "password", *given
    for pattern in (_PHRASE, _IN_COMMAND):
        for m in pattern.finditer(text):
            yield "password", m.start("value"), m.end("value")


def _given(m: re.Match[str]) -> tuple[int, int] | None:
    """Where the password is that ``m`` names, if it is one."""
    start, end = _trimmed(m)
    value, sure = m.string[start:end], SURE.search(m["told"]) is not None
    if not value or _EMPTY.search(m["told"]) or _NONE.match(m["value"]) or _is_counted(m.string, start, end):
        return None
    if m["code"]:
        code = _CODE.match(m.string, start, end) or (sure and _MIXED_CODE.fullmatch(value)) or None
        return (start, start + len(code[0])) if code and (sure or len(code[0]) > 3) else None
    digit = _has_digit(value)
    if m["short"]:
        given = digit and len(value) >= (6 if value.isdigit() else 4)
    elif sure:  # what stands in the line below is often the next line of a program
        given = value.lower() not in _TALK and (digit or not m[0].isascii() or "\n" not in m["told"])
    elif m[0].isascii():  # "password to abc123", but not "password manager", "password1" or "password 2024"
        given = digit and len(value) >= 4 and m["told"] != "" and not are_dates(value)
    else:  # "密码 abc123"
        given = digit and len(value) >= 4
    return (start, end) if given else None


def _with_digit(m: re.Match[str]) -> tuple[int, int] | None:
    start, end = _trimmed(m)
    given = _has_digit(m.string[start:end]) and not _is_counted(m.string, start, end)
    return (start, end) if given else None


def _trimmed(m: re.Match[str]) -> tuple[int, int]:
    """Where the value is without the punctuation around it."""
    value, start = m["value"].rstrip(_EDGES), m.start("value")
    return start + len(value) - len(value.lstrip(_EDGES)), start + len(value)


def _has_digit(value: str) -> bool:
    return any(c.isdigit() for c in value)


def _is_counted(text: str, start: int, end: int) -> bool:
    return (
        end - start <= _COUNTED
        and _NUMERIC.fullmatch(text, start, end) is not None
        and COUNTED.match(text, end) is not None
    )


# ---------------------------------------------------------------- named behind, or by where they stand

_BEFORE = r"(?<![\x21-\x7e])(?P<value>[\x21-\x7e]{4,64}?)"
_WHOSE = "(?:我|他|她|你|咱)们?(?:家|的|公司|邮箱|微信|wifi|支付宝|银行卡|手机|电脑|登录|支付|取款|开机|门锁)"
_NAMED_BEHIND_ZH = re.compile(
    _BEFORE + rf"\s{{0,2}}就?是{_WHOSE}[\u4e00-\u9fffA-Za-z]{{0,6}}?(?:密码|验证码|口令)"
    r"(?=$|[\s,.;:!?)。、吗吧呢啊哦了])",
    _FLAGS,
)
_NAMED_BEHIND_EN = re.compile(
    _BEFORE + rf"\s{{1,2}}is (?:my|our|your|the) (?:[\w']{{1,20}} ){{0,2}}"
    r"(?:password|passcode|passphrase|(?<=[\d#] is my )pin|(?<=[\d#] is the )pin"
    rf"|{_KIND_OF_CODE} code|(?<=your )code)"
    r"(?=$|[.,;:!?)\n]| (?:for|to|and|on|at|in|of|now)\b)",
    _FLAGS,
)
_PHRASE_WORD = r"(?:\d{1,2}[.)、]? ?)?(?:[a-z]{3,8}|[\u4e00-\u9fff]{1,3})"
_PHRASE = re.compile(
    r"(?:助记词|恢复短语|(?:seed|recovery|secret|backup) (?:phrase|words)|\bmnemonic(?: phrase)?)"
    rf"{told('are')}(?P<value>{_PHRASE_WORD}(?:[\s,、]{{1,3}}{_PHRASE_WORD}){{10,23}})(?![a-z])",
    _FLAGS,
)
_IN_COMMAND = re.compile(
    r"\bcurl\b[^\n]{0,80}?\s(?:-u|--user)\s{1,2}[\"']?(?P<value>[^\s:\"'$]{1,64}:[^\s\"'$]{1,128})", _FLAGS
)
