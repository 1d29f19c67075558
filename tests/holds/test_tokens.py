"""What is no language has its price too: a budget that can be fooled protects nothing.

Counts of five real tokenizers (those of ``benchmarks/tokens.py``), recorded, of runs of one character, blanks,
encoded data, marks, rare scripts. A row is ``unit`` written ``times`` times; those marked as a guard were
counted right before these had a price of their own.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lc_memory.messages.tokens import count_message_tokens, count_tokens

FILE = Path(__file__).parent.parent / "excerpts" / "token-counts-no-language.jsonl"
ROWS = [json.loads(line) for line in FILE.read_text("utf-8").splitlines()]
LEAST = 0.83
"""The share of the largest count that the estimate has at least. On language it is 0.85."""


def _name(row: dict[str, Any]) -> str:
    return f"{row['what']} x {row['times']}".encode("ascii", "replace").decode()


def _is_not_too_low(row: dict[str, Any]) -> bool:
    return count_tokens(row["unit"] * row["times"]) >= LEAST * max(row["counts"].values())


@pytest.mark.parametrize("row", [row for row in ROWS if not row["guard"]], ids=_name)
def test_a_text_of_no_language_is_not_counted_too_low(row: dict[str, Any]) -> None:
    assert _is_not_too_low(row)


@pytest.mark.parametrize("row", [row for row in ROWS if row["guard"]], ids=_name)
def test_guard_what_was_counted_right_still_is(row: dict[str, Any]) -> None:
    assert _is_not_too_low(row)


@pytest.mark.parametrize(
    "unit", [" ", "\t", "\n", "\u3000", "\u00a0", "\u200b", "ж", "，", "\r\n"], ids=ascii
)
def test_no_blank_and_no_mark_is_free_however_many_there_are(unit: str) -> None:
    few, many = count_tokens(unit * 1000), count_tokens(unit * 1_000_000)
    assert many >= 500 * few >= 500
    message = {"role": "user", "content": unit * 1_000_000}
    assert count_message_tokens(message) >= many
