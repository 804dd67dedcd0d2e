"""Rules of primitives that contract two operands."""

from __future__ import annotations

import functools
import itertools
from math import prod

import numpy

from .accumulators import accumulator_of, in_dtype
from .blas import matmul
from .equation import NotOnHostError, rule


@rule("dot_general")
def _dot_general(equation):
    lhs, rhs = equation.inputs
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = equation.params["dimension_numbers"]
    lhs_free = _rest(lhs.shape, lhs_contract, lhs_batch)
    rhs_free = _rest(rhs.shape, rhs_contract, rhs_batch)
    lhs_contract, rhs_contract = _ordered(lhs_contract, rhs_contract, rhs_free)
    to_lhs = _matrices(lhs.shape, lhs_batch, lhs_free, lhs_contract)
    to_rhs = _matrices(rhs.shape, rhs_batch, rhs_contract, rhs_free)
    length = prod([lhs.shape[axis] for axis in lhs_contract])
    shape, dtype = equation.outputs[0]
    accumulator = accumulator_of(equation)
    multiply = multiply_of(accumulator, length)

    def contract(lhs, rhs):
        return multiply(to_lhs(lhs), to_rhs(rhs)).reshape(shape)

    def contract_in_accumulator(lhs, rhs):
        lhs, rhs = in_dtype(lhs, accumulator), in_dtype(rhs, accumulator)
        return in_dtype(contract(lhs, rhs), dtype)

    is_uniform = lhs.dtype == rhs.dtype == accumulator == dtype
    return contract if is_uniform else contract_in_accumulator


def multiply_of(dtype, length):
    """The function that multiplies batches of matrices whose products have so many terms."""
    if length == 1:
        return numpy.multiply
    if dtype.kind in "biu":  # these have no BLAS, and the loops of einsum are the faster ones
        return functools.partial(numpy.einsum, "...ij,...jk->...ik")
    return matmul


def _rest(shape, *groups) -> tuple[int, ...]:
    taken = {*itertools.chain(*groups)}
    return tuple([axis for axis in range(len(shape)) if axis not in taken])


def _ordered(lhs_contract, rhs_contract, rhs_free):
    """The contracted axes in the order of the operand that would else be copied."""
    pairs = [*zip(lhs_contract, rhs_contract, strict=True)]
    by_rhs = sorted(pairs, key=lambda pair: pair[1])
    # the axes of rhs lie side by side if no free one is between them
    together = not any(by_rhs[0][1] < axis < by_rhs[-1][1] for axis in rhs_free) if pairs else True
    pairs = by_rhs if together else sorted(pairs)
    return tuple([pair[0] for pair in pairs]), tuple([pair[1] for pair in pairs])


def _matrices(shape, batch, rows, columns):
    """The function that sees an operand as a batch of matrices."""
    order = (*batch, *rows, *columns)
    extents = [
        *[shape[axis] for axis in batch],
        prod([shape[axis] for axis in rows]),
        prod([shape[axis] for axis in columns]),
    ]
    is_ordered, is_merged = order == (*range(len(shape)),), len(rows) == len(columns) == 1
    if is_ordered and is_merged:
        return lambda operand: operand
    if is_merged:
        return lambda operand: operand.transpose(order)
    if is_ordered:
        return lambda operand: operand.reshape(extents)
    return lambda operand: operand.transpose(order).reshape(extents)


@rule("ragged_dot_general")
def _ragged_dot_general(equation):
    """Rows of a matrix times matrices of their groups, or sums over the rows of groups."""
    params, (lhs, rhs, *_) = equation.params, equation.inputs
    numbers = params["ragged_dot_dimension_numbers"]
    (lhs_contract, rhs_contract), (lhs_batch, _) = numbers.dot_dimension_numbers
    group_axes, ragged = tuple(numbers.rhs_group_dimensions), tuple(numbers.lhs_ragged_dimensions)
    lhs_free = _rest(lhs.shape, lhs_contract)
    rhs_free = _rest(rhs.shape, rhs_contract, group_axes)
    by_rows = ragged == lhs_free and len(group_axes) == 1
    by_columns = ragged == tuple(lhs_contract) and not group_axes
    if lhs_batch or params.get("group_offset") is not None or not (by_rows or by_columns):
        raise NotOnHostError("ragged_dot_general of these axes")
    to_lhs = _matrices(lhs.shape, (), lhs_free, lhs_contract)
    to_rhs = _matrices(rhs.shape, group_axes, rhs_contract, rhs_free)
    accumulator = accumulator_of(equation._replace(inputs=(lhs, rhs)))
    multiply, (shape, dtype) = multiply_of(accumulator, None), equation.outputs[0]
    columns = prod([rhs.shape[axis] for axis in rhs_free])
    rows = prod([lhs.shape[axis] for axis in lhs_free])
    flat = (rows, columns) if by_rows else (shape[0], rows, columns)

    def run(lhs, rhs, sizes):
        lhs, rhs = to_lhs(in_dtype(lhs, accumulator)), to_rhs(in_dtype(rhs, accumulator))
        total, start = numpy.zeros(shape, accumulator), 0
        parts = total.reshape(flat)
        for group, size in enumerate(sizes.tolist()):
            part = slice(start, start + size)
            if by_rows:
                parts[part] = multiply(lhs[part], rhs[group])
            else:
                parts[group] = multiply(lhs[:, part], rhs[part])
            start += size
        return in_dtype(total, dtype)

    return run
