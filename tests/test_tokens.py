"""The token estimate: never far under a real tokenizer, never raising, nothing to download."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.tokens import OLD, corpus, tokenizers
from lc_memory.messages.tokens import count_message_tokens, count_tokens
from tests.data import EXCERPTS, data_dir

# Our own texts with the counts of six real tokenizers (packages named in benchmarks/tokens.py).
COUNTED = [
    json.loads(line)
    for line in (EXCERPTS / "token-counts.jsonl").read_text("utf-8").splitlines()
]
LEAST = 0.85


@pytest.mark.parametrize("row", COUNTED, ids=lambda row: row["text"][:20])
def test_no_current_tokenizer_takes_much_more_than_estimated(row: dict[str, Any]) -> None:
    largest = max(count for name, count in row["counts"].items() if name != OLD)
    assert count_tokens(row["text"]) >= LEAST * largest


def test_the_estimate_is_not_much_over_the_largest_tokenizer_on_the_whole() -> None:
    estimate = sum(count_tokens(row["text"]) for row in COUNTED)
    largest = sum(max(n for name, n in row["counts"].items() if name != OLD) for row in COUNTED)
    assert estimate <= 1.35 * largest


@pytest.mark.parametrize(
    "kind", ["chinese", "english", "json", "code", "emoji", "mixed", "base64, hex, uuid"]
)
def test_it_holds_on_many_real_texts_with_the_tokenizers_that_are_installed(kind: str) -> None:
    real = {name: count for name, count in tokenizers().items() if name != OLD}
    if not real:
        pytest.skip("no tokenizer package is installed")
    texts = corpus().get(kind)
    if not texts:
        pytest.skip(f"no data folder: {data_dir()}")
    ratios = [count_tokens(text) / max(1, *(count(text) for count in real.values())) for text in texts]
    # A piece of this Python's library or of a data set may be odder than any that was fitted: one in a
    # hundred may lie lower, none far.
    assert statistics.quantiles(ratios, n=100)[0] >= LEAST
    assert min(ratios) >= LEAST - 0.05


@given(st.text(st.characters(codec=None), max_size=300))
def test_any_text_has_a_count(text: str) -> None:
    count = count_tokens(text)
    assert count >= 1 if text else count == 0
    assert count <= 4 * len(text)
    assert count == count_tokens(text)


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_longer_text_is_not_cheaper_by_more_than_a_seam(one: str, other: str) -> None:
    assert count_tokens(f"{one} {other}") + 20 >= count_tokens(one)


def test_four_hundred_chinese_characters_are_not_a_hundred_tokens() -> None:
    assert count_tokens("你好世界" * 100) >= 200


def test_a_lone_surrogate_and_a_nul_are_counted() -> None:
    assert count_tokens("a\ud83d\0") > 0


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.sampled_from(["role", "content", "name", "tool_calls", "function_call", "tool_call_id", "other"]),
        _JSON,
    )
)
def test_any_message_has_a_count(message: dict[str, Any]) -> None:
    assert count_message_tokens(message) >= 1


def test_a_message_counts_all_that_reaches_the_model() -> None:
    plain = {"role": "user", "content": "你好，我叫小明"}
    base = count_message_tokens(plain)
    assert base > count_tokens("你好，我叫小明")
    assert count_message_tokens({**plain, "name": "xiao_ming"}) > base
    assert count_message_tokens({**plain, "reasoning_content": "用户在打招呼"}) > base
    call = {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": '{"city": "深圳"}'}}
    called = count_message_tokens({"role": "assistant", "content": None, "tool_calls": [call]})
    assert called > count_tokens('f{"city": "深圳"}')
    twice = count_message_tokens({"role": "assistant", "content": None, "tool_calls": [call, call]})
    assert twice > called
    parsed = {"id": "call_1", "name": "f", "args": {"city": "深圳"}}
    assert abs(count_message_tokens({"role": "assistant", "tool_calls": [parsed]}) - called) <= 2


def test_parts_are_counted_by_their_text_and_pictures_as_a_picture() -> None:
    text = {"type": "text", "text": "这是什么？"}
    small = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    large = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_000_000}}
    only_text = count_message_tokens({"role": "user", "content": [text]})
    assert only_text == count_message_tokens({"role": "user", "content": "这是什么？"})
    assert count_message_tokens({"role": "user", "content": [text, small]}) == only_text + 1000
    assert count_message_tokens({"role": "user", "content": [text, large]}) == only_text + 1000


def test_counting_needs_nothing_but_python() -> None:
    code = "import sys, lc_memory.messages.tokens as t; t.count_tokens('你好 hi'); print(sorted(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"numpy", "tiktoken", "tokenizers", "langchain_core"} & set(json.loads(out.replace("'", '"')))
