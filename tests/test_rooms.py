"""The rooms of the house: who may know whom, through which door, and how much each may hold.

Every import is read, those inside functions and those under TYPE_CHECKING too. ``python tests/rooms.py``
prints the numbers. The limits at the end only ever go down.
"""

from __future__ import annotations

import ast
import importlib
from collections import Counter
from pathlib import Path

import pytest

from . import rooms

MODULES = rooms.read()
BASE = rooms.ROOT / rooms.PACKAGE
DOORS = {name for name, module in MODULES.items() if module.file.name == "__init__.py" and rooms.room_of(name) == name}

PRIVATE = {
    # (who, where, what): names of another room that have no public name yet. This list only shrinks.
    ("integrations.saving", "chains.turn", "_kept"),
    # LangChain's name for it in every tutorial: public, whatever it looks like.
    ("agent.calls", "messages", "_to_lc"),
    ("agent.runnable", "messages", "_to_lc"),
    ("models.chat", "messages", "_to_lc"),
    ("prompt.context", "messages", "_to_lc"),
}


def shown(arrow: rooms.Arrow) -> str:
    return f"{arrow.importer}:{arrow.line} takes {arrow.name or 'the module'} from {arrow.imported}"


def across() -> list[rooms.Arrow]:
    """All imports that leave their room."""
    arrows = [arrow for module in MODULES.values() for arrow in module.arrows]
    return [a for a in arrows if rooms.room_of(a.importer) != rooms.room_of(a.imported)]


# ---------------------------------------------------------------- direction


def test_every_file_lies_in_a_room() -> None:
    assert {rooms.room_of(name) for name in MODULES} == set(rooms.FLOORS)


def test_no_file_reaches_itself_by_its_imports() -> None:
    assert rooms.circles(rooms.between_files(MODULES)) == []


def test_no_room_reaches_itself_by_its_imports() -> None:
    assert rooms.circles(rooms.between_rooms(MODULES)) == []


def test_imports_run_downwards_only() -> None:
    floor = {room: n for n, room in enumerate(rooms.FLOORS)}
    upwards = [a for a in across() if floor[rooms.room_of(a.imported)] > floor[rooms.room_of(a.importer)]]
    assert list(map(shown, upwards)) == []


def test_modules_are_imported_by_statements_that_can_be_read() -> None:
    # What is imported by a string is seen by no test of imports: two files may, and say why.
    by_string = {
        name
        for name, module in MODULES.items()
        if any(word in module.file.read_text("utf-8") for word in ("import_module", "__import__"))
    }
    assert by_string == {"lazy", "agent.registry"}


def test_the_original_memory_is_known_to_nobody() -> None:
    # The adapter works with anything that has its calls, and needs no class of it.
    knowing = [
        name
        for name, module in MODULES.items()
        for node in ast.walk(ast.parse(module.file.read_text("utf-8")))
        if (isinstance(node, ast.ImportFrom) and (node.module or "").startswith("legacy_memory"))
        or (isinstance(node, ast.Import) and any(a.name.startswith("legacy_memory") for a in node.names))
    ]
    assert knowing == []


def test_the_original_memory_knows_nothing_but_itself() -> None:
    for file in sorted((rooms.ROOT / "legacy_memory").glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and not node.level:
                assert not (node.module or "").startswith(("lc_memory", "langchain")), file.name
            elif isinstance(node, ast.Import):
                assert not any(a.name.startswith(("lc_memory", "langchain")) for a in node.names), file.name


# ---------------------------------------------------------------- doors


def test_what_one_room_takes_from_another_it_takes_at_its_door() -> None:
    around = []
    for arrow in across():
        room = rooms.room_of(arrow.imported)
        is_door = arrow.imported == room or (arrow.name is None and arrow.imported in handed_out(room))
        if not is_door and (arrow.importer, arrow.imported, arrow.name) not in PRIVATE:
            around.append(shown(arrow))
    assert around == []


def test_no_room_takes_what_another_has_not_made_public() -> None:
    taken = {(a.importer, a.imported, a.name) for a in across() if (a.name or "").startswith("_") and a.importer}
    assert taken - PRIVATE == set()
    assert PRIVATE - taken == set(), "no longer taken: take it off the list"


def test_nobody_inside_a_room_goes_out_of_its_door() -> None:
    inside = [
        shown(a)
        for module in MODULES.values()
        for a in module.arrows
        if a.imported in DOORS and a.importer != a.imported and rooms.room_of(a.importer) == a.imported
    ]
    assert inside == []


def test_the_package_itself_is_imported_by_nobody_in_it() -> None:
    assert [shown(a) for a in across() if a.imported == ""] == []


def typed(door: str) -> dict[str, str]:
    """What a door hands out to type checkers: name -> module."""
    return {
        a.name or a.imported.rpartition(".")[2]: a.imported
        for a in MODULES[door].arrows
        if a.imported != "lazy" and a.imported != door
    }


def handed_out(room: str) -> set[str]:
    return {module for name, module in typed(room).items() if module == f"{room}.{name}"} if room in DOORS else set()


@pytest.mark.parametrize("door", [*sorted(DOORS), ""])
def test_a_door_hands_out_what_it_says_to_type_checkers(door: str) -> None:
    package = importlib.import_module(f"{rooms.PACKAGE}.{door}".rstrip("."))
    names = typed(door)
    assert sorted(package.__all__) == sorted(name for name in names if not name.startswith("_"))
    for name, module in names.items():
        if (door, name) in {("", "chain"), ("", "load_mem")}:
            continue  # these build the default memory
        value = getattr(package, name)
        home = importlib.import_module(f"{rooms.PACKAGE}.{module}")
        assert value is home or value is getattr(home, name), name


@pytest.mark.parametrize("door", [*sorted(DOORS), ""])
def test_no_name_at_a_door_is_that_of_a_module_behind_it(door: str) -> None:
    # The module, once imported, would take the name's place.
    behind = {n.rpartition(".")[2] for n in MODULES if n and n.rpartition(".")[0] == door}
    assert {n for n, module in typed(door).items() if n in behind and module != f"{door}.{n}".lstrip(".")} == set()


# ---------------------------------------------------------------- how much


FILES = 158  # to become 110
FILES_AT_THE_ROOT = 10
FILES_IN_A_FOLDER = 16
LINES_IN_A_FILE = 800  # to become 400
CODE = 17_100  # to become 12,000
CORE = 7_250  # to become 4,500: what a newcomer reads first


def test_no_folder_and_no_file_holds_too_much() -> None:
    files = [f for f in BASE.rglob("*") if f.is_file() and "__pycache__" not in f.parts]
    folders = Counter(f.parent.relative_to(BASE) for f in files)
    assert folders.pop(Path()) <= FILES_AT_THE_ROOT
    assert {str(folder): n for folder, n in folders.items() if n > FILES_IN_A_FOLDER} == {}
    assert len([f for f in files if f.suffix == ".py"]) <= FILES
    long = {str(f.relative_to(BASE)): n for f in files if (n := len(f.read_text("utf-8").splitlines())) > LINES_IN_A_FILE}
    assert long == {}


def test_the_package_says_no_more_than_it_has_to() -> None:
    assert sum(module.code for module in MODULES.values()) <= CODE
    core = ("memory", "chains", "prompt", "sessions", "messages", "store")
    assert sum(module.code for name, module in MODULES.items() if rooms.room_of(name) in core) <= CORE


def test_a_line_of_code_is_neither_blank_nor_comment_nor_docstring() -> None:
    source = '"""Doc."""\n\nX = 1  # why\n"""Of X."""\n# only a comment\n\n\ndef f() -> str:\n    """Doc,\n\n    long."""\n    return """a\nb"""\n'
    assert rooms.code_lines(source, ast.parse(source)) == 4
