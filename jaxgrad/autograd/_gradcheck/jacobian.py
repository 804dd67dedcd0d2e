"""Comparison of analytical Jacobians with finite differences.

Slow mode compares all elements. It holds the Jacobian of reverse mode, which is computed by rows.
The numerical Jacobian and that of forward mode are computed and compared column by column, so there
is never more than one Jacobian in memory.

Fast mode compares projections on random directions, which takes a few evaluations for inputs of any
size: for reverse mode one number <u, J v> for each output and input, for forward mode all elements
of J v. The elements of the directions have an absolute value between 1 and 2, so an error in one
element of the Jacobian appears in the sum at its full size, and both modes use the same tolerance.
"""

from __future__ import annotations

import numpy

from . import precision
from .bisect import culprit
from .problem import directions, one_hot, parts, product
from .report import (
    FORWARD,
    IMAGINARY,
    REAL_PART,
    REVERSE,
    WHOLE,
    Comparison,
    GradcheckError,
    heading,
    message,
)

NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
    "times gives different values, although analytical gradient matches numerical gradient."
)
HELD = ("float32", "float64", "complex64", "complex128")


def check_elements(problem, settings):
    """Compare all elements. Raises GradcheckError for a mismatch."""
    comparison = Comparison(settings.tolerance)
    held = rows(problem) if settings.backward else {}
    for position in range(len(problem.moving)):
        for index in range(problem.input(position).numel()):
            _compare_columns(problem, settings, held, comparison, position, index)
    if comparison.mismatches:
        place, mismatch = comparison.first()
        blamed = culprit(problem, settings, place[0])
        text = message(problem, place, mismatch, settings.tolerance, blamed)
        raise settings.error(place[0], text)
    _check_reentrant(problem, held, settings)


def rows(problem) -> dict:
    """The Jacobian by reverse mode, computed row by row.

    Returns a dict by `(number of the output, 1 or 1j)`: for each input an array with a row for each
    element of the output. The gradients of complex inputs are complex, in PyTorch's convention.
    """
    return {
        (i, unit): _rows_of(problem, i, unit)
        for i, output in enumerate(problem.outputs)
        for unit in parts(output)
    }


def _rows_of(problem, i, unit):
    output = problem.outputs[i]
    blocks = [_block(output, problem.input(k)) for k in range(len(problem.moving))]
    for row in range(output.numel()):
        for block, gradient in zip(blocks, _row(problem, i, row, unit), strict=True):
            if gradient is not None:
                block[row] = gradient.reshape(-1)
    return blocks


def _row(problem, i, row, unit):
    gradients = problem.pull_one(i, one_hot(problem.outputs[i], row, unit))
    return [None if gradient is None else numpy.asarray(gradient) for gradient in gradients]


def _block(output, tensor):
    name = numpy.dtype(tensor.dtype.numpy).name
    return numpy.zeros((output.numel(), tensor.numel()), name if name in HELD else "float32")


def _compare_columns(problem, settings, held, comparison, position, index):
    """Compare the derivatives with respect to one element of an input."""
    tensor, place = problem.input(position), problem.moving[position]
    slopes = {unit: problem.slopes(position, index, unit, settings.eps) for unit in parts(tensor)}
    for i, unit in held:
        column = [slopes[part][i] for part in parts(tensor)]
        numerical = sum(c * p for c, p in zip(map(_part(unit), column), parts(tensor), strict=True))
        analytical = held[i, unit][position][:, index]
        part = _number(unit, problem.outputs[i])
        where = REVERSE, part, problem.chosen[i], place
        comparison.column(where, index, numerical.reshape(-1), analytical)
    if not settings.forward:
        return
    for unit in parts(tensor):
        tangents = problem.push_one(position, one_hot(tensor, index, unit))
        part = _number(unit, tensor)
        for i, (tangent, slope) in enumerate(zip(tangents, slopes[unit], strict=True)):
            where = FORWARD, part, problem.chosen[i], place
            comparison.column(where, index, slope.reshape(-1), tangent.reshape(-1))


def _part(unit):
    return numpy.real if unit == 1 else numpy.imag


def _number(unit, tensor):
    if not tensor.dtype.is_complex:
        return WHOLE
    return REAL_PART if unit == 1 else IMAGINARY


def _check_reentrant(problem, held, settings):
    """Compute the rows again, in reverse order, and compare them with the first ones."""
    for (i, unit), blocks in held.items():
        for row in reversed(range(problem.outputs[i].numel())):
            before = [block[row] for block in blocks]
            compare_passes(problem, i, before, _row(problem, i, row, unit), settings)


def compare_passes(problem, i, first, second, settings):
    """Raise GradcheckError if two backward passes from output `i` gave different gradients."""
    for k, pair in enumerate(zip(first, second, strict=True)):
        before, again = (0 if gradient is None else numpy.ravel(gradient) for gradient in pair)
        with numpy.errstate(all="ignore"):
            difference = numpy.max(abs(before - again), initial=0)
        if not difference <= settings.nondet_tol:
            raise settings.error(
                "reverse",
                f"{NOT_REENTRANT}The tolerance for nondeterminism was {settings.nondet_tol}, and "
                f"the gradient of input {problem.moving[k]} for output {problem.chosen[i]} of "
                f"{problem.name} changed by {difference:.3g}. If the function is meant to be "
                "nondeterministic, pass `nondet_tol`.",
            )


# fast mode

FAST = "The above quantities are projections of the Jacobians on random directions, as computed in "


def check_projections(problem, settings):
    """Compare projections. Raises GradcheckError for a mismatch, with the result of slow mode."""
    generator = numpy.random.default_rng(0)
    comparison = Comparison(settings.tolerance)
    along = directions([problem.input(k) for k in range(len(problem.moving))], generator)
    weights = directions(problem.outputs, generator)
    pulled = [problem.pull_one(i, u) for i, u in enumerate(weights)] if settings.backward else []
    for k, direction in enumerate(along):
        place = problem.moving[k]
        everywhere = numpy.s_[:]
        slopes = problem.slopes(k, everywhere, direction.reshape(-1), settings.eps)
        for i, gradients in enumerate(pulled):
            numerical = product(weights[i], slopes[i])
            analytical = 0.0 if gradients[k] is None else product(gradients[k], direction)
            where = REVERSE, WHOLE, problem.chosen[i], place
            comparison.column(where, 0, numpy.array([numerical]), numpy.array([analytical]))
        if settings.forward:
            tangents = problem.push_one(k, direction)
            for i, (tangent, slope) in enumerate(zip(tangents, slopes, strict=True)):
                where = FORWARD, WHOLE, problem.chosen[i], place
                comparison.column(where, 0, slope.reshape(-1), tangent.reshape(-1))
    if comparison.mismatches:
        place, mismatch = comparison.first()
        text = _message(problem, settings, place, mismatch)
        raise settings.error(place[0], text)
    _check_projections_reentrant(problem, settings, weights, pulled)


def _message(problem, settings, place, mismatch) -> str:
    try:
        check_elements(problem, settings)
    except GradcheckError as error:
        slow = f"In slow mode:\n\n{error}"
    else:
        slow = (
            f"In slow mode, one direction at a time, there is no mismatch: {problem.name} has a "
            "derivative that is not linear in the direction."
        )
        slow = precision.of_ends(problem, settings) or slow
    return (
        f"{heading(place)}\n"
        f"numerical:{mismatch.numerical}\nanalytical:{mismatch.analytical}\n\n"
        f"{FAST}fast mode.\n{slow}"
    )


def _check_projections_reentrant(problem, settings, weights, pulled):
    for i, gradients in reversed(list(enumerate(pulled))):
        compare_passes(problem, i, gradients, problem.pull_one(i, weights[i]), settings)
