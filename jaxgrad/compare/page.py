"""The report as a page of HTML, with the curves of the losses."""

from __future__ import annotations

import math
from html import escape

from ..html import code, line, table
from .run import Run

WIDTH, HEIGHT, EDGE = 640, 240, 40
COLOURS = {"torch": "#ee4c2c", "jaxgrad": "#2c6fee"}

PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>{title}</title></head>
<body style="font-family:sans-serif;max-width:60em;margin:2em auto">
<h1>{title}</h1>
{body}
</body>
</html>
"""


def page(title: str, text: str, rows: list[tuple], runs: list[Run]) -> str:
    """A page without scripts: the report, the table, the losses and their differences."""
    curves = {run.library: run.curve() for run in runs}
    parts = [code(text, "report"), table(rows[0], rows[1:])]
    if any(curves.values()):
        parts += [line("loss by training step", True), chart(curves)]
    first, second = curves.values()
    gaps = [abs(a - b) / max(abs(a), abs(b), 1e-300) for a, b in zip(first, second, strict=False)]
    if gaps:
        logarithms = [math.log10(max(gap, 1e-17)) for gap in gaps]
        parts += [line("relative difference of the losses, power of ten", True)]
        parts += [chart({"difference": logarithms})]
    return PAGE.format(title=escape(title), body="\n".join(parts))


def chart(curves: dict[str, list[float]]) -> str:
    """Lines in one picture, as SVG; values that are not finite are left out."""
    values = [value for curve in curves.values() for value in curve if math.isfinite(value)]
    low, high = min(values, default=0.0), max(values, default=1.0)
    longest = max(len(curve) for curve in curves.values())
    shapes = [axis(low, high)]
    for number, (name, curve) in enumerate(curves.items()):
        points = " ".join(
            point(step, value, longest, low, high)
            for step, value in enumerate(curve)
            if math.isfinite(value)
        )
        colour = COLOURS.get(name, "#555")
        dash = ' stroke-dasharray="6 4"' if number else ""  # so that equal curves are both seen
        shapes.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="2"{dash} points="{points}"/>'
            f'<text x="{EDGE + 90 * number}" y="16" fill="{colour}">{escape(name)}</text>'
        )
    return f'<svg width="{WIDTH}" height="{HEIGHT}" role="img">{"".join(shapes)}</svg>'


def point(step, value, longest, low, high) -> str:
    x = EDGE + (WIDTH - 2 * EDGE) * step / max(longest - 1, 1)
    y = HEIGHT - EDGE - (HEIGHT - 2 * EDGE) * (value - low) / (high - low or 1.0)
    return f"{x:.1f},{y:.1f}"


def axis(low: float, high: float) -> str:
    base = HEIGHT - EDGE
    return (
        f'<line x1="{EDGE}" y1="{base}" x2="{WIDTH - EDGE}" y2="{base}" stroke="#999"/>'
        f'<text x="0" y="{base}" font-size="11">{low:.3g}</text>'
        f'<text x="0" y="{EDGE}" font-size="11">{high:.3g}</text>'
    )
