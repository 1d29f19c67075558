"""What is worth remembering, by kind: one truth each, or one for each subject."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from lc_memory.errors import MemoryInputError
from lc_memory.language import Language


@dataclass(frozen=True)
class NoteKind:
    """A kind of fact that notes may have."""

    name: str
    """Under which it is kept, and stands in prompts."""
    about: str = ""
    """Told to the extractor, in the language of ``name``."""
    several: bool = False
    """False: a user has one such fact, and a new one takes its place. True: one for each subject."""
    core: bool | None = None
    """Stands in every prompt. None: where there is only one of the kind, so that they cannot pile up."""
    days: float | None = None
    """How long it holds. None: until something else is said."""
    others: bool = False
    """May be about others than the user, such as his family. False: what is said of others is dropped."""
    zh: str = ""
    zh_about: str = ""
    """The same in Chinese, for a Chinese conversation."""
    cue: str = ""
    """A regular expression that the kept words have to match, case aside. For a kind of one truth, whose
    value a note of the wrong kind would replace. Empty: any words do."""
    now: bool = False
    """What is still to come, or over, is none of it: "I plan to move to Rome", "I used to live in Rome"."""

    @property
    def is_core(self) -> bool:
        return not self.several if self.core is None else self.core

    def fits(self, words: str) -> bool:
        """Whether the kept words may tell of it: the ``cue`` stands in them, and they hold now."""
        if self.cue and not re.search(self.cue, words, re.IGNORECASE | re.DOTALL):
            return False
        gone = _NO_MORE.search(words) and not _NOW.search(words)
        return not (self.now and (gone or _NOT_YET.search(words)))

    def label(self, language: Language) -> tuple[str, str]:
        """What it is called in a conversation in ``language``, and what it means."""
        if language == "zh" and self.zh:
            return self.zh, self.zh_about
        return self.name, self.about


# What is said of a home or a job to come, or of one that is left, is none.
_NOT_YET = re.compile(
    r"打算|计划|准备[去搬考]|考虑|[想要]搬|要考|决定|明年|下个?月"
    r"|going to|moving to|will\b|want to|plan|到(?:公司|家了|学校|医院|机场|车站|楼下)",
    re.IGNORECASE,
)
_NO_MORE = re.compile(r"以前|曾经?|原来[在住]|used to|formerly|previously", re.IGNORECASE)
_NOW = re.compile(r"现在|如今|目前|后来|\bnow\b|currently", re.IGNORECASE)
_NAME = r"叫|姓|名|称呼|喊|昵称|我是|本人|\b(?:name|call(?:ed|s)?|nickname|goe?s? by|this is|i'?m|i am)\b"
_HOME = (
    r"(?:住|居|搬|租|买了?房|老家|家[在乡]|家.{1,4}在|户口|坐标|定居|人在|长大|来自|人$|人[，,。但]"
    r"|[待呆]了|生活|安家|落户|[北沪深]漂|[到回去来].{1,8}了|移民|调到|换到|[来去]了|现在在|(?<!高铁)(?<!地铁)在.{1,8}了$|\b(?:liv(?:e|es|ing)|based?|moved|relocated|settled|rent(?:ing)?|lease"
    r"|resid\w{1,20}|hometown|home|house|flat|apartment|condo|grew up|raised|born|from"
    r"|left .{1,30} for|c[ao]me back|went back|e?migrated|immigrated|transferred|cottage|got a place"
    r"|(?:i'?m|am|we're|are) (?:in|at))\b)"
)
_WORK = (
    r"(?:[做干教开读学搞]|班|工作|职|业|实习|[大高初][一二三四]|研[一二三究]|[文理]科|博士|当"
    r"|公司|单位|店|[师员工生家长]|退休|医|警|兵|工资|[月年]薪"
    r"|跳槽|入职|加入|裁|失业|升|转[岗行]|辞|换[到了]|[来去]了|现在在|带娃|自由|[跑送](?:滴滴|外卖|快递|车)"
    r"|\b(?:work\w*|jobs?|careers?|employ\w*|self-employed|freelanc\w*|stud\w+|teach\w*|run|running|own|manag\w+"
    r"|intern\w*|retired|unemployed|major\w*|degree|phd|master'?s|bachelor'?s|thesis|school|university|college"
    r"|earn\w*|salary|quit|laid off|fired|hired|joined|switched|left|promoted|start(?:ed|ing)|transferred"
    r"|with|uni|drive|at|for|as|i'?m an?|i am an?)\b|\w(?:er|or|ist|ian)\b)"
)
_SUM = r"\d|[一二两三四五六七八九十百千万]|\b(?:hundred|thousand|million|k)\b"

FAMILY = "family"

DEFAULT_KINDS: tuple[NoteKind, ...] = (
    NoteKind("name", "what the user is called", zh="姓名", zh_about="用户怎么称呼", cue=_NAME),
    NoteKind("home", "where the user lives", zh="所在地", zh_about="用户住在哪里", cue=_HOME, now=True),
    NoteKind("work", "job, employer, studies", zh="工作", zh_about="职业、单位、学业", cue=_WORK, now=True),
    NoteKind(
        FAMILY, "who belongs to the user, pets too", True, others=True, zh="家人", zh_about="家庭成员、宠物"
    ),
    NoteKind("preference", "what the user likes or dislikes", True, zh="偏好", zh_about="喜欢或不喜欢什么"),
    NoteKind(
        "health",
        "allergies, diet, lasting conditions",
        True,
        True,
        zh="健康",
        zh_about="过敏、忌口、长期状况",
    ),
    NoteKind("skill", "what the user can do, languages", True, zh="技能", zh_about="会什么、语言、经验"),
    NoteKind("belonging", "house, car, devices", True, zh="拥有", zh_about="房、车、设备"),
    NoteKind(
        "business", "the user's own shop or company", True, True, zh="生意", zh_about="自己的店或公司的现状"
    ),
    NoteKind("budget", "the sum to be spent", zh="预算", zh_about="能花多少钱", cue=_SUM),
    NoteKind("plan", "a decision or a goal", True, days=365, zh="计划", zh_about="已定的打算、目标"),
    NoteKind("date", "birthdays, anniversaries", True, others=True, zh="日子", zh_about="生日、纪念日"),
)

Kinds: TypeAlias = Sequence[NoteKind | str] | Mapping[str, str]
"""Kinds as a caller gives them: NoteKinds, names (one truth each), or names with what they mean."""


def kinds_of(given: Kinds | None) -> tuple[NoteKind, ...]:
    """The kinds as NoteKinds; None is the default set. Raises MemoryInputError for an empty or odd list."""
    if given is None:
        return DEFAULT_KINDS
    if isinstance(given, str):
        raise MemoryInputError(f"kinds={given!r}: expected a list of kinds, such as [{given!r}]")
    if isinstance(given, Mapping):
        given = [NoteKind(name, about) for name, about in given.items()]
    kinds = tuple(NoteKind(kind) if isinstance(kind, str) else kind for kind in given)
    names = [kind.name.strip() for kind in kinds if isinstance(kind, NoteKind)]
    if not kinds or len(names) != len(kinds) or not all(names):
        raise MemoryInputError("kinds: expected at least one name or NoteKind, none of them empty")
    return kinds


def kind_named(name: str, kinds: Iterable[NoteKind]) -> NoteKind | None:
    """The kind a model meant by ``name``, in either language."""
    wanted = _plain(name)
    return next((kind for kind in kinds if wanted and wanted in (_plain(kind.name), _plain(kind.zh))), None)


# "我现在不喜欢吃中餐了", "I used to love Chinese food": what is left when liking and speaker are taken off.
_LIKING = re.compile(
    r"\A(?:我最?喜欢的(?P<own>[^，。,]{1,8}?)是|my favou?rite (?P<fav>[\w ]{1,30}?) (?:is|are) "
    r"|(?:(?:我|咱|本人|其实|现在|如今|还是|一直|以前|从来|也|都|就|又|真的?|特别|非常|很|最|超|比较"
    r"|更|挺|有点)*"
    r"(?:不太?|再也不)?(?:喜欢|喜爱|爱(?![人好情])|讨厌|厌恶|反感|偏爱|偏好|受不了|忍不了|迷上"
    r"|热爱)(?:上)?了?"
    r"(?:吃|喝|看|听|打|玩|用|去|做|读|穿|踢|养)?"
    r"|(?:i|we)(?:'m| am|'ve| have)?(?:\s(?:really|just|now|still|do|always|never|also|used to|a big"
    r"|absolutely|quite))*"
    r"\s(?:don't|do not|no longer|can't|cannot|could never)?\s?"
    r"(?:love|like|hate|dislike|prefer|enjoy|adore|stand|loathe|fond of|into|a fan of|fan of)"
    r"(?:\s(?:to eat|to drink|eating|drinking|watching|reading|playing|to play|to watch|to read"
    r"|listening to))?))(?=.)",
    re.IGNORECASE,
)
_BEHIND_LIKING = ("了", "的", "吧", "啊", "呢", " now", " anymore", " any more", " a lot", " very much",
                  " the most", " most", " best")  # fmt: skip
_LONGEST = 400
"""Characters of a sentence that is read for what it likes, or for its one truth; a longer one is a text."""
PREFERENCE = "preference"


# Whole sentences that say nothing else. "我姓王" and "我是老师" may be true beside another of their kind.
_ONE_TRUTH = {
    "name": re.compile(
        r"我(?:现在)?(?:叫(?![了过车外他她你])|的名字[是叫])(?:[\u3400-\u9fff·]{1,5}|[a-z .]{1,30})"
        r"|(?-i:My|my) name(?:'s| is)(?: now)?(?-i:(?: [A-Z][\w'\-]{0,40}){1,4})",
        re.IGNORECASE,
    ),
    "home": re.compile(
        r"我们?家?(?:现在|目前|如今|已经|最近|今年|去年|刚){0,4}(?:住在|搬到|搬去|搬回|定居在?)[^，。,;；的]{1,30}"
        r"|(?:i|we)(?:'ve| have| now| currently| just){0,4} (?:live in|moved (?:back )?to|relocated to)"
        r" [^,.;]{1,60}"
        r"|(?:i'm|i am|we're|we are)(?: now| currently){0,4} (?:based|living) in [^,.;]{1,60}",
        re.IGNORECASE,
    ),
    "work": re.compile(
        r"我(?:现在|目前|如今|已经){0,4}在(?!家|外|晚|夜|周)[^，。,;；]{1,30}(?:上班|工作|任职|就职)了?"
        r"|i(?:'m)?(?: now| currently){0,4} work(?:ing)? (?:at|for)"
        r" (?!night|home|weekend|the moment|hours|free|fun|my)[^,.;]{1,40}",
        re.IGNORECASE,
    ),
}


def kept_as(text: str) -> dict[str, Any]:
    """How a fact given as a bare sentence is kept (arguments of ``Ledger.add``).

    A liking takes the place of what was said of the same thing before; a name, a home and an employer that of
    the one before, where the sentence says nothing else. Anything else stands beside the others.
    """
    subject = subject_of(text)
    if subject is not None:
        return {"kind": PREFERENCE, "subject": subject, "supersede": True}
    plain = _sentence(text)
    for kind in DEFAULT_KINDS:
        if kind.name in _ONE_TRUTH and _ONE_TRUTH[kind.name].fullmatch(plain):
            return {"kind": kind.name, "core": kind.is_core, "supersede": True}
    return {}


_ARTICLE = re.compile(r"^(?:the|a|an|some|any)\s+")


def subject_of(text: str) -> str | None:
    """What a liking is about, the same for its opposite; None where ``text`` tells of none.

    ``我喜欢吃中餐`` and ``我现在讨厌中餐了`` are both about ``中餐``.
    """
    said = _sentence(text).casefold()
    while said.endswith(_BEHIND_LIKING):
        said = said.removesuffix(next(end for end in _BEHIND_LIKING if said.endswith(end)))
    found = _LIKING.match(said)
    if not found:
        return None
    return _ARTICLE.sub("", _plain(found["own"] or found["fav"] or said[found.end() :])) or None


def _sentence(text: str) -> str:
    """``text`` in one form, without the marks at its end; nothing where it is no sentence but a text."""
    plain = " ".join(unicodedata.normalize("NFKC", text[: _LONGEST + 1]).split()).strip("。.!！~ ")
    return plain if len(text) <= _LONGEST else ""


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split()).strip("。.!:：\"'「」[]()（） ")


__all__ = ["DEFAULT_KINDS", "Kinds", "NoteKind", "kept_as", "kind_named", "kinds_of", "subject_of"]
