"""Draws a chart of figures.json as SVG: a bar for each figure, as long as its ratio to the base.

A chart has a `title`, a `unit`, a `base`, `more_is_better`, and `rows`: by name, by subject a
number. `base` is the subject to which ratios are given, or the row, where each row has one subject.
"""

import math
import textwrap
from html import escape

WIDTH, EDGE, LINE, BAR, GAP = 760, 16, 16, 11, 8
LETTER = 7.2  # the mean width of a letter, of fonts with wide ones
# more rows than these have no bars of the base, which a line stands for
MOST_ROWS = 12
RATIO = "ratio"  # the unit of figures that are known as ratios alone
LOGARITHMIC = 20  # from this ratio between the longest and the shortest bar on

STYLE = """
text { font: 12px system-ui, sans-serif; fill: #24292f; stroke: #ffffff }
text { paint-order: stroke; stroke-width: 3px } .muted { fill: #57606a }
.title { font-weight: 600; font-size: 14px } .ours { font-weight: 600 }
.paper { fill: #ffffff } .bar { fill: #a3aebb } .bar.ours, .bar.also { fill: #0b7f79 }
.also { opacity: 0.6 } text.also { opacity: 1 }
line { stroke: #d0d7de } .one { stroke: #57606a; stroke-dasharray: 3 3 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; stroke: #171b23 } .muted { fill: #9aa4af }
.paper { fill: #171b23 } .bar { fill: #5b6673 } .bar.ours, .bar.also { fill: #2fb5ad }
line { stroke: #30363d } .one { stroke: #9aa4af } }
"""


def ratio(chart, row, subject):
    """The figure to that of the base, None where the base has none."""
    rows, base = chart["rows"], chart["base"]
    of_base = rows[row].get(base, next(iter(rows.get(base, {}).values()), None))
    return None if of_base is None else rows[row][subject] / of_base


def number(value):
    """Three digits."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.0f}" if rounded >= 100 else f"{rounded:g}"


def ratio_text(value):
    return f"{value:.2f}" if 0.095 <= value < 9.995 else number(float(f"{value:.2g}"))


def kind_of(subject):
    """The class of the elements of a subject: of jaxgrad, of another way of it, or none."""
    return "ours" if subject == "jaxgrad" else "also" if subject.startswith("jaxgrad") else ""


def drawn(chart):
    """The rows, each with the subjects that have bars."""
    many = len(chart["rows"]) > MOST_ROWS
    return {
        row: [subject for subject in values if not (many and subject == chart["base"])]
        for row, values in chart["rows"].items()
    }


class Scale:
    """From ratios to lengths, linear from 0 or logarithmic from a power of ten."""

    def __init__(self, ratios, width):
        least, self.most, self.width = min([1, *ratios]), max([1, *ratios]), width
        self.is_logarithmic = self.most / least > LOGARITHMIC
        self.power = math.floor(math.log10(least * 0.99)) if self.is_logarithmic else 0

    def __call__(self, ratio):
        if not self.is_logarithmic:
            return self.width * ratio / self.most
        powers = math.log10(self.most) - self.power
        return self.width * (math.log10(ratio) - self.power) / powers

    def marks(self):
        """Powers of ten on a logarithmic scale."""
        if not self.is_logarithmic:
            return []
        return [10.0**power for power in range(self.power, math.floor(math.log10(self.most)) + 1)]


def text(x, y, words, kind="", anchor="start"):
    kind = f' class="{kind}"' if kind else ""
    anchor = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.0f}" y="{y:.0f}"{kind}{anchor}>{escape(words)}</text>'


def subtitle(chart, scale):
    of_unit = "" if chart["unit"] == RATIO else f" ({chart['unit']} in brackets)"
    what = f"ratio to {chart['base']}{of_unit}"
    better = "more is better" if chart["more_is_better"] else "less is better"
    return f"{what}; {better}" + ("; logarithmic scale" if scale.is_logarithmic else "")


def figure_text(chart, row, subject):
    """What stands to the right of a bar."""
    share, figure = ratio(chart, row, subject), number(chart["rows"][row][subject])
    if share is None:
        return figure
    of_unit = "" if chart["unit"] == RATIO else f"   ({figure} {chart['unit']})"
    return ratio_text(share) + of_unit


def columns(rows):
    """Where the names of subjects and the bars begin, and the lines of the name of each row."""
    longest = max(len(subject) for subjects in rows.values() for subject in subjects)
    subjects = {subject for row_subjects in rows.values() for subject in row_subjects}
    of_subjects = longest * LETTER + 10 if len(subjects) > 1 else 0
    names = {row: textwrap.wrap(row, 30) for row in rows}
    of_names = max(len(line) for lines in names.values() for line in lines) * LETTER + 14
    return EDGE + of_names, EDGE + of_names + of_subjects, names


def bars(chart, row, subjects, top, places, scale):
    """The elements of a row, whose first line begins at `top`."""
    at_subject, at_bar, names = places
    elements = [text(EDGE, top + LINE * n + 10, line) for n, line in enumerate(names[row])]
    for place, subject in enumerate(subjects):
        y, share, length = top + LINE * place, ratio(chart, row, subject), 0
        kind, figure = kind_of(subject), figure_text(chart, row, subject)
        if at_bar > at_subject:
            elements.append(text(at_bar - 8, y + 10, subject, kind or "muted", "end"))
        if share is not None:
            length = scale(share)
            elements.append(
                f'<rect class="bar {kind}" x="{at_bar:.0f}" y="{y}" '
                f'width="{length:.1f}" height="{BAR}" rx="2"/>'
            )
        x, base = at_bar + length + 6, at_bar + scale(1)
        if x < base < x + LETTER * len(figure):  # the line of the base would cross the figure
            x = base + 6
        elements.append(text(x, y + 10, figure, kind))
    return elements


def svg(chart, width=WIDTH):
    """The text of the file. width: in pixels, of which a letter takes about 7."""
    rows = drawn(chart)
    places = columns(rows)
    drawn_bars = [(row, subject) for row, subjects in rows.items() for subject in subjects]
    ratios = [ratio(chart, row, subject) for row, subject in drawn_bars]
    at_bar = places[1]
    of_figures = max(len(figure_text(chart, *bar)) for bar in drawn_bars) * LETTER + 6
    scale = Scale([r for r in ratios if r is not None], width - EDGE - of_figures - at_bar)
    body, y = [], 68
    for row, subjects in rows.items():
        body += bars(chart, row, subjects, y, places, scale)
        y += LINE * max(len(subjects), len(places[2][row])) + GAP
    grid = []
    for mark in [*scale.marks(), 1.0]:
        x = at_bar + scale(mark)
        kind = ' class="one"' if mark == 1.0 else ""
        grid.append(f'<line{kind} x1="{x:.1f}" x2="{x:.1f}" y1="60" y2="{y - GAP}"/>')
        grid.append(text(x, 56, f"{mark:g}", "muted", "middle"))
    height = y + EDGE - GAP
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{escape(chart['title'])}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="paper" width="{width}" height="{height}" rx="8"/>',
            text(EDGE, 22, chart["title"], "title"),
            text(EDGE, 39, subtitle(chart, scale), "muted"),
            *dict.fromkeys(grid),
            *body,
            "</svg>",
            "",
        ]
    )
