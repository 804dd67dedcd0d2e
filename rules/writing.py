"""Operators that return a copy of `self` with new values: everywhere, at indices, where a mask is
true, on a diagonal.

PyTorch's in-place operators assign this copy to `self`. An index out of range raises, or is dropped
under a trace, as in `indexing`.
"""

import functools
import math
import operator

import jax.numpy as jnp
import numpy
from jax import lax
from jaxgrad.rules import indexing, pointwise, slicing
from jaxgrad.rules import shape as shapes

from jaxgrad.core import dtypes, promotion
from jaxgrad.core.primitive import op


def _dtype(tensor):
    return dtypes.from_numpy(tensor.dtype)


def _is_tensor(value):
    """Whether a value is a tensor; under a trace a number is a value of weak type."""
    return hasattr(value, "shape") and not getattr(value, "weak_type", False)


def _check_long(name, index):
    if not promotion.is_long(index.dtype):
        kind = _dtype(index).scalar_type
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {kind}")


# everywhere


def copy(self, src, non_blocking=False):
    """`src` in the shape and dtype of `self`; `non_blocking` has no effect."""
    together = promotion.broadcast_shapes("copy", self.shape, src.shape)
    if together != self.shape:
        raise RuntimeError(
            f"output with shape {list(self.shape)} doesn't match the broadcast shape "
            f"{list(together)}: copy does not enlarge self"
        )
    return jnp.broadcast_to(pointwise.to(src, _dtype(self)), self.shape)


copy.crosses_devices = True


def fill(self, value):
    """The shape and dtype of `self`, filled with a number or a tensor without dimensions."""
    if getattr(value, "ndim", 0):
        raise RuntimeError(
            f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} "
            f"dimensions: its shape is {list(value.shape)}"
        )
    dtype = _dtype(self)
    if _is_tensor(value) and jnp.iscomplexobj(value) and dtype.category in _REAL:
        value = lax.real(value)
    return jnp.full(self.shape, promotion.cast(value, dtype))


_REAL = (dtypes.INTEGRAL, dtypes.FLOATING)


def _check_filled(self, value):
    if not hasattr(value, "shape"):
        promotion.checked_element(value, _dtype(self), self.shape)


fill.precondition = _check_filled


def zero(self):
    return jnp.broadcast_to(promotion.cast(0, _dtype(self)), self.shape)


# at indices of a dimension


def index_copy(self, dim, index, source):
    """`self` with slices of `source` at indices of `dim`.

    Of duplicates any one is written; as in PyTorch, each gets the gradient at its index.
    """
    dim = shapes.wrap_dim(dim, self.ndim)
    _check_copied(self, dim, index, source)
    if not source.size:
        return self
    target, places, slices = indexing.at_least_1d(self, index, source)
    written = target.at[(*[slice(None)] * dim, places)].set(slices, mode="drop")
    return jnp.reshape(written, self.shape)


def _check_copied(self, dim, index, source):
    if index.ndim > 1:
        raise IndexError(
            f"index_copy_(): Index should have dimension 1 or 0 (got {index.ndim}): its shape is "
            f"{list(index.shape)}"
        )
    _check_long("index_copy_", index)
    if self.dtype != source.dtype:
        raise RuntimeError(
            "index_copy_(): self and source expected to have the same dtype, but got (self) "
            f"{_dtype(self).scalar_type} and (source) {_dtype(source).scalar_type}"
        )
    if self.ndim and source.ndim not in (0, self.ndim):
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must "
            f"match. Source dimensionality ({source.ndim}), destination dimensionality "
            f"({self.ndim})"
        )
    _check_slices(self.shape, dim, index.size, source.shape)


def _check_slices(sizes, dim, count, source_sizes):
    """Check that the slices of a source fit those of a tensor, and match the number of indices."""
    source_dim = dim if len(source_sizes) else 0
    of_self, of_source = (
        (*shape[:at], *shape[at + 1 :]) for shape, at in ((sizes, dim), (source_sizes, source_dim))
    )
    if of_self != of_source:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination "
            f"slice shape: {list(of_self)} at dimension {dim} and source slice shape: "
            f"{list(of_source)} at dimension {source_dim}."
        )
    extent = source_sizes[source_dim] if len(source_sizes) else 1
    if count != extent:
        raise IndexError(
            f"index_copy_(): Number of indices ({count}) should be equal to source.size(dim) "
            f"({extent})"
        )


def _check_copied_range(self, dim, index, source):
    dim = shapes.wrap_dim(dim, self.ndim)
    indexing.check_range(index, dim, self.shape[dim] if self.ndim else 1)


index_copy.precondition = _check_copied_range


def index_copy_backward(grad, dim, index, sizes):
    (source,) = indexing.at_least_1d(grad)
    return jnp.reshape(op.index_select(source, dim, index), sizes)


def index_fill(self, dim, index, value):
    """`self` with one value at indices of `dim`; -1 is the last."""
    named = _is_indexed(self.shape, dim, index)
    if getattr(value, "ndim", 0):
        raise RuntimeError(
            "index_fill_ only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s)."
        )
    if jnp.iscomplexobj(value) and not jnp.iscomplexobj(self):
        raise RuntimeError(
            "index_fill_(): Converting complex Scalar to non-complex type is not supported: self "
            f"is of dtype {_dtype(self)}"
        )
    return jnp.where(named, promotion.cast(value, _dtype(self)), self)


def _is_indexed(sizes, dim, index):
    """A mask of the indexed positions along a dimension, which broadcasts to the shape `sizes`."""
    dim = shapes.wrap_dim(dim, len(sizes))
    if not promotion.is_long(index.dtype):
        raise IndexError(f"index_fill_(): Expected dtype int64 for index, not {_dtype(index)}")
    if index.ndim > 1:
        raise RuntimeError(
            f"Index has to be a vector/scalar: that of index_fill has shape {list(index.shape)}"
        )
    extent = sizes[dim] if len(sizes) else 1
    named = jnp.zeros(extent, bool).at[index].set(True, mode="drop")
    return jnp.reshape(named, [extent if other == dim else 1 for other in range(len(sizes))])


def _check_filled_range(self, dim, index, value):
    dim = shapes.wrap_dim(dim, self.ndim)
    indexing.check_range(index, dim, self.shape[dim] if self.ndim else 1, negative=True)
    _check_filled(self, value)


index_fill.precondition = _check_filled_range


def index_fill_backward(grad, dim, index):
    """`grad` at the filled positions, else 0; duplicate indices count once."""
    return jnp.where(_is_indexed(grad.shape, dim, index), grad, jnp.zeros((), grad.dtype))


# at indices of the flattened tensor


def put(self, index, source, accumulate=False):
    """`self` with the elements of `source` where `take` reads; `accumulate` adds duplicates, else
    any one wins.
    """
    _check_put(self, index, source)
    places, values = (jnp.ravel(index),), jnp.ravel(source)
    written = indexing.index_put(jnp.ravel(self), places, values, accumulate)
    return jnp.reshape(written, self.shape)


def _check_put(self, index, source):
    _check_long("put_", index)
    if self.dtype != source.dtype:
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{_dtype(self).scalar_type} and source.dtype = {_dtype(source).scalar_type}"
        )
    if index.size != source.size:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source.size}, index.numel() = {index.size}"
        )
    if index.size and not self.size:
        raise IndexError("put_(): Tried to put elements into an empty tensor")


def _check_put_range(self, index, source, accumulate):
    numbers = numpy.asarray(index)
    wrong = numbers[(numbers < -self.size) | (numbers >= self.size)]
    if wrong.size:
        raise IndexError(
            f"out of range: tried to access index {int(wrong[0])} on a tensor of {self.size} "
            "elements."
        )


put.precondition = _check_put_range


def put_zeros(grad, index):
    """`grad` with zeros where `put` writes."""
    return op.put(grad, index, jnp.zeros(index.shape, grad.dtype))


# where a mask is true


def masked_scatter(self, mask, source):
    """`self` with consecutive elements of `source` where the mask is true."""
    self, mask = _masked(self, mask, source)
    if not source.size or not mask.size:
        return self
    places = jnp.reshape(_ranks(mask), mask.shape)
    return jnp.where(mask, jnp.take(jnp.ravel(source), places, mode="fill"), self)


def _masked(self, mask, source):
    """Tensor and mask, broadcast to a common shape."""
    if mask.dtype != bool:
        raise RuntimeError(
            "masked_scatter_ only supports boolean masks, but got mask with dtype "
            f"{_dtype(mask).scalar_type}"
        )
    if self.dtype != source.dtype:
        raise RuntimeError(
            "masked_scatter: expected self and source to have same dtypes but got "
            f"{_dtype(self).scalar_type} and {_dtype(source).scalar_type}"
        )
    together = promotion.broadcast_shapes("masked_scatter", self.shape, mask.shape)
    return jnp.broadcast_to(self, together), jnp.broadcast_to(mask, together)


def _ranks(mask):
    """The position of each true element of a flattened mask among the true elements."""
    return jnp.cumsum(jnp.ravel(mask)) - 1


def _check_source_size(self, mask, source):
    together = numpy.broadcast_shapes(self.shape, mask.shape)
    wanted = numpy.count_nonzero(numpy.broadcast_to(mask, together))
    if wanted > source.size:
        raise RuntimeError(
            "Number of elements of source < number of ones in mask: masked_scatter got "
            f"{source.size} for {wanted}"
        )


masked_scatter.precondition = _check_source_size


def masked_scatter_backward(grad, mask, sizes):
    """`grad` where the mask is true, in the order of `source`; zeros for unused elements."""
    count = math.prod(sizes)
    if not count:
        return jnp.zeros(sizes, grad.dtype)
    mask = jnp.broadcast_to(mask, grad.shape)
    places = jnp.where(jnp.ravel(mask), _ranks(mask), count)
    gradient = jnp.zeros(count, grad.dtype).at[places].add(jnp.ravel(grad), mode="drop")
    return jnp.reshape(gradient, sizes)


# on a diagonal


def diagonal_scatter(self, src, offset=0, dim1=0, dim2=1):
    slicing.check_source(src.shape, shapes.diagonal(self, offset, dim1, dim2).shape)
    return shapes.with_diagonal(self, pointwise.to(src, _dtype(self)), offset, dim1, dim2)


def diagonal_scatter_backward(grad, offset, dim1, dim2):
    """`grad` with zeros on a diagonal."""
    zeros = jnp.zeros_like(shapes.diagonal(grad, offset, dim1, dim2))
    return op.diagonal_scatter(grad, zeros, offset, dim1, dim2)


def fill_main_diagonal(self, fill_value, wrap=False):
    """`self` with a number on the main diagonal.

    If `wrap`, the diagonal of a tall matrix starts again one row below its end.
    """
    if self.ndim < 2:
        raise RuntimeError(
            "dimensions must larger than 1: fill_diagonal_ got a tensor of shape "
            f"{list(self.shape)}"
        )
    if self.ndim > 2 and len({*self.shape}) > 1:
        raise RuntimeError(
            "all dimensions of input must be of equal length: fill_diagonal_ got shape "
            f"{list(self.shape)}"
        )
    indices = [lax.broadcasted_iota(jnp.int32, self.shape, dim) for dim in range(self.ndim)]
    first = indices[0] % (self.shape[1] + 1) if wrap and self.ndim == 2 else indices[0]
    is_on = functools.reduce(operator.and_, (first == other for other in indices[1:]))
    return jnp.where(is_on, promotion.cast(fill_value, _dtype(self)), self)
