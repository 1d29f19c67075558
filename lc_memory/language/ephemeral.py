"""What is not worth keeping: what will not hold, is asked, wished or supposed.

Word lists, in Chinese and English. They err on the side of dropping: what is of use comes up again, and junk
in a memory stays.
"""

from __future__ import annotations

import re

from .phatic import is_phatic

_FLEETING = re.compile(
    r"最近|近来|近期|这[几两]天|这会儿|今[天晚早日]|昨[天晚]|明[天晚早]|后天|刚[才刚]|待会|等会"
    r"|一会儿|[这上下本]周|周末|眼下|此刻|心情|天气"
    r"|好[累困饿烦热冷]|[很有]点?[累困饿烦]|哈哈|嘿嘿|呵呵"
    r"|\b(?:today|tonight|yesterday|tomorrow|this (?:morning|afternoon|evening|week|weekend)|(?:last"
    r"|next) (?:week|night)"
    r"|right now|at the moment|just now|lately|recently|these days|for now|in a (?:good|bad) mood"
    r"|i'?m (?:so |very |a bit |really )?(?:tired|hungry|bored|sleepy|busy|late|stuck|confused|sad"
    r"|happy|excited)"
    r"|on (?:the|my|a) (?:train|bus|plane|flight|way)|(?:still )?waiting (?:on|for)|ate (?:way )?too much"
    r"|just (?:ate|had|woke|got back)"
    r"|(?:have|got|caught) (?:a |the )?(?:cold|flu|fever|headache|sore throat|hangover)"
    r"|lol|haha+|weather)\b"
    # A weekday alone is one day; "每周三", "Wednesdays" and "closed on Monday" are a habit.
    r"|(?<!每)(?<!每个)(?:周|星期|礼拜)[一二三四五六日天](?:[前要得去交飞到有就]|上午|下午|晚上|早上|开会)"
    r"|(?<!every )(?<!each )(?<!closed )(?<!open )(?<!to )(?<!through )"
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    r"(?! (?:class|lesson|market|league|off|to|through))"
    r"|(?:感冒|发烧|咳嗽|拉肚子|落枕|嗓子[疼痛哑]|头[疼痛晕]|[牙胃][疼痛]|肚子[疼痛]|中暑)(?!药)"
    r"|[饿困渴累烦]了|下[雨雪]了|\d分钟后|\b(?:in|for) (?:\w{1,24} ){1,2}minutes?\b"
    r"|\bit'?s (?:raining|snowing)\b"
    r"|想[吃喝]|在(?:高铁|地铁|飞机|火车|公交|出租车|车|路)上|孕\d+周|信号不好",
    re.IGNORECASE,
)
_USUALLY = re.compile(
    r"每[天周月年晚次个]|不耐|过敏|[吃喝闻].{1,6}(?:拉肚子|[头牙胃][疼痛晕]|咳嗽)|经常|常常|总是|总会|老是|习惯|一般|平时|通常|容易|慢性|从小|多年|[一每].{1,6}就"
    r"|\b(?:every|each|usually|always|often|chronic|prone|mostly|normally|weekly|daily)\b",
    re.IGNORECASE,
)
# What is said with "today" and still holds in half a year.
_LASTING = re.compile(
    r"搬[到家去进]|入职|离职|辞职|跳槽|退休|结婚|离婚|毕业|开业|开了|出生|确诊|考上|考过|拿到|买了"
    r"|转行|改名|领养"
    r"|\b(?:moved|started|joined|quit|resigned|retired|married|divorced|graduated|born|diagnosed"
    r"|bought|opened|adopted"
    r"|signed|passed|turned)\b",
    re.IGNORECASE,
)
_HEDGED = re.compile(
    r"可能|也许|或许|说不定|没准|好像|似乎|貌似|不确定|没想好|还没决定|在考虑|考虑要不要|想不想"
    r"|真希望|就好了|多想|没说过|不是说|要不要|会不会|随便|假装|听说|据说|开玩笑|打个比方"
    r"|\b(?:might|maybe|perhaps|possibly|probably|not sure|considering|thinking (?:about|of)"
    r"|wondering|hypothetically"
    r"|i wish|wish i|if only|never said|didn'?t say|i guess|kind of want|could be|heard that|rumou?r"
    r"|just kidding|joking|pretend)\b",
    re.IGNORECASE,
)
_SUPPOSED = re.compile(
    r"^[\s,，]*(?:那|那么|but |so |and )?(?:如果|要是|假如|假设|假定|万一|倘若|比如说?我|就当|if "
    r"|从前有|once upon a time|suppose|imagine|assuming|what if|say i )",
    re.IGNORECASE,
)
_ASKING = re.compile(
    r"[吗呢么]\s*$|什么|怎么|怎样|如何|为啥|为什么|多少(?!有)|哪[里个些儿种家]|谁[是能会]"
    r"|几[点个岁号度]|多[大久远重]|你猜|谁[^，。,.]{1,4}[啊呢得]|是不是|能不能|可不可以|有没有|对不对"
    r"|^\s*(?:what|who|whom|whose|where|when|why|how|which|is|are|am|do|does|did|can|could|should"
    r"|would|will|may)\b",
    re.IGNORECASE,
)
_ORDER = re.compile(
    r"^\s*(?:(?:那|好|ok|嗯|对了|先|再|麻烦你?|劳驾|拜托)[,，\s]*)*"
    r"(?:请|帮我|帮忙|给我|替我|告诉我|写[一个首篇]|翻译|解释|总结|列出|推荐|继续|换一?个|再来|讲个|算一?下"
    r"|忽略|无视|把.{1,80}(?:翻译|改成|换成|写成|总结)"
    r"|please|tell me|write|translate|explain|summari[sz]e|list|show me|give me|help me|find|make"
    r"|fix|let's|continue|ignore)",
    re.IGNORECASE,
)
_FROM_NOW_ON = re.compile(
    r"以后|今后|往后|每次|一律|永远|一直|总是|默认|\b(?:always|from now on|every time|never|by default)\b",
    re.I,
)


_CLAUSE = re.compile(r"(?<=[。！!？?])|[，；;\n]|,\s|(?<=\.)\s")
_CODE = re.compile(
    r"^\s*(?:def |class |import |from \w{1,40} import|function |const |SELECT |INSERT |UPDATE |DELETE FROM"
    r"|#include|<\?|</?\w{1,40}>"
    r"|ERROR|WARN(?:ING)?\b|DEBUG|Traceback|>>>|\$ )|[;{}]\s*$|=>|==|\w\(\)",
)


def only_asks(text: str) -> bool:
    """Whether every clause of ``text`` is a question, or says nothing."""
    clauses = [part.strip() for part in _CLAUSE.split(text) if not is_phatic(part)]
    return bool(clauses) and all(
        part.endswith(("?", "？")) or _ASKING.search(part) is not None for part in clauses
    )


def is_passing(clause: str) -> bool:
    """Whether ``clause`` by itself is not worth keeping: small talk, a question or a request."""
    return passing(clause, clause, "") is not None


def passing(clause: str, sentence: str, mark: str) -> str | None:
    """Why ``clause`` is not worth keeping, or None. ``sentence``: from its first word to the clause's
    end or further; ``mark``: what stands behind the clause."""
    lasting = _LASTING.search(clause) or _FROM_NOW_ON.search(clause)
    fleeting = _FLEETING.search(clause) and not lasting and not _USUALLY.search(clause)
    if fleeting or is_phatic(clause):
        return "small talk: it will not hold for long"
    if _CODE.search(clause):
        return "it is code"
    if _HEDGED.search(clause):
        return "the user was not sure of it"
    if _SUPPOSED.search(clause) or _SUPPOSED.search(sentence):
        return "it was only supposed"
    if mark in ("?", "？") or (_ASKING.search(clause) and not lasting):
        return "it is a question"
    if _ORDER.search(clause) and not _FROM_NOW_ON.search(clause):
        return "it is a request"
    return None


__all__ = ["is_passing", "only_asks", "passing"]
