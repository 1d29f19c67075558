"""What stands between the name of a private thing and the thing: a colon, "is", "改成了", a quotation mark.

The list is closed. Were anything else let in between, all talk about passwords and papers would be taken
for the passwords and papers themselves.
"""

from __future__ import annotations

import re

_TOLD = "|".join(
    [
        r"\s|[\"'`*:=>|()“”「」『』【】《》→—–-]",
        "是|不是|为|係|了|就|还|叫做?|从|改成|改为|换成|换为|变成|设成|设为|设置[成为]|好像|应该|可能|大概",
        "记得|一直|现在|暂时|分别|老样子|忘了,?|不对,?|我|已经?|给你|发你|告诉你",
        r"\bis\b|\bwas\b|\bare\b|\bnow\b|\b(?:will|should|to) be\b|\bto\b|\bfrom\b",
        r"\b(?:changed|set|reset|updated) (?:to|from)\b",
        r"は|\bist\b|\blautet\b|\best\b|\bes\b",
    ]
)


class Told:
    """Up to 40 of these things in a row, and of those in ``more``, an alternation of others.

    What was read is not given back when nothing fits behind it: the things are words of one another ("是",
    "不是"), and to try all ways through a row of them takes for ever.
    """

    def __init__(self, more: str = "") -> None:
        self.pattern = re.compile(f"(?:{_TOLD}{more and '|' + more}){{0,40}}", re.ASCII | re.IGNORECASE)

    def end(self, text: str, start: int) -> int:
        """Where they end that begin at ``start``."""
        found = self.pattern.match(text, start)
        return found.end() if found else start


told = Told()


# What is about to be given outright: anything may follow. The other words may as well go on with talk.
SURE = re.compile(
    r"(?<!不)是|为|係|成|叫|\bis\b|\bwas\b|\b(?:changed|updated) to\b|[:=>→—–]|[\"'`“「『【《]$",
    re.ASCII | re.IGNORECASE,
)
# How many of something, or when: "密码 8 位", "password is 12+ characters".
COUNTED = re.compile(
    r"\s{0,2}(?:[年月日位天岁秒块元款条]|次(?!日)|个(?!人)|文字|桁"
    r"|(?:characters?|chars|digits|letters|symbols|bits?|bytes|times)\b)",
    re.ASCII | re.IGNORECASE,
)
_DATE = r"(?:19|20)\d\d(?:[ \-./]?(?:0?[1-9]|1[0-2])(?:[ \-./]?(?:0?[1-9]|[12]\d|3[01]))?)?"
_DATES = re.compile(rf"{_DATE}(?:[ \-/~]{{0,3}}{_DATE}){{0,3}}")


def are_dates(value: str) -> bool:
    """Whether ``value`` is nothing but years, months or days: papers are valid from one to another."""
    return _DATES.fullmatch(value) is not None
