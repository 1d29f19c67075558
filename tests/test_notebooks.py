"""The notebooks run from top to bottom, and what is committed in them is what comes out."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import nbformat
import pytest
from langchain_core.runnables import Runnable, RunnableLambda, RunnableParallel, RunnablePassthrough
from langchain_core.runnables.graph import Graph

from notebooks.execute import NOTEBOOKS, as_committed, executed
from notebooks.picture import graph_svg

SVG = "{http://www.w3.org/2000/svg}"


def test_both_notebooks_are_there() -> None:
    assert [path.name for path in NOTEBOOKS] == ["01_the_three_parts.ipynb", "02_a_chain_with_memory.ipynb"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_run_gives_the_outputs_that_are_committed(path: Path) -> None:
    committed = nbformat.read(path, as_version=4)
    now = executed(path)
    for cell, fresh in zip(committed.cells, now.cells, strict=True):
        stale = f"{path.name}, cell {cell.id}: run `python notebooks/execute.py`, look at the change and commit it"
        assert cell.get("outputs") == fresh.get("outputs"), stale
    assert committed == now


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_is_committed_is_clean(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook == as_committed(nbformat.read(path, as_version=4))
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    for cell in code:
        outputs = json.dumps(cell.outputs, ensure_ascii=False)
        assert not re.search(r"/(?:tmp|home|root|Users|var)/|0x[0-9a-f]{6,}|Warning|Traceback|u001b", outputs), cell.id
        assert all(o.output_type != "error" and o.get("name") != "stderr" for o in cell.outputs), cell.id


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_headings_are_english_and_the_text_chinese(path: Path) -> None:
    text = "\n".join(c.source for c in nbformat.read(path, as_version=4).cells if c.cell_type == "markdown")
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    assert len(headings) > 5
    assert all(heading.isascii() for heading in headings)
    paragraphs = [p for p in re.split(r"\n\n+", text) if not p.startswith("#")]
    assert all(re.search(r"[\u4e00-\u9fff]", p) for p in paragraphs)


# ---------------------------------------------------------------- the picture


def step(name: str) -> Runnable[Any, Any]:
    return RunnableLambda(lambda x: x, name=name)


def boxes(svg: str) -> dict[str, tuple[float, float, float, float]]:
    """The text in each box, and where the box lies: left, top, right, bottom."""
    found, last = {}, None
    for element in ElementTree.fromstring(svg):
        if element.tag == f"{SVG}rect":
            x, y, w, h = (float(element.get(key) or 0) for key in ("x", "y", "width", "height"))
            last = (x, y, x + w, y + h)
        elif element.tag == f"{SVG}text" and last:
            found[element.text or ""] = last
    return found


BRANCHES = (
    step("头")
    | RunnableParallel(知识=step("查资料 <shelf> & \"co\""), long=step("a") | step("b") | step("c"), same=RunnablePassthrough())
    | step("尾")
)


def test_the_picture_shows_every_step_once_with_an_arrow_for_each_edge() -> None:
    graph = BRANCHES.get_graph()
    svg = graph_svg(graph)
    assert sorted(boxes(svg)) == sorted(node.name for node in graph.nodes.values())
    arrows = [e for e in ElementTree.fromstring(svg) if e.tag == f"{SVG}path"]
    assert len(arrows) == len(graph.edges)


def test_boxes_lie_inside_the_picture_below_each_other_and_do_not_overlap() -> None:
    svg = graph_svg(BRANCHES.get_graph())
    root, placed = ElementTree.fromstring(svg), boxes(svg)
    for left, top, right, bottom in placed.values():
        assert left >= 0
        assert top >= 0
        assert right <= float(root.get("width") or 0)
        assert bottom <= float(root.get("height") or 0)
    lying = list(placed.items())
    for i, (name, a) in enumerate(lying):
        for other, b in lying[i + 1 :]:
            assert a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1], (name, other)
    assert placed["头"][3] < placed["a"][1] < placed["b"][1] < placed["c"][1] < placed["尾"][1]


def test_the_same_graph_gives_the_same_picture() -> None:
    assert graph_svg(BRANCHES.get_graph()) == graph_svg(BRANCHES.get_graph())


def test_a_conditional_edge_is_dashed_and_named_and_parts_that_hang_together_with_nothing_are_shown() -> None:
    graph = Graph()
    a, b = graph.add_node(step("a")), graph.add_node(step("b"))
    graph.add_edge(a, b, "if <it> rains", conditional=True)
    graph.add_node(step("alone"))
    svg = graph_svg(graph)
    assert "stroke-dasharray" in svg
    assert {"a", "b", "alone"} <= set(boxes(svg))
    assert "if <it> rains" in [e.text for e in ElementTree.fromstring(svg) if e.tag == f"{SVG}text"]
