"""Passwords and codes, which only the text around them gives away."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .reading import DIGIT_WORDS, Span
from .told import COUNTED, SURE, Told, are_dates, told

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
    rf"|(?P<code>\bpin(?: code| number)?\b|验证码|动态码|校验码|短信码|\b{_KIND_OF_CODE} codes?\b|\botp\b))",
    _FLAGS,
)
# "password for the router is", "password2:"
_WHICH = re.compile(r" (?:for|of|to)(?: [\w.\-]{1,32}){1,7}?(?= (?:is|was)\b)|[1-9](?=\s?[:=])", _FLAGS)
_GIVEN = re.compile(f"(?P<value>{_VALUE})", _FLAGS)
_NEXT = re.compile(
    rf"[,\s]{{0,2}}(?:改成|改为|换成|换为|变成|而是|是|和|与|、|and |to |->|→)了?\s?(?P<value>{_VALUE})",
    _FLAGS,
)
_MOST = 10  # that are given one behind the other
_EDGES = "\"'`,.;!?()<>{}[]"

_COUNTED = 5  # characters, of a year or "8-16"
_NUMERIC = re.compile(r"[\d+~.\-]+")
# A chip has pins, a building gates and an error a code too: these are told by being numbers.
_CODE = re.compile(
    rf"(?:(?:[A-Z]{{1,3}}-)?[\d#*](?:[ \-]{{0,9}}[\d#*]){{1,40}}|{_WORDS})(?![\w=/]|\.\d)", _FLAGS
)
_LEAST = 3  # characters of a code
_MIXED_CODE = re.compile(r"(?=[A-Z]{0,12}\d)[A-Z\d]{6,12}", _FLAGS)

# What stands in the place of a password in forms, programs and their messages.
_NONE = re.compile(
    r"\A(?:[*x.•_\-]{3,64}$|\$[{(]|\$[A-Z_]{1,64}\W{0,8}$|%[sd(]|<[a-z_\- ]|[{\[,;)}\]]|your(?:[_\-\s]|$)"
    r"|(?:os|process|self|config|settings|env|request|args)\."
    r"|1password|[a-z_]{1,64}[:=]$|[a-z_]{1,64}_(?:password|passwd|pwd|secret|token)\W{0,8}$|\d{1,9}-(?:bits?|char)"
    r"|(?:sha-?(?:[123]|256|384|512)|md5|aes-?\d{3}|rsa-?\d{4}|utf-?8|base64|argon2)\b"
    r"|(?:case|auto|non|pre|hard|well|long|short)-[a-z]{1,64}\W{0,8}$"
    r"|[a-z]{1,64}-(?:based|only|protected|encrypted)\b)",
    _FLAGS,
)
_CALL = re.compile(r"\A[a-z_][\w.]{0,63}[\[(]", _FLAGS)
_WITH = re.compile(r"[a-z_.]{0,64}[^\w.=]{0,16}(?:=\w{1,64})?", _FLAGS)
_MARKS = "".join(c for c in map(chr, range(33, 127)) if not c.isalnum() and c != "_")
_EMPTY = ('""', "''", "``")
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
    for name in _NAMED.finditer(text):
        given = _given(text, name)
        for _ in range(_MOST):
            if given is None:
                break
            yield "password", *given
            more = _NEXT.match(text, given[1])
            given = more and _with_digit(more)
    for word, pattern in (("是", _NAMED_BEHIND_ZH), ("is ", _NAMED_BEHIND_EN)):
        for m in pattern.finditer(text) if word in text.lower() else ():
            if given := _with_digit(m):
                yield "password", *given
    for phrase in _PHRASE.finditer(text):
        if words := _PHRASE_WORDS.match(text, _ARE.end(text, phrase.end())):
            yield "password", words.start(), words.end()
    for m in _IN_COMMAND.finditer(text) if "curl" in text.lower() else ():
        yield "password", m.start("value"), m.end("value")


def _given(text: str, name: re.Match[str]) -> tuple[int, int] | None:
    """Where the password is that is named by ``name``, if it is one."""
    which = _WHICH.match(text, name.end())
    at = which.end() if which else name.end()
    m = _GIVEN.match(text, told.end(text, at))
    if m is None:
        return None
    between, ascii_only = text[at : m.start()], text[name.start() : m.start()].isascii()
    start, end = _trimmed(m)
    value, sure = text[start:end], SURE.search(between) is not None
    if (
        not value
        or between.rstrip().endswith(_EMPTY)
        or _is_none(m["value"])
        or _is_counted(text, start, end)
    ):
        return None
    if name["code"]:
        code = _CODE.match(text, start, end) or (sure and _MIXED_CODE.fullmatch(value)) or None
        long_enough = code and len(code[0]) >= (_LEAST if sure else _LEAST + 1)
        return (start, start + len(code[0])) if code and long_enough else None
    digit = _has_digit(value)
    if name["short"]:
        given = digit and len(value) >= (6 if value.isdigit() else 4)
    elif sure:  # what stands in the line below is often the next line of a program
        given = value.lower() not in _TALK and (digit or not ascii_only or "\n" not in between)
    elif ascii_only:  # "password to abc123", but not "password manager", "password1" or "password 2024"
        given = digit and len(value) >= 4 and between != "" and not are_dates(value)
    else:  # "密码 abc123"
        given = digit and len(value) >= 4
    return (start, end) if given else None


def _is_none(value: str) -> bool:
    """Whether ``value`` is a stand-in for a password, or the call that gets it: ``getenv("PW")``."""
    if _NONE.match(value):
        return True
    call = _CALL.match(value)
    if call is None:
        return False
    inner = value[call.end() :]
    quoted = inner.startswith(('"', "'", ")")) and not (call[0].endswith("[") and inner.startswith(")"))
    closed = call[0].endswith("(") and ")" in inner
    return quoted or closed or _WITH.fullmatch(inner.rstrip(_MARKS)) is not None


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
    r"(?:助记词|恢复短语|(?:seed|recovery|secret|backup) (?:phrase|words)|\bmnemonic(?: phrase)?)", _FLAGS
)
_ARE = Told("are")
_PHRASE_WORDS = re.compile(rf"{_PHRASE_WORD}(?:[\s,、]{{1,3}}{_PHRASE_WORD}){{10,23}}(?![a-z])", _FLAGS)
_IN_COMMAND = re.compile(
    r"\bcurl\b[^\n]{0,80}?\s(?:-u|--user)\s{1,2}[\"']?(?P<value>[^\s:\"'$]{1,64}:[^\s\"'$]{1,128})", _FLAGS
)
