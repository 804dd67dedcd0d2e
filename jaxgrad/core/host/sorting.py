"""Rules of primitives that sort, and of those that accumulate along an axis."""

from __future__ import annotations

import numpy

from .equation import NotOnHostError, rule
from .number_types import BFLOAT16, check_type

# Fewer elements are sorted faster by NumPy's stable sort than after what a faster one needs.
FEW = 512


# ---- sort


@rule("sort")
def _sort(equation):
    params, form = equation.params, equation.inputs[0]
    axis, keys = params["dimension"], params["num_keys"]
    for _, dtype in equation.inputs[:keys]:
        check_type("sort", dtype, "biufc")
    is_exact = form.dtype.kind in "biu"
    if len(equation.inputs) == 1 and is_exact:
        return lambda operand: [numpy.sort(operand, axis)]
    if len(equation.inputs) == 1 and form.dtype.kind == "f":
        return lambda operand: [numpy.sort(operand, axis, kind=_kind_for(operand))]
    take = _taken(form, axis)
    order_of = _order_of_one(equation.inputs[0], axis) if keys == 1 else _order_of_many(axis)

    def sort(*operands):
        order = order_of(*operands[:keys])
        return [take(operand, order) for operand in operands]

    return sort


def _kind_for(operand):
    """The kind of sort that keeps the order of 0.0 and -0.0, which are equal."""
    is_few = operand.size < FEW
    return "stable" if is_few or numpy.any((operand == 0) & numpy.signbit(operand)) else None


def _taken(form, axis):
    """A function that takes elements at places along an axis."""
    if len(form.shape) == 1:
        return numpy.ndarray.take
    return lambda operand, order: numpy.take_along_axis(operand, order, axis)


def _parts(key) -> list:
    """The real arrays that order a key, which NumPy sorts as XLA does, NaN last."""
    if key.dtype.kind == "c":
        return [key.real, key.imag]
    return [key.astype(numpy.float32) if key.dtype == BFLOAT16 else key]


def _order_of_many(axis):
    """A function of sort keys, the most important first, that gives the order of their elements."""

    def order(*keys):
        parts = [part for key in keys for part in _parts(key)]
        return numpy.lexsort(parts[::-1], axis)

    return order


def _order_of_one(form, axis):
    shape, dtype = form
    if dtype.kind == "c":
        return _order_of_many(axis)
    is_packed = dtype.itemsize == 4 or dtype == BFLOAT16
    if not is_packed or not FEW <= shape[axis] < 1 << 32:
        return lambda key: numpy.argsort(*_parts(key), axis=axis, kind="stable")
    kind = "f" if dtype == BFLOAT16 else dtype.kind

    def order(key):
        (key,) = _parts(key)
        if kind == "f":
            # one pattern of bits for both zeros, and one for all NaN, above all numbers
            key = numpy.where(numpy.isnan(key), numpy.float32(numpy.nan), key + numpy.float32(0))
        packed = _packed(_ordered_bits(key, kind), axis)
        packed.sort(axis)
        return (packed & 0xFFFFFFFF).view(numpy.int64)

    return order


def _ordered_bits(key, kind):
    """Unsigned integers in the order of numbers of as many bits: for floating-point numbers the
    total order, in which -0.0 comes before 0.0.
    """
    unsigned = numpy.dtype(f"u{key.dtype.itemsize}")
    if kind == "u":
        return key
    bits, top = key.view(unsigned), unsigned.type(1 << (8 * unsigned.itemsize - 1))
    if kind == "i":
        return bits ^ top
    # of a negative number all bits are flipped, of another one the sign alone
    signs = key.view(f"i{key.dtype.itemsize}") >> (8 * key.dtype.itemsize - 1)
    return bits ^ (signs.view(unsigned) | top)


def _packed(bits, axis):
    """Keys of 32 bits above the places of their elements along an axis. All differ, so that any
    sort is stable.
    """
    places = numpy.arange(bits.shape[axis], dtype=numpy.uint64)
    extents = [1] * bits.ndim
    extents[axis] = places.size
    packed = bits.astype(numpy.uint64)
    packed <<= numpy.uint64(32)
    packed |= places.reshape(extents)
    return packed


# ---- the largest


@rule("top_k")
def _top_k(equation):
    rank = len(equation.inputs[0].shape)
    return _largest(equation, equation.params["k"], equation.params.get("axis", rank - 1))


@rule("approx_top_k")
def _approx_top_k(equation):
    params, rank = equation.params, len(equation.inputs[0].shape)
    axis = params["reduction_dimension"] % rank
    if not (params["is_max_k"] and params["aggregate_to_topk"]):
        raise NotOnHostError("approx_top_k of the smallest, or in parts")
    return _largest(equation, params["k"], axis)


def _largest(equation, k, axis):
    dtype = equation.inputs[0].dtype
    index_type = equation.outputs[1].dtype
    check_type("top_k", dtype, "biuf")
    kind = "f" if dtype == BFLOAT16 else dtype.kind
    first = (slice(None),) * axis + (slice(k),)
    take = _taken(equation.inputs[0], axis)

    def largest(operand):
        bits = operand.view(numpy.uint8) if kind == "b" else _ordered_bits(operand, kind)
        order = _first_of(~bits, k, axis, first)
        return [take(operand, order), order.astype(index_type)]

    return largest


def _first_of(bits, k, axis, first):
    """The places of the smallest elements along an axis, in order; of equal ones the first."""
    extent = bits.shape[axis]
    if bits.ndim == 1 and k < extent:
        candidates = numpy.flatnonzero(bits <= numpy.partition(bits, k)[k])
        return candidates[numpy.argsort(bits[candidates], kind="stable")[:k]]
    if bits.dtype.itemsize > 4 or extent >= 1 << 32:
        return numpy.argsort(bits, axis, kind="stable")[first]
    packed = _packed(bits, axis)
    if k < extent:
        packed.partition(k, axis)
    chosen = packed[first]
    chosen.sort(axis)
    return (chosen & 0xFFFFFFFF).view(numpy.int64)


# ---- accumulation along an axis

# sums and products of single precision are accumulated in double precision, as PyTorch does
_WIDER = {
    numpy.dtype(numpy.float16): numpy.float32,
    BFLOAT16: numpy.float32,
    numpy.dtype(numpy.float32): numpy.float64,
    numpy.dtype(numpy.complex64): numpy.complex128,
}


def _accumulation(name, function, kinds):
    @rule(name)
    def accumulation(equation):
        axis, (_, dtype) = equation.params["axis"], equation.outputs[0]
        check_type(name, dtype, kinds)
        wider = _WIDER.get(dtype, dtype)
        flip = (slice(None),) * axis + (slice(None, None, -1),)

        def accumulate(operand):
            widened = operand.astype(wider, copy=False)
            return function.accumulate(widened, axis, dtype=wider).astype(dtype, copy=False)

        if equation.params["reverse"]:
            return lambda operand: accumulate(operand[flip])[flip]
        return accumulate


_accumulation("cumsum", numpy.add, "iufc")
_accumulation("cumprod", numpy.multiply, "iufc")
_accumulation("cummax", numpy.maximum, "iuf")
_accumulation("cummin", numpy.minimum, "iuf")
_accumulation("cumlogsumexp", numpy.logaddexp, "f")
