"""Whether somebody else than the user is the subject of a clause: his family, his friends, people by name.

Only who stands where a subject does counts: "my wife works in Bath" tells of her, "I live with my wife" of
the user. Closed lists, Chinese and English; a bare name is known by its place in the sentence.
"""

from __future__ import annotations

import re

_LEAD = (
    r"(?:^|[,.;:，。；：] ?)"
    r"(?:(?:well|so|and|but|also|btw|yeah|oh|ok|plus|其实|另外|还有|而且|但是?|不过|因为|对了)"
    r"(?:[,，] ?| )?){0,3}"
)

_FAMILY_ZH = (
    "妈妈?|爸爸?|爸妈|爹|娘|父母|父亲|母亲|爷爷|奶奶|外公|外婆|姥姥|姥爷|公公|婆婆|岳父|岳母|丈母娘|老丈人"
    "|老公|老婆|妻子|丈夫|爱人|媳妇|先生|太太|对象|未婚[夫妻]|儿子|女儿|闺女|孩子|小孩|娃|宝宝|老[大二三]|[大二]宝"
    "|孙子|孙女|外孙女?|哥哥?|姐姐?|弟弟?|妹妹?|嫂子|姐夫|妹夫|弟媳|侄[子女]|外甥女?|表[哥弟姐妹]|堂[哥弟姐妹]"
    "|姑[姑妈父]|姨[妈父]?|舅[舅妈]|叔叔|伯[伯父母]|婶婶?"
)
_PETS_ZH = "(?:那只|这只|养的)?[小大老]?(?:猫|狗|兔子|仓鼠|鹦鹉|乌龟)"
_OTHERS_ZH = (
    "朋友|同学|同事|室友|闺蜜|哥们|兄弟|发小|女朋友|男朋友|女友|男友|前[男女]友|前[妻夫任]|老板|领导|主管|上司"
    "|邻居|房东|老师|师傅|老乡|阿姨|保姆"
)
_SURNAMES = (
    "赵钱孙李周吴郑王冯陈褚卫蒋沈韩杨朱秦许何吕张孔曹严华金魏陶姜谢邹苏潘葛范彭鲁韦马方俞任袁柳史唐薛雷贺倪汤罗毕"
    "郝邵毛姚汪熊纪董梁杜阮蓝闵江童郭林钟徐邱高夏田胡霍万柯卢莫房丁邓洪左石崔程曾刘叶黎白龙段侯丘赖"
)
_TO_ME_ZH = r"(?:和我|跟我|与我|[都们]?[叫喊管称]我|给我|送我|对我)"

_FAMILY_EN = (
    "mom|mum|mam|mama|mummy|mommy|mother|dad|daddy|papa|father|parents?|folks|wife|husband|hubby|spouse|partner"
    "|fianc[eé]e?|girlfriend|boyfriend|gf|bf|sons?|daughters?|kids?|child|children|boys?|girls?|twins?|baby|toddler"
    "|teenager|eldest|youngest|oldest|brothers?|sisters?|siblings?|bro|sis|cousins?|uncle|aunt|auntie|nephews?|nieces?"
    "|grand(?:ma|pa|mother|father|parents|sons?|daughters?|kids?|child|children)|granny|nana|(?:\\w{1,24}-)?in-laws?"
    "|dogs?|puppy|cats?|kitten|pets?|horse|rabbit|parrot"
)
_OTHERS_EN = (
    "friends?|mates?|buddy|pal|bestie|ex|boss|manager|supervisor|colleagues?|co-?workers?|neighbou?rs?|roommates?"
    "|flatmates?|housemates?|landlord|landlady|teacher|tutor|doctor|dentist|therapist|coach"
)
_TO_ME_EN = (
    r"(?:'s)? (?:and i\b|calls? me|lets? me|pays? me|gave me|got me|bought me|taught me|hired me|owes? me)"
)

_OWN_EN = r"(?:(?:both|all|one|some|most) (?:of )?)?(?:my|our|the) (?:\w{1,24} ){0,2}?"


def _subject(family_zh: str, others_zh: str, english: str) -> re.Pattern[str]:
    whose = "(?:(?:我|我们|咱|咱们|俺)的?(?:一个|有个|那个|这个|[俩两几]个)?的?)?"
    zh = rf"{whose}(?:{family_zh}{others_zh})(?:俩|们)?(?!{_TO_ME_ZH})"
    en = rf"{_OWN_EN}(?:{english})\b(?!{_TO_ME_EN})"
    return re.compile(f"{_LEAD}(?:{zh}|{en})", re.IGNORECASE)


_FAMILY = re.compile(
    _subject(_FAMILY_ZH, "", _FAMILY_EN).pattern
    + rf"|{_LEAD}(?:我家|我们家|家里|我的)的?{_PETS_ZH}"
    + rf"|{_LEAD}(?:mum|mom|dad|grandma|grandpa|nana)\b(?!{_TO_ME_EN})",
    re.IGNORECASE,
)
_OTHERS = re.compile(
    _subject("", _OTHERS_ZH, _OTHERS_EN).pattern
    + rf"|{_LEAD}(?:[他她它]们?|别人|有人|人家|大家(?!好)|隔壁|对门|楼[上下]的?(?:那|老|小))(?!{_TO_ME_ZH})"
    + rf"|{_LEAD}[老小][{_SURNAMES}](?:[哥姐叔姨总]|老师|经理|主任)?(?=[在是有说要去做姓开也就的])"
    + rf"|{_LEAD}(?:he|she|they|people|everyone|somebody|someone)(?:'s|\b)",
    re.IGNORECASE,
)
# "Bob in accounting is moving": a name, and what a third person does; not "Budget is 500".
_BY_NAME = re.compile(
    r"^(?P<name>[A-Z][a-z]+)(?: (?:in|from|at|and) \w+)?"
    r"(?:'s | (?:is|has|was|lives|works|likes|loves|hates|wants|moved|studies|teaches|plays|said|told)\b)"
)
_USERS_OWN = """
    budget goal plan aim target job role work home name title age birthday favourite favorite diet height
    weight allergy hometown degree major deadline rent salary income mortgage car house apartment flat condo
    office shop store business company website phone laptop everything nothing something this that it there
    what who where everybody today life english chinese
"""
FIRST_PERSON = re.compile(r"[我咱俺]|\b(?:i|i'm|my|we|our|me|us|mine)\b", re.IGNORECASE)


def of_family(clause: str) -> bool:
    """Whether ``clause`` tells of the user's family or pets."""
    return _FAMILY.search(clause) is not None


def of_others(clause: str) -> bool:
    """Whether ``clause`` tells of somebody else than the user."""
    if of_family(clause) or _OTHERS.search(clause):
        return True
    named = _BY_NAME.match(clause)
    return (
        named is not None
        and named["name"].casefold() not in _USERS_OWN.split()
        and not named["name"].endswith("ing")
        and FIRST_PERSON.search(clause) is None
    )


__all__ = ["FIRST_PERSON", "of_family", "of_others"]
