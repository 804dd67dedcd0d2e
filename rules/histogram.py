"""Histograms, and reductions of segments."""

import math

import jax.numpy as jnp
import numpy
from jax import lax
from jaxgrad.rules import reduction as reductions
from jaxgrad.rules import shape as shapes
from jaxgrad.rules import sorting

from jaxgrad.core import dtypes, promotion

# histograms


def histc(self, bins=100, min=0, max=0):
    """The number of elements in each of `bins` bins of one width."""
    promotion.refuse("histc", self, dtypes.COMPLEX, dtypes.INTEGRAL, dtypes.BOOLEAN)
    _check_count("torch.histc", bins)
    numbers = jnp.ravel(reductions.widened(self))
    low, high = (promotion.cast(limit, dtypes.from_numpy(numbers.dtype)) for limit in (min, max))
    if numbers.size:
        is_open = low == high
        low, high = (
            jnp.where(is_open, jnp.min(numbers), low),
            jnp.where(is_open, jnp.max(numbers), high),
        )
    is_point = low == high
    low, high = jnp.where(is_point, low - 1, low), jnp.where(is_point, high + 1, high)
    places = jnp.minimum(jnp.floor((numbers - low) * bins / (high - low)), bins - 1)
    places = jnp.where((numbers >= low) & (numbers <= high), places, bins).astype(jnp.int32)
    return jnp.zeros(bins, jnp.int32).at[places].add(1, mode="drop").astype(self.dtype)


def _check_count(name, bins):
    if bins <= 0:
        raise RuntimeError(f"{name}(): bins must be > 0, but got {bins}")


def _check_limits(self, bins, low, high):
    low, high = float(low), float(high)
    if low > high:
        raise RuntimeError(f"torch.histc: max must be larger than min, not {high} and {low}")
    if low == high and self.size:
        numbers = numpy.asarray(self).astype(numpy.float64)
        low, high = numbers.min(), numbers.max()
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{low}, {high}] is not finite")


histc.precondition = _check_limits


def histogram_bin_ct(self, bins=100, *, range=None, weight=None, density=False):
    _check_floats(self, weight)
    _check_count("torch.histogram", bins)
    numbers = jnp.ravel(self)
    edges = equal_edges(numbers, bins, range)
    return _histogram([numbers], [edges], _flat(weight), density), edges


def histogram_bins_tensor(self, bins, *, weight=None, density=False):
    _check_floats(self, weight)
    _check_edges(self, bins, 0)
    return _histogram([jnp.ravel(self)], [bins], _flat(weight), density), bins


def histogramdd_of_edges(self, bins, *, weight=None, density=False):
    """The histogram of the points in the last dimension; `bins` are the edges along each axis."""
    if self.ndim < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    if len(bins) != self.shape[-1]:
        raise RuntimeError(
            f"torch.histogramdd: expected {self.shape[-1]} sequences of bin edges for a "
            f"{self.shape[-1]}-dimensional histogram but got {len(bins)}"
        )
    if not bins:  # points without coordinates: PyTorch counts none of them
        return jnp.full((), jnp.nan if density else 0, self.dtype)
    _check_floats(self[..., 0], weight)
    for dim, edges in enumerate(bins):
        _check_edges(self, edges, dim)
    columns = [jnp.ravel(self[..., dim]) for dim in range(self.shape[-1])]
    return _histogram(columns, bins, _flat(weight), density)


def _flat(weight):
    return None if weight is None else jnp.ravel(weight)


def _check_floats(self, weight):
    dtype = dtypes.from_numpy(self.dtype)
    if dtype not in (dtypes.float32, dtypes.float64):
        raise NotImplementedError(
            f"\"histogramdd\" not implemented for '{dtype.scalar_type}': convert to float32"
        )
    if weight is not None and weight.dtype != self.dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor "
            f"should have the same dtype, but got {dtype} and {dtypes.from_numpy(weight.dtype)}"
        )
    if weight is not None and weight.shape != self.shape:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the "
            "input tensor excluding its innermost dimension, but got "
            f"{list(weight.shape)} for {list(self.shape)}"
        )


def _check_edges(self, edges, dim):
    if edges.dtype != self.dtype:
        raise RuntimeError(
            "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got "
            f"{dtypes.from_numpy(self.dtype)} and for dimension {dim} "
            f"{dtypes.from_numpy(edges.dtype)}"
        )
    if edges.ndim != 1:
        raise RuntimeError(
            "torch.histogramdd: bins tensor should have one dimension, but got "
            f"{edges.ndim} dimensions in the bins tensor for dimension {dim}"
        )
    _check_count("torch.histogram", len(edges) - 1)


def equal_edges(numbers, bins, limits):
    """`bins + 1` edges from the least to the greatest number, or between two limits."""
    if limits is not None:
        low, high = (jnp.asarray(limit, numbers.dtype) for limit in limits)
    elif numbers.size:
        low, high = jnp.min(numbers), jnp.max(numbers)
    else:
        low, high = jnp.zeros((), numbers.dtype), jnp.ones((), numbers.dtype)
    half = jnp.where(low == high, 0.5, 0).astype(numbers.dtype)
    return jnp.linspace(low - half, high + half, bins + 1, dtype=numbers.dtype)


def _check_range(self, bins, limits, weight, density):
    numbers = numpy.asarray(self)
    low, high = (
        (numbers.min(), numbers.max()) if limits is None and numbers.size else limits or (0, 0)
    )
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histogramdd: dimension 0's range [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(
            f"torch.histogramdd: min should not exceed max, but got min {low} max {high} for "
            "dimension 0"
        )


histogram_bin_ct.precondition = _check_range


def _histogram(columns, edges, weight, density):
    """The sum of the weights in each cell; for `density` divided by all and by its volume."""
    counts = [len(axis_edges) - 1 for axis_edges in edges]
    places = [_cells(*pair) for pair in zip(columns, edges, strict=True)]
    weight = jnp.ones(columns[0].shape, columns[0].dtype) if weight is None else weight
    sums = jnp.zeros(counts, weight.dtype).at[tuple(places)].add(weight, mode="drop")
    if not density:
        return sums
    sums = sums / jnp.sum(sums)
    for dim, axis_edges in enumerate(edges):
        widths = jnp.diff(axis_edges).reshape(
            [-1 if other == dim else 1 for other in range(sums.ndim)]
        )
        sums = sums / widths
    return sums


def _cells(numbers, edges):
    """The cell of each number; the last one is closed, and outside is one behind the last."""
    count = edges.shape[0] - 1
    numbers, edges = lax.stop_gradient(numbers), lax.stop_gradient(edges)
    places = jnp.minimum(sorting.bounds(edges, numbers, True) - 1, count - 1)
    return jnp.where((numbers >= edges[0]) & (numbers <= edges[-1]), places, count)


# segments

FIRST = {"sum": 0, "mean": 0, "prod": 1, "max": -math.inf, "min": math.inf}
EMPTY = FIRST | {"mean": math.nan}


def segment_reduce(
    data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None
):
    """One element for each segment of `axis`, whose lengths or bounds are given."""
    bounds = _bounds(data, reduce, lengths, indices, offsets, axis)
    numbers = reductions.widened(data)
    places = _segments(bounds, data, axis)
    count = bounds.shape[-1] - 1
    shape = (*bounds.shape[:-1], count, *data.shape[bounds.ndim :])
    start = FIRST[reduce] if initial is None else promotion.cast(initial, _dtype(numbers))
    cells = jnp.full(shape, start, numbers.dtype).at[_mesh(places)]
    add = {"sum": cells.add, "mean": cells.add, "prod": cells.multiply}
    reduced = (add | {"max": cells.max, "min": cells.min})[reduce](numbers, mode="drop")
    if reduce == "mean":
        sizes = _trailing(jnp.diff(bounds), reduced.ndim)
        empty = jnp.nan if initial is None else reduced
        reduced = jnp.where(
            sizes == 0, empty, reduced / jnp.maximum(sizes, 1).astype(reduced.dtype)
        )
    return reduced.astype(data.dtype)


def _dtype(array):
    return dtypes.from_numpy(array.dtype)


def _bounds(data, reduce, lengths, indices, offsets, axis):
    """Where segments begin and end along `axis`: (..., segments + 1)."""
    _check_segments(data, reduce, lengths, indices, offsets)
    if lengths is None:
        bounds = offsets
    else:
        ends = jnp.cumsum(lengths, axis=-1)
        bounds = jnp.concatenate([jnp.zeros((*ends.shape[:-1], 1), ends.dtype), ends], -1)
    if shapes.wrap_dim(axis, data.ndim) != bounds.ndim - 1:
        raise RuntimeError(
            "segment_reduce(): Expected axis to be the last dimension of lengths but got "
            f"{axis}: the shapes are {list(data.shape)} and {list(bounds.shape)}"
        )
    if bounds.shape[:-1] != data.shape[: bounds.ndim - 1]:
        raise RuntimeError(
            "segment_reduce(): lengths and data must have the same dimensions before axis, not "
            f"{list(bounds.shape[:-1])} and {list(data.shape[: bounds.ndim - 1])}"
        )
    return bounds


def _check_segments(data, reduce, lengths, indices, offsets):
    if indices is not None:
        raise RuntimeError(
            "segment_reduce(): indices based reduction is not supported yet: give lengths"
        )
    segments = offsets if lengths is None else lengths
    if segments is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if reduce not in FIRST:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, max or min, got {reduce}"
        )
    promotion.refuse("segment_reduce", data, dtypes.BOOLEAN, dtypes.INTEGRAL, dtypes.COMPLEX)
    promotion.refuse("segment_reduce", segments, dtypes.BOOLEAN, dtypes.FLOATING, dtypes.COMPLEX)
    if not 1 <= segments.ndim <= data.ndim:
        raise RuntimeError(
            "segment_reduce(): Expected data.dim() >= lengths.dim() >= 1, but the shapes are "
            f"{list(data.shape)} and {list(segments.shape)}"
        )


def _check_lengths(data, reduce, lengths, indices, offsets, axis, unsafe, initial):
    if lengths is None or unsafe:
        return
    numbers = numpy.asarray(lengths)
    if (numbers < 0).any():
        raise RuntimeError("lengths contains negative value!")
    extent = data.shape[numbers.ndim - 1]
    if (numbers.sum(-1) != extent).any():
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to "
            f"data.size(lengths.dim()-1) when !unsafe, which is {extent}"
        )


segment_reduce.precondition = _check_lengths


def _segments(bounds, data, axis):
    """The segment of each position of `axis`, the number of segments outside of all."""
    axis, count = bounds.ndim - 1, bounds.shape[-1] - 1
    positions = lax.broadcasted_iota(bounds.dtype, data.shape[: axis + 1], axis)
    ends = bounds[..., 1:]
    places = sorting.bounds(ends, positions, True)
    return jnp.where(positions < bounds[..., :1], count, places)


def _mesh(places):
    """An index for each dimension of `places`: its own number but for the last."""
    dims = range(places.ndim - 1)
    indices = [lax.broadcasted_iota(places.dtype, places.shape, dim) for dim in dims]
    return (*indices, places)


def _trailing(array, ndim):
    """`array` with dimensions of extent 1 at the end."""
    return array.reshape((*array.shape, *[1] * (ndim - array.ndim)))


def segment_reduce_backward(grad, result, data, reduce, lengths, offsets, axis, initial):
    """The gradient of each element, 0 outside of all segments; ties share that of an extremum."""
    bounds = _bounds(data, reduce, lengths, None, offsets, axis)
    places = _segments(bounds, data, axis)
    mesh, is_inside = _mesh(places), _trailing(places < bounds.shape[-1] - 1, data.ndim)

    def spread(of_segments):
        return of_segments.at[mesh].get(mode="clip")

    if reduce == "mean":
        sizes = jnp.maximum(_trailing(jnp.diff(bounds), grad.ndim), 1)
        grad = grad / sizes.astype(grad.dtype)
    if reduce in ("max", "min"):
        extremum = spread(result)
        chosen = (data == extremum) | (jnp.isnan(data) & jnp.isnan(extremum))
        chosen &= is_inside
        shares = jnp.zeros(result.shape, jnp.int32).at[mesh].add(chosen, mode="drop")
        grad = grad / jnp.maximum(shares, 1).astype(grad.dtype)
        return jnp.where(chosen, spread(grad), 0)
    gradient = jnp.where(is_inside, spread(grad), 0)
    if reduce != "prod":
        return gradient
    first = 1 if initial is None else promotion.cast(initial, _dtype(data))
    return gradient * first * _products_of_others(data, places)


def _products_of_others(data, places):
    """For each element the product of the other elements of its segment, without a division."""
    axis = places.ndim - 1
    begins = jnp.concatenate(
        [jnp.ones_like(places[..., :1], bool), places[..., 1:] != places[..., :-1]], -1
    )
    ends = jnp.concatenate([begins[..., 1:], jnp.ones_like(begins[..., :1])], -1)
    before = _products(data, _trailing(begins, data.ndim), axis, 1)
    after = _products(data, _trailing(ends, data.ndim), axis, -1)
    return before * after


def _products(data, is_first, axis, by):
    """The product of the elements before each one, from the first of its segment on."""
    padding = [(by, -by, 0) if dim == axis else (0, 0, 0) for dim in range(data.ndim)]
    previous = lax.pad(data, jnp.ones((), data.dtype), padding)
    factors = jnp.where(is_first, 1, previous)
    is_first = jnp.broadcast_to(is_first, data.shape)

    def joined(earlier, later):
        return (
            earlier[0] | later[0],
            jnp.where(later[0], later[1], earlier[1] * later[1]),
        )

    return lax.associative_scan(joined, (is_first, factors), reverse=by < 0, axis=axis)[1]
