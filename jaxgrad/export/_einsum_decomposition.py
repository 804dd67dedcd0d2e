"""`einsum` as products of batches of matrices: a part of the table of `_decompositions`.

All operands get the dimensions of the result, then those that are summed, some of size 1. Two
operands after the other become one.
"""

from __future__ import annotations

import math

from .. import ops
from ..core.symbolic_extents import is_symbolic
from ._memory import viewed

aten = ops.aten

ELLIPSIS = "."


def einsum(equation, operands, *, path=None):
    if path is not None:
        return NotImplemented
    left, arrow, result = equation.replace(" ", "").replace("...", ELLIPSIS).partition("->")
    terms = left.split(",")
    spread = [operand.ndim - len(term) + 1 for operand, term in zip(operands, terms, strict=True)]
    count = max([n for n, term in zip(spread, terms, strict=True) if ELLIPSIS in term], default=0)
    names = "".join(terms).replace(ELLIPSIS, "")
    if not arrow:
        result = ELLIPSIS + "".join(sorted(name for name in {*names} if names.count(name) == 1))
    places, kept = {}, 0
    for name in result:
        places[name] = kept
        kept += count if name == ELLIPSIS else 1
    total = kept
    for name in (ELLIPSIS, *sorted({*names})):
        if name not in places:
            places[name] = total
            total += count if name == ELLIPSIS else 1
    operands = [
        _aligned(operand, term, places, count, total)
        for operand, term in zip(operands, terms, strict=True)
    ]
    summed = range(kept, total)
    if len(operands) == 1:
        return aten.sum.dim_IntList(operands[0], [*summed]) if summed else operands[0]
    uses = {dim: sum(_is_wide(operand, dim) for operand in operands) for dim in summed}
    while len(operands) > 1:
        first, second, *rest = operands
        operands = [*rest, _contracted(first, second, uses)]
    return viewed(operands[0], operands[0].shape[:kept]) if summed else operands[0]


def _is_wide(operand, dim) -> bool:
    extent = operand.shape[dim]
    return is_symbolic(extent) or extent != 1


def _aligned(operand, term, places, count, total):
    """An operand with all dimensions, in their order. places: by the names of dimensions; count: of
    those of the ellipsis.
    """
    order, dims, dim = [-1] * total, {}, 0
    missing = count - (operand.ndim - len(term) + 1)
    for name in term:
        if name == ELLIPSIS:
            for _ in range(missing):
                operand = aten.unsqueeze.default(operand, dim)
            for offset in range(count):
                order[places[name] + offset] = dim + offset
            dim += count
        elif name in dims:
            operand = aten.diagonal.default(operand, 0, dims[name], dim)
            rest = [*range(operand.ndim - 1)]
            rest.insert(dims[name], operand.ndim - 1)
            operand = aten.permute.default(operand, rest)
        else:
            dims[name] = order[places[name]] = dim
            dim += 1
    for place, known in enumerate(order):
        if known == -1:
            operand = aten.unsqueeze.default(operand, operand.ndim)
            order[place], dim = dim, dim + 1
    return aten.permute.default(operand, order)


def _contracted(first, second, uses):
    """The product of two operands, with the sums for which these are the last. uses: of how many
    operands a dimension is, which is counted down.
    """
    summed, alone = [], ([], [])
    for dim, count in uses.items():
        wide = _is_wide(first, dim), _is_wide(second, dim)
        if all(wide):
            uses[dim] -= 1
            if uses[dim] == 1:
                summed.append(dim)
                uses[dim] = 0
        elif count == 1 and any(wide):
            alone[wide.index(True)].append(dim)
            uses[dim] = 0
    first, second = (
        aten.sum.dim_IntList(operand, dims, True) if dims else operand
        for operand, dims in zip((first, second), alone, strict=True)
    )
    return _product(first, second, summed) if summed else aten.mul.Tensor(first, second)


def _product(first, second, summed):
    both, rows, columns = [], [], []
    for dim in range(first.ndim):
        if dim in summed:
            continue
        wide = _is_wide(first, dim), _is_wide(second, dim)
        (both if all(wide) else rows if wide[0] else columns).append(dim)

    def size(operand, dims):
        return math.prod([operand.shape[dim] for dim in dims])

    sizes = [size(first, dims) for dims in (both, rows, summed)]
    left = viewed(aten.permute.default(first, [*both, *rows, *summed, *columns]), sizes)
    right = aten.permute.default(second, [*both, *summed, *columns, *rows])
    right = viewed(right, [sizes[0], sizes[2], size(second, columns)])
    shape = [first.shape[dim] for dim in (*both, *rows)]
    shape = [*shape, *[1] * len(summed), *[second.shape[dim] for dim in columns]]
    order = [*both, *rows, *summed, *columns]
    product = viewed(aten.bmm.default(left, right), shape)
    return aten.permute.default(product, [order.index(dim) for dim in range(first.ndim)])
