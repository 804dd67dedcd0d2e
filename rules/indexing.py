"""Operators that read and write elements at index tensors, masks and triangles.

The `precondition` of an operator raises for an index out of range. Under a trace indices have no
values: a read out of range then gives NaN (the least integer for integers), and a write out of
range is dropped.
"""

import math
import operator

import jax.numpy as jnp
import numpy
from jax import lax
from jaxgrad.rules import shape as shapes

from jaxgrad.core import dtypes, promotion
from jaxgrad.core.primitive import op


class OutOfBounds(IndexError, RuntimeError):
    """An index out of range: IndexError for some operators of PyTorch, RuntimeError for others."""


def check_range(index, dim, extent, negative=False):
    """Raise for an index out of range; `negative` ones count from the end if allowed."""
    numbers = numpy.asarray(index)
    if not numbers.size:
        return
    least, greatest = int(numbers.min()), int(numbers.max())
    if least < (-extent if negative else 0) or greatest >= extent:
        wrong = greatest if greatest >= extent else least
        raise OutOfBounds(f"index {wrong} is out of bounds for dimension {dim} with size {extent}")


def _dtype(tensor):
    return dtypes.from_numpy(tensor.dtype)


def _check_index_dtype(name, index):
    if dtypes.from_numpy(index.dtype) not in (dtypes.int32, dtypes.int64):
        raise RuntimeError(
            f"{name}(): Expected dtype int32/int64 for index, not {dtypes.from_numpy(index.dtype)}"
        )


def at_least_1d(*tensors):
    """The tensors, with one dimension added to those that have none."""
    return [jnp.reshape(tensor, (1,)) if not tensor.ndim else tensor for tensor in tensors]


# an index tensor, or None, for each dimension


def index(self, indices):
    """The elements at the index tensors, which broadcast together; -1 is the last index."""
    places = _places(self, indices)
    sizes = _indexed_shape(self.shape, indices)
    return self.at[places].get(mode="fill") if math.prod(sizes) else jnp.zeros(sizes, self.dtype)


def _places(self, indices):
    if len(indices) > self.ndim:
        raise IndexError(
            f"too many indices for tensor of dimension {self.ndim} (got {len(indices)})"
        )
    tensors = [index for index in indices if index is not None]
    for index in tensors:
        if _dtype(index) not in (dtypes.int32, dtypes.int64):
            raise IndexError(
                f"tensors used as indices must be long or int tensors here, not {_dtype(index)}: "
                "turn a mask into indices with nonzero(), as x[mask] does"
            )
    try:
        together = jnp.broadcast_shapes(*(index.shape for index in tensors))
    except ValueError:
        shown = ", ".join(str(list(index.shape)) for index in tensors)
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shown}"
        ) from None
    extents = [
        extent for extent, index in zip(self.shape, indices, strict=False) if index is not None
    ]
    if 0 in extents and 0 not in together:
        raise IndexError("index is out of bounds for dimension with size 0")
    return tuple(slice(None) if index is None else index for index in indices)


def _check_indices(self, indices, *_):
    if 0 in _indexed_shape(self.shape, indices):
        return  # nothing is read
    for dim, index in enumerate(indices):
        if index is not None:
            check_range(index, dim, self.shape[dim], negative=True)


index.precondition = _check_indices


def index_backward(grad, sizes, indices):
    return op.index_put(jnp.zeros(sizes, grad.dtype), indices, grad, True)


def index_put(self, indices, values, accumulate=False):
    """`self` with `values` where `index` reads; `accumulate` adds duplicates, else any one wins."""
    _check_same_dtype("Index put", self, values)
    places = _places(self, indices)
    target = _indexed_shape(self.shape, indices)
    try:
        values = jnp.broadcast_to(values, target)
    except ValueError:
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to "
            "indexing result of "
            f"shape {list(target)}"
        ) from None
    if not values.size:
        return self
    return _added(self, places, values) if accumulate else self.at[places].set(values, mode="drop")


def _added(target, places, values):
    """`target` with values added at indices, duplicates included; booleans are combined by "or"."""
    at = target.at[places]
    return at.max(values, mode="drop") if target.dtype == bool else at.add(values, mode="drop")


index_put.precondition = _check_indices


def _indexed_shape(sizes, indices):
    """The shape of the result of `index`.

    The broadcast indices stand first, or in the place of their dimensions if these are adjacent.
    """
    dims = [dim for dim, index in enumerate(indices) if index is not None]
    if not dims:
        return sizes
    rest = [extent for dim, extent in enumerate(sizes) if dim not in dims]
    front = dims[0] if dims[-1] - dims[0] < len(dims) else 0
    return (
        *rest[:front],
        *jnp.broadcast_shapes(*(indices[dim].shape for dim in dims)),
        *rest[front:],
    )


def _check_same_dtype(name, self, values):
    if self.dtype != values.dtype:
        raise RuntimeError(
            f"{name} requires the source and destination dtypes match, got "
            f"{_dtype(self).scalar_type} for the destination "
            f"and {_dtype(values).scalar_type} for the source."
        )


def index_put_zeros(grad, indices):
    """`grad` with zeros at the index tensors."""
    return op.index_put(grad, indices, jnp.zeros((), grad.dtype), False)


# an index vector for one dimension


def index_select(self, dim, index):
    dim = shapes.wrap_dim(dim, self.ndim)
    check_vector("index_select", self, index)
    (places,) = at_least_1d(index)
    (source,) = at_least_1d(self)
    if not source.shape[dim]:
        return jnp.zeros(selected_shape(self.shape, dim, places), self.dtype)
    return jnp.reshape(
        jnp.take(source, places, dim, mode="fill"), selected_shape(self.shape, dim, places)
    )


def check_vector(name, self, index):
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but its shape is {list(index.shape)}"
        )
    _check_index_dtype(name, index)
    if not self.ndim and index.size != 1:
        raise RuntimeError(
            f"{name}(): Index to scalar can have only 1 value, got {index.size} value(s)"
        )


def selected_shape(sizes, dim, places):
    return (*sizes[:dim], *places.shape, *sizes[dim + 1 :]) if len(sizes) else ()


def check_selected(self, dim, index, *_):
    dim = shapes.wrap_dim(dim, self.ndim)
    check_range(index, dim, self.shape[dim] if self.ndim else 1)


index_select.precondition = check_selected


def index_select_backward(grad, sizes, dim, index):
    return op.index_add(jnp.zeros(sizes, grad.dtype), dim, index, grad)


def index_add(self, dim, index, source, *, alpha=1):
    """`self` with slices of `source` times `alpha` added at indices of `dim`; duplicates add up."""
    dim = shapes.wrap_dim(dim, self.ndim)
    check_vector("index_add", self, index)
    _check_same_dtype("index_add", self, source)
    (places,) = at_least_1d(index)
    expected = selected_shape(self.shape, dim, places)
    if source.shape != expected:
        raise RuntimeError(
            "index_add(): source tensor shape must match self tensor shape, excluding the "
            "specified dimension. Got self.shape = "
            f"{list(self.shape)} source.shape = {list(source.shape)}; with this number of indices "
            f"the source has shape {list(expected)}"
        )
    moved = (
        source
        if isinstance(alpha, int) and alpha == 1
        else source * promotion.cast(alpha, _dtype(self))
    )
    (target,) = at_least_1d(self)
    (moved,) = at_least_1d(moved)
    return jnp.reshape(_added(target, (*[slice(None)] * dim, places), moved), self.shape)


index_add.precondition = check_selected


def index_add_backward(grad, dim, index, source_shape, alpha):
    gradient = jnp.reshape(op.index_select(grad, dim, index), source_shape)
    return gradient if isinstance(alpha, int) and alpha == 1 else gradient * alpha.conjugate()


# index tensors with an index for each element of the result


def gather(self, dim, index, *, sparse_grad=False):
    """The elements at the indices `index` along `dim`; the engine reads `sparse_grad`."""
    dim = _check_gathered("gather", self, dim, index, "input")
    if not index.size:
        return jnp.zeros(index.shape, self.dtype)
    source, places = at_least_1d(self, index)
    elements = jnp.take_along_axis(corner(source, places.shape, dim), places, dim, mode="fill")
    return jnp.reshape(elements, index.shape)


def corner(tensor, extents, whole_dim=None):
    """The first `extents` elements of each dimension, and all elements along `whole_dim`."""
    wanted = [
        old if dim == whole_dim else new
        for dim, (new, old) in enumerate(zip(extents, tensor.shape, strict=True))
    ]
    return tensor if (*wanted,) == tensor.shape else lax.slice(tensor, [0] * tensor.ndim, wanted)


def _check_gathered(name, self, dim, index, role="self"):
    """Check that `index` fits the tensor in all other dimensions; the dimension from 0."""
    dim = shapes.wrap_dim(dim, self.ndim)
    if index.size:
        _check_index_dtype(name, index)
    if index.size and max(index.ndim, 1) != max(self.ndim, 1):
        raise RuntimeError(
            f"{name}(): Index tensor must have the same number of dimensions as {role} tensor, "
            f"but it has shape {list(index.shape)} and the input {list(self.shape)}"
        )
    for other, (places, extent) in enumerate(zip(index.shape, self.shape, strict=False)):
        if index.size and other != dim and places > extent:
            raise RuntimeError(
                f"{name}(): Size does not match at dimension {other} expected index "
                f"{list(index.shape)} to be no larger than "
                f"self {list(self.shape)} apart from dimension {dim}"
            )
    return dim


def check_gathered_range(self, dim, index, *_):
    dim = shapes.wrap_dim(dim, self.ndim)
    check_range(index, dim, self.shape[dim] if self.ndim else 1)


gather.precondition = check_gathered_range


def gather_backward(grad, sizes, dim, index):
    return op.scatter_add(jnp.zeros(sizes, grad.dtype), dim, index, grad)


def scatter_add(self, dim, index, src):
    """`self` with the elements of `src` added at indices along `dim`; duplicates add up."""
    dim, places, source = scattered("scatter_add", self, dim, index, src)
    (target,) = at_least_1d(self)
    return (
        jnp.reshape(_added(target, mesh(places, dim), source), self.shape) if index.size else self
    )


scatter_add.precondition = check_gathered_range


def scatter(self, dim, index, src):
    """`self` with the elements of `src`, a tensor or a number, at indices along `dim`.

    Of duplicates any one is written; as in PyTorch, each gets the gradient at its index.
    """
    if not hasattr(src, "shape") or getattr(src, "weak_type", False):
        src = jnp.broadcast_to(promotion.cast(src, _dtype(self)), index.shape)
    dim, places, source = scattered("scatter", self, dim, index, src)
    (target,) = at_least_1d(self)
    return (
        jnp.reshape(target.at[mesh(places, dim)].set(source, mode="drop"), self.shape)
        if index.size
        else self
    )


def _check_scattered(self, dim, index, src):
    check_gathered_range(self, dim, index)
    if not hasattr(src, "shape"):
        promotion.checked_number(src, _dtype(self))


scatter.precondition = _check_scattered


def scattered(name, self, dim, index, src):
    """The dimension from 0, the index, and the part of `src` that the index covers."""
    dim = _check_gathered(name, self, dim, index)
    if self.dtype != src.dtype:
        raise RuntimeError(
            f"{name}(): Expected self.dtype to be equal to src.dtype, but they are {_dtype(self)} "
            f"and {_dtype(src)}"
        )
    places, source = at_least_1d(index, src)
    if index.size and places.ndim != source.ndim:
        raise RuntimeError(
            f"{name}(): Index tensor must have the same number of dimensions as src tensor, but "
            f"their shapes are {list(index.shape)} and {list(src.shape)}"
        )
    if index.size and any(map(operator.gt, places.shape, source.shape)):
        raise RuntimeError(
            f"{name}(): Expected index {list(index.shape)} to be no larger than self "
            f"{list(self.shape)} apart from dimension "
            f"{dim} and to be no larger size than src {list(src.shape)}"
        )
    return dim, places, corner(source, places.shape) if index.size else source


def mesh(places, dim):
    """An index tensor for each dimension: `places` for `dim`, coordinates for the others."""
    extents = places.shape
    indices = [lax.broadcasted_iota(places.dtype, extents, other) for other in range(places.ndim)]
    return (*indices[:dim], places, *indices[dim + 1 :])


def scatter_src_backward(grad, dim, index, sizes):
    """`grad` where each element of `src` was written; zeros for elements that `index` left out."""
    if not index.size:
        return jnp.zeros(sizes, grad.dtype)
    gradient = op.gather(grad, dim, index)
    if not len(sizes):
        return jnp.reshape(gradient, ())
    (gradient,) = at_least_1d(gradient)
    padding = [(0, extent - read, 0) for extent, read in zip(sizes, gradient.shape, strict=True)]
    return lax.pad(gradient, jnp.zeros((), grad.dtype), padding)


def take(self, index):
    """The elements at indices of the flattened tensor; negative ones count from the end."""
    if not promotion.is_long(index.dtype):
        raise RuntimeError(
            f"take(): Expected a long tensor for index, but got {_dtype(index).scalar_type}"
        )
    if not self.size and index.size:
        raise IndexError("take(): tried to take from an empty tensor")
    return (
        jnp.take(jnp.ravel(self), index, mode="fill")
        if index.size
        else jnp.zeros(index.shape, self.dtype)
    )


def _check_taken(self, index):
    try:
        check_range(index, 0, self.size, negative=True)
    except IndexError as error:
        raise IndexError(
            f"out of range: take() of a tensor of {self.size} elements: {error}"
        ) from None


take.precondition = _check_taken


def take_backward(grad, sizes, index):
    flat = jnp.zeros((math.prod(sizes),), grad.dtype)
    return jnp.reshape(op.index_put(flat, (index,), grad, True), sizes)


def take_along_dim(self, indices, dim=None):
    """`gather` after broadcasting tensor and indices; without `dim` both are flattened."""
    if not promotion.is_long(indices.dtype):
        raise RuntimeError(
            "torch.take_along_dim(): dtype of indices should be Long but got "
            f"{_dtype(indices).scalar_type}"
        )
    self, indices, dim = _along(self, indices, dim)
    return gather(self, dim, indices)


def _check_taken_along(self, indices, dim=None):
    dim, extent = (0, self.size) if dim is None else (shapes.wrap_dim(dim, self.ndim), None)
    check_range(indices, dim, self.shape[dim] if extent is None else extent, negative=True)


take_along_dim.precondition = _check_taken_along


def _along(self, indices, dim):
    if dim is None:
        return jnp.ravel(self), jnp.ravel(indices), 0
    if self.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            "but got "
            f"{self.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    dim = shapes.wrap_dim(dim, self.ndim)
    sizes = [1 if other == dim else extent for other, extent in enumerate(self.shape)]
    places = [1 if other == dim else extent for other, extent in enumerate(indices.shape)]
    common = promotion.broadcast_shapes("take_along_dim", sizes, places)
    of_self, of_indices = (
        [tensor.shape[other] if other == dim else extent for other, extent in enumerate(common)]
        for tensor in (self, indices)
    )
    return jnp.broadcast_to(self, of_self), jnp.broadcast_to(indices, of_indices), dim


def take_along_dim_backward(grad, sizes, indices, dim):
    wide, indices, dim = _along(jnp.zeros(sizes, grad.dtype), indices, dim)
    gradient = op.scatter_add(wide, dim, indices, grad)
    return jnp.reshape(gradient, sizes) if gradient.size == math.prod(sizes) else gradient


# selections whose size is known


def select_flat(self, size, places):
    """The elements of `self`, broadcast to `size`, at positions of the flattened tensor."""
    return jnp.take(jnp.ravel(jnp.broadcast_to(self, size)), places, mode="clip")


def select_flat_backward(grad, size, places):
    flat = jnp.zeros((math.prod(size),), grad.dtype)
    return jnp.reshape(flat.at[places].set(grad, unique_indices=True), size)


def nonzero_static(self, *, size, fill_value=-1):
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, not {size}")
    if not self.ndim or not self.size:  # jax.numpy fills with 0 here
        return jnp.full((size, self.ndim), fill_value, promotion.available(dtypes.int64))
    indices = jnp.argwhere(self, size=size, fill_value=fill_value)
    return indices.astype(promotion.available(dtypes.int64))


def repeated_positions(repeats, count):
    """Each position of `repeats` as often as it says; `count` is the sum, which need not be known
    to be it.
    """
    places = jnp.arange(repeats.size, dtype=repeats.dtype)
    return jnp.repeat(places, repeats, total_repeat_length=count)


# masks and triangles


def masked_fill(self, mask, value):
    """`self` with `value` where the mask is true."""
    if mask.dtype != bool:
        raise RuntimeError(
            f"masked_fill only supports boolean masks, but got mask with dtype {_dtype(mask)}"
        )
    if getattr(value, "ndim", 0):
        raise RuntimeError(
            "masked_fill only supports a 0-dimensional value tensor, but got tensor with "
            f"{value.ndim} dimension(s)."
        )
    if jnp.iscomplexobj(value) and not jnp.iscomplexobj(self):
        raise RuntimeError(
            f"value cannot be converted to type {_dtype(self)} without overflow: it is complex"
        )
    promotion.broadcast_shapes("masked_fill", self.shape, mask.shape)
    return jnp.where(mask, promotion.cast(value, _dtype(self)), self)


def _check_filled(self, mask, value):
    if not hasattr(value, "shape"):
        promotion.checked_number(value, _dtype(self))


masked_fill.precondition = _check_filled


def masked_fill_backward(grad, mask):
    return jnp.where(mask, grad, jnp.zeros((), grad.dtype))


def tril(self, diagonal=0):
    _check_matrix("tril", self)
    return jnp.tril(self, diagonal)


def triu(self, diagonal=0):
    _check_matrix("triu", self)
    return jnp.triu(self, diagonal)


def _check_matrix(name, self):
    if self.ndim < 2:
        raise RuntimeError(
            f"{name}: input tensor must have at least 2 dimensions, but its shape is "
            f"{list(self.shape)}"
        )
