"""Rules of primitives that change the dtype or the precision, and of those without operands."""

from __future__ import annotations

import numpy

from .dtypes import BFLOAT16, HALVES, arithmetic, kind_of
from .equation import NotOnHostError


@arithmetic("convert_element_type")
def _convert_element_type(equation):
    old, new = equation.inputs[0].dtype, equation.outputs[0].dtype
    if old == new:
        return lambda operand: operand
    if kind_of(old) == "c" and kind_of(new) != "c":
        convert = _converter(numpy.dtype(f"f{old.itemsize // 2}"), new)
        return lambda operand: convert(operand.real)
    if not equation.outputs[0].shape and kind_of(old) == "f" and new in (numpy.float32, float):
        return new.type  # `astype` of one number takes several times as long
    return _converter(old, new)


def _converter(old, new):
    if kind_of(old) == "f" and kind_of(new) in "iu":
        return _saturating(old, new)
    if new == BFLOAT16 and old.kind in "iu":
        return lambda operand: operand.astype(numpy.float32).astype(new)
    return lambda operand: operand.astype(new)


def _saturating(old, new):
    """Floats to integers: a number out of range gives the nearest integer, and NaN gives 0."""
    lowest, highest = numpy.iinfo(new).min, numpy.iinfo(new).max
    is_half = old in HALVES
    scalar = numpy.float32 if is_half else old.type
    # where the first is rounded, to `lowest`, this counts as outside and gets the same value
    below, above = scalar(lowest - 1), scalar(highest + 1)

    def convert(operand):
        if is_half:
            operand = operand.astype(scalar)
        result = operand.astype(new)
        is_inside = (operand > below) & (operand < above)
        if is_inside.all():
            return result
        nearest = numpy.where(operand > 0, new.type(highest), new.type(lowest))
        outside = numpy.where(numpy.isnan(operand), new.type(0), nearest)
        return numpy.where(is_inside, result, outside)

    return convert


@arithmetic("bitcast_convert_type")
def _bitcast_convert_type(equation):
    old, (shape, new) = equation.inputs[0].dtype, equation.outputs[0]
    if old == new:
        return lambda operand: operand
    if "b" in (old.kind, new.kind):
        raise NotOnHostError("bitcast_convert_type of bool")
    if old.itemsize == new.itemsize:
        return lambda operand: operand.view(new)
    return lambda operand: numpy.ascontiguousarray(operand).view(new).reshape(shape)


@arithmetic("reduce_precision")
def _reduce_precision(equation):
    """Round to the nearest number with fewer bits, of two the even one. Computes with the bits as
    an integer, in which a carry out of the mantissa raises the exponent.
    """
    dtype = equation.outputs[0].dtype
    integer = numpy.dtype(f"i{dtype.itemsize}").type
    mantissa = 7 if dtype == BFLOAT16 else numpy.finfo(dtype).nmant
    exponent = 8 * dtype.itemsize - 1 - mantissa
    if not equation.params["mantissa_bits"]:
        raise NotOnHostError("reduce_precision without a mantissa")
    exponent_bits = min(equation.params["exponent_bits"], exponent)
    dropped = max(mantissa - equation.params["mantissa_bits"], 0)
    largest_size, unit = numpy.iinfo(integer).max, 1 << mantissa
    infinity = integer(largest_size + 1 - unit)
    # the exponents, as they are stored, of the smallest normal number and of the first too large
    excess = (1 << exponent - 1) - (1 << exponent_bits - 1)
    smallest = integer((excess + 1) * unit)
    too_large = integer(min(excess + (1 << exponent_bits) - 1, (1 << exponent) - 1) * unit)

    def reduce(operand):
        bits = operand.view(integer)
        size = bits & largest_size
        rounded = size
        if dropped:
            is_odd = numpy.right_shift(size, dropped) & 1
            rounded = (size + ((1 << dropped - 1) - 1) + is_odd) & (-1 << dropped)
        if exponent_bits < exponent:
            rounded = numpy.where(rounded >= too_large, infinity, rounded)
            rounded = numpy.where(rounded < smallest, integer(0), rounded)
        rounded = numpy.where(size > infinity, size, rounded)  # NaN
        return (rounded | (bits ^ size)).view(dtype)

    return reduce


@arithmetic("iota")
def _iota(equation):
    shape, dtype = equation.outputs[0]
    if equation.inputs:
        raise NotOnHostError("iota of a shape that is an operand")
    dimension = equation.params["dimension"]
    extents = [1] * len(shape)
    extents[dimension] = -1

    def count():
        steps = numpy.arange(shape[dimension]).astype(dtype)
        return numpy.broadcast_to(steps.reshape(extents), shape)

    return count


@arithmetic("empty")
def _empty(equation):
    shape, dtype = equation.outputs[0]
    return lambda: numpy.zeros(shape, dtype)
