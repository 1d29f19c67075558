"""Numbers that are private because the text names them: of papers, of accounts, on bank cards."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .reading import Kind, Span
from .told import COUNTED, are_dates, told

_SIZE = r"是?1[58]位的?"  # of a Chinese id: "是15位的 1101…"
_END_OF = r"\blast (?:four|six|4|6) (?:digits )?of (?:(?:my|his|her|their|the) )?"
_TAIL = (
    r"尾号|[后末][三四五六]位(?:数字?)?|的|\blast (?:four|six|4|6)\b|\bdigits\b"
    r"|\bof\b|\bend(?:s|ing) (?:in|with)\b"
)
_IS_TAIL = re.compile(r"尾号|位|last|end", re.IGNORECASE)
_NUMBER = r"(?:字?号码?|(?i:\bnumbers?\b|\bno\b\.?|\bnummer\b|\bn[ºo°]))"
_PAPER = re.compile(
    rf"(?P<end_of>(?i:{_END_OF}))?"
    r"(?:(?i:身[份分]证|护照|驾照|驾驶证|社保卡?|通行证|军官证|居留证|\bpassport|\bssn\b|social security"
    r"|\bid card|national id|driv(?:er'?s?|ing) licen[cs]e|national insurance|\bNINO\b|\bNHS\b|\bITIN\b"
    r"|aadhaar|\bDNI\b|\bNIE\b|\bNIR\b|\bs[ée]cu\b|s[ée]curit[ée] sociale|steuer-?(?:id\w{0,24}|nummer)"
    r"|マイナンバー)|\bNI(?= ))"
    rf"(?P<part>{told(f'#|{_SIZE}|{_NUMBER}|{_TAIL}|档案编号')}"
    rf"|{told()}{_NUMBER}[^\d\n,.;!?。、]{{0,26}}?)"  # "the number on my letter is"
    r"(?P<value>(?<![A-Za-z])(?:[A-Z]{1,5}[ \-]?|[a-z]{1,2})?\d(?:[ \-]?[A-Z0-9]){2,24}"
    r"(?:\([0-9A]\)|x(?!\w))?)(?![A-Za-z0-9])",
    re.ASCII,
)
_ACCOUNT = re.compile(
    r"(?P<long>账号|账户|[银工农商建招交]行|\baccount(?: number| no\b\.?)?|\brouting(?: number)?)"
    r"|卡号?的?(?:尾号|[后末][四六]位(?:数字?)?)|卡号|(?:背面|背后)的?[三四34]位(?:数字?)?|安全码"
    r"|security code|card (?:number|no\b\.?|ending(?: in| with)?|ends (?:in|with))"
    r"|\bcvv2?|\bcvc2?|\biban\b|\bsort code",
    re.ASCII | re.IGNORECASE,
)
_DIGITS = re.compile(
    rf"{told('#|卡|号码?|number')}(?P<value>\d(?:[ \-]{{0,2}}\d){{2,24}})(?!\d)", re.ASCII | re.IGNORECASE
)
_IBAN = re.compile(r"\b[A-Za-z]{2}\d{2}(?: ?[A-Za-z0-9]{4}){2,7}(?: ?[A-Za-z0-9]{1,4})?\b", re.ASCII)


def papers(text: str) -> Iterator[Span]:
    """Numbers of ids, passports and other papers, or their ends."""
    for m in _PAPER.finditer(text):
        enough = 4 if m["end_of"] or _IS_TAIL.search(m["part"]) else 6
        if _count(m["value"]) >= enough and not _is_something_else(text, m):
            yield _value("id", m)


def accounts(text: str) -> Iterator[Span]:
    """Numbers of bank accounts and what is printed on cards."""
    for name in _ACCOUNT.finditer(text):
        m = _DIGITS.match(text, name.end())
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
