"""Rules of primitives that reduce axes by a binary operation, or find where an extremum is."""

from __future__ import annotations

import math

import numpy

from .dtypes import HALVES, arithmetic, kind_of
from .equation import NotOnHostError

UFUNCS = {
    "reduce_sum": numpy.add,
    "reduce_prod": numpy.multiply,
    "reduce_max": numpy.maximum,
    "reduce_min": numpy.minimum,
    "reduce_and": numpy.bitwise_and,
    "reduce_or": numpy.bitwise_or,
    "reduce_xor": numpy.bitwise_xor,
}

# NumPy adds up so many elements one after another without an error that matters.
FEW = 128
# NumPy takes long to reduce a short axis of many rows: these are combined slice by slice.
SHORT, MANY = 8, 128
# So many rows are combined at a time, which bounds the error by that of a sum of sums.
ROWS = 32


@arithmetic(*UFUNCS)
def _reduce_by_ufunc(equation):
    (shape, dtype), axes = equation.inputs[0], equation.params["axes"]
    reduce = reducer(UFUNCS[equation.name], shape, dtype, axes)
    if equation.name in ("reduce_sum", "reduce_prod") and dtype in HALVES:
        reduce = reducer(UFUNCS[equation.name], shape, numpy.dtype(numpy.float32), axes)
        return lambda operand: reduce(operand.astype(numpy.float32)).astype(dtype)
    return reduce


def reducer(ufunc, shape, dtype, axes):
    """A function that reduces the axes of an array of a shape and a dtype by a ufunc that is
    associative and commutative.

    The sum of n floats has an error like that of the sum of log(n), whatever the axes are.
    """
    axes = tuple(sorted(axes))
    reduced = math.prod([shape[axis] for axis in axes])
    kept = tuple([extent for axis, extent in enumerate(shape) if axis not in axes])
    if not reduced:
        identity = _identity(ufunc, dtype)
        return lambda operand: numpy.full(kept, identity, dtype)
    if len(axes) == 1 and 1 < reduced <= SHORT and math.prod(kept) >= MANY:
        return _by_slices(ufunc, axes[0], reduced)
    if reduced <= FEW:
        return lambda operand: ufunc.reduce(operand, axis=axes, dtype=dtype)
    runs = _runs(shape, axes)

    def reduce(operand):
        operand = numpy.ascontiguousarray(operand)
        for outer, extent, inner in runs:
            operand = _reduced_run(ufunc, operand.reshape(outer, extent, inner), dtype)
        return operand.reshape(kept)

    return reduce


def _by_slices(ufunc, axis, extent):
    before = (slice(None),) * axis

    def reduce(operand):
        result = ufunc(operand[*before, 0], operand[*before, 1])
        for place in range(2, extent):
            ufunc(result, operand[*before, place], out=result)
        return result

    return reduce


def _identity(ufunc, dtype):
    if ufunc in (numpy.maximum, numpy.minimum):
        if kind_of(dtype) == "c":
            raise NotOnHostError("the maximum of no complex numbers")
        sign = -1 if ufunc is numpy.maximum else 1
        if kind_of(dtype) == "f":
            return sign * numpy.inf
        if kind_of(dtype) == "b":
            return sign > 0
        return numpy.iinfo(dtype).min if sign < 0 else numpy.iinfo(dtype).max
    if ufunc is numpy.bitwise_and:
        return numpy.invert(dtype.type(0))
    return int(ufunc is numpy.multiply)


def _runs(shape, axes) -> list[tuple[int, int, int]]:
    """Runs of neighbouring axes that are reduced, the last first: the number of elements before a
    run, in it and behind it, when the runs behind it are reduced.
    """
    runs, inner, extent = [], 1, 1
    for axis in reversed(range(len(shape))):
        if axis in axes:
            extent *= shape[axis]
        if extent > 1 and (axis not in axes or axis == 0):
            before = axis + (axis not in axes)
            runs.append((math.prod(shape[:before]), extent, inner))
            extent = 1
        if axis not in axes:
            inner *= shape[axis]
    return runs


def _reduced_run(ufunc, operand, dtype):
    """Reduce the middle one of three axes of a contiguous array."""
    outer, extent, inner = operand.shape
    if inner == 1:
        # NumPy adds neighbours up in pairs
        return ufunc.reduce(operand, axis=(1, 2), dtype=dtype)
    while extent > ROWS:
        rows, rest = divmod(extent, ROWS)
        head = operand[:, : rows * ROWS].reshape(outer, ROWS, rows, inner)
        head = ufunc.reduce(head, axis=1, dtype=dtype)
        if rest:
            tail = ufunc.reduce(operand[:, rows * ROWS :], axis=1, dtype=dtype)
            ufunc(head[:, 0], tail, out=head[:, 0])
        operand, extent = head, rows
    return ufunc.reduce(operand, axis=1, dtype=dtype)


@arithmetic("argmax", "argmin")
def _place_of_extreme(equation):
    dtype, (axis, *others) = equation.inputs[0].dtype, equation.params["axes"]
    index_dtype = equation.outputs[0].dtype
    if others or kind_of(dtype) == "c":
        raise NotOnHostError(f"{equation.name} of several axes or of complex numbers")
    search = numpy.argmax if equation.name == "argmax" else numpy.argmin
    if dtype in HALVES:
        widen = numpy.float32
        return lambda operand: search(operand.astype(widen), axis).astype(index_dtype)
    return lambda operand: search(operand, axis).astype(index_dtype)


# ---- Reduction by a jaxpr

MONOIDS = {
    "add": numpy.add,
    "mul": numpy.multiply,
    "max": numpy.maximum,
    "min": numpy.minimum,
    "and": numpy.bitwise_and,
    "or": numpy.bitwise_or,
    "xor": numpy.bitwise_xor,
}
# How many elements the host combines one after another; XLA reduces larger arrays.
MOST = 1 << 10


@arithmetic("reduce")
def _reduce(equation):
    block, axes = equation.params["jaxpr"], tuple(equation.params["dimensions"])
    count = len(equation.outputs)
    ufuncs = _monoids(block, count)
    if ufuncs is not None:
        return _by_monoids(equation, ufuncs, axes)
    shape = equation.inputs[0].shape
    if math.prod(shape) > MOST:
        raise NotOnHostError("reduce of a large array by a function that NumPy does not have")
    return _one_by_one(equation, block.function, axes)


def _monoids(block, count):
    """The ufunc of every result, if a block computes it from the two operands of this result."""
    equations = block.needed()
    ufuncs = {
        results[0]: MONOIDS[equation.name]
        for place, (equation, operands, results) in enumerate(_in_order(block, equations))
        if equation.name in MONOIDS and sorted(operands) == [place, place + count]
    }
    if len(equations) != count or any(result not in ufuncs for result in block.results):
        return None
    return [ufuncs[result] for result in block.results]


def _in_order(block, equations):
    """The equations in the order of the results of the block."""
    places = {result: place for place, result in enumerate(block.results)}
    return sorted(equations, key=lambda step: places.get(step[2][0], len(places)))


def _by_monoids(equation, ufuncs, axes):
    count, steps = len(ufuncs), []
    for ufunc, (shape, dtype) in zip(ufuncs, equation.inputs, strict=False):
        wide = numpy.dtype(numpy.float32) if dtype in HALVES else dtype
        steps.append((ufunc, reducer(ufunc, shape, wide, axes), wide, dtype))

    def reduce(*operands):
        return [
            ufunc(start, combine(operand.astype(wide, copy=False))).astype(dtype)
            for (ufunc, combine, wide, dtype), operand, start in zip(
                steps, operands[:count], operands[count:], strict=True
            )
        ]

    return reduce


def _one_by_one(equation, function, axes):
    count, shape = len(equation.outputs), equation.inputs[0].shape
    kept = [axis for axis in range(len(shape)) if axis not in axes]
    forms = equation.outputs

    def reduce(*operands):
        results = [numpy.empty(form.shape, form.dtype) for form in forms]
        operands, starts = operands[:count], operands[count:]
        rows = [operand.transpose(*kept, *axes) for operand in operands]
        for place in numpy.ndindex(*forms[0].shape):
            values = list(starts)
            for elements in zip(*[row[place].ravel() for row in rows], strict=True):
                values = function(*values, *elements)
            for result, value in zip(results, values, strict=True):
                result[place] = value
        return results

    return reduce
