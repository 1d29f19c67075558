"""The Python in both READMEs runs as it stands there, top to bottom, and both say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.data import ROOT
from tests.helpers import programs
from tests.helpers.console import offline

READMES = ["README.md", "README.zh-CN.md"]


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", (ROOT / name).read_text("utf-8"), re.M | re.S)


@pytest.mark.parametrize("name", READMES)
def test_the_code_runs(name: str, tmp_path: Path) -> None:
    # The first block shows the five lines before prompt and model exist; the section below has them whole.
    shown, *run = blocks(name, "python")
    assert "memory.load_mem | prompt | model" in shown
    assert len(run) >= 5
    script = tmp_path / "readme.py"
    script.write_text("\n".join([*run, "memory.close()", "print('to the end')"]), "utf-8")
    env = offline(tmp_path, LEGACY_MEMORY_HOME=str(tmp_path / "legacy"))
    done = programs.run(script, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("to the end\n")


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
