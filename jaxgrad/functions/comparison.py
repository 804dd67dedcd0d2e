"""Sorting, distinct elements, and counts.

`unique`, `unique_consecutive` and `bincount` have results whose size depends on the values, so they
read them: in a trace they raise RuntimeError.
"""

from __future__ import annotations

import collections

import numpy as np

from .. import ops
from ..core import dtypes
from ..frontend import factories
from ..frontend.array_creation import from_host
from ..tape.tensor import Tensor, concrete, wrap
from ..tape.torch_function import api_boundary
from .out import takes_out

HistogramDD = collections.namedtuple("histogramdd", ["hist", "bin_edges"])


@takes_out
def msort(input: Tensor) -> Tensor:
    """Return the elements sorted along the first dimension.

    input: a tensor of any shape, not complex.

    >>> jaxgrad.msort(jaxgrad.tensor([[3.0, 1.0], [2.0, 4.0]]))
    tensor([[2., 1.],
            [3., 4.]])
    """
    return ops.sort(input, 0).values


# distinct elements


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
    return ops._unique_values(input, places), inverse if return_inverse else _nothing()


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
    return values, *(other if flag else _nothing() for other, flag in wanted)


def _nothing():
    return wrap(from_host(np.zeros(0, np.int64)))


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
    return tuple(wrap(from_host(array)) for array in (places, inverse.reshape(shape), counts))


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


# counts


@api_boundary
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """Return how often each integer occurs, or the sum of the weights of its occurrences.

    input: (n,) integers, not negative. weights: (n,), whose gradient is that of its sum.
    minlength: the least extent of the result, which is else the greatest integer plus 1.

    Returns int64 counts; with weights float32 for float32, else float64. Raises RuntimeError for
    other shapes and negative numbers, and in a trace, because the extent is not known there.

    >>> jaxgrad.bincount(jaxgrad.tensor([0, 2, 2]))
    tensor([1, 0, 2])
    """
    if input.dtype.category != dtypes.INTEGRAL:
        raise NotImplementedError(
            f"\"bincount\" not implemented for '{input.dtype.scalar_type}': convert to integers"
        )
    if minlength < 0:
        raise RuntimeError(f"minlength should be >= 0, not {minlength}")
    numbers = np.asarray(concrete(input, "bincount()"))
    if numbers.ndim != 1 or (numbers < 0).any():
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError(
            "weights should be 1-d and have the same length as input, but the shapes are "
            f"{list(weights.shape)} and {list(input.shape)}"
        )
    extent = max(minlength, int(numbers.max()) + 1 if numbers.size else 0)
    added = _added_weights(input, weights)
    counts = factories.zeros(extent, dtype=added.dtype, device=input.device)
    return counts.index_add(0, input.to(dtypes.int64), added)


def _added_weights(input, weights):
    if weights is None or not weights.numel():
        return factories.ones(len(input), dtype=dtypes.int64, device=input.device)
    if weights.dtype.is_complex:
        raise NotImplementedError("bincount(): does not support complex weights")
    return weights if weights.dtype == dtypes.float32 else weights.to(dtypes.float64)


@api_boundary
def histogramdd(
    input: Tensor,
    bins,
    range=None,
    weight: Tensor | None = None,
    density: bool = False,
) -> HistogramDD:
    """Return the number of points in each cell of a grid, and the edges along each coordinate.

    input: (..., d) points, float32 or float64.
    bins: the number of bins along every coordinate or along each one, or d tensors of edges.
    range: the least and the greatest edge of each coordinate, 2 d numbers; without it those of the
    points. weight: of the leading dimensions of input; cells then have the sum of the weights.
    density: divide by the sum of all weights and by the volume of the cell.

    The counts have the gradient 0, the weights and the edges their own.

    >>> points = jaxgrad.tensor([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]])
    >>> jaxgrad.histogramdd(points, [2, 2]).hist
    tensor([[0., 1.],
            [1., 1.]])
    """
    if input.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    count = input.shape[-1]
    bins = [bins] * count if isinstance(bins, int) else list(bins)
    if not all(isinstance(entry, Tensor) for entry in bins):
        bins = _edges(input, bins, range)
    elif range is not None:
        raise TypeError("histogramdd(): range goes with numbers of bins, not with their edges")
    hist = ops._histogramdd_from_bin_tensors(input, bins, weight=weight, density=density)
    return HistogramDD(hist, tuple(bins))


def _edges(input, bins, limits):
    count = input.shape[-1]
    if len(bins) != count:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input, "
            f"not {len(bins)} for {count}"
        )
    if limits is not None and len(limits) != 2 * count:
        raise RuntimeError(
            f"torch.histogramdd: for a {count}-dimensional histogram range should have {2 * count} "
            f"elements, but got {len(limits)}"
        )
    pairs = [limits and limits[2 * dim : 2 * dim + 2] for dim in range(count)]
    return [
        ops.histogram(input.select(-1, dim), number, range=pair).bin_edges
        for dim, (number, pair) in enumerate(zip(bins, pairs, strict=True))
    ]
