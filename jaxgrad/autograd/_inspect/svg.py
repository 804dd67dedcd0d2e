"""Boxes and arrows as SVG, and as Graphviz's dot."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import NamedTuple

from .graph_layout import layout

OPERATOR, FUNCTION, LEAF, CUT = "operator", "function", "leaf", "cut"
FILLS = {OPERATOR: "#e3e9f5", FUNCTION: "#ece0f4", LEAF: "#d9edd8", CUT: "#f6f6f6"}
# what is outside of boxes can be read on light and dark pages
LINE_COLOR, TEXT_COLOR, CUT_COLOR = "#7c8494", "#445", "#a33"

LINE_HEIGHT, PADDING, FONT_SIZE = 14, 7, 11
# narrow and wide characters, as a viewer's widest font may draw them
NARROW, WIDE = "fijlrtI.,:;'()[]| ", "mwMW@%"


class Line(NamedTuple):
    """A line of text; `title`, its first part, is bold."""

    title: str = ""
    rest: str = ""
    color: str = TEXT_COLOR

    @property
    def text(self) -> str:
        return self.title + self.rest

    @property
    def width(self) -> float:
        return FONT_SIZE * (1.12 * sum(map(_part, self.title)) + sum(map(_part, self.rest)))


def _part(character):
    """The width of a character in a wide font, relative to the font size."""
    if character in NARROW:
        return 0.4
    return 0.98 if character in WIDE else 0.72 if character.isupper() else 0.64


class Box(NamedTuple):
    """A box of a drawing.

    kind: OPERATOR, FUNCTION, LEAF or CUT.
    lines: its lines of text.
    details: its tooltip.
    is_end: whether the graph begins here.
    is_list: whether the lines are aligned to the left.
    """

    kind: str
    lines: list[Line]
    details: str = ""
    is_end: bool = False
    is_list: bool = False

    @property
    def size(self) -> tuple[float, float]:
        width = max([46.0, *(line.width for line in self.lines)])
        return width + 2 * PADDING, LINE_HEIGHT * len(self.lines) + 2 * PADDING - 2


class Drawing:
    """A drawing of a graph; `svg` and `dot` are its text, and notebooks show it.

    boxes: sorted so that each edge leads to a later box.
    edges: by pair of box numbers, how many gradients travel along the edge.
    straight: the edges that should lead straight down.
    """

    def __init__(self, boxes: list[Box], edges: dict[tuple[int, int], int], straight, summary: str):
        self.boxes, self.edges, self.straight, self.summary = boxes, edges, straight, summary

    def save(self, path):
        """Write the drawing to a file that ends in `.svg`, `.dot` or `.gv`.

        Raises ValueError for another ending.
        """
        endings = {".svg": "svg", ".dot": "dot", ".gv": "dot"}
        path = Path(path)
        if path.suffix not in endings:
            raise ValueError(f"a drawing can be saved as .svg, .dot or .gv, not as {path.name!r}")
        path.write_text(getattr(self, endings[path.suffix]), encoding="utf-8")

    @property
    def svg(self) -> str:
        """The drawing as SVG text."""
        placed = layout([box.size for box in self.boxes], list(self.edges), self.straight)
        summary = Line(rest=self.summary, color=LINE_COLOR)
        width = max(placed.width, summary.width + 2 * PADDING)
        height = placed.height + LINE_HEIGHT
        edges = zip(self.edges.items(), placed.routes, strict=True)
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" '
            f'font-family="Helvetica, Arial, sans-serif" font-size="{FONT_SIZE}">',
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="6" '
            f'markerHeight="6" orient="auto"><path d="M0 0 8 4 0 8z" fill="{LINE_COLOR}"/>'
            "</marker></defs>",
            *(self._edge(ends, times, route) for (ends, times), route in edges),
            *(_box(box, place) for box, place in zip(self.boxes, placed.boxes, strict=True)),
            _line(summary, PADDING, height - PADDING, "start"),
            "</svg>\n",
        ]
        return "\n".join(parts)

    def _repr_svg_(self):
        return self.svg

    def _edge(self, ends, times, route):
        is_cut = self.boxes[ends[1]].kind == CUT
        ending = ' stroke-dasharray="3 3"' if is_cut else ' marker-end="url(#tip)"'
        way = f'<path class="edge" d="{_path(route)}" fill="none" stroke="{LINE_COLOR}"{ending}/>'
        if times == 1:
            return way
        x, y = route[-1]
        return way + _line(Line(rest=f"{times}\u00d7", color=LINE_COLOR), x + 5, y - 7, "start")

    @property
    def dot(self) -> str:
        """The drawing as text for Graphviz."""
        lines = [
            "digraph gradients {",
            '  node [shape=box, style="filled,rounded", fontname="Helvetica", fontsize=10];',
        ]
        for number, box in enumerate(self.boxes):
            end = "\\l" if box.is_list else "\\n"
            label = end.join(_escaped(line.text) for line in box.lines) + (end * box.is_list)
            lines.append(f'  n{number} [label="{label}", fillcolor="{FILLS[box.kind]}"];')
        for (source, target), times in self.edges.items():
            label = f' [label="{times}\u00d7"]' if times > 1 else ""
            lines.append(f"  n{source} -> n{target}{label};")
        return "\n".join([*lines, "}\n"])

    def __repr__(self):
        return f"<drawing of {self.summary}>"


def _escaped(text):
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")


def _text(text):
    # XML has no control characters.
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text))


def _path(route):
    """A path through points: straight inside of a layer, curved between layers."""
    (x, y), *rest = route
    parts = [f"M{x:.1f} {y:.1f}"]
    for number, (to_x, to_y) in enumerate(rest):
        middle = (y + to_y) / 2
        bend = f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} " if number % 2 else "L"
        parts.append(f"{bend}{to_x:.1f} {to_y:.1f}")
        x, y = to_x, to_y
    return " ".join(parts)


def _line(line, x, y, anchor):
    title = f'<tspan font-weight="bold" fill="black">{_text(line.title)}</tspan>'
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{line.color}" '
        f'xml:space="preserve">{title if line.title else ""}{_text(line.rest)}</text>'
    )


def _box(box, place):
    x, y, width, height = place
    stroke = "#223" if box.is_end else "#99a"
    dashes = ' stroke-dasharray="3 3"' if box.kind == CUT else ""
    middle, anchor = (PADDING, "start") if box.is_list else (width / 2, "middle")
    tops = range(PADDING + 9, PADDING + 9 + LINE_HEIGHT * len(box.lines), LINE_HEIGHT)
    title = "\n".join(map(_text, box.details.split("\n")))
    return (
        f'<g class="{box.kind}"><title>{title}</title>'
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="5" '
        f'fill="{FILLS[box.kind]}" stroke="{stroke}"{dashes}/>'
        + "".join(
            _line(line, x + middle, y + top, anchor)
            for line, top in zip(box.lines, tops, strict=True)
        )
        + "</g>"
    )
