"""Compression: what has left the window becomes one rolling summary, of which there is never a second."""

from __future__ import annotations

from typing import Any


def _estimate_tokens(text: str) -> int:
    """One token a character: right for Chinese, and on the safe side for everything else."""
    return max(1, len(text))


def _fmt(messages: list[dict[str, Any]]) -> str:
    return "\n".join(f"{m.get('role', 'user')}:{m.get('content', '')}" for m in messages)


def compress(messages: list[dict[str, Any]], llm: Any, keep: int = 4) -> list[dict[str, Any]]:
    """``messages`` with all but the last ``keep`` folded into one summary by ``llm.summarize``.

    Original system messages stay. An earlier summary is not summarised a second time: it is handed
    over together with the new text, and the answer takes its place. With too few messages the same
    list object comes back.
    """
    system = [m for m in messages if m.get("role") == "system" and not m.get("is_summary")]
    earlier = [m for m in messages if m.get("is_summary")]
    others = [m for m in messages if m.get("role") != "system" and not m.get("is_summary")]
    if len(others) <= keep:
        return messages
    cut = len(others) - keep
    old, recent = others[:cut], others[cut:]

    text = _fmt(old)
    if earlier:
        text = f"已有摘要:{earlier[-1]['content']}\n新增对话：\n{text}"
    summary = {"role": "system", "content": f"历史摘要：{llm.summarize(text)}", "is_summary": True}
    return [*system, summary, *recent]


def maybe_compress(
    messages: list[dict[str, Any]], llm: Any, max_tokens: int = 3000, keep: int = 4
) -> list[dict[str, Any]]:
    """``compress`` when the estimate is over ``max_tokens``; otherwise the same list object."""
    if len(messages) > keep + 1 and _estimate_tokens(_fmt(messages)) > max_tokens:
        return compress(messages, llm, keep=keep)
    return messages
