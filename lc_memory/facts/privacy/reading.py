"""A text as a person reads it: disguised characters as what they stand for, with the way back.

For looking for something in a text, never for keeping it: Chinese digits become digits here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

_SPECIAL = re.compile(
    r"%(?P<url>[2-7][0-9A-Fa-f])|\\u00(?P<json>[2-7][0-9A-Fa-f])"
    r"|&#(?:x(?P<hex>[2-7][0-9A-Fa-f])|(?P<dec>\d{2,3}));|[^\x00-\x7f\u3400-\u9fff]"
)
_HAN_DIGITS = dict(
    zip("零〇一二三四五六七八九幺壹贰叁肆伍陆柒捌玖", "00123456789" + "1" + "123456789", strict=True)
)
# "一" begins many a word that may stand behind a number.
_HAN_DIGIT = f"(?:(?!一[直下个起般样些定共次会])[{''.join(_HAN_DIGITS)}])"
_HAN_RUN = re.compile(f"{_HAN_DIGIT}{{3,}}|{_HAN_DIGIT}(?:[\\s,，、.\\-]{{1,2}}{_HAN_DIGIT}){{5,}}")
# A long number with digits of both kinds; in a short one both have a meaning, as in "3月二十".
_MIXED_RUN = re.compile(f"(?=\\d{{0,20}}{_HAN_DIGIT})(?:\\d|{_HAN_DIGIT}){{9,}}", re.ASCII)
DIGIT_WORDS = dict(
    zip(
        ["zero", "oh", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"],
        "00123456789",
        strict=True,
    )
)
"""The English names of the digits."""
_WORD = re.compile(rf"\b(?:{'|'.join(DIGIT_WORDS)}|\d)\b", re.ASCII | re.IGNORECASE)
_WORD_RUN = re.compile(rf"{_WORD.pattern}(?:[\s,\-]{{1,3}}{_WORD.pattern}){{6,}}", re.ASCII | re.IGNORECASE)
_UNSEEN = {"Cf", "Mn", "Me"}
# The characters that private things are named by, as they are written in Taiwan and Hong Kong.
_SIMPLER = str.maketrans(
    "電話機號碼證護駕驗態為銀帳賬戶後設鎖換變應該給發現從記詞鑰郵聯絡",
    "电话机号码证护驾验态为银账账户后设锁换变应该给发现从记词钥邮联络",
)
# Cyrillic letters that look like Latin ones, and words that have some of both.
_LOOKALIKES = str.maketrans("аеорсухіѕјАВЕКМНОРСТХ", "aeopcyxisjABEKMHOPCTX")
_LETTERS = re.compile(r"[A-Za-z\u0400-\u04ff]{2,}")
_LATIN = re.compile(r"[A-Za-z]")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_LONGEST_PLAIN = 4  # characters that one stands for; some ligatures are a whole sentence


Kind = Literal["phone", "id", "card", "mail", "password", "key", "unread"]
"""A kind of private data. "unread": what was not looked through, and may hold any."""
Span: TypeAlias = tuple[Kind, int, int]
"""A kind, and where in the text that was searched: ``text[start:end]``."""


@dataclass(frozen=True)
class Reading:
    """``text`` as it is read; character ``i`` of it stands for ``original[starts[i]:ends[i]]``."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]


def read(text: str) -> Reading:
    """``text`` with every character as its plain form; invisible ones and accents are gone."""
    return _number_words(_han_digits(_folded(_characters(text))))


_OTHER = "\uffff"  # no character


class _Plain(dict[int, str]):
    """What a character stands for, where that is one character, by code point; each is looked up once."""

    def __missing__(self, code: int) -> str:
        c = chr(code)
        plain = _plain(c) if _SPECIAL.match(c) else c
        if len(self) > 10_000:
            self.clear()
        self[code] = plain = plain if len(plain) == 1 else _OTHER
        return plain


_PLAIN = _Plain()


def _characters(text: str) -> Reading:
    """Nearly every text has a character for each of its own. Where not, most stand for themselves and are
    taken in stretches, the others one by one."""
    if not any(escape in text for escape in ("%", "\\u00", "&#")):
        plain = text if text.isascii() else text.translate(_PLAIN)
        if _OTHER not in plain:
            return Reading(plain, range(len(text)), range(1, len(text) + 1))
    out: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for m in _SPECIAL.finditer(text):
        out.append(text[at : m.start()])
        plain = _unescaped(m) if len(m[0]) > 1 else _plain(m[0])
        out.append(plain)
        starts += [*range(at, m.start()), *[m.start()] * len(plain)]
        ends += [*range(at + 1, m.start() + 1), *[m.end()] * len(plain)]
        at = m.end()
    out.append(text[at:])
    starts += range(at, len(text))
    ends += range(at + 1, len(text) + 1)
    return Reading("".join(out), starts, ends)


def _unescaped(m: re.Match[str]) -> str:
    code = int(m["url"] or m["json"] or m["hex"] or "0", 16) or int(m["dec"] or 0)
    return chr(code) if code < 128 else m[0]


def _plain(c: str) -> str:
    """What a character that is neither ASCII nor Chinese stands for."""
    if unicodedata.category(c) in _UNSEEN:
        return ""
    digit = unicodedata.digit(c, None)
    return unicodedata.normalize("NFKC", c)[:_LONGEST_PLAIN] if digit is None else str(digit)


def _folded(plain: Reading) -> Reading:
    """The characters of other scripts that are read as those of this one, each as one character."""
    if plain.text.isascii():
        return plain

    def latin(m: re.Match[str]) -> str:
        return m[0] if m[0].isascii() or not _LATIN.search(m[0]) else m[0].translate(_LOOKALIKES)

    text = plain.text.translate(_SIMPLER)
    return Reading(_LETTERS.sub(latin, text) if _CYRILLIC.search(text) else text, plain.starts, plain.ends)


def _han_digits(plain: Reading) -> Reading:
    if plain.text.isascii():
        return plain

    def digits(m: re.Match[str]) -> str:
        return "".join(_HAN_DIGITS.get(c, c) for c in m[0])

    return Reading(_MIXED_RUN.sub(digits, _HAN_RUN.sub(digits, plain.text)), plain.starts, plain.ends)


def _number_words(plain: Reading) -> Reading:
    """Seven digit words in a row, digits among them, are one number; fewer are talk."""
    runs = list(_WORD_RUN.finditer(plain.text))
    if not runs:
        return plain
    out: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for run in runs:
        words = list(_WORD.finditer(plain.text, run.start(), run.end()))
        if all(word[0].isdigit() for word in words):
            continue
        out.append(plain.text[at : run.start()])
        starts += plain.starts[at : run.start()]
        ends += plain.ends[at : run.start()]
        at = run.start()
        for word in words:  # and one space for whatever is between it and the last
            gap = " " if word.start() > at else ""
            out.append(gap + DIGIT_WORDS.get(word[0].lower(), word[0]))
            starts += [*([plain.starts[at]] if gap else []), plain.starts[word.start()]]
            ends += [*([plain.ends[word.start() - 1]] if gap else []), plain.ends[word.end() - 1]]
            at = word.end()
    out.append(plain.text[at:])
    return Reading("".join(out), [*starts, *plain.starts[at:]], [*ends, *plain.ends[at:]])
