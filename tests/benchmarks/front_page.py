"""Draws the losses of the front page: one script from one seed, under PyTorch and under jaxgrad.

    .venv-torch/bin/python tests/benchmarks/front_page.py     (`make oracle` makes the environment)

writes docs/site/assets/losses.svg.
"""

import re
import subprocess
import sys
from pathlib import Path

from charts import EDGE, STYLE, text
from page import FRONT_PAGE as WIDTH

CHECKOUT = Path(__file__).resolve().parents[2]
SCRIPT = CHECKOUT / "tests" / "oracle" / "same_seed" / "vae.py"
PICTURE = CHECKOUT / "docs" / "site" / "assets" / "losses.svg"
HEIGHT, TOP, LEFT, BASE = 230, 64, 60, 36
LINES = """
polyline { fill: none } .pytorch { stroke: #f0a58f; stroke-width: 7 }
.jaxgrad { stroke: #0b7f79; stroke-width: 2 }
@media (prefers-color-scheme: dark) { .pytorch { stroke: #a8573f } .jaxgrad { stroke: #4fd3cb } }
"""


def losses(*options):
    """What the script prints as losses, of one run."""
    command = [sys.executable, *options, SCRIPT]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [float(number) for number in re.findall(r"loss (\S+)", printed)]


def drawing(curves):
    """The text of the SVG. curves: by library, the losses of the steps."""
    values = [value for curve in curves.values() for value in curve]
    low, high = min(values), max(values)
    difference = max(abs(a - b) / b for a, b in zip(*curves.values(), strict=True))

    def point(step, value):
        x = LEFT + (WIDTH - LEFT - EDGE) * step / (len(values) // 2 - 1)
        y = TOP + (HEIGHT - TOP - BASE) * (high - value) / (high - low)
        return f"{x:.1f},{y:.1f}"

    shapes = []
    for number, (name, curve) in enumerate(curves.items()):
        points = " ".join(point(step, value) for step, value in enumerate(curve))
        shapes.append(f'<polyline class="{name.lower()}" points="{points}"/>')
        x, y = WIDTH - 130, TOP + 12 + 18 * number
        shapes.append(
            f'<polyline class="{name.lower()}" points="{x - 34},{y - 4} {x - 8},{y - 4}"/>'
        )
        shapes.append(text(x, y, name))
    steps = len(values) // 2
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            "<title>Losses under PyTorch and under jaxgrad</title>",
            f"<style>{STYLE}{LINES}</style>",
            f'<rect class="paper" width="{WIDTH}" height="{HEIGHT}" rx="8"/>',
            text(EDGE, 22, "One script, one seed: the loss of a variational autoencoder", "title"),
            text(
                EDGE, 39, f"the two lines differ by {difference:.0e} of the loss at most", "muted"
            ),
            f'<line x1="{LEFT}" x2="{WIDTH - EDGE}" y1="{HEIGHT - BASE}" y2="{HEIGHT - BASE}"/>',
            text(LEFT - 8, TOP + 4, f"{high:.1f}", "muted", "end"),
            text(LEFT - 8, HEIGHT - BASE + 4, f"{low:.1f}", "muted", "end"),
            text(LEFT, HEIGHT - 12, "step 1", "muted"),
            text(WIDTH - EDGE, HEIGHT - 12, f"step {steps}", "muted", "end"),
            *shapes,
            "</svg>",
            "",
        ]
    )


if __name__ == "__main__":
    curves = {"PyTorch": losses(), "jaxgrad": losses("-m", "jaxgrad", "run")}
    PICTURE.write_text(drawing(curves))
