"""The words that the lexical side of recall compares.

Text is folded to one form (NFKC, case), function words are left out, English is stemmed (Porter 2), and
Chinese, Japanese and Korean, which are written without spaces or with long particles, become
overlapping pairs of characters: ``篮球队`` is ``篮球``, ``球队``. A run is cut at function characters first,
so that no pair spans one: ``我的篮球`` is ``篮球`` alone.

Every term consists of letters and digits only, so it needs no quoting in any full-text query.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache

MAX_CHARS = 20_000
"""So much of a text is read. A memory is a sentence or a message; the words of a pasted book tell nothing."""

MAX_TERM = 64
"""A longer run of letters is no word (an encoded file, a key); its beginning stands for it."""

# The closed classes of English, with what is left of contractions (don't -> don). They are as frequent
# beside any subject as beside any other.
_FUNCTION_WORDS = """
    a about above after again against ain all also am an and any are aren as at be because been before being
    below between both but by can cannot could couldn did didn do does doesn doing don done down during each
    few for from further had hadn has hasn have haven having he her here hers herself him himself his how i
    if in into is isn it its itself just ll many may me might more most much must my myself no nor not now of
    off ok okay oh on once only or other our ours ourselves out over own please re really same shall she
    should shouldn so some such than that the their theirs them themselves then there these they this those
    through to too under until up us ve very was wasn we were weren what when where which while who whom
    whose why will with won would wouldn yeah yes you your yours yourself yourselves
"""
# What a light verb means stands in the words beside it. In a user's forty facts each may occur once, which
# would make it look as telling as a name.
_LIGHT_VERBS = """
    begin come feel find get gets getting give go going got keep know let like look made make mean need put
    say see start take tell think try use want work
"""
_ENGLISH = frozenset((_FUNCTION_WORDS + _LIGHT_VERBS).split())

_CHINESE_CHARACTERS = (
    "不没的了着过吗呢吧啊呀哦嘛啦哇哈嗯唉我你您他她它们是在有和与跟就都也很太还又再"
    "这那哪个些么什谁把被让给对从到去来会能要想说"
)
_CHINESE_WORDS = """
    什么 怎么 怎样 如何 哪里 哪儿 哪些 为什么 可以 觉得 知道 记得 时候 一下 一个 这个 那个 非常 真的 没有
    不是 因为 所以 但是 如果 还是 或者 应该 可能 一些 一起 现在 今天
"""
_CUT = re.compile(
    "|".join([*sorted(_CHINESE_WORDS.split(), key=len, reverse=True), f"[{_CHINESE_CHARACTERS}]"])
)

# Kana, Han with its extensions, Hangul.
_UNSPACED = "\u3005-\u3007\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\U00020000-\U000323af"
_RUN = re.compile(rf"([{_UNSPACED}]+)|([^\W_{_UNSPACED}]+)")
_APOSTROPHE = re.compile(r"'(?:s|t|re|ve|ll|d|m)\b|(?<=\w)'(?=\w)")  # bart's -> bart, o'brien -> obrien

# Who asks, as the subject, object or owner; not the one that something is done for ("帮我", "tell me").
_ASKER = frozenset(("i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves"))
_ASKER_CHARACTERS = re.compile("[我咱俺]")
_DONE_FOR = re.compile("[帮幫给給替教]我|告[诉訴]我|(?:help|give|tell|show|teach) (?:me|us)\\b")

# What may stand in a sentence or not without changing what it says.
_FILLER = frozenset(("a", "an", "the", "so", "just", "really", "very", "quite", "well", "oh", "please", "to"))
_FILLER_CHARACTERS = re.compile("非常|特别|十分|真的|[的了啊呀呢吧嘛啦哦哇很挺太]")


def normalize(text: str) -> str:
    """The first :data:`MAX_CHARS` characters, NFKC and case folded, with one kind of apostrophe."""
    return unicodedata.normalize("NFKC", text[:MAX_CHARS]).casefold().replace("\u2019", "'")


def terms(text: str) -> list[str]:
    """The terms of a text in order, with repetitions; empty where there are only function words."""
    return [term for term, _ in with_surface(text)]


def with_surface(text: str) -> list[tuple[str, str]]:
    """Each term beside the word as it was written (in its folded form): ``("basketbal", "basketball")``."""
    found: list[tuple[str, str]] = []
    for run, word in _RUN.findall(_APOSTROPHE.sub("", normalize(text))):
        if run:
            for part in _CUT.split(run):
                pairs = [part[i : i + 2] for i in range(len(part) - 1)] or [part]
                found.extend((pair, pair) for pair in pairs if pair)
        elif word not in _ENGLISH:
            found.append((stem(word), word))
    return found


def same_saying(text: str) -> str:
    """A form that is equal for texts which say the same in nearly the same words.

    Case, punctuation, fillers and English endings do not count; negations, numbers, persons and the
    order of the words do: "I really like playing tennis!" and "I like to play tennis" are one, "I like tea"
    and "I don't like tea" are two.
    """
    said: list[str] = []
    for run, word in _RUN.findall(normalize(text)):
        if run:
            said.append(_FILLER_CHARACTERS.sub("", run) or run)
        elif word not in _FILLER:
            said.append(stem(word))
    return " ".join(said)


def size(text: str) -> float:
    """How long a text is, in words: five Chinese characters are about three."""
    return sum(0.6 * len(run) if run else 1.0 for run, _ in _RUN.findall(normalize(text)))


def speaks_of_asker(text: str) -> bool:
    """Whether a message speaks of the one who writes it: "what do I eat?" does, "tell me a joke" does not."""
    rest = _DONE_FOR.sub(" ", normalize(text))
    return bool(_ASKER_CHARACTERS.search(rest)) or any(w in _ASKER for _, w in _RUN.findall(rest))


@cache
def _stemmer() -> Callable[[str], str]:
    import snowballstemmer  # type: ignore[import-untyped]

    stem_word: Callable[[str], str] = snowballstemmer.stemmer("english").stemWord
    return stem_word


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The stem of an English word (Porter 2); words of other languages come back as they are, mostly."""
    return _stemmer()(word[:MAX_TERM]) if word.isascii() else word[:MAX_TERM]
