"""What of a text is private: phone numbers, ids, bank cards, mail addresses, passwords and keys.

``private_in(text)`` says where, ``redacted(text)`` puts a word such as ``[phone number]`` in its place.
Checksums and numbering plans decide (phonenumbers, python-stdnum), so that an order number, a price or a
year is none; where a text names what it gives ("密码是 …", "身份证尾号 …") the name decides.

========================================================================================== =========
How private data is written (the forty of tests/test_privacy.py, by group)                 found
========================================================================================== =========
plain; in groups by spaces, dashes, dots, brackets; with +86, 0086, an area code           yes
a digit at a time, between spaces, dashes, commas or line ends                             yes
full-width, circled, keycap and foreign digits; invisible characters between them          yes
Chinese digits (一三八, 幺三八, 壹叁捌); English words (one three eight)                   yes
in a URL (tel:, ?phone=, user:password@, %40), in JSON (\\u0031), as HTML (&#49;)         yes
a (at) b.cn, a at b dot cn, a艾特b点cn, full-width ＠                                      yes
split over two messages, the second going on with digits                                   yes
split over two messages with words between the halves                                      no
backwards; O for 0, l for 1; base64; "two sevens"; a sentence as a password                no
a secret that nothing names and no prefix shows; street addresses, dates of birth          no
========================================================================================== =========

The names of private things are known in Chinese, of both scripts, and in English; the commonest of them in
German, French, Spanish and Japanese. Between a name and what it names only a closed list of words may stand
(:mod:`lc_memory.facts.privacy.told`). Left out, since to find it would be to take ordinary talk for it:

* a password in Chinese characters, in several words or behind a slash ("admin/secret"), one that is told by
  how it is made up ("六个八", "my birthday, then …"), and the answer to a security question;
* a code that is only called a code ("Use 482913 to …"), a label that is spelt ("p a s s w o r d") or slang;
* the halves of a number in the wrong order, and the two halves of a mail address told apart;
* number plates; numbers of accounts and papers that nothing names and no checksum shows; names in
  messengers without a digit in them.

Taken for private though it is not: an example's address (user@example.com), an issuer's test card, an order
number that happens to have the checksum of a card, a password in an example of a program.

What is no pattern cannot be found by one: a person's address or illness is kept out by not asking for it
(see the kinds of :mod:`lc_memory.facts.extract.notes`). A number split over two turns is found where turns
are read together, as for the notes, and not where each turn is indexed by itself.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, cast, get_args

from lc_memory.errors import MemoryInputError
from lc_memory.language import Language, language_of

from .addresses import addresses, messengers
from .keys import keys
from .numbers import numbers
from .papers import accounts, papers
from .passwords import passwords
from .reading import Kind, Span, read

PrivacyMode = Literal["refuse", "redact", "off"]
"""What becomes of private data on its way into the facts: the fact is refused, kept without it, or kept."""

NAMES: dict[Language, dict[Kind, str]] = {
    "en": {
        "phone": "phone number",
        "id": "identity number",
        "card": "bank card number",
        "mail": "mail address",
        "password": "password",
        "key": "secret key",
        "unread": "text too long to be looked through",
    },
    "zh": {
        "phone": "电话号码",
        "id": "证件号码",
        "card": "银行卡号",
        "mail": "邮箱地址",
        "password": "密码",
        "key": "密钥",
        "unread": "过长而未检查的文本",
    },
}
MOST_READ = 200_000
"""So many characters of a text are looked through, at up to 2 us each. What lies behind them counts as
private, since nobody has looked; a fact that long is a document."""

_LOOKS = (papers, accounts, passwords, keys, addresses, messengers, numbers)
_BLANKS = re.compile("|".join(re.escape(f"[{name}]") for names in NAMES.values() for name in names.values()))


@dataclass(frozen=True)
class Private:
    """A stretch of a text, ``text[start:end]``, that is private, and what it is."""

    kind: Kind
    start: int
    end: int


class PrivateDataWarning(UserWarning):
    """Something was not kept, or not whole, because it was private. Says what kind it was, never what."""


def private_in(text: str) -> list[Private]:
    """The private stretches of ``text``, in order, none overlapping another.

    Time grows with its length, whatever stands in it, up to :data:`MOST_READ` characters; what lies behind
    them is one stretch more, of the kind "unread"."""
    reading = read(text[:MOST_READ])
    plain = reading.text
    found = sorted((span for look in _LOOKS for span in look(plain)), key=_first_longest)
    spans: list[Span] = []
    for kind, start, end in found:
        if not spans or start >= spans[-1][2]:
            spans.append((kind, start, end))
        elif end > spans[-1][2]:
            spans[-1] = (spans[-1][0], spans[-1][1], end)
    private = [Private(kind, reading.starts[start], reading.ends[end - 1]) for kind, start, end in spans]
    if len(text) > MOST_READ:
        private.append(Private("unread", max([MOST_READ, *(p.end for p in private)]), len(text)))
    return private


def warn_of_private(kept: str | None, found: Sequence[Private]) -> None:
    """Tell whoever called our caller what became of a fact with private data in it."""
    outcome = "was not kept" if kept is None else "was kept without it"
    warnings.warn(
        f"a fact to remember held {kinds_in_words(found)} and {outcome}; "
        'Memory.open(privacy="off") keeps such things',
        PrivateDataWarning,
        stacklevel=3,
    )


def checked_mode(mode: str) -> PrivacyMode:
    """``mode`` where it is one. Raises MemoryInputError."""
    if mode not in get_args(PrivacyMode):
        raise MemoryInputError(f"privacy={mode!r}: expected {', '.join(map(repr, get_args(PrivacyMode)))}")
    return cast(PrivacyMode, mode)


def _first_longest(span: Span) -> tuple[int, int]:
    return span[1], -span[2]


def redacted(text: str, found: Sequence[Private] | None = None) -> str:
    """``text`` with the name of what it was in the place of everything private."""
    found = private_in(text) if found is None else found
    if not found:
        return text
    names = NAMES[language_of(text)]
    out, at = [], 0
    for one in found:
        out += [text[at : one.start], f"[{names[one.kind]}]"]
        at = one.end
    return "".join([*out, text[at:]])


def has_blanks(text: str) -> bool:
    """Whether something was taken out of ``text`` by :func:`redacted`."""
    return _BLANKS.search(text) is not None


def without_blanks(text: str) -> str:
    """``text`` without the names that :func:`redacted` put into it."""
    return _BLANKS.sub(" ", text)


def kinds_in_words(found: Sequence[Private], language: Language = "en") -> str:
    """``a phone number and a password``, for a message to people."""
    names = list(dict.fromkeys(NAMES[language][one.kind] for one in found))
    if language == "zh":
        return "、".join(names)
    listed = [f"{'an' if name[0] in 'aeiou' else 'a'} {name}" for name in names]
    return " and ".join(", ".join(listed).rsplit(", ", 1))


def passed(text: str, mode: PrivacyMode) -> tuple[str | None, list[Private]]:
    """What of ``text`` may be kept under ``mode`` (None: nothing), and what was found in it."""
    found = [] if mode == "off" else private_in(text)
    if not found:
        return text, found
    if mode == "refuse":
        return None, found
    blank = redacted(text, found)
    return (blank if without_blanks(blank).strip() else None), found
