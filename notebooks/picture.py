"""A chain's graph as a picture, with nothing but grandalf: no network, no graphviz.

::

    from IPython.display import SVG
    from picture import graph_svg

    SVG(graph_svg(chain.get_graph()))
"""

from __future__ import annotations

from dataclasses import dataclass, field
from unicodedata import east_asian_width
from xml.sax.saxutils import escape

from grandalf.graphs import Edge, Vertex
from grandalf.graphs import Graph as Layers
from grandalf.layouts import SugiyamaLayout
from grandalf.routing import route_with_lines
from langchain_core.runnables.graph import Graph

# All lengths in pixels, and whole ones: their sums are then the same in every version of Python.
_LETTER = 8
_LINE = 38
_PADDING = 16
_BETWEEN = 34
_MARGIN = 16
_FONT = "system-ui, 'PingFang SC', 'Microsoft YaHei', 'Noto Sans CJK SC', sans-serif"

_STEP = ("#e8f0fe", "#1a56c4")  # fill and line of what runs
_DATA = ("#f4f4f4", "#8a8a8a")  # … and of what goes in and comes out


@dataclass
class _Box:
    """What grandalf lays out: a size, and then the place of its middle."""

    w: float
    h: float = _LINE
    xy: tuple[float, float] = (0.0, 0.0)


@dataclass
class _Way:
    """The points of an edge, from border to border."""

    points: list[tuple[float, float]] = field(default_factory=list)

    def setpath(self, points: list[tuple[float, float]]) -> None:
        self.points = points


def graph_svg(graph: Graph) -> str:
    """The graph of a Runnable (``chain.get_graph()``) as an SVG picture, from top to bottom.

    Steps are blue, what goes in and comes out is grey; a conditional edge is dashed. The same graph gives
    the same text.
    """
    vertices = {name: Vertex(name) for name in graph.nodes}
    for name, vertex in vertices.items():
        vertex.view = _Box(w=_width(graph.nodes[name].name) + 2 * _PADDING)
    edges = []
    for edge in graph.edges:
        drawn = Edge(vertices[edge.source], vertices[edge.target])
        drawn.view = _Way()
        drawn.of = edge
        edges.append(drawn)

    right = float(_MARGIN)
    bottom = float(_MARGIN)
    parts: list[str] = []
    for island in Layers(list(vertices.values()), edges).C:
        layout = SugiyamaLayout(island)
        layout.xspace, layout.yspace = _BETWEEN, _BETWEEN
        layout.route_edge = route_with_lines
        layout.init_all()
        layout.draw()
        # grandalf keeps sets of its own; the graph's order makes the text the same every time.
        here = [v for v in vertices.values() if v in island.sV]
        boxes = [v.view for v in here]
        left = min(b.xy[0] - b.w / 2 for b in boxes)
        top = min(b.xy[1] - b.h / 2 for b in boxes)
        move = (right - left, _MARGIN - top)
        parts += [_arrow(e, move) for e in edges if e in island.sE]
        parts += [_box(graph, v, move) for v in here]
        right = max(b.xy[0] + b.w / 2 for b in boxes) + move[0] + _BETWEEN
        bottom = max(bottom, max(b.xy[1] + b.h / 2 for b in boxes) + move[1])
    width, height = round(right - _BETWEEN + _MARGIN), round(bottom + _MARGIN)
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img" font-family="{_FONT}" font-size="14">',
        f"<title>{escape(' → '.join(node.name for node in graph.nodes.values()))}</title>",
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" '
        'orient="auto"><path d="M0 0 L10 5 L0 10 z" fill="#555"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *parts,
        "</svg>",
    ])  # fmt: skip


def _width(text: str) -> int:
    """Of a line of text; a Chinese character is as wide as two letters."""
    return _LETTER * sum(2 if east_asian_width(c) in "WF" else 1 for c in text)


def _box(graph: Graph, vertex: Vertex, move: tuple[float, float]) -> str:
    node, box = graph.nodes[vertex.data], vertex.view
    x, y = box.xy[0] + move[0], box.xy[1] + move[1]
    fill, line = _DATA if isinstance(node.data, type) else _STEP
    return (
        f'<rect x="{x - box.w / 2:.1f}" y="{y - box.h / 2:.1f}" width="{box.w:.1f}" height="{box.h}" rx="9" '
        f'fill="{fill}" stroke="{line}" stroke-width="1.3"/>'
        f'<text x="{x:.1f}" y="{y + 5:.1f}" text-anchor="middle" fill="#1c1c1c">{escape(node.name)}</text>'
    )


def _arrow(edge: Edge, move: tuple[float, float]) -> str:
    points = [(x + move[0], y + move[1]) for x, y in edge.view.points]
    path = " L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    dashed = ' stroke-dasharray="5 4"' if edge.of.conditional else ""
    arrow = f'<path d="M{path}" fill="none" stroke="#555" stroke-width="1.3"{dashed} marker-end="url(#tip)"/>'
    if edge.of.data is None:
        return arrow
    (x1, y1), (x2, y2) = points[len(points) // 2 - 1], points[len(points) // 2]
    middle = f'x="{(x1 + x2) / 2 + 6:.1f}" y="{(y1 + y2) / 2 + 4:.1f}"'
    return arrow + f'<text {middle} fill="#555" font-size="12">{escape(str(edge.of.data))}</text>'
