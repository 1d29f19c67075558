"""Numbers that are private by what they are: phone numbers, resident ids, bank cards."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from .reading import Kind, Span
from .told import Told

# A number may be written in parts. Where each part is a single digit nearly anything may stand between;
# otherwise what people group numbers by. Colons and commas there mean times, ratios and thousands.
_RUN = re.compile(r"\+?\(?\d(?:[\s\-‐-―_.·•/|,:;、*()]{0,3}\d)*")
_DIGITS = re.compile(r"\d+")
_GROUPING = re.compile(r"[\s\-‐-―_.·•/()]{0,3}")
_SHORTEST, _LONGEST = 7, 19  # digits of a phone number and of a card
_PARTS = 6
_LOOKED_UP = 200
"""So many numbers of a text are looked up in the numbering plans, at 30 us each. In a text with more, what is
written like a phone number is taken for one."""

Shape = tuple[int, ...]
"""How many digits the parts of a number have."""


def numbers(text: str) -> Iterator[Span]:
    look = _Look(text)
    for run in _RUN.finditer(text):
        if run.end() - run.start() < _SHORTEST:
            continue
        parts = [(m.start(), m.end()) for m in _DIGITS.finditer(text, run.start(), run.end())]
        row = _Row("".join([text[start] for start, _ in parts]), _singles(parts))
        i = 0
        while i < len(parts):
            j, kind = look.longest(parts, i, row)
            if kind is None:
                i += 1
                continue
            start, end = parts[i][0], parts[j - 1][1]
            start -= 1 if text[start - 1 : start] == "+" else 2 if text[start - 2 : start] == "+(" else 0
            if kind == "id" and text[end : end + 1] in ("x", "X"):
                end += 1
            yield kind, start, end
            i = j


def _singles(parts: list[tuple[int, int]]) -> list[int]:
    """How many parts of a single digit stand in a row from each part on."""
    counts = [0] * (len(parts) + 1)
    for i in range(len(parts) - 1, -1, -1):
        counts[i] = counts[i + 1] + 1 if parts[i][1] - parts[i][0] == 1 else 0
    return counts


class _Row(NamedTuple):
    """The parts of a number, as far as they are single digits."""

    heads: str
    """The first digit of each part."""
    singles: list[int]
    """How many of a single digit stand in a row from each part on."""


class _Look:
    """Looks through the numbers of one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._left = _LOOKED_UP
        self._called = {
            start: name.start()
            for name in _CALLED_PHONE.finditer(text)
            for end in [_OF_PHONE.end(text, name.end())]
            for start in (end, end + len(_OPENS.match(text, end)[0]))  # type: ignore[index]
        }

    def longest(self, parts: list[tuple[int, int]], i: int, row: _Row) -> tuple[int, Kind | None]:
        """The longest private number that starts with part ``i``: the part behind it, and what it is."""
        text, start = self._text, parts[i][0]
        before = text[parts[i - 1][1] : start] if i else ""
        if before == "." or (before == "," and parts[i][1] - start == 3):  # of 3.1415 and 1,024
            return i, None
        called = self._called.get(start, -_NEAR - 1) >= start - _NEAR
        singles = row.singles[i]
        found = self._grouped(parts, i, singles) if singles < _PARTS else []
        if singles >= _SHORTEST:
            digits = row.heads[i : i + min(singles, _LONGEST)]
            anything = called or "+" in text[max(0, start - 2) : start]
            sizes = range(len(digits), _SHORTEST - 1, -1) if anything else _sizes(digits)
            found += [(i + size, digits[:size], (1,) * size) for size in sizes]
        for j, digits, shape in found:
            if (len(digits) == 10 or shape == (1, 3, 3, 4)) and _PUBLIC.fullmatch(digits[-10:]):
                return i, None
            kind = self._kind(start, parts[j - 1][1], digits, shape, called)
            if kind is not None:
                return j, kind
        return i, None

    def _grouped(self, parts: list[tuple[int, int]], i: int, singles: int) -> list[tuple[int, str, Shape]]:
        """What may be one number from part ``i`` on and is not all single digits, the longest first: the part
        behind it, its digits, and their shape."""
        text = self._text
        grouped: list[tuple[int, str, Shape]] = []
        digits = ""
        shape: Shape = ()
        for j in range(i, min(i + _PARTS, len(parts))):
            start, end = parts[j]
            if len(digits) + end - start > _LONGEST:
                break
            if j >= i + max(singles, 1) and not _GROUPING.fullmatch(text, parts[j - 1][1], start):
                break
            digits += text[start:end]
            shape = (*shape, end - start)
            if len(digits) >= _SHORTEST and j >= i + singles:
                grouped.append((j + 1, digits, shape))
        grouped.reverse()
        return grouped

    def _kind(self, start: int, end: int, digits: str, shape: Shape, called: bool) -> Kind | None:
        text, size, after = self._text, len(digits), self._text[end : end + 1]
        if size == 17 and after in ("x", "X") and _is_resident_id(digits + "X"):
            return "id"
        if after.isascii() and after.isalpha():  # a part of a longer name, as in a UUID
            return None
        if (size == 18 and _is_resident_id(digits)) or (shape == (3, 2, 4) and _is_ssn(digits)):
            return "id"
        if size >= 14 and (shape[0] >= 4 or max(shape) == 1) and _is_card(digits):
            return "card"
        counted = len(shape) == 1 and not called and _AMOUNT.match(text, end)
        if (
            size <= 15
            and not counted
            and (max(shape) == 1 or _DATE.search(text, start, end) is None)
            and (called or self._is_phone(digits, shape, text[max(0, start - 2) : start]))
        ):
            return "phone"
        return None

    def _is_phone(self, digits: str, shape: Shape, before: str) -> bool:
        if before.endswith("+") or before == "+(":
            return self._is_number("+" + digits, None)
        if len(set(digits)) < 3 or not (max(shape) == 1 or len(shape) <= 5):
            return False
        if shape != (1, 3, 3, 4) and (mobile := _MOBILE.fullmatch(digits)):
            return _mobiles().fullmatch(mobile[1]) is not None
        if digits.startswith("00"):
            return self._is_number("+" + digits[2:], None)
        # Whole, in two to four parts, or spelt out.
        whole = max(shape) == 1 or len(shape) == 1 or (len(shape) <= 4 and min(shape) > 1)
        if whole and digits.startswith("0") and len(digits) in _WITH_AREA:
            return self._is_number(digits, "CN") or self._is_number(digits, "GB")
        return any(self._is_number(digits, region) for region in _AT_HOME.get(shape, ()))

    def _is_number(self, number: str, region: str | None) -> bool:
        """Whether a numbering plan has the number, for a person: the lines of companies are public."""
        import phonenumbers as plans

        if self._left <= 0:
            return True
        self._left -= 1
        try:
            parsed = plans.parse(number, region)
        except plans.NumberParseException:
            return False
        public = (
            plans.PhoneNumberType.TOLL_FREE,
            plans.PhoneNumberType.SHARED_COST,
            plans.PhoneNumberType.PREMIUM_RATE,
            plans.PhoneNumberType.UAN,
        )
        return plans.is_valid_number(parsed) and plans.number_type(parsed) not in public


def _sizes(digits: str) -> list[int]:
    """How many of the first of ``digits``, which stand one by one, may be anything, the most first. Told by
    the first few: a text of nothing but digits is not to be looked up from every one of them."""
    first, two, most = digits[0], digits[:2], len(digits)
    sizes: list[int] = []
    if most >= 17 and digits[6:8] in _BORN:
        sizes = [18, 17]
    if first in "234568":
        sizes = [*range(19, 13, -1)]
    if first == "0":
        sizes += range(15, _SHORTEST - 1, -1) if two == "00" else (14, *reversed(_WITH_AREA))
    elif two == "86":
        sizes.append(13)
    elif first == "1" and two[1] in "3456789":
        sizes.append(11)
    return [size for size in sizes if size <= most]


_BORN = ("18", "19", "20")  # the centuries of the year of birth


def _is_resident_id(digits: str) -> bool:
    if digits[6:8] not in _BORN:
        return False
    from stdnum.cn import ric

    return bool(ric.is_valid(digits))


def _is_ssn(digits: str) -> bool:
    from stdnum.us import ssn

    return bool(ssn.is_valid(f"{digits[:3]}-{digits[3:5]}-{digits[5:]}"))


# Issuers' ranges: ISO/IEC 7812 registrations of the networks, with the lengths they give out.
_ISSUERS = re.compile(
    r"(?:4\d{15}(?:\d{3})?"  # Visa, but for those of 13 digits, which have not been given out for decades
    r"|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}"  # Mastercard
    r"|3[47]\d{13}"  # American Express
    r"|(?:62|81)\d{14,17}"  # UnionPay
    r"|(?:6011|64[4-9]\d|65\d\d)\d{12,15}"  # Discover
    r"|35(?:2[89]|[3-8]\d)\d{12,15}"  # JCB
    r"|3(?:0[0-5]|[689]\d)\d{11})"  # Diners
)


def _is_card(digits: str) -> bool:
    if _ISSUERS.fullmatch(digits) is None or len(set(digits)) == 1:
        return False
    from stdnum import luhn

    return bool(luhn.is_valid(digits))


_CALLED_PHONE = re.compile(
    r"(?:电话(?:番号)?|手机|座机|固话|微信|qq|联系方式|联络方式|致电|拨打|(?:打|加)(?:这个|我)"
    r"|(?:我们?|你|他们?|她|妈|爸|老师|老婆|老公|家里|联系)的?(?:新|旧|老|备用|国内|国外|工作|私人)?号码"
    r"|\btel|phone|mobile|\bcell|whatsapp|\bfax|\b(?:my|his|her|their|our) (?:new |old )?number"
    r"|(?:call|text|reach|ring) me(?: at| on)?|m[óo]vil|portable|handynummer|telefon(?:nummer)?|wa\.me/)",
    re.ASCII | re.IGNORECASE,
)
_OF_PHONE = Told(r"号码?|番号|number|\bno\b\.?|\bat\b|#")
_OPENS = re.compile(r"\+?\(?")
_NEAR = 32  # characters
# The lines of companies and helplines in China and America, which may be told to anybody.
_PUBLIC = re.compile(r"[48]00\d{7}|8(?:33|44|55|66|77|88)\d{7}")


# Not every word for things that are counted: "13912345678 年后打" and "… 天天在" are about a phone.
_AMOUNT = re.compile(
    r"\s?(?:元|块|次(?!日)|条(?!件)|个(?![人月])|(?:ns|ms|us|usd|bytes|rows|steps)\b)",
    re.ASCII | re.IGNORECASE,
)
_DATE = re.compile(
    r"(?<!\d)(?:19|20)\d\d(?:"
    + "|".join(rf"{mark}(?:0?[1-9]|1[0-2]){mark}(?:0?[1-9]|[12]\d|3[01])" for mark in ("-", r"\.", "/"))
    + r")(?!\d)"
)
_MOBILE = re.compile(r"(?:0?0?86)?(1[3-9]\d{9})")


# Without the code of the country a number is one only where it is grouped as they do there.
_AT_HOME: dict[tuple[int, ...], tuple[str, ...]] = {
    (3, 3, 4): ("US",),
    (1, 3, 3, 4): ("US",),
    (3, 4, 4): ("JP",),
    (4, 3, 3): ("TW", "AU"),
    (2, 4, 4): ("TW", "AU"),
    (2, 3, 4): ("TW",),
    (4, 6): ("TW",),
    (4, 7): ("DE",),
    (4, 8): ("DE",),
}


_WITH_AREA = range(10, 13)  # digits of a number that begins with a 0: China and Britain


@cache
def _mobiles() -> re.Pattern[str]:
    """The mobile numbers of China, as its numbering plan has them."""
    from phonenumbers import PhoneMetadata

    plan: Any = PhoneMetadata.metadata_for_region("CN")
    return re.compile(plan.mobile.national_number_pattern)
