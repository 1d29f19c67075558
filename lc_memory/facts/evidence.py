"""What a note rests on: the user's own words, found again. Held by code, whatever a model says.

A note is taken only with words of the user that bear it (its *quote*). They are widened to the whole clause,
so that a "not", a "my friend" or an "if" in front of them cannot be left out. What is kept is the note's own
wording where it says no more than the clause, word for word and in the same order; otherwise the clause.
So nothing can be kept that the user did not say.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from lc_memory.facts.figures import figures
from lc_memory.facts.passing import of_others, passing

LONGEST = 400
"""Characters of a fact. What is longer is a text of the user's, no fact about him."""


@dataclass(frozen=True)
class Grounded:
    """A note that what was said bears out."""

    text: str
    """What to keep."""
    quote: str
    """The user's words it rests on, whole clauses."""
    message: int
    """Which of the messages they stand in."""


class NotBorne(Exception):
    """What was said does not bear the note; says why, without its words."""


def grounded(content: str, quote: str, said: Sequence[str], *, about_user: bool) -> Grounded:
    """The note as far as ``said``, the user's messages, bears it out, the newest first.

    ``about_user``: its kind is about the user, so that what is said of others is none of it.
    Raises NotBorne.
    """
    content = " ".join(content.split())
    for words in (quote, content):
        for i in range(len(said) - 1, -1, -1):
            place = _find(words, said[i])
            if place is not None:
                return _weighed(content, said[i], *place, i, about_user)
    raise NotBorne("the words it rests on were not said")


def was_said(words: str, message: str) -> bool:
    """Whether ``words`` stand in ``message``, spaces, marks, case and width aside."""
    wanted = _squeezed(words)[0]
    return bool(wanted) and wanted in _squeezed(message)[0]


def _weighed(content: str, message: str, start: int, end: int, i: int, about_user: bool) -> Grounded:
    unsaid = figures(content).keys() - figures(message).keys()
    if unsaid:
        raise NotBorne("a number in it was not said")
    if _unsaid_name(content, message):
        raise NotBorne("a name in it was not said")
    start, end = _widened(message, start, end)
    clause = message[start:end].strip(_EDGES)
    mark = _BREAK.match(message, end)
    if reason := passing(clause, _sentence(message, start, end), mark[0] if mark else ""):
        raise NotBorne(reason)
    if about_user and of_others(clause):
        raise NotBorne("it is about somebody else")
    text = next(
        (content for part in (clause, _sentence(message, start, end)) if _says_no_more(content, part)), clause
    )
    if text is not content and not _much_said(content, message):
        raise NotBorne("it says something else than the words it rests on")
    if len(text) > LONGEST:
        raise NotBorne("it is no single fact, but a text")
    if not any(c.isalpha() for c in text):
        raise NotBorne("nothing is said in it")
    return Grounded(text, clause, i)


# ---------------------------------------------------------------- where the words stand

_EDGES = " \t\r\n,，。.;；、!！~…:："
# A comma between digits belongs to a number, a full stop between letters to a name.
_BREAK = re.compile(r"[，。！？!?；;\n…]|,(?!\d)|\.(?=\s|$)")
_END = re.compile(r"[。！？!?\n]|\.(?=\s|$)")
_PERSON = re.compile(
    r"[我咱俺你您他她它]|\b(?:i|i'm|my|we|our|me|he|she|they|his|her|their|you)\b", re.IGNORECASE
)


def _squeezed(text: str) -> tuple[str, list[int]]:
    """Letters and digits of ``text`` in plain form, and where each stands."""
    out: list[str] = []
    at: list[int] = []
    for i, c in enumerate(text):
        for plain in unicodedata.normalize("NFKC", c).casefold():
            if plain.isalnum():
                out.append(plain)
                at.append(i)
    return "".join(out), at


def _find(words: str, message: str) -> tuple[int, int] | None:
    """Where ``words`` stand in ``message``, spaces, marks, case and width aside; parts around "…" "
    "in order."""
    whole, at = _squeezed(message)
    start: int | None = None
    after = 0
    for part in re.split(r"…+|\.{3,}", words):
        wanted, _ = _squeezed(part)
        if not wanted:
            continue
        found = whole.find(wanted, after)
        if found < 0:
            return None
        start = found if start is None else start
        after = found + len(wanted)
    if start is None:
        return None
    # A single letter or syllable stands everywhere: it must be all there is.
    if after - start < (2 if not whole[start:after].isascii() else 3) and after - start < len(whole):
        return None
    return at[start], at[after - 1] + 1


def _widened(message: str, start: int, end: int) -> tuple[int, int]:
    """The clauses that ``message[start:end]`` touches, back to one that says who it is about."""
    behind = _BREAK.search(message, end)
    end = behind.start() if behind else len(message)
    sentence = max((m.end() for m in _END.finditer(message, 0, start)), default=0)
    heads = [sentence, *(m.end() for m in _BREAK.finditer(message, sentence, start))]
    for head in reversed(heads):
        if _PERSON.search(message, head, end):
            return head, end
    return heads[-1], end


def _sentence(message: str, start: int, end: int) -> str:
    head = max((m.end() for m in _END.finditer(message, 0, start)), default=0)
    tail = _END.search(message, end)
    return message[head : tail.start() if tail else len(message)].strip(_EDGES)


# ---------------------------------------------------------------- whether the note says more

_NOT = re.compile(r"[不没别无非未]|\b(?:not|no|never|none|neither|without|cannot)\b|n't\b", re.IGNORECASE)
_FREE = frozenset(
    "我的是了在有叫也都和与及"
)  # words a note may add: who speaks, and what ties a clause together
_FREE_WORDS = frozenset(
    [
        "i",
        "i'm",
        "my",
        "am",
        "is",
        "are",
        "a",
        "an",
        "the",
        "and",
        "to",
        "of",
        "in",
        "at",
        "have",
        "has",
        "me",
    ]
)
_TOKEN = re.compile(r"[a-z0-9][a-z0-9'+.#\-]*[a-z0-9+#]|[a-z0-9]|[^\W_]", re.IGNORECASE)
_LATIN_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][A-Za-z]+\b")
_HAN_NAME = re.compile(
    r"(?:名叫|叫做?|姓|昵称是?|名字是)(?P<called>[\u3400-\u9fff]{1,4})"
    r"|(?P<place>[\u3400-\u9fff]{2})(?:市|省|区|县|镇|路|街|公司|集团|大学|学院|医院)"
)


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


def _says_no_more(content: str, clause: str) -> bool:
    """Whether every word of ``content`` stands in ``clause``, in this order, with the same "not" "
    "and persons."""
    if len(_NOT.findall(content)) != len(_NOT.findall(clause)):
        return False
    if of_others(clause) != of_others(content):
        return False
    said = iter(_tokens(clause))
    free = _FREE | _FREE_WORDS
    for token in _tokens(content):
        rest = list(said)
        if token in rest:
            said = iter(rest[rest.index(token) + 1 :])
        elif token in free:
            said = iter(rest)
        else:
            return False
    return True


def _much_said(content: str, message: str) -> bool:
    """Whether at least half of the words of ``content`` are those of ``message``."""
    said = set(_tokens(message))
    words = [token for token in _tokens(content) if token not in _FREE and token not in _FREE_WORDS]
    return not words or 2 * sum(word in said for word in words) >= len(words)


def _unsaid_name(content: str, message: str) -> bool:
    known = set(_tokens(message))
    if any(
        name.casefold() not in known and name.casefold() not in _FREE_WORDS
        for name in _LATIN_NAME.findall(content)
    ):
        return True
    squeezed, _ = _squeezed(message)
    for found in _HAN_NAME.finditer(content):
        name = found["called"] or found["place"]
        if not any(c in squeezed for c in name):
            return True
    return False


__all__ = ["LONGEST", "Grounded", "NotBorne", "grounded", "was_said"]
