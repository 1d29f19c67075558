"""Numbers that are private by what they are: phone numbers, resident ids, bank cards."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .reading import Kind, Span
from .told import told

# A number may be written in parts. Where each part is a single digit nearly anything may stand between;
# otherwise what people group numbers by. Colons and commas there mean times, ratios and thousands.
_RUN = re.compile(r"\+?\(?\d(?:[\s\-‐-―_.·•/|,:;、*()]{0,3}\d)*")
_DIGITS = re.compile(r"\d+")
_GROUPING = re.compile(r"[\s\-‐-―_.·•/()]{0,3}")
_LONGEST = 19  # digits of a card
_PARTS = 6


def numbers(text: str) -> Iterator[Span]:
    for run in _RUN.finditer(text):
        parts = [(m.start(), m.end()) for m in _DIGITS.finditer(text, run.start(), run.end())]
        if parts[-1][1] - parts[0][0] < 7:
            continue
        i = 0
        while i < len(parts):
            j, kind = _longest(text, parts, i)
            if kind is None:
                i += 1
                continue
            start, end = parts[i][0], parts[j - 1][1]
            start -= 1 if text[start - 1 : start] == "+" else 2 if text[start - 2 : start] == "+(" else 0
            if kind == "id" and text[end : end + 1] in ("x", "X"):
                end += 1
            yield kind, start, end
            i = j


def _longest(text: str, parts: list[tuple[int, int]], i: int) -> tuple[int, Kind | None]:
    """The longest private number that starts with part ``i``: the part behind it, and what it is."""
    before = text[parts[i - 1][1] : parts[i][0]] if i else ""
    if before == "." or (before == "," and parts[i][1] - parts[i][0] == 3):  # of 3.1415 and 1,024
        return i, None
    written: list[tuple[int, str, tuple[int, ...]]] = []
    shape: tuple[int, ...] = ()
    digits, single = "", True
    for j in range(i, len(parts)):
        start, end = parts[j]
        digits += text[start:end]
        shape = (*shape, end - start)
        single &= end - start == 1
        if len(digits) > _LONGEST:
            break
        grouped = len(shape) <= _PARTS and _GROUPING.fullmatch(text, parts[j - 1][1], start)
        if j > i and not single and not grouped:
            break
        if len(digits) >= 7:
            written.append((j + 1, digits, shape))
    called = bool(written) and _CALLED_PHONE.search(text, max(0, parts[i][0] - 32), parts[i][0]) is not None
    for j, digits, shape in reversed(written):
        if (len(digits) == 10 or shape == (1, 3, 3, 4)) and _PUBLIC.fullmatch(digits[-10:]):
            return i, None
        kind = _kind(text, parts[i][0], parts[j - 1][1], digits, shape, called)
        if kind is not None:
            return j, kind
    return i, None


def _kind(
    text: str, start: int, end: int, digits: str, shape: tuple[int, ...], called_phone: bool
) -> Kind | None:
    size, after = len(digits), text[end : end + 1]
    if size == 17 and after in ("x", "X") and _is_resident_id(digits + "X"):
        return "id"
    if after.isascii() and after.isalpha():  # a part of a longer name, as in a UUID
        return None
    if (size == 18 and _is_resident_id(digits)) or (shape == (3, 2, 4) and _is_ssn(digits)):
        return "id"
    if size >= 14 and (shape[0] >= 4 or max(shape) == 1) and _is_card(digits):
        return "card"
    counted = len(shape) == 1 and not called_phone and _AMOUNT.match(text, end)
    if (
        size <= 15
        and not counted
        and (max(shape) == 1 or _DATE.search(text, start, end) is None)
        and (called_phone or _is_phone(digits, shape, text[max(0, start - 2) : start]))
    ):
        return "phone"
    return None


def _is_resident_id(digits: str) -> bool:
    if digits[6:8] not in ("18", "19", "20"):  # the year of birth
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
    r"|(?:call|text|reach|ring) me(?: at| on)?|m[óo]vil|portable|handynummer|telefon(?:nummer)?|wa\.me/)"
    + told(r"号码?|番号|number|\bno\b\.?|\bat\b|#")
    + r"\+?\(?$",
    re.ASCII | re.IGNORECASE,
)
# The lines of companies and helplines in China and America, which may be told to anybody.
_PUBLIC = re.compile(r"[48]00\d{7}|8(?:33|44|55|66|77|88)\d{7}")


# Not every word for things that are counted: "13912345678 年后打" and "… 天天在" are about a phone.
_AMOUNT = re.compile(
    r"\s?(?:元|块|次(?!日)|条(?!件)|个(?![人月])|(?:ns|ms|us|usd|bytes|rows|steps)\b)",
    re.ASCII | re.IGNORECASE,
)
_DATE = re.compile(r"(?<!\d)(?:19|20)\d\d([-./])(?:0?[1-9]|1[0-2])\1(?:0?[1-9]|[12]\d|3[01])(?!\d)")
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


def _is_phone(digits: str, shape: tuple[int, ...], before: str) -> bool:
    if before.endswith("+") or before == "+(":
        return _is_number("+" + digits, None)
    if len(set(digits)) < 3 or not (max(shape) == 1 or len(shape) <= 5):
        return False
    if shape != (1, 3, 3, 4) and (mobile := _MOBILE.fullmatch(digits)):
        return _is_number(mobile[1], "CN")
    if digits.startswith("00"):
        return _is_number("+" + digits[2:], None)
    # Whole, in two to four parts, or spelt out.
    whole = max(shape) == 1 or len(shape) == 1 or (len(shape) <= 4 and min(shape) > 1)
    if whole and digits.startswith("0") and (_is_number(digits, "CN") or _is_number(digits, "GB")):
        return True
    return any(_is_number(digits, region) for region in _AT_HOME.get(shape, ()))


def _is_number(number: str, region: str | None) -> bool:
    """Whether a numbering plan has the number, for a person: the lines of companies are public."""
    import phonenumbers as plans

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
