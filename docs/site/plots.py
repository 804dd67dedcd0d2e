"""Plots of functions of one number and of their derivatives, as SVG, computed by jaxgrad."""

import inspect
import math

import numpy as np

import jaxgrad
from jaxgrad.ops.cards import sections

SECTIONS = ("activation", "arithmetic", "pointwise", "special")
LOW, HIGH, COUNT = -4.0, 4.0, 161
MOST = 6.0  # what is larger is cut off
WIDTH, HEIGHT, EDGE = 300, 190, 12
CURVES = {"value": "value", "slope": "derivative"}


def is_of_one_number(function) -> bool:
    """Whether an operator takes one tensor, and all else by default."""
    operator = getattr(function, "operator", None)
    if operator is None or sections().get(operator.name) not in SECTIONS:
        return False
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False
    required = [p for p in parameters if p.default is p.empty and p.kind is not p.VAR_KEYWORD]
    return len(required) == 1 and "Tensor" in str(required[0].annotation)


def curves(function):
    """The numbers of a function and of its derivative on the axis; None if it is no function from
    real numbers to real numbers, changes nothing, or has no numbers there.
    """
    x = jaxgrad.linspace(LOW, HIGH, COUNT, dtype=jaxgrad.float64).requires_grad_()
    try:
        y = function(x)
        (slope,) = jaxgrad.autograd.grad(y.sum(), x)
    except (RuntimeError, NotImplementedError, TypeError, AttributeError):
        return None
    values, slopes = np.array(y.detach().tolist()), np.array(slope.tolist())
    slopes[np.isnan(values)] = np.nan
    is_trivial = y.shape != x.shape or y.is_complex() or np.array_equal(values, x.tolist())
    shown = np.isfinite(values) & (np.abs(values) < MOST)
    return None if is_trivial or shown.sum() < 20 else {"value": values, "slope": slopes}


def plot(function) -> str:
    """The SVG of a function with its derivative; "" for what cannot be drawn."""
    lines = curves(function) if is_of_one_number(function) else None
    if lines is None:
        return ""
    drawn = np.concatenate(list(lines.values()))
    drawn = drawn[np.isfinite(drawn) & (np.abs(drawn) < MOST)]
    low, high = min(drawn.min(), -0.5), max(drawn.max(), 0.5)
    across, up = WIDTH - 2 * EDGE, HEIGHT - 2 * EDGE - 16

    def place(x, y):
        return EDGE + across * (x - LOW) / (HIGH - LOW), EDGE + up * (high - y) / (high - low)

    shapes = [axis(*place(LOW, 0), *place(HIGH, 0)), axis(*place(0, low), *place(0, high))]
    for mark in range(int(LOW), int(HIGH) + 1):
        left, middle = place(mark, 0)
        shapes.append(axis(left, middle - 2, left, middle + 2))
    shapes += numbers_at_axes(low, high, place)
    for kind, numbers in lines.items():
        shapes += [
            f'<polyline class="{kind}" points="{" ".join(piece)}"/>'
            for piece in pieces(numbers, low, high, place)
            if len(piece) > 1
        ]
    for number, (kind, name) in enumerate(CURVES.items()):
        x, y = EDGE + 110 * number, HEIGHT - 6
        shapes.append(f'<polyline class="{kind}" points="{x},{y - 4} {x + 20},{y - 4}"/>')
        shapes.append(f'<text x="{x + 26}" y="{y}">{name}</text>')
    label = f"the function and its derivative from {LOW:g} to {HIGH:g}"
    return (
        f'<svg class="plot" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
        f"{''.join(shapes)}</svg>"
    )


def numbers_at_axes(low, high, place):
    """-2 and 2 below the axis across, and the marks of the upright axis at its left side."""
    for mark in (-2, 2):
        x, y = place(mark, 0)
        yield f'<text class="mark" x="{x:.0f}" y="{y + 11:.0f}" text-anchor="middle">{mark}</text>'
    for mark in upright_marks(low, high):
        x, y = place(0, mark)
        yield axis(x - 2, y, x + 2, y)
        place_of_it = f'x="{x - 5:.0f}" y="{y + 3:.0f}" text-anchor="end"'
        yield f'<text class="mark" {place_of_it}>{mark:g}</text>'


def upright_marks(low, high) -> list[float]:
    """Some multiples of a round number between two numbers, without 0."""
    step = next(step for step in (0.5, 1, 2, 5) if (high - low) / step < 5)
    numbers = (step * count for count in range(math.ceil(low / step), math.floor(high / step) + 1))
    return [number for number in numbers if number]


def axis(left, top, right, bottom) -> str:
    return f'<line x1="{left:.1f}" y1="{top:.1f}" x2="{right:.1f}" y2="{bottom:.1f}"/>'


def pieces(numbers, low, high, place):
    """The parts of a curve within the picture: it ends at NaN, at the edge and at jumps."""
    piece, last = [], None
    for x, y in zip(np.linspace(LOW, HIGH, COUNT), numbers, strict=True):
        is_inside = np.isfinite(y) and low - 1e-9 <= y <= high + 1e-9
        jumps = last is not None and abs(y - last) > (high - low) / 8
        if jumps or not is_inside:
            yield piece
            piece = []
        last = y if is_inside else None
        if is_inside:
            piece.append("{:.1f},{:.1f}".format(*place(x, y)))
    yield piece
