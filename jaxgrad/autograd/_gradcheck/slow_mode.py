"""The whole Jacobian: every element by differences, and by backward passes or tangents.

The one of reverse mode comes row by row and is held; the others come column by column and are
compared at once. So there is never more than one Jacobian in memory.
"""

from __future__ import annotations

import numpy

from .bisect import culprit
from .problem import one_hot, parts
from .report import FORWARD, IMAGINARY, REAL_PART, REVERSE, WHOLE, Comparison, message

NOT_REENTRANT = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
    "times gives different values, although analytical gradient matches numerical gradient."
)
HELD = ("float32", "float64", "complex64", "complex128")


def check(subject, settings):
    """Raises GradcheckError where a derivative differs from the numerical one."""
    comparison = Comparison(settings.tolerance)
    held = rows(subject) if settings.backward else {}
    for position in range(len(subject.moving)):
        for index in range(subject.input(position).numel()):
            _compare_columns(subject, settings, held, comparison, position, index)
    if comparison.found:
        place, mismatch = comparison.first()
        blamed = culprit(subject, settings, place[0])
        said = message(subject, place, mismatch, settings.tolerance, blamed)
        raise settings.error(place[0], said)
    _check_reentrant(subject, held, settings)


def rows(subject) -> dict:
    """The Jacobian by reverse mode.

    By the number of an output and the unit of its part: for each input an array, with a row for
    each element of the output. A complex input has complex gradients, of PyTorch's convention.
    """
    return {
        (i, unit): _rows_of(subject, i, unit)
        for i, output in enumerate(subject.outputs)
        for unit in parts(output)
    }


def _rows_of(subject, i, unit):
    output = subject.outputs[i]
    blocks = [_block(output, subject.input(k)) for k in range(len(subject.moving))]
    for row in range(output.numel()):
        for block, gradient in zip(blocks, _row(subject, i, row, unit), strict=True):
            if gradient is not None:
                block[row] = gradient.reshape(-1)
    return blocks


def _row(subject, i, row, unit):
    found = subject.pull_one(i, one_hot(subject.outputs[i], row, unit))
    return [None if gradient is None else numpy.asarray(gradient) for gradient in found]


def _block(output, tensor):
    name = numpy.dtype(tensor.dtype.numpy).name
    return numpy.zeros((output.numel(), tensor.numel()), name if name in HELD else "float32")


def _compare_columns(subject, settings, held, comparison, position, index):
    """Compare what one element of an input moves."""
    tensor, place = subject.input(position), subject.moving[position]
    slopes = {unit: subject.slopes(position, index, unit, settings.eps) for unit in parts(tensor)}
    for i, unit in held:
        column = [slopes[part][i] for part in parts(tensor)]
        numerical = sum(c * p for c, p in zip(map(_part(unit), column), parts(tensor), strict=True))
        analytical = held[i, unit][position][:, index]
        part = _number(unit, subject.outputs[i])
        where = REVERSE, part, subject.chosen[i], place
        comparison.column(where, index, numerical.reshape(-1), analytical)
    if not settings.forward:
        return
    for unit in parts(tensor):
        tangents = subject.push_one(position, one_hot(tensor, index, unit))
        part = _number(unit, tensor)
        for i, (tangent, slope) in enumerate(zip(tangents, slopes[unit], strict=True)):
            where = FORWARD, part, subject.chosen[i], place
            comparison.column(where, index, slope.reshape(-1), tangent.reshape(-1))


def _part(unit):
    return numpy.real if unit == 1 else numpy.imag


def _number(unit, tensor):
    if not tensor.dtype.is_complex:
        return WHOLE
    return REAL_PART if unit == 1 else IMAGINARY


def _check_reentrant(subject, held, settings):
    """Compute the rows once more, the last one first, as another order shows more."""
    for (i, unit), blocks in held.items():
        for row in reversed(range(subject.outputs[i].numel())):
            before = [block[row] for block in blocks]
            compare_passes(subject, i, before, _row(subject, i, row, unit), settings)


def compare_passes(subject, i, first, second, settings):
    """Raises GradcheckError where two backward passes from an output gave different gradients."""
    for k, pair in enumerate(zip(first, second, strict=True)):
        before, again = (0 if each is None else numpy.ravel(each) for each in pair)
        with numpy.errstate(all="ignore"):
            difference = numpy.max(abs(before - again), initial=0)
        if not difference <= settings.nondet_tol:
            raise settings.error(
                "reverse",
                f"{NOT_REENTRANT}The tolerance for nondeterminism was {settings.nondet_tol}, and "
                f"the gradient of input {subject.moving[k]} for output {subject.chosen[i]} of "
                f"{subject.name} changed by {difference:.3g}. Where that is to be expected, pass "
                "`nondet_tol`.",
            )
