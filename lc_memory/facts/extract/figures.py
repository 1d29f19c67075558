"""The numbers in a text, however they are written: 40万, 四十万, 400,000 and "400 thousand" are one."""

from __future__ import annotations

import math
import re
import unicodedata

_HAN = dict(zip("零〇一二三四五六七八九两", (0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 2), strict=True))
_TENS = {"十": 10, "百": 100, "千": 1000}
_MYRIADS = {"万": 10_000, "亿": 100_000_000}
_TIMES = {"千": 1e3, "k": 1e3, "thousand": 1e3, "万": 1e4, "w": 1e4, "百": 100, "hundred": 100, "百万": 1e6,
          "m": 1e6, "million": 1e6, "千万": 1e7, "亿": 1e8, "billion": 1e9}  # fmt: skip
_ARABIC = re.compile(
    r"(?P<n>\d+(?:,\d{3})*(?:\.\d+)?)"
    r"\s?(?P<times>百万|千万|[千万百亿]|(?:[kKwWmM]|thousand|million|billion|hundred)(?![A-Za-z]))?"
)
_HAN_NUMBER = re.compile(r"[零〇一二三四五六七八九两十百千万亿]+(?:点[零〇一二三四五六七八九]+)?[万亿]?")
_SMALL = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
]
_BIG = dict(
    zip(
        ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"],
        range(20, 100, 10),
        strict=True,
    )
)
_WORDS: dict[str, float] = {**{word: i for i, word in enumerate(_SMALL)}, **_BIG}
_WORD = re.compile(r"[a-z]+")
_LONGEST = 30  # characters of a number in Chinese; a longer one is no amount
_NO_FIGURE = {"一", "两", "百", "千", "万", "千万", "万一", "一万", "十"}  # more often words than amounts


def figures(text: str) -> dict[float, str]:
    """The values in ``text``, each with how it was written there. "一个" and "one of" are none; what is
    too large to be an amount is infinite."""
    plain = unicodedata.normalize("NFKC", text)
    found: dict[float, str] = {}
    for m in _ARABIC.finditer(plain):
        value = float(m["n"].replace(",", ""))
        found.setdefault(round(value * _TIMES.get((m["times"] or "").lower(), 1), 6), m[0].strip())
    for m in _HAN_NUMBER.finditer(plain):
        if m[0] not in _NO_FIGURE or m[0] in ("一万", "十"):
            found.setdefault(_han_value(m[0]), m[0])
    for words in re.split(r"[^a-z\s\-]", plain.lower()):
        _english(_WORD.findall(words), found)
    return found


def _plain_digits(written: str) -> str:
    return "".join(str(_HAN[c]) for c in written)


def _han_value(written: str) -> float:
    if len(written) > _LONGEST:
        return math.inf
    if "点" in written:  # 十二点八万
        whole, _, rest = written.partition("点")
        part = rest.rstrip("万亿")
        times = _MYRIADS[rest[-1]] if part != rest else 1
        return round((_han_value(whole) + float(f"0.{_plain_digits(part)}")) * times, 6)
    if not any(c in _TENS or c in _MYRIADS for c in written):  # 二〇二四
        return float(_plain_digits(written))
    total = section = digit = 0
    last = 0
    for c in written:
        if c in _HAN:
            digit, last = _HAN[c], last if _HAN[c] else 10
        elif c in _TENS:
            section += (digit or 1) * _TENS[c]
            digit, last = 0, _TENS[c]
        else:
            total = (total + section + digit) * _MYRIADS[c] if section + digit or total else _MYRIADS[c]
            section = digit = 0
            last = _MYRIADS[c]
    if digit and last >= 100 and written[-1] in _HAN:  # 四千五 is 4500
        digit *= last // 10
    return float(total + section + digit)


def _english(words: list[str], found: dict[float, str]) -> None:
    value = 0.0
    since = 0
    for i, word in enumerate([*words, ""]):
        if word in _WORDS:
            value += _WORDS[word]
        elif word in _TIMES and len(word) > 1 and value:
            value *= _TIMES[word]
        else:
            if value > 1:
                found.setdefault(round(value, 6), " ".join(words[since:i]))
            value, since = 0.0, i + 1
