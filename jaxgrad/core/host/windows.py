"""Rules of primitives that reduce windows, or select an element of each window.

A window is seen as a list of offsets: all windows' elements at one offset are a strided part of
the padded operand, and the parts are combined one after the other.
"""

from __future__ import annotations

import itertools
from math import prod

import numpy

from .accumulators import accumulator_of, in_dtype, wide_dtype
from .equation import Form, NotOnHostError, rule

# the length of a window from which an axis is reduced by one call rather than by a loop
LONG = 8
# how often a combination that is a program may run
CALLS = 1 << 12


class _Frame:
    """The padded operand of an equation and the windows in it."""

    def __init__(self, equation, operand):
        params, rank = equation.params, len(operand.shape)
        ones = (1,) * rank
        self.extents = params["window_dimensions"]
        self.steps = params["window_strides"] or ones
        self.padding = params["padding"]
        self.base = params.get("base_dilation") or ones
        self.dilation = params.get("window_dilation") or ones
        self.shape = operand.shape
        # that of an empty axis is negative in no case
        dilated = [
            max(0, (extent - 1) * base + 1)
            for extent, base in zip(operand.shape, self.base, strict=True)
        ]
        self.padded = tuple(
            [
                max(0, low + extent + high)
                for extent, (low, high) in zip(dilated, self.padding, strict=True)
            ]
        )
        self.points = equation.outputs[0].shape
        self.is_plain = self.padded == self.shape and not any(map(any, self.padding))
        self.places, self.sources = (
            zip(*[*map(_filled, self.shape, self.padding, self.base, self.padded)], strict=True)
            if rank
            else ((), ())
        )

    def pad(self, operand, value):
        """The operand dilated and padded by a value."""
        if self.is_plain:
            return operand
        padded = numpy.full(self.padded, value, operand.dtype)
        padded[self.places] = operand[self.sources]
        return padded

    def parts(self):
        """The parts of the padded operand, by the offset in the window in order of rows."""
        for offsets in itertools.product(*map(range, self.extents)):
            starts = [*map(int.__mul__, offsets, self.dilation)]
            yield tuple(map(_stepped, starts, self.points, self.steps))


def _stepped(start, count, step) -> slice:
    return slice(start, start + (count - 1) * step + 1 if count else start, step)


def _filled(extent, padding, base, padded):
    """Where the elements of an axis lie in the padded one, and which of them do."""
    low, _ = padding
    first = max(0, -(low // base))
    last = min(extent, -((low - padded) // base))
    if first >= last:
        return slice(0, 0), slice(0, 0)
    return _stepped(low + first * base, last - first, base), slice(first, last)


@rule("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def _reduce_window(equation):
    name, accumulator = equation.name, accumulator_of(equation)
    if name != "reduce_window_sum" and accumulator.kind == "c":
        raise NotOnHostError(f"{name} of {accumulator.name}")
    combine, neutral_of = _COMBINATIONS[name]
    neutral, reduce = neutral_of(accumulator), _reduction(equation, combine, accumulator)
    return lambda operand: reduce(operand, neutral)


def _reduction(equation, combine, accumulator):
    """The function that reduces the windows of an operand padded by a value."""
    operand, output = equation.inputs[0], equation.outputs[0]
    frame = _Frame(equation, operand)
    steps = [
        _along(combine, axis, *sizes)
        for axis, sizes in enumerate(
            zip(frame.extents, frame.points, frame.steps, frame.dilation, strict=True)
        )
        if sizes[:1] != (1,) or frame.padded[axis] != frame.points[axis]
    ]
    if 0 in output.shape or 0 in frame.extents:
        return lambda operand, value: numpy.full(output.shape, value, output.dtype)

    def run(operand, value):
        reduced = frame.pad(in_dtype(operand, accumulator), value)
        for step in steps:
            reduced = step(reduced)
        return in_dtype(reduced, output.dtype)

    return run


def _least(dtype):
    if dtype.kind == "b":
        return False
    return -numpy.inf if dtype.kind == "f" else numpy.iinfo(dtype).min


def _largest(dtype):
    if dtype.kind == "b":
        return True
    return numpy.inf if dtype.kind == "f" else numpy.iinfo(dtype).max


_COMBINATIONS = {
    "reduce_window_sum": (numpy.add, lambda dtype: dtype.type(0)),
    "reduce_window_max": (numpy.maximum, _least),
    "reduce_window_min": (numpy.minimum, _largest),
}


def _along(combine, axis, extent, points, step, dilation):
    """The function that reduces the windows along one axis."""
    before = (slice(None),) * axis
    places = [(*before, _stepped(offset * dilation, points, step)) for offset in range(extent)]

    def by_offsets(operand):
        first, *others = places
        if not others:
            return operand[first]
        second, *others = others
        total = combine(operand[first], operand[second])
        for place in others:
            combine(total, operand[place], out=total)
        return total

    def at_once(operand):
        span = (extent - 1) * dilation + 1
        windows = numpy.lib.stride_tricks.sliding_window_view(operand, span, axis)
        last = slice(None, (points - 1) * step + 1, step)
        return combine.reduce(windows[(*before, last, ..., slice(None, None, dilation))], -1)

    return at_once if extent > LONG and points < extent else by_offsets


# by the primitive that is the whole program of a reduction
_COMBINING = {
    "add": _COMBINATIONS["reduce_window_sum"],
    "and": (numpy.bitwise_and, lambda dtype: ~dtype.type(0)),
    "max": _COMBINATIONS["reduce_window_max"],
    "min": _COMBINATIONS["reduce_window_min"],
    "mul": (numpy.multiply, lambda dtype: dtype.type(1)),
    "or": (numpy.bitwise_or, lambda dtype: dtype.type(0)),
    "xor": (numpy.bitwise_xor, lambda dtype: dtype.type(0)),
}


@rule("reduce_window")
def _reduce_window_by(equation):
    block = equation.params["jaxpr"]
    names = [inner.name for inner, operands, _ in block.equations if sorted(operands) == [0, 1]]
    is_real = equation.outputs[0].dtype.kind != "c"
    if block.count != 3 or block.results != [2] or not is_real or names[0] not in _COMBINING:
        return _reduction_by_program(equation)
    (combine, neutral_of), accumulator = _COMBINING[names[0]], accumulator_of(equation)
    reduce, output = _reduction(equation, combine, accumulator), equation.outputs[0]
    neutral = neutral_of(accumulator)  # XLA combines no padding, as a neutral element

    def run(operand, initial):
        initial = in_dtype(initial, accumulator)
        return [in_dtype(combine(reduce(operand, neutral), initial), output.dtype)]

    return run


def _reduction_by_program(equation):
    """The function that combines one element after the other."""
    block = equation.params["jaxpr"]
    count = len(equation.inputs) // 2
    operands = equation.inputs[:count]
    if len(equation.params.get("consts", ())):
        raise NotOnHostError("reduce_window by a program with constants")
    frame, call = _Frame(equation, operands[0]), block.function
    if prod(frame.points) * prod(frame.extents) > CALLS:
        raise NotOnHostError("reduce_window by a program, of many windows")
    is_inside = frame.pad(numpy.ones(frame.shape, bool), False)
    parts = [(part, [*zip(*is_inside[part].nonzero(), strict=True)]) for part in frame.parts()]

    def run(*arrays):
        initial = arrays[count:]
        padded = [*map(frame.pad, arrays[:count], initial)]
        totals = [
            numpy.full(form.shape, value, form.dtype)
            for form, value in zip(equation.outputs, initial, strict=True)
        ]
        for part, places in parts:
            elements = [operand[part] for operand in padded]
            for place in places:
                values = call(
                    *[total[place] for total in totals], *[one[place] for one in elements]
                )
                for total, value in zip(totals, values, strict=True):
                    total[place] = value
        return totals

    return run


def _selects(equation):
    """The comparison that keeps what a window has selected, and the value before the first."""
    name = equation.params["select_prim"].name
    dtype = equation.inputs[1].dtype
    if name not in ("ge", "le") or dtype.kind == "c":
        raise NotOnHostError(f"{equation.name} by {name} of {dtype.name}")
    if name == "ge":
        return numpy.greater_equal, _least
    return numpy.less_equal, _largest


@rule("select_and_gather_add")
def _select_and_gather_add(equation):
    keeps, initial_of = _selects(equation)
    operand = equation.inputs[1]
    if not operand.shape:
        raise NotOnHostError("select_and_gather_add of a scalar")
    frame, output = _Frame(equation, operand), equation.outputs[0]
    accumulator = wide_dtype(operand.dtype)
    initial, parts = initial_of(accumulator), [*frame.parts()]

    def run(tangents, operand):
        operand = frame.pad(in_dtype(operand, accumulator), initial)
        tangents = frame.pad(tangents, 0)
        best = numpy.full(output.shape, initial, accumulator)
        gathered = numpy.zeros(output.shape, output.dtype)
        for part in parts:
            candidate = operand[part]
            is_better = ~keeps(best, candidate)
            numpy.copyto(best, candidate, where=is_better)
            numpy.copyto(gathered, tangents[part], where=is_better)
        return gathered

    return run


@rule("select_and_scatter_add")
def _select_and_scatter_add(equation):
    """Adds the numbers of a source to the elements that windows select."""
    keeps, initial_of = _selects(equation)
    source, operand = equation.inputs
    frame = _Frame(equation._replace(outputs=(source,)), operand)
    if any(padding < 0 for padding in itertools.chain(*frame.padding)):
        raise NotOnHostError("select_and_scatter_add of a cropped operand")
    dtype, output = wide_dtype(operand.dtype), equation.outputs[0]
    if 0 in source.shape or 0 in operand.shape:
        return lambda source, operand: numpy.zeros(output.shape, output.dtype)
    combine = numpy.maximum if keeps is numpy.greater_equal else numpy.minimum
    wide = equation._replace(
        inputs=(Form(operand.shape, dtype),), outputs=(Form(source.shape, dtype),)
    )
    reduce = _reduction(wide, combine, dtype)
    parts, initial = [*frame.parts()], initial_of(dtype)
    sums_dtype = wide_dtype(output.dtype)
    are_apart = all(map(int.__le__, frame.extents, frame.steps))

    def run(source, operand):
        operand = in_dtype(operand, dtype)
        padded, extremes = frame.pad(operand, initial), reduce(operand, initial)
        if dtype.kind == "f" and numpy.isnan(extremes).any():
            hits = _hits_with_nan(padded, parts, keeps)
        else:
            hits = _hits(padded, parts, extremes)
        sums = numpy.zeros(frame.padded, sums_dtype)
        source = in_dtype(source, sums_dtype)
        for part, hit in zip(parts, hits, strict=True):
            if are_apart:
                sums[part] = _where(hit, source)
            else:
                sums[part] += _where(hit, source)
        return in_dtype(sums[frame.places], output.dtype)

    return run


def _hits(padded, parts, extremes):
    """For each part, in which windows it has the first of the extreme elements."""
    is_free, is_equal = numpy.ones(extremes.shape, bool), numpy.empty(extremes.shape, bool)
    for part in parts:
        hit = numpy.equal(padded[part], extremes, is_equal)
        hit &= is_free
        is_free ^= hit
        yield hit


def _hits_with_nan(padded, parts, keeps):
    """The same by comparisons in order: an element replaces NaN, and NaN what was selected."""
    best = numpy.array(padded[parts[0]])
    places = numpy.zeros(best.shape, numpy.intp)
    for place, part in enumerate(parts[1:], 1):
        is_better = ~keeps(best, padded[part])
        numpy.copyto(best, padded[part], where=is_better)
        numpy.copyto(places, place, where=is_better)
    return (places == place for place in range(len(parts)))


def _where(mask, array):
    """The elements of an array where a mask is set, else 0; also of those that are not finite."""
    bits = numpy.dtype(f"i{array.dtype.itemsize}")
    if array.dtype.kind == "c":
        return numpy.where(mask, array, array.dtype.type(0))
    return numpy.multiply(array.view(bits), mask).view(array.dtype)
