"""Sorting, selection by rank, and search in sorted sequences.

NaN is the greatest number, 0.0 and -0.0 are equal, and the order of equal elements is kept.
"""

import math

import jax.numpy as jnp
import numpy
from jax import lax
from jaxgrad.rules import reduction as reductions
from jaxgrad.rules import shape as shapes

from jaxgrad.core import device_axes, dtypes, promotion, symbolic_extents
from jaxgrad.core.primitive import op

# sorting


def sort(self, dim=-1, descending=False):
    return _sorted("sort", self, dim, descending)


def sort_stable(self, *, stable, dim=-1, descending=False):
    return _sorted("sort", self, dim, descending)


def argsort(self, dim=-1, descending=False):
    return _sorted("argsort", self, dim, descending)[1]


def argsort_stable(self, *, stable, dim=-1, descending=False):
    return _sorted("argsort", self, dim, descending)[1]


def _sorted(name, self, dim, descending=False):
    """The elements in order along `dim`, and their indices."""
    promotion.refuse(name, self, dtypes.COMPLEX)
    dim = shapes.wrap_dim(dim, self.ndim)
    if not self.ndim:
        return self, jnp.zeros((), _index_dtype())
    # stable in reverse too: ties are turned around twice
    numbers = lax.rev(self, (dim,)) if descending else self
    places = lax.broadcasted_iota(jnp.int32, self.shape, dim)
    places = lax.rev(places, (dim,)) if descending else places
    values, places = lax.sort((numbers, places), dimension=dim, is_stable=True, num_keys=1)
    if descending:
        values, places = lax.rev(values, (dim,)), lax.rev(places, (dim,))
    return values, places.astype(_index_dtype())


def _index_dtype():
    return promotion.available(dtypes.int64)


def topk(self, k, dim=-1, largest=True, sorted=True):
    """The `k` greatest or least elements, in order; of ties those that come first."""
    promotion.refuse("topk", self, dtypes.COMPLEX, dtypes.BOOLEAN)
    dim = shapes.wrap_dim(dim, self.ndim)
    if not 0 <= k <= (self.shape[dim] if self.ndim else 1):
        raise RuntimeError(
            f"topk(): selected index k out of range: {k} of the shape {list(self.shape)}"
        )
    if not self.ndim:
        return self, jnp.zeros((), _index_dtype())
    places = _first_greatest(_rank_key(self, largest), k, dim)
    return jnp.take_along_axis(self, places, dim), places.astype(_index_dtype())


def _first_greatest(keys, k, dim):
    """The indices of the `k` greatest keys, in descending order."""

    def select(keys):
        return lax.top_k(keys, k, axis=dim)[1]

    if not jnp.issubdtype(keys.dtype, jnp.floating):
        return select(keys)
    # XLA's kernel for GPUs compares NaN by `>` (openxla/xla#48119)
    return lax.platform_dependent(keys, cpu=select, default=lambda keys: select(_ordinals(keys)))


def _ordinals(keys):
    """Integers in the total order of floats."""
    kind = jnp.int64 if keys.dtype.itemsize == 8 else jnp.int32
    bits = lax.bitcast_convert_type(keys, kind)
    return jnp.where(bits < 0, bits ^ jnp.iinfo(kind).max, bits)


def _rank_key(numbers, largest):
    """Numbers whose order is PyTorch's, or its reverse.

    The order of floats is total, with -NaN first and NaN last. XLA on CPUs has a fast selection for
    float32 alone.
    """
    if jnp.issubdtype(numbers.dtype, jnp.integer) and numbers.dtype.itemsize > 2:
        return numbers if largest else ~numbers  # the minimum has no negative
    keys = numbers if numbers.dtype == jnp.float64 else numbers.astype(jnp.float32)
    keys = keys if largest else -keys
    keys = jnp.where(keys == 0, 0, keys)
    nan = numpy.asarray(numpy.nan, keys.dtype)
    return jnp.where(jnp.isnan(keys), nan if largest else numpy.copysign(nan, -1), keys)


# elements of a rank

LONG = 128  # from here on counting is faster than sorting


def kthvalue(self, k, dim=-1, keepdim=False):
    promotion.refuse("kthvalue", self, dtypes.COMPLEX, dtypes.BOOLEAN)
    dim = shapes.wrap_dim(dim, self.ndim)
    reductions.check_reduced_dims("kthvalue", self, dim)
    extent = self.shape[dim] if self.ndim else 1
    if not 1 <= k <= extent:
        raise RuntimeError(
            f"kthvalue(): selected number k out of range for dimension {dim}: {k} of {extent}"
        )
    return _at_rank("kthvalue", self, dim, keepdim, k - 1)


def _at_rank(name, self, dim, keepdim, rank):
    """The value and the index at a rank: a number, or an array with extent 1 along `dim`."""
    if not self.ndim:
        return self, jnp.zeros((), _index_dtype())
    if symbolic_extents.chosen(lambda: self.shape[dim] >= LONG):
        return _at_place(self, dim, keepdim, _place_at_rank(self, dim, rank))
    places = _sorted(name, self, dim)[1]
    if isinstance(rank, int):
        place = lax.slice_in_dim(places, rank, rank + 1, axis=dim)
    else:
        place = jnp.take_along_axis(places, rank, dim)
    return _at_place(self, dim, keepdim, place)


def _at_place(self, dim, keepdim, place):
    """The value and the index of an element; place: with extent 1 along `dim`."""
    pair = jnp.take_along_axis(self, place, dim), place.astype(_index_dtype())
    return pair if keepdim else tuple(jnp.squeeze(array, dim) for array in pair)


def _place_at_rank(self, dim, rank):
    """Where the element at a rank is along `dim`, of equal elements in their order.

    It counts the lesser elements for each bit of the key, and the equal ones before for each bit
    of the place, which takes a pass each; XLA's sort takes as many, and each far longer.
    """
    keys = _rank_key(self, True)
    if jnp.issubdtype(keys.dtype, jnp.floating):
        keys = _ordinals(keys)
    places = lax.broadcasted_iota(jnp.int32, self.shape, dim)

    def count(chosen):
        return jnp.sum(chosen, axis=dim, keepdims=True, dtype=jnp.int32)

    key = _greatest(lambda bound: count(keys < bound) <= rank, keys.dtype, self.shape, dim)
    rank = rank - count(keys < key)
    same = keys == key
    return _greatest(
        lambda bound: count(same & (places < bound)) <= rank, jnp.int32, self.shape, dim
    )


def _greatest(is_reached, dtype, shape, dim):
    """The greatest integers that are reached, of those with extent 1 along `dim`, by their bits."""
    bits = jnp.iinfo(dtype).bits
    least = jnp.full((*shape[:dim], 1, *shape[dim + 1 :]), jnp.iinfo(dtype).min, dtype)

    def step(number, greatest):
        # the greatest bit turns the least integer to 0
        further = greatest ^ lax.shift_left(jnp.ones((), dtype), (bits - 1 - number).astype(dtype))
        return jnp.where(is_reached(further), further, greatest)

    return device_axes.fori_loop(0, bits, step, least)


def median(self):
    return _median(self, _refused_or_flat("median", self))


def nanmedian(self):
    return _median(self, _refused_or_flat("nanmedian", self), True)


def _refused_or_flat(name, self):
    promotion.refuse(name, self, dtypes.COMPLEX, dtypes.BOOLEAN)
    return jnp.ravel(self)


def _median(self, flat, ignores_nan=False):
    if not flat.size:
        nothing = jnp.nan if jnp.issubdtype(flat.dtype, jnp.floating) else _least(flat.dtype)
        return jnp.full((), nothing, flat.dtype)
    return _at_rank("median", flat, 0, False, _middle(flat, 0, ignores_nan))[0]


def _least(dtype):
    return numpy.iinfo(dtype).min


def _middle(numbers, dim, ignores_nan):
    """The rank of the lower median along `dim`; that of the first NaN if there is one."""
    extent = numbers.shape[dim]
    if not jnp.issubdtype(numbers.dtype, jnp.floating):
        return (extent - 1) // 2
    known = jnp.sum(~jnp.isnan(numbers), axis=dim, keepdims=True, dtype=jnp.int32)
    if ignores_nan:
        return jnp.maximum(known - 1, 0) // 2
    return jnp.where(known < extent, known, (extent - 1) // 2)


def median_dim(self, dim, keepdim=False):
    return _median_along("median", self, dim, keepdim, False)


def nanmedian_dim(self, dim, keepdim=False):
    return _median_along("nanmedian", self, dim, keepdim, True)


def _median_along(name, self, dim, keepdim, ignores_nan):
    promotion.refuse(name, self, dtypes.COMPLEX, dtypes.BOOLEAN)
    dim = shapes.wrap_dim(dim, self.ndim)
    reductions.check_reduced_dims(name, self, dim)
    rank = _middle(self, dim, ignores_nan) if self.ndim else 0
    return _at_rank(name, self, dim, keepdim, rank)


def mode(self, dim=-1, keepdim=False):
    """The least of the most frequent elements, and the index of its last occurrence."""
    promotion.refuse("mode", self, dtypes.COMPLEX)
    dim = shapes.wrap_dim(dim, self.ndim)
    reductions.check_reduced_dims("mode", self, dim)
    values, places = _sorted("mode", self, dim)
    if not self.ndim:
        return values, places
    ranks = lax.broadcasted_iota(jnp.int32, self.shape, dim)
    before = lax.slice_in_dim(values, 0, self.shape[dim] - 1, axis=dim)
    differs = lax.slice_in_dim(values, 1, None, axis=dim) != before
    padding = [(int(axis == dim), 0, 0) for axis in range(self.ndim)]
    begins = lax.pad(differs, jnp.asarray(True), padding)
    lengths = ranks - lax.cummax(jnp.where(begins, ranks, 0), dim)
    last = jnp.argmax(lengths, axis=dim, keepdims=True)  # of the first among the longest runs
    return _at_place(self, dim, keepdim, jnp.take_along_axis(places, last, dim))


# distinct elements


def distinct(self, places, dim=None):
    """The slices at positions that differ from each other; without `dim` of the flat tensor."""
    if places.ndim != 1:
        raise IndexError(f"places must be a vector, but its shape is {list(places.shape)}")
    if dim is None:
        return jnp.take(jnp.ravel(self), places, mode="clip")
    return jnp.take(self, places, shapes.wrap_dim(dim, self.ndim), mode="clip")


def distinct_backward(grad, sizes, places, dim=None):
    if dim is None:
        flat = jnp.zeros((math.prod(sizes),), grad.dtype)
        return jnp.reshape(op.index_add(flat, 0, places, grad), sizes)
    return op.index_add(jnp.zeros(sizes, grad.dtype), dim, places, grad)


# search in sorted sequences


def searchsorted(sorted_sequence, self, *, out_int32=False, right=False, side=None, sorter=None):
    """The positions at which the elements of `self`, or a number, keep the sequence sorted."""
    sequence, wanted = _comparable("searchsorted", sorted_sequence, self)
    _check_sequence(sequence, wanted)
    if sorter is not None:
        _check_sorter(sequence, sorter)
        sequence = jnp.take_along_axis(sequence, sorter, -1)
    return _searched(sequence, wanted, out_int32, _is_right(right, side))


def _check_sorter_range(sorted_sequence, self, out_int32, right, side, sorter):
    if sorter is not None and sorter.size:
        extent, places = sorted_sequence.shape[-1], numpy.asarray(sorter)
        if places.min() < 0 or places.max() >= extent:
            raise RuntimeError(
                f"torch.searchsorted(): sorter index out of range, from 0 to {extent - 1}"
            )


searchsorted.precondition = _check_sorter_range


def bucketize(self, boundaries, *, out_int32=False, right=False):
    """The bucket of each element, or of a number, between two of the sorted boundaries."""
    if boundaries.ndim != 1:
        raise RuntimeError(
            f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})"
        )
    return _searched(*_comparable("bucketize", boundaries, self), out_int32, right)


def _comparable(name, sequence, wanted):
    """Both in their common dtype, as arrays."""
    promotion.refuse(name, sequence, dtypes.COMPLEX, dtypes.BOOLEAN)
    sequence, wanted = promotion.unify(sequence, wanted)
    promotion.refuse(name, sequence, dtypes.COMPLEX)
    return sequence, wanted


def _is_right(right, side):
    if side not in (None, "left", "right"):
        raise RuntimeError(f"searchsorted(): side can only be 'left' or 'right' but got {side}")
    if right and side == "left":
        raise RuntimeError(
            "searchsorted(): side and right can't be set to opposites, got side of left while "
            "right was True"
        )
    return right or side == "right"


def _check_sequence(sequence, wanted):
    if not wanted.ndim and sequence.ndim != 1:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor "
            f"dimension is 1, but the boundaries have the shape {list(sequence.shape)}"
        )
    if not sequence.ndim:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 "
            "dimension"
        )
    if sequence.ndim > 1 and sequence.shape[:-1] != wanted.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 "
            "dimensions of boundaries tensor and input value tensor must match, but they are "
            f"{list(sequence.shape)} and {list(wanted.shape)}"
        )


def _check_sorter(sequence, sorter):
    if sorter.shape != sequence.shape:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary "
            f"tensor {list(sequence.shape)} and got sorter tensor {list(sorter.shape)}"
        )
    if dtypes.from_numpy(sorter.dtype) is not dtypes.int64:
        raise RuntimeError(
            "torch.searchsorted(): sorter must be a tensor of long dtype but got dtype "
            f"{dtypes.from_numpy(sorter.dtype).scalar_type}"
        )


def _searched(sequence, wanted, out_int32, right):
    dtype = jnp.dtype(jnp.int32) if out_int32 else _index_dtype()
    return bounds(sequence, wanted, right).astype(dtype)


def bounds(sequence, wanted, right):
    """For each wanted number how many elements of the sorted sequence are less than it, or, for
    `right`, not greater: by PyTorch's bisection, which puts a NaN behind all others.

    sequence: (n,), or (..., n) with the leading dimensions of `wanted`.
    """
    extent = sequence.shape[-1]
    if not extent or not wanted.size:
        return jnp.zeros(wanted.shape, jnp.int32)

    def halve(_, limits):
        low, high = limits
        middle = low + (high - low) // 2
        elements = _read(sequence, jnp.minimum(middle, extent - 1))
        is_above = ~(elements > wanted if right else elements >= wanted) & (low < high)
        return jnp.where(is_above, middle + 1, low), jnp.where(is_above, high, middle)

    start = jnp.zeros(wanted.shape, jnp.int32)
    # more steps than needed change nothing
    steps = 31 if symbolic_extents.is_symbolic(extent) else int(extent).bit_length()
    return device_axes.fori_loop(0, steps, halve, (start, start + extent))[0]


def _read(sequence, places):
    if sequence.ndim == 1:
        return jnp.take(sequence, places, mode="clip")
    return jnp.take_along_axis(sequence, places, -1, mode="clip")


def isin(elements, test_elements, *, assume_unique=False, invert=False):
    for operand in (elements, test_elements):
        dtype = dtypes.from_numpy(jnp.result_type(operand))
        if dtype.category in (dtypes.BOOLEAN, dtypes.COMPLEX):
            raise RuntimeError(
                f"Unsupported input type encountered for isin(): {dtype.scalar_type}: convert "
                "it to integers or floats"
            )
    return jnp.isin(*promotion.unify(elements, test_elements), invert=invert)
