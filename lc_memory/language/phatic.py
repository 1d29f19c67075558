"""Messages that only keep a conversation going (greetings, thanks, "go on"): nothing is recalled for them.

The vector of such a message is about as near to any memory as to any other, and its one word may stand in a
turn or two by chance. What they mean stands in the window. Chinese and English.
"""

from __future__ import annotations

import re

from .words import normalize

_CHINESE = """
    你好 您好 大家好 哈喽 嗨 早上好 早好 上午好 中午好 下午好 晚上好 晚好 早安 晚安 早 在吗 在么 在不在
    谢谢 多谢 感谢 谢 麻烦 辛苦 不客气 客气 不用谢 不用 没事 没关系 对不起 抱歉 不好意思
    好的 好吧 好嘞 好滴 好 行 可以 没问题 当然 是的 是 对的 对 没错 不是 不对 明白 懂 知道了 了解 收到 清楚
    不错 太好 太棒 真棒 很棒 真好 很好 棒 厉害 完美 赞 牛
    继续 接着说 接着 往下说 说下去 然后呢 还有呢 还有吗 下一步 下一个 再来一个
    再见 拜拜 回见 回头见 明天见 嗯 哦 噢 喔 唔 哎 唉 啊 呀 哇 哈 呵 嘿 嘻 嘛 啦 呢 吧 吗 么 了 的 你 您 请
    非常 太 真 很 那 就 都 一下
"""
_ENGLISH = """
    hi hello hey howdy greetings morning afternoon evening night good thanks thank you thx ty cheers
    much a lot so very many welcome sorry ok okay k kk sure yes yeah yep yup no nope nah not right fine
    great nice cool awesome perfect excellent wonderful lovely brilliant amazing got gotcha it i see
    understood alright all bye goodbye later tomorrow please continue go on ahead carry proceed next
    more keep going lol haha hahaha thats its im youre ha hmm hm mhm uh wow oh ah well then
"""
_ENGLISH_WORDS = frozenset(_ENGLISH.split())
_CHINESE_PHRASE = re.compile("|".join(sorted(_CHINESE.split(), key=len, reverse=True)))
_WORD = re.compile(r"[^\W_]+")


def is_phatic(text: str) -> bool:
    """Whether a message says nothing by itself. True too where it holds no letter and no digit."""
    words = _WORD.findall(_CHINESE_PHRASE.sub(" ", normalize(text).replace("'", "")))
    return all(word in _ENGLISH_WORDS for word in words)


__all__ = ["is_phatic"]
