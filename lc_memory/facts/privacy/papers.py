"""Numbers that are private because the text names them: of papers, of accounts, on bank cards."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .reading import Kind, Span
from .told import COUNTED, Told, are_dates, told

_SIZE = r"是?1[58]位的?"  # of a Chinese id: "是15位的 1101…"
_END_OF = re.compile(
    r"\blast (?:four|six|4|6) (?:digits )?of (?:(?:my|his|her|their|the) )?$", re.ASCII | re.IGNORECASE
)
_END_OF_LENGTH = 40  # characters, and more than it ever has
_TAIL = (
    r"尾号|[后末][三四五六]位(?:数字?)?|的|\blast (?:four|six|4|6)\b|\bdigits\b"
    r"|\bof\b|\bend(?:s|ing) (?:in|with)\b"
)
_IS_TAIL = re.compile(r"尾号|位|last|end", re.IGNORECASE)
_NUMBER = r"(?:字?号码?|(?i:\bnumbers?\b|\bno\b\.?|\bnummer\b|\bn[ºo°]))"
_PAPER = re.compile(
    r"(?i:身[份分]证|护照|驾照|驾驶证|社保卡?|通行证|军官证|居留证|\bpassport|\bssn\b|social security"
    r"|\bid card|national id|driv(?:er'?s?|ing) licen[cs]e|national insurance|\bNINO\b|\bNHS\b|\bITIN\b"
    r"|aadhaar|\bDNI\b|\bNIE\b|\bNIR\b|\bs[ée]cu\b|s[ée]curit[ée] sociale|steuer-?(?:id\w{0,24}|nummer)"
    r"|マイナンバー)|\bNI(?= )",
    re.ASCII,
)
_OF_PAPER = Told(f"#|{_SIZE}|{_NUMBER}|{_TAIL}|档案编号")
_ASIDE = re.compile(rf"{_NUMBER}[^\d\n,.;!?。、]{{0,26}}", re.ASCII)  # "the number on my letter is"
_OWN_NUMBER = re.compile(
    r"(?P<value>(?<![A-Za-z])(?:[A-Z]{1,5}[ \-]?|[a-z]{1,2})?\d(?:[ \-]?[A-Z0-9]){2,24}"
    r"(?:\([0-9A]\)|x(?!\w))?)(?![A-Za-z0-9])",
    re.ASCII,
)
_LONGEST = 64  # characters of one of these, and more than it ever has
_ACCOUNT = re.compile(
    r"(?P<long>账号|账户|[银工农商建招交]行|\baccount(?: number| no\b\.?)?|\brouting(?: number)?)"
    r"|卡号?的?(?:尾号|[后末][四六]位(?:数字?)?)|卡号|(?:背面|背后)的?[三四34]位(?:数字?)?|安全码"
    r"|security code|card (?:number|no\b\.?|ending(?: in| with)?|ends (?:in|with))"
    r"|\bcvv2?|\bcvc2?|\biban\b|\bsort code",
    re.ASCII | re.IGNORECASE,
)
_OF_ACCOUNT = Told("#|卡|号码?|number")
_DIGITS = re.compile(r"(?P<value>\d(?:[ \-]{0,2}\d){2,24})(?!\d)", re.ASCII)
_IBAN = re.compile(r"\b[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{4}){2,7}(?: ?[A-Za-z0-9]{1,4})?\b", re.ASCII)


def papers(text: str) -> Iterator[Span]:
    """Numbers of ids, passports and other papers, or their ends."""
    for name in _PAPER.finditer(text):
        m = _number_of(text, name.end())
        if m is None:
            continue
        end_of = _END_OF.search(text, max(0, name.start() - _END_OF_LENGTH), name.start())
        enough = 4 if end_of or _IS_TAIL.search(text, name.end(), m.start()) else 6
        if _count(m["value"]) >= enough and not _is_something_else(text, m):
            yield _value("id", m)


def _number_of(text: str, start: int) -> re.Match[str] | None:
    """The number that the paper has whose name ends at ``start``."""
    found = _OWN_NUMBER.match(text, _OF_PAPER.end(text, start))
    aside = None if found else _ASIDE.match(text, told.end(text, start))
    if aside:
        found = _OWN_NUMBER.search(text, aside.start() + 1, aside.end() + _LONGEST)
    return found if aside is None or (found and found.start() <= aside.end()) else None


def accounts(text: str) -> Iterator[Span]:
    """Numbers of bank accounts and what is printed on cards."""
    for name in _ACCOUNT.finditer(text):
        m = _DIGITS.match(text, _OF_ACCOUNT.end(text, name.end()))
        if m and _count(m["value"]) >= (8 if name["long"] else 3) and not _is_something_else(text, m):
            yield _value("card", m)
    for m in _IBAN.finditer(text):
        from stdnum import iban

        groups = m[0]
        while " " in groups and not iban.is_valid(groups):  # the last one may be the next word
            groups = groups.rpartition(" ")[0]
        if iban.is_valid(groups):
            yield "card", m.start(), m.start() + len(groups)


def _count(value: str) -> int:
    return sum(c.isdigit() for c in value)


def _is_something_else(text: str, m: re.Match[str]) -> bool:
    """A date or an amount."""
    return COUNTED.match(text, m.end("value")) is not None or (
        _count(m["value"]) > 4 and are_dates(m["value"])
    )


def _value(kind: Kind, m: re.Match[str]) -> Span:
    return kind, m.start("value"), m.end("value")
