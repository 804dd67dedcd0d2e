"""Counts of integers and of points in the cells of a grid.

The extent of the result of `bincount` depends on the values, so it reads them: in a trace it raises
RuntimeError.
"""

from __future__ import annotations

import numpy as np

from .. import ops
from ..core import dtypes
from ..core.result_tuple import result_tuple
from ..frontend import factories
from ..tape.tensor import Tensor, concrete
from ..tape.torch_function import api_boundary

HistogramDD = result_tuple("histogramdd", ("hist", "bin_edges"))


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
