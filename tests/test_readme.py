"""The Python in both READMEs runs as it stands there, top to bottom, and both say the same."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.data import ROOT

READMES = ["README.md", "README.zh-CN.md"]


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / name).read_text("utf-8"), re.M | re.S)


@pytest.mark.parametrize("name", READMES)
def test_the_code_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LC_MEMORY_PROVIDER", "offline")
    monkeypatch.setenv("LC_MEMORY_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LEGACY_MEMORY_HOME", str(tmp_path / "legacy"))
    # The first block shows the five lines before prompt and model exist; the section below has them whole.
    shown, *run = blocks(name, "python")
    assert "memory.load_mem | prompt | model" in shown
    assert len(run) >= 5
    script = ModuleType("readme")  # pydantic looks the annotations of a class up in its module
    monkeypatch.setitem(sys.modules, "readme", script)
    for number, block in enumerate(run, start=2):
        exec(compile(block, f"{name}, block {number}", "exec"), vars(script))
    vars(script)["memory"].close()


def test_both_readmes_have_the_same_code_and_commands() -> None:
    for language in ("sh", "text", "json"):
        assert blocks("README.md", language) == blocks("README.zh-CN.md", language)
    english, chinese = (
        ["\n".join(re.sub(r"\s*#.*", "", line) for line in b.splitlines()) for b in blocks(n, "python")]
        for n in READMES
    )
    assert english == chinese


def test_the_graph_in_the_readme_is_what_a_chain_prints() -> None:
    from langchain_core.output_parsers import StrOutputParser

    from lc_memory import Memory, with_memory
    from lc_memory.models import OfflineChatModel
    from lc_memory.script import chat_prompt

    memory = Memory.open(":memory:")
    bot = with_memory(memory.load_mem | chat_prompt() | OfflineChatModel() | StrOutputParser(), memory)
    drawn = "\n".join(line.rstrip() for line in bot.get_graph().draw_ascii().splitlines())
    assert drawn.strip("\n") == blocks("README.md", "text")[0].strip("\n")


def test_all_local_links_lead_somewhere() -> None:
    for name in READMES:
        for link in re.findall(r"\]\(([^)#:]+)\)", (ROOT / name).read_text("utf-8")):
            assert (ROOT / link).exists(), f"{name}: {link}"
