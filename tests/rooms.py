"""The house, measured: who imports whom, how large each room is, how many files a turn and a fact pass.

    python tests/rooms.py                    as it stands
    python tests/rooms.py --before 91e7822   beside another revision

Every import counts: those inside functions and those under TYPE_CHECKING too. A package is imported with
whatever lies in it; that is Python's own and no arrow.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "lc_memory"

FLOORS = (
    "lazy", "errors", "language", "messages", "facts.privacy", "models", "store", "index", "prompt", "recall",
    "facts", "sessions", "chains", "retriever", "memory", "script", "integrations", "agent", "cli", "top",
)  # fmt: skip
"""The rooms from the ground up: each may know those before it and none behind it."""

ONE_ROOM = {"checks": "memory", "longterm": "memory", "imports": "memory", "moving": "memory", "__main__": "top", "": "top"}
"""Files of the root that are no room of their own."""


@dataclass(frozen=True)
class Arrow:
    """One import of something of this package."""

    importer: str
    imported: str
    """The module, without the package's name."""
    name: str | None
    """What of it; None: the module itself."""
    line: int


@dataclass
class Module:
    name: str
    """Without the package's name: ``store.sql``; ``store`` is ``store/__init__.py``, ``""`` the package's."""
    file: Path
    arrows: list[Arrow] = field(default_factory=list)
    code: int = 0
    """Lines that are neither blank nor comment nor docstring."""


def room_of(module: str) -> str:
    """The room of a module: its longest prefix that is one, else its folder, else (at the root) itself."""
    if module in ONE_ROOM:
        return ONE_ROOM[module]
    parts = module.split(".")
    for n in range(len(parts), 0, -1):
        if ".".join(parts[:n]) in FLOORS:
            return ".".join(parts[:n])
    return parts[0]


def read(root: Path = ROOT) -> dict[str, Module]:
    """All modules of the package in ``root``."""
    base = root / PACKAGE
    found = {}
    for file in sorted(base.rglob("*.py")):
        parts = file.relative_to(base).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = Module(name, file)
    for module in found.values():
        source = module.file.read_text("utf-8")
        tree = ast.parse(source, module.file)
        module.arrows = list(_arrows(module, tree, found))
        module.code = code_lines(source, tree)
    return found


def _arrows(module: Module, tree: ast.AST, modules: dict[str, Module]) -> Iterator[Arrow]:
    here = module.name.split(".") if module.name else []
    package = here if module.file.name == "__init__.py" else here[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name == PACKAGE or alias.name.startswith(f"{PACKAGE}."):
                    yield Arrow(module.name, alias.name[len(PACKAGE) + 1 :], None, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                above = package[: len(package) - node.level + 1]
                source = ".".join([*above, *([node.module] if node.module else [])])
            elif node.module == PACKAGE or (node.module or "").startswith(f"{PACKAGE}."):
                source = (node.module or "")[len(PACKAGE) + 1 :]
            else:
                continue
            for alias in node.names:
                inner = f"{source}.{alias.name}".lstrip(".")
                if inner in modules and not _defines(modules[source], alias.name):
                    yield Arrow(module.name, inner, None, node.lineno)
                else:
                    yield Arrow(module.name, source, alias.name, node.lineno)


def _defines(module: Module, name: str) -> bool:
    """Whether a package has a name of its own that a module in it has, too: ``agent.agent``."""
    tree = ast.parse(module.file.read_text("utf-8"))
    return any(
        isinstance(node, ast.ImportFrom) and node.module is not None
        and any((alias.asname or alias.name) == name for alias in node.names)
        for node in ast.walk(tree)
    )  # fmt: skip


def code_lines(source: str, tree: ast.AST) -> int:
    """Lines with code on them: no blanks, no comments, no docstrings (those of attributes neither)."""
    docs: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            docs.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    layout = {
        tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
    }  # fmt: skip
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in layout:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docs)


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of nodes each of which reaches all others of its group (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph[node]):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1 or node in graph[node]:
                found.append(sorted(group))

    for node in graph:
        if node not in index:
            visit(node)
    return found


def between_files(modules: dict[str, Module]) -> dict[str, set[str]]:
    return {
        name: {a.imported for a in module.arrows if a.imported in modules and a.imported != name}
        for name, module in modules.items()
    }


def between_rooms(modules: dict[str, Module]) -> dict[str, set[str]]:
    graph: dict[str, set[str]] = {room_of(name): set() for name in modules}
    for name, module in modules.items():
        graph[room_of(name)] |= {room_of(a.imported) for a in module.arrows} - {room_of(name)}
    return graph


# ---------------------------------------------------------------- the trace


def trace() -> dict[str, list[str]]:
    """Which files of the package a turn and a fact pass, with what ``Memory.open`` gives by default.

    ``load``: what the prompt of a question gets. ``save``: a turn is saved and indexed; ``save, waited for``:
    of that, what the caller waits for. ``note``: a fact is kept. ``forget``: one is erased. All are done once
    before, so that no import is counted.
    """
    import threading

    passed: set[str] | None = None
    here: set[str] | None = None  # of this thread
    caller = threading.get_ident()
    base = str(Path(sys.modules[PACKAGE].__file__ or "").parent) if PACKAGE in sys.modules else ""

    def listen(frame: object, event: str, _: object) -> None:
        if passed is not None and event == "call":
            file = frame.f_code.co_filename  # type: ignore[attr-defined]
            if file.startswith(base):
                passed.add(file[len(base) + 1 :])
                if here is not None and threading.get_ident() == caller:
                    here.add(file[len(base) + 1 :])

    from langchain_core.runnables import RunnableLambda

    import lc_memory
    from lc_memory import Memory, with_memory

    base = str(Path(lc_memory.__file__).parent)
    threading.setprofile(listen)
    sys.setprofile(listen)
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder, Memory.open(folder) as memory:
        config = {"configurable": {"user_id": "u1", "session_id": "s1"}}
        said = with_memory(RunnableLambda(lambda _: "好的，记下了。"), memory)
        facts = memory.facts_for("u1")
        # Other words each time: what was read once is not read again.
        hobbies = [["篮球", "足球"], ["羽毛球", "网球"]]

        def load(some: list[str]) -> None:
            memory.load_mem.invoke({"question": f"我喜欢{some[0]}吗？"}, config)  # type: ignore[arg-type]

        def save(some: list[str]) -> None:
            nonlocal here
            here = set()
            said.invoke({"question": f"我叫小明，喜欢打{some[0]}，住在北京"}, config)  # type: ignore[arg-type]
            found["save, waited for"], here = sorted(here), None
            memory.flush()

        def note(some: list[str]) -> None:
            memory.remember(f"我喜欢在周末打{some[1]}", user_id="u1", kind="sport")

        def forget(some: list[str]) -> None:
            facts.delete(some[0])

        for some in hobbies:
            facts.add_fact(f"我{some[0]}打得不错", some[0])
            for act in (save, note, load, forget):
                passed = set()
                act(some)
                found[act.__name__] = sorted(passed)
                passed = None
        sys.setprofile(None)
        threading.setprofile(None)
    return {name: found[name] for name in ("load", "save", "save, waited for", "note", "forget")}


# ---------------------------------------------------------------- the report


def report(root: Path) -> None:
    modules = read(root)
    files, rooms = between_files(modules), between_rooms(modules)
    found = circles(files)
    print(f"files            {len(modules)}, lines of code {sum(m.code for m in modules.values()):,}")
    print(f"arrows           {sum(map(len, files.values()))} between files, {sum(map(len, rooms.values()))} between rooms")
    print(f"circles          {len(found)} of files ({sum(map(len, found))} files in them), {len(circles(rooms))} of rooms")
    for group in found:
        print(f"    {' <-> '.join(name or PACKAGE for name in group)}")
    print("\nroom               files   code   knows")
    for room in sorted(rooms, key=lambda r: (FLOORS.index(r) if r in FLOORS else -1, r)):
        mine = [m for m in modules.values() if room_of(m.name) == room]
        print(f"{room:<18} {len(mine):>5}  {sum(m.code for m in mine):>5}   {' '.join(sorted(rooms[room]))}")
    env = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), "--trace"],
        env=env, cwd=root, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode:
        sys.exit(done.stderr)
    print("\nfiles passed")
    for act, passed in json.loads(done.stdout.splitlines()[-1]).items():
        by_room: dict[str, int] = {}
        for file in passed:
            name = file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
            room = room_of("" if name == "__init__" else name)
            by_room[room] = by_room.get(room, 0) + 1
        print(f"{act:<17} {len(passed):>3}   {', '.join(f'{room} {n}' for room, n in by_room.items())}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", metavar="REV", help="a revision to measure first")
    parser.add_argument("--trace", action="store_true", help="the files passed alone, as JSON")
    args = parser.parse_args()
    if args.trace:
        print(json.dumps(trace()))
        return
    if args.before:
        with tempfile.TemporaryDirectory() as folder:
            tree = subprocess.run(
                ["git", "archive", args.before, PACKAGE], cwd=ROOT, capture_output=True, check=True
            ).stdout
            with tarfile.open(fileobj=io.BytesIO(tree)) as packed:
                packed.extractall(folder)
            print(f"{args.before}\n")
            report(Path(folder))
        print("\nnow\n")
    report(ROOT)


if __name__ == "__main__":
    main()
