"""Sorting and distinct elements.

`unique` and `unique_consecutive` have results whose size depends on the values, so they read them:
in a trace they raise RuntimeError.
"""

from __future__ import annotations

import numpy as np

from .. import ops
from ..frontend.array_creation import from_host_beside
from ..tape.tensor import Tensor, concrete
from ..tape.torch_function import api_boundary, names_defaults
from .out import takes_exact_out


@takes_exact_out
def msort(input: Tensor) -> Tensor:
    """Return the elements sorted along the first dimension.

    input: a tensor of any shape, not complex.

    >>> jaxgrad.msort(jaxgrad.tensor([[3.0, 1.0], [2.0, 4.0]]))
    tensor([[2., 1.],
            [3., 4.]])
    """
    return ops.sort(input, 0).values


# distinct elements


@names_defaults
@api_boundary
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Return the distinct elements in ascending order, or the distinct slices of a dimension.

    input: a tensor of any shape, not complex. sorted: has no effect, they are sorted.
    return_inverse: return also where in the result each element is, int64, of the shape of input,
    or of the extent of `dim`. return_counts: return also how often each occurs, int64.
    dim: the dimension whose slices are compared; None means the flattened tensor.

    Of equal elements the first gets the gradient. Every NaN is a value of its own. Raises
    RuntimeError in a trace, because the number of values is not known there.

    >>> jaxgrad.unique(jaxgrad.tensor([3, 1, 3]), return_counts=True)
    (tensor([1, 3]), tensor([1, 2]))
    """
    runs = _distinct("unique()", input, dim, _by_value)
    values = (
        ops._unique_elements(input, runs[0])
        if dim is None
        else ops._unique_slices(input, runs[0], dim)
    )
    return _asked(values, runs, return_inverse, return_counts)


@names_defaults
@api_boundary
def unique_consecutive(
    input: Tensor,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Tensor | tuple[Tensor, ...]:
    """Return the elements, or the slices of a dimension, that differ from the one before.

    Arguments, results and errors are those of `unique`; the order is that of input.

    >>> jaxgrad.unique_consecutive(jaxgrad.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    runs = _distinct("unique_consecutive()", input, dim, lambda rows: np.arange(len(rows)))
    return _asked(ops._unique_runs(input, runs[0], dim), runs, return_inverse, return_counts)


@api_boundary
def _unique(
    input: Tensor, sorted: bool = True, return_inverse: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the distinct elements and where each element is among them; see `unique`.

    Without `return_inverse` the second result is empty.

    >>> jaxgrad._unique(jaxgrad.tensor([3, 1, 3]), return_inverse=True)
    (tensor([1, 3]), tensor([1, 0, 1]))
    """
    places, inverse, _ = _distinct("_unique()", input, None, _by_value)
    return ops._unique_values(input, places), inverse if return_inverse else _nothing(input)


@api_boundary
def _unique2(
    input: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the distinct elements, where each element is among them, and how often each occurs.

    What is not asked for is empty; see `unique`.

    >>> jaxgrad._unique2(jaxgrad.tensor([3, 1, 3]))[0]
    tensor([1, 3])
    """
    places, *others = _distinct("_unique2()", input, None, _by_value)
    wanted = zip(others, (return_inverse, return_counts), strict=True)
    values = ops._unique_elements(input, places)
    return values, *(other if flag else _nothing(input) for other, flag in wanted)


def _nothing(input):
    return from_host_beside(input, np.zeros(0, np.int64))


def _asked(values, runs, *flags):
    """The values, and those of the other results that are asked for."""
    wanted = [result for result, flag in zip(runs[1:], flags, strict=True) if flag]
    return (values, *wanted) if wanted else values


def _by_value(rows):
    """The stable order of the rows; NaN is the greatest number."""
    return np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(len(rows))


def _distinct(name, input, dim, order_of):
    """The positions of the rows that begin a run in an order, the run of each row, and the lengths
    of the runs."""
    if input.dtype.is_complex:
        raise NotImplementedError(
            f"\"unique\" not implemented for '{input.dtype.scalar_type}': complex numbers have no "
            "order"
        )
    numbers = np.asarray(concrete(input, name))
    if input.dtype.is_floating_point and input.dtype.itemsize < 4:
        numbers = numbers.astype(np.float32)  # numpy sorts no bfloat16
    if dim is None:
        shape, rows = input.shape, numbers.reshape(-1, 1)
    else:
        dim = _dim_of_slices(input, dim)
        extent = input.shape[dim]
        rows = np.moveaxis(numbers, dim, 0).reshape(extent, input.numel() // max(extent, 1))
        shape = (extent,)
    places, inverse, counts = _runs(rows, order_of(rows))
    results = places, inverse.reshape(shape), counts
    return tuple(from_host_beside(input, array) for array in results)


def _runs(rows, order):
    placed = rows[order]
    begins = np.ones(len(rows), bool)
    begins[1:] = (placed[1:] != placed[:-1]).any(1)
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = np.cumsum(begins) - 1
    starts = np.flatnonzero(begins)
    return order[starts].astype(np.int64), inverse, np.diff(starts, append=len(rows))


def _dim_of_slices(input, dim):
    """The dimension from 0; slices must have elements."""
    if not input.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -input.ndim <= dim < input.ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.ndim}, "
            f"{input.ndim - 1}], but got {dim})"
        )
    dim %= input.ndim
    if 0 in (extent for other, extent in enumerate(input.shape) if other != dim):
        raise RuntimeError(
            "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied: "
            f"the shape is {list(input.shape)}"
        )
    return dim
