"""Operators that reduce elements into `self` at indices: by sum, product, mean, maximum or minimum.

All read and write through `places`, an index for each dimension of the target. Elements that reduce
into one element of the target are a group, to which that element belongs under `include_self`.
"""

import math

import jax.numpy as jnp
from jax import lax
from jaxgrad.rules import indexing
from jaxgrad.rules import shape as shapes

from jaxgrad.core import dtypes

SPELLINGS = {"max": "amax", "min": "amin"}
REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")


def scatter_reduce(self, dim, index, src, reduce, *, include_self=True):
    """`self` reduced with the elements of `src` at indices along `dim`."""
    reduce = SPELLINGS.get(reduce, reduce)
    if reduce not in REDUCTIONS:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}"
        )
    dim, places, source = indexing.scattered("scatter_reduce", self, dim, index, src)
    _check_reducible("scatter_reduce", reduce, self)
    if not index.size:
        return self
    return _reduced(self, indexing.mesh(places, dim), source, reduce, include_self)


scatter_reduce.precondition = indexing.check_gathered_range


def scatter_reduce_backward(grad, self, dim, index, src, reduce, include_self, result):
    """The gradients of `self` and `src`."""
    if not index.size:
        return grad, jnp.zeros_like(src)
    reduce = SPELLINGS.get(reduce, reduce)
    dim, places, source = indexing.scattered("scatter_reduce", self, dim, index, src)
    mesh = indexing.mesh(places, dim)
    of_self, read = _reduced_backward(grad, self, mesh, source, reduce, include_self, result)
    padding = [(0, full - seen, 0) for full, seen in zip(src.shape, read.shape, strict=False)]
    read = read if src.ndim else jnp.reshape(read, ())
    return of_self, lax.pad(read, jnp.zeros((), grad.dtype), padding[: src.ndim])


COUNT = jnp.int32  # of elements in a group

LEGACY = {"add": "sum", "multiply": "prod"}


def scatter_with(self, dim, index, src, reduce):
    """`scatter_reduce` by the names of `scatter`; `src` may be a number."""
    return scatter_reduce(self, dim, index, _spread(src, self, index), legacy_reduction(reduce))


scatter_with.precondition = indexing.check_gathered_range


def legacy_reduction(reduce):
    """The reduction that `scatter` calls "add" or "multiply"."""
    if reduce not in LEGACY:
        raise RuntimeError(f"reduce argument must be either add or multiply, not {reduce!r}")
    return LEGACY[reduce]


def scatter_with_backward(grad, self, dim, index, src, reduce, result):
    source, reduction = _spread(src, self, index), legacy_reduction(reduce)
    return scatter_reduce_backward(grad, self, dim, index, source, reduction, True, result)


def scatter_with_value_backward(grad, self, dim, index, value, reduce, result):
    return scatter_with_backward(grad, self, dim, index, value, reduce, result)[0]


def _spread(src, self, index):
    is_number = not hasattr(src, "shape") or getattr(src, "weak_type", False)
    return jnp.full(index.shape, src, self.dtype) if is_number else src


def index_reduce(self, dim, index, source, reduce, *, include_self=True):
    """`self` reduced with the slices of `source` at indices of `dim`."""
    dim = shapes.wrap_dim(dim, self.ndim)
    _check_indexed(self, dim, index, source, reduce)
    if not source.size:
        return self
    return _reduced(self, _slices(dim, index), source, reduce, include_self)


index_reduce.precondition = indexing.check_selected


def index_reduce_backward(grad, self, dim, index, source, reduce, include_self, result):
    """The gradients of `self` and `source`."""
    if not source.size:
        return grad, jnp.zeros_like(source)
    dim = shapes.wrap_dim(dim, self.ndim)
    (slices,) = indexing.at_least_1d(source)
    places = _slices(dim, index)
    of_self, read = _reduced_backward(grad, self, places, slices, reduce, include_self, result)
    return of_self, jnp.reshape(read, source.shape)


def _slices(dim, index):
    (places,) = indexing.at_least_1d(index)
    return (*[slice(None)] * dim, places)


def _check_indexed(self, dim, index, source, reduce):
    if reduce not in REDUCTIONS[1:]:
        raise RuntimeError(
            "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got "
            f"{reduce}."
        )
    indexing.check_vector("index_reduce", self, index)
    if self.dtype != source.dtype:
        kinds = [dtypes.from_numpy(tensor.dtype).scalar_type for tensor in (self, source)]
        raise RuntimeError(
            f"index_reduce_(): self ({kinds[0]}) and source ({kinds[1]}) must have the same scalar "
            "type"
        )
    _check_reducible("index_reduce", reduce, self, narrow=True)
    (places,) = indexing.at_least_1d(index)
    expected = indexing.selected_shape(self.shape, dim, places)
    if source.shape != expected:
        raise RuntimeError(
            f"index_reduce_(): Number of indices ({index.size}) should be equal to "
            f"source.size(dim), and other sizes to those of self: source must be {list(expected)}, "
            f"not {list(source.shape)}, for dim: {dim}"
        )


def _check_reducible(name, reduce, self, narrow=False):
    is_bool, is_complex = self.dtype == bool, jnp.iscomplexobj(self)
    ordered = reduce in ("amax", "amin")
    if (is_complex and (ordered or narrow)) or (is_bool and (reduce == "mean" or narrow)):
        kind = dtypes.from_numpy(self.dtype).scalar_type
        raise NotImplementedError(f"\"{name}\" by {reduce} not implemented for '{kind}'")


# the reductions


def _reduced(self, places, source, reduce, include_self):
    target, source = indexing.at_least_1d(self, source)
    wide = _wide(target.dtype)
    target, source = target.astype(wide), source.astype(wide)
    if not include_self:
        start = jnp.asarray(_neutral(reduce, target.dtype), target.dtype)
        target = target.at[places].set(start, mode="drop")
    if target.dtype == bool:
        whole = {"sum": "max", "prod": "min", "amax": "max", "amin": "min"}[reduce]
    else:
        whole = {"prod": "multiply", "amax": "max", "amin": "min"}.get(reduce, "add")
    reduced = getattr(target.at[places], whole)(source, mode="drop")
    if reduce == "mean":
        reduced = _divided(reduced, _counts(reduced.shape, places, source.shape, include_self))
    return jnp.reshape(reduced.astype(self.dtype), self.shape)


def _wide(dtype):
    """Half precision rounds once, at the end."""
    return jnp.promote_types(dtype, jnp.float32) if dtype in (jnp.float16, jnp.bfloat16) else dtype


def _neutral(reduce, dtype):
    """The start of a reduction without `self`."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if jnp.issubdtype(dtype, jnp.bool_):
        return reduce == "amin"
    if jnp.issubdtype(dtype, jnp.integer):
        return jnp.iinfo(dtype).min if reduce == "amax" else jnp.iinfo(dtype).max
    return -math.inf if reduce == "amax" else math.inf


def _counts(sizes, places, source_shape, include_self):
    """The number of elements in each group, at least 1."""
    start = jnp.full(sizes, int(include_self), COUNT)
    counts = start.at[places].add(jnp.ones(source_shape, COUNT), mode="drop")
    return jnp.maximum(counts, 1)


def _divided(total, counts):
    if jnp.issubdtype(total.dtype, jnp.integer):
        return jnp.floor_divide(total, counts.astype(total.dtype))
    return total / counts.astype(total.dtype)


def _reduced_backward(grad, self, places, source, reduce, include_self, result):
    """The gradients of `self` and of `source`, whose shape its gradient has."""
    shape = self.shape
    grad, target, source, result = indexing.at_least_1d(grad, self, source, result)
    if reduce in ("sum", "mean"):
        if reduce == "mean":
            counts = _counts(grad.shape, places, source.shape, include_self)
            grad = grad / counts.astype(grad.dtype)
        of_self, of_source = grad, _read(grad, places, source)
    elif reduce == "prod":
        others, others_of_source = _products_of_others(target, places, source, include_self)
        of_self = grad * jnp.conj(others)
        of_source = _read(grad, places, source) * jnp.conj(others_of_source)
    else:
        of_self, of_source = _extremes_backward(grad, target, places, source, include_self, result)
    if not include_self:
        of_self = of_self.at[places].set(0, mode="drop")
    return jnp.reshape(of_self, shape), of_source


def _read(tensor, places, source):
    """The elements of a target for each element of the source; 0 for one that was dropped."""
    return jnp.reshape(tensor.at[places].get(mode="fill", fill_value=0), source.shape)


def _extremes_backward(grad, target, places, source, include_self, result):
    """Ties share the gradient evenly."""
    kept = jnp.ones(target.shape, bool)
    if not include_self:
        kept = kept.at[places].set(False, mode="drop")
    wins = (target == result) & kept
    source_wins = source == _read(result, places, source)
    count = wins.astype(COUNT).at[places].add(source_wins.astype(COUNT), mode="drop")
    # no element equals NaN
    shared = grad / jnp.maximum(count, 1).astype(grad.dtype)
    zero = jnp.zeros((), grad.dtype)
    of_source = jnp.where(source_wins, _read(shared, places, source), zero)
    return jnp.where(wins | ~kept, shared, zero), of_source


def _products_of_others(target, places, source, include_self):
    """For each element of `self` and of the source the product of the others of its group.

    Without a division, so that zeros are exact and derivatives of any order hold: the elements
    sorted by group, and in each group the product of those before times the product of those after.
    """
    count = target.size
    positions = jnp.reshape(jnp.arange(count), target.shape)
    # what is written out of range, and `self` where it is not included, is in a group of its own
    groups = positions.at[places].get(mode="fill", fill_value=count)
    targets = jnp.arange(count) + (0 if include_self else count + 1)
    group = jnp.concatenate([targets, jnp.reshape(groups, (-1,))])
    numbers = jnp.concatenate([jnp.ravel(target), jnp.ravel(source)])
    order = jnp.argsort(group, stable=True)
    others = _others_in_runs(numbers[order], group[order])
    products = jnp.zeros_like(others).at[order].set(others, unique_indices=True)
    return jnp.reshape(products[:count], target.shape), jnp.reshape(products[count:], source.shape)


def _others_in_runs(numbers, group):
    """The product of the other numbers in each run of equal groups."""
    is_first = jnp.concatenate([jnp.ones(1, bool), group[1:] != group[:-1]])
    is_last = jnp.concatenate([group[1:] != group[:-1], jnp.ones(1, bool)])
    one = jnp.ones((), numbers.dtype)
    before = jnp.where(is_first, one, jnp.roll(numbers, 1))
    after = jnp.where(is_last, one, jnp.roll(numbers, -1))
    return _products_in_runs(before, is_first) * _products_in_runs(after, is_last, reverse=True)


def _products_in_runs(numbers, starts, reverse=False):
    """Cumulative products that start anew where `starts` is true."""

    def joined(left, right):
        product, begun = left
        factor, begins = right
        return jnp.where(begins, factor, product * factor), begun | begins

    return lax.associative_scan(joined, (numbers, starts), reverse=reverse)[0]
