"""Finding, in what was said, the words that answer a question: sentences, what asks and what tells, likeness.

Plain functions for the offline model. They know Chinese and English, and nothing but the words themselves.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

_HAN = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_IS_HAN = re.compile(f"[{_HAN}]")
_SENTENCE_END = re.compile(r"(?<=[。！？!?；;…])(?![」』”\"'）)])|(?<=[.])(?=\s)|\n+")
_CLAUSE_END = re.compile(r"[，,、：:]\s*|(?<!\s)\s+(?:and|but)\s+(?=(?:i|my|we|our)\b)", re.IGNORECASE)
# What stands in front of the words: a list mark, who speaks, what it is. A line that is only a tag or a
# heading says nothing itself.
_LABEL = re.compile(
    r"^\s*(?:[-*•]\s+)?(?:(?:用户|助手|系统|问题?|答|(?:已有|历史)摘要|新增对话|user|human|assistant|ai|system"
    r"|question|answer|earlier summary)\s*[:：]\s*)?",
    re.IGNORECASE,
)
_HEADING = re.compile(r"^\s*<[^>]*>\s*$|[:：]\s*$")

_ASKS_ZH = re.compile(
    r"(?<!没)(?<!没有)什么(?![都也])|谁(?![都也])|哪[里儿个位些天年种家]|几[岁点号]|几\W{0,8}$|星期几|周几|多少|多大|多久"
    r"|(?:总结|概括|归纳|介绍)一?下|怎么[样办做走说写读去来]?|怎样|如何|为何|为啥|啥|是不是|有没有|能不能|会不会|要不要|吗\W{0,8}$|[？?]\W{0,8}$"
)
_ASKS_EN = re.compile(
    r"^\W*(?:(?:and|so|but|well|hey|ok|please)[,\s]+)?(?:what|who|whom|whose|which|where|when|why|how|do|does|did"
    r"|is|are|am|was|were|can|could|will|would|should|have|has|may)(?:'s|'re|'d)?\s|\?\W{0,8}$",
    re.IGNORECASE,
)
_WANTS = re.compile(
    r"^\W*(?:请(?!假|客)|帮我|给我|替我|麻烦|告诉我|说说|讲[个一讲]|写[一个首篇]|总结|概括|回忆"
    r"|(?:please\s+)?(?:tell|write|give|show|help|explain|translate|remind|summari[sz]e|list|let)\b)",
    re.IGNORECASE,
)
_MERE_COURTESY = re.compile(
    r"^\W*(?:好[的呀啊吧]?|谢谢|多谢|明白|知道|早上好|下午好|晚上好|晚安|再见|[你您]好|嗯+|哦+|哈+|是的|对[的啊呀]?"
    r"|hi|hello|hey|thanks?|thank you|ok(?:ay)?|got it|good (?:morning|night|evening)|yes|no|sure|great|bye)"
    r"(?:了|你|您|啦|呀|啊|的|明白|知道|谢谢|\W|got it|again|a lot|so much|very much|there){0,6}$",
    re.IGNORECASE,
)

# What a question says about the asking itself: "我刚说的爱好是什么" is about a hobby, not about saying.
_FRAME = re.compile(
    r"(?:你?还?(?:记得|知道)|告诉我)|(?:刚刚|刚才|刚|之前|以前|上次)?(?:跟你|和你|对你)?[说提讲]过?(?=的)"
    r"|(?:do|can) you (?:still )?(?:remember|recall|tell me)"
    r"|(?:that )?(?:did i|i|i've|have i) (?:just |already )?(?:said?|say|mention(?:ed)?|told you|tell you)",
    re.IGNORECASE,
)
# How an answer to a common question begins. "爱好" and "喜欢打篮球" share no word and, to a small model,
# hardly a meaning; "喜欢唱歌" and "喜欢打篮球" do. On 82 questions in two languages, after 20 to 30 turns of
# other talk, half the score from these puts the right sentence among the two quoted in 95 % instead of 90 %.
_KINDS: list[tuple[re.Pattern[str], list[str], list[str]]] = [
    (re.compile(pattern, re.IGNORECASE), zh, en)
    for pattern, zh, en in [
        (r"爱好|兴趣|喜欢(?:干|做|玩)|hobb|free time|for fun|spare time|like to do",
         ["我喜欢唱歌", "我爱好画画"], ["I love singing", "I enjoy painting"]),
        (r"名字|叫什么|我叫|我是谁|怎么称呼|姓什么|\bname\b|who am i",
         ["我叫张三", "我的名字是王芳"], ["My name is Laura", "I'm Peter"]),
        (r"职业|工作|做什么的|上班|\bjob\b|\bwork\b|for a living|profession|occupation",
         ["我是一名老师", "我在一家公司上班"], ["I work as a teacher", "I am an engineer at a company"]),
        (r"住|哪个城市|哪里人|老家|家在|\blive\b|\bhome\b|which city",
         ["我住在广州", "我家在武汉"], ["I live in Chicago"]),
        (r"几岁|多大|年龄|how old|\bage\b", ["我今年三十岁"], ["I am thirty years old"]),
        (r"生日|birthday|\bborn\b", ["我的生日是五月三号"], ["My birthday is on May 3"]),
        (r"宠物|\bpets?\b", ["我家养了一条狗"], ["We have a dog"]),
        (r"过敏|忌口|不能吃|allerg", ["我对牛奶过敏"], ["I am allergic to milk"]),
    ]
]  # fmt: skip


@dataclass(frozen=True)
class Said:
    """One sentence, and whether the user said it (or it stands in a summary, a recalled fact, a document)."""

    text: str
    by_user: bool = True


_TO_KEEP = re.compile(r"\d|[十百千万亿]|我|用户|\b(?:I|my|user)\b")


def is_chinese(text: str) -> bool:
    """Whether to answer in Chinese: it is enough that some of the text is."""
    return bool(_IS_HAN.search(text))


def sentences(text: str) -> list[str]:
    """The sentences of a text, without speaker and list marks; tags and headings ("…：") are left out."""
    parts = (_LABEL.sub("", part).strip() for part in _SENTENCE_END.split(text) if not _HEADING.search(part))
    return [part for part in parts if re.search(r"\w", part)]


def asks(sentence: str) -> bool:
    """Whether a sentence asks or requests, rather than tells."""
    return bool(_ASKS_ZH.search(sentence) or _ASKS_EN.search(sentence) or _WANTS.search(sentence))


def tells(sentence: str) -> bool:
    """Whether a sentence says something worth quoting: no question, no request, no mere courtesy."""
    return not asks(sentence) and not _MERE_COURTESY.match(sentence)


def clauses(sentence: str) -> list[str]:
    """The sentence, and its clauses where it has several: "我叫小明，喜欢打篮球" answers as two."""
    parts = [part.strip() for part in _CLAUSE_END.split(sentence) if len(part.strip()) > 1]
    return [sentence, *parts] if len(parts) > 1 else [sentence]


Likeness = Callable[[Sequence[str], Sequence[str]], list[list[float]]]
"""(texts, to these) -> for each text, its likeness to each of these, at most 1."""


def by_embedding(embed: Callable[[list[str]], list[list[float]]]) -> Likeness:
    """Cosine, with an embedding's ``embed_documents`` (unit vectors)."""

    def likeness(texts: Sequence[str], to: Sequence[str]) -> list[list[float]]:
        import numpy as np

        vectors = np.asarray(embed([*texts, *to]))
        return (vectors[: len(texts)] @ vectors[len(texts) :].T).tolist()  # type: ignore[no-any-return]

    return likeness


def by_words(texts: Sequence[str], to: Sequence[str]) -> list[list[float]]:
    """Shared words (Chinese: characters in pairs), where no embedding can be had."""

    def words(text: str) -> set[str]:
        found: set[str] = set()
        for run in re.findall(rf"[{_HAN}]+|[^\W{_HAN}]+", text.lower()):
            pairs = {run[i : i + 2] for i in range(len(run) - 1)} if _IS_HAN.match(run) else set()
            found |= pairs or {run}
        return found

    other = [words(text) for text in to]
    return [[len(own & o) / ((len(own) * len(o)) ** 0.5 or 1) for o in other] for own in map(words, texts)]


def closest(question: str, said: Sequence[Said], likeness: Likeness) -> list[tuple[float, Said]]:
    """What was said, closest to the question first, each with its score (1 is the same words).

    A sentence counts as its best clause does; the user's own words are ahead of equal ones from elsewhere.
    """
    pieces = [(place, clause) for place, one in enumerate(said) for clause in clauses(one.text)]
    bare = _FRAME.sub("", question).strip()
    kinds = [
        answer
        for pattern, zh, en in _KINDS
        if pattern.search(question)
        for answer in (zh if is_chinese(question) else en)
    ]
    best = [-1.0] * len(said)
    if pieces:
        for (place, _), (to_question, *to_kinds) in zip(
            pieces, likeness([clause for _, clause in pieces], [bare or question, *kinds]), strict=True
        ):
            score = (to_question + max(to_kinds)) / 2 if to_kinds else to_question
            best[place] = max(best[place], score - (0 if said[place].by_user else 0.05))
    return sorted(((score, said[place]) for place, score in enumerate(best)), key=lambda pair: -pair[0])


def central(texts: Sequence[str], limit: int, likeness: Likeness) -> list[str]:
    """The sentences that say most of what all say, in their order, together at most ``limit`` characters.

    Each counts by its mean likeness to the others; those with a number or about the speaker count more,
    because names, amounts and dates are what a summary must not lose; what is nearly said already is skipped.
    """
    if not texts:
        return []
    alike = likeness(texts, texts)
    weight = [
        sum(row) / len(row) + 0.3 * bool(_TO_KEEP.search(text))
        for row, text in zip(alike, texts, strict=True)
    ]
    chosen: list[int] = []
    room = limit
    for place in sorted(range(len(texts)), key=lambda i: -weight[i]):
        fits = len(texts[place]) + 1 <= room
        if fits and all(alike[place][other] < 0.9 for other in chosen):
            chosen.append(place)
            room -= len(texts[place]) + 1
    return [texts[place] for place in sorted(chosen)]
