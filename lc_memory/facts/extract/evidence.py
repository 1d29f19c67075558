"""What a note rests on: the user's own words, found again. Held by code, whatever a model says.

A note is taken only with words of the user that bear it (its *quote*). They are widened to the whole clause,
so that a "not", a "my friend" or an "if" in front of them cannot be left out. What is kept is the note's own
wording where it says no more and no less: the words of whole clauses, in their order, but for fillers.
Otherwise the clause itself is kept: what a model leaves out of one ("almost", "used to", "want to") is what
turns its meaning. So nothing can be kept that the user did not say.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from lc_memory.language import is_passing, passing

from .figures import figures
from .others import FIRST_PERSON, of_family, of_others

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


class AboutOthers(NotBorne):
    """The user's words are about somebody else."""

    def __init__(self, family: bool) -> None:
        super().__init__("it is about somebody else")
        self.family = family
        """Whether it is one of his own, pets included."""


def grounded(content: str, quote: str, said: Sequence[str], *, about_user: bool) -> Grounded:
    """The note as far as ``said``, the user's messages, bears it out, the newest first.

    ``about_user``: its kind is about the user, so that what is said of others is none of it.
    Raises NotBorne.
    """
    content = " ".join(content.split())[: 2 * LONGEST]  # too long for a fact, however it goes on
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
    if _in_others_text(message, start, end):
        raise NotBorne("it stands in a quotation or a pasted text")
    unsaid = figures(content).keys() - figures(message).keys()
    if unsaid:
        raise NotBorne("a number in it was not said")
    if _unsaid_name(content, message):
        raise NotBorne("a name in it was not said")
    start, end = _widened(message, start, end)
    clause = _trimmed(message[start:end])
    mark = _BREAK.match(message, end)
    if reason := passing(clause, _sentence(message, start, end), mark[0] if mark else ""):
        raise NotBorne(reason)
    if about_user and of_others(clause):
        raise AboutOthers(of_family(clause))
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
_BULLET = re.compile(r"^(?:[-*•·–—]|\d+[.)、])\s+")
_THIRD_PERSON = re.compile(r"[你您他她它]|\b(?:he|she|they|his|her|their|it|you)\b", re.IGNORECASE)
# Shorter ones are titles, nicknames and emphasis.
_QUOTED = [
    re.compile(pattern)
    for pattern in (
        r"\"[^\"\n]{6,}\"", "“[^“”\n]{6,}”", "「[^「」\n]{4,}」", "『[^『』\n]{4,}』", r"‘[^‘\n]{15,}’(?!\w)",
    )
]  # fmt: skip
# An apostrophe within a word is no mark, so these go from the first of a line to its last.
_OPENS, _CLOSES, _LEAST_BETWEEN = re.compile(r"(?<!\w)'"), re.compile(r"'(?!\w)"), 15
_TASK = re.compile(
    r"\A[^:：\n]{0,40}(?:翻译|总结|概括|改写|润色|校对|扩写|缩写|纠错|改成|修改|改一?下|检查|回复|提炼|分析"
    r"|\b(?:translate|summari[sz]e|rewrite|rephrase|paraphrase|proofread|correct|edit|fix|shorten|polish|improve"
    r"|reply to|respond to|check|analy[sz]e|grade|review|turn this into)\b"
    r"|小说|文章|新闻|歌词|报道|台词|剧本|\b(?:article|novel|lyrics|story|poem|excerpt|passage)\b)[^:：\n]{0,60}[:：\n]",
    re.IGNORECASE,
)


def _squeezed(text: str) -> tuple[str, list[int]]:
    """Letters and digits of ``text`` in plain form, and where each stands."""
    out: list[str] = []
    at: list[int] = []
    for i, c in enumerate(text):
        for plain in unicodedata.normalize("NFKC", c).casefold()[:4]:  # some ligatures are a whole sentence
            if plain.isalnum():
                out.append(plain)
                at.append(i)
    return "".join(out), at


def _find(words: str, message: str) -> tuple[int, int] | None:
    """Where ``words`` stand in ``message``, spaces, marks, case and width aside; parts around "…" in
    order."""
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
    """The clauses that ``message[start:end]`` touches, back to one that says who it is about: to "I" or
    "my", and from a "she" to the clause before it. A clause between that is not worth keeping ends this."""
    behind = _BREAK.search(message, end)
    end = behind.start() if behind else len(message)
    sentence = max((m.end() for m in _END.finditer(message, 0, start)), default=0)
    heads = [sentence, *(m.end() for m in _BREAK.finditer(message, sentence, start))]
    for i, head in reversed(list(enumerate(heads))):
        if i < len(heads) - 1 and is_passing(_trimmed(message[head : heads[i + 1]])):
            return heads[i + 1], end
        if FIRST_PERSON.search(message, head, end):
            return head, end
        if _THIRD_PERSON.search(message, head, end):
            return heads[max(0, i - 1)], end
    return heads[-1], end


def _in_others_text(message: str, start: int, end: int) -> bool:
    """Whether the words stand within quotation marks, or in a text that was pasted to be worked on."""
    if (quoted := _quoted(message, start, end)) is not None:
        return any(c.isalnum() for c in message[: quoted[0]] + message[quoted[1] :])
    task = _TASK.match(message)
    return task is not None and task.end() <= start


def _quoted(message: str, start: int, end: int) -> tuple[int, int] | None:
    """The quotation within which ``message[start:end]`` stands, marks included. None: in none."""
    for pattern in _QUOTED:
        for quoted in pattern.finditer(message):
            if quoted.start() < start and end <= quoted.end():
                return quoted.span()
    behind = message.find("\n", end)
    behind = len(message) if behind < 0 else behind
    opens = _OPENS.search(message, message.rfind("\n", 0, start) + 1, start)
    closes = next(reversed([*_CLOSES.finditer(message, end, behind)]), None)
    if opens is None or closes is None or closes.start() - opens.end() < _LEAST_BETWEEN:
        return None
    return opens.start(), closes.end()


def _trimmed(text: str) -> str:
    """Without marks around it, the bullet of a list, and a bracket whose other half is elsewhere."""
    text = _BULLET.sub("", text.strip(_EDGES))
    for opening, closing in ("()", "（）", "[]", "【】"):
        if text.count(opening) != text.count(closing):
            text = text.strip(opening + closing)
    return text.strip(_EDGES)


def _sentence(message: str, start: int, end: int) -> str:
    head = max((m.end() for m in _END.finditer(message, 0, start)), default=0)
    tail = _END.search(message, end)
    return _trimmed(message[head : tail.start() if tail else len(message)])


# ---------------------------------------------------------------- whether the note says more

_NOT = re.compile(r"[不没别无非未]|\b(?:not|no|never|none|neither|without|cannot)\b|n't\b", re.IGNORECASE)
# What a note may add: who speaks, and what ties a clause together.
_FREE = frozenset("我的是了在有叫也都和与及") | frozenset(
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
# What it may leave out of a clause.
_FILLERS = """
    so and but just really actually basically well oh btw tbh please lol ok yeah hey i i'm im my a an the is
    am are it it's with about still now also very we our we're
"""
_WHEN_SAID = re.compile(r"今[天早晚]|昨[天晚]|前天|刚刚|最近|\b(?:today|yesterday|recently)\b", re.IGNORECASE)
_MAY_BE_LEFT_OUT = frozenset("其实就也都又还嘛吧啊呢呀哈哦啦的了是和与我那这挺很最现在已经对") | frozenset(
    _FILLERS.split()
)
_TOKEN = re.compile(r"[a-z0-9](?:['.\-]*[a-z0-9+#])*|[^\W_]", re.IGNORECASE)
_DAYS = """
    monday tuesday wednesday thursday friday saturday sunday
    january february march april june july august september october november december
"""
_LATIN_NAME = re.compile(r"(?<![.!?]\s)(?<!^)\b[A-Z][A-Za-z]+\b")
_HAN_NAME = re.compile(
    r"(?:名叫|叫做?|姓|昵称是?|名字是)(?P<called>[\u3400-\u9fff]{1,4})"
    r"|(?P<place>[\u3400-\u9fff]{2})(?:市|省|区|县|镇|路|街|公司|集团|大学|学院|医院)"
)


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


def _says_no_more(content: str, clause: str) -> bool:
    """Whether every word of ``content`` stands in ``clause``, in this order, with the same "not" and persons,
    and none of a part of it is left out of which others were taken."""
    if len(_NOT.findall(content)) != len(_NOT.findall(clause)):
        return False
    if of_others(clause) != of_others(content):
        return False
    rest = _tokens(clause)
    noted = _tokens(content)
    at = 0
    for token in noted:
        try:
            at = rest.index(token, at) + 1
        except ValueError:
            if token not in _FREE:
                return False
    for part in _BREAK.split(_WHEN_SAID.sub("", clause)):
        telling = [token for token in _tokens(part) if token not in _MAY_BE_LEFT_OUT]
        if 0 < sum(token in noted for token in telling) < len(telling):
            return False
    return True


def _much_said(content: str, message: str) -> bool:
    """Whether at least half of the words of ``content`` are those of ``message``."""
    said = set(_tokens(message))
    words = [token for token in _tokens(content) if token not in _FREE]
    return not words or 2 * sum(word in said for word in words) >= len(words)


def _unsaid_name(content: str, message: str) -> bool:
    known = {part for token in _tokens(message) for part in (token, *re.split(r"[-'.+]", token))}
    for found in _LATIN_NAME.findall(content):
        name = found.casefold()
        # A day or a month may be written out.
        if name not in known and name not in _FREE and not (name in _DAYS.split() and name[:3] in known):
            return True
    squeezed, _ = _squeezed(message)
    for found in _HAN_NAME.finditer(content):
        name = found["called"] or found["place"]
        if not any(c in squeezed for c in name):
            return True
    return False


__all__ = ["LONGEST", "AboutOthers", "Grounded", "NotBorne", "grounded", "was_said"]
