"""Positions of elements."""

from __future__ import annotations

import math
import operator

from .. import ops
from ..core.dtypes import bool as bool_dtype
from ..core.dtypes import int32, int64
from ..core.pytorch_tensors import type_name
from ..frontend.indexing import without_masks
from ..tape.tensor import Tensor, concrete
from ..tape.torch_function import api_boundary
from .arguments import check_tensor


@api_boundary
def argwhere(input: Tensor) -> Tensor:
    """Return the indices of all elements that are not zero, an int64 tensor of shape (count, ndim).

    input: of any shape and dtype. Raises RuntimeError in a trace, because the count depends on the
    values. `vmap` calls it example by example; all must have equal counts.

    >>> jaxgrad.argwhere(jaxgrad.tensor([0, 5]))
    tensor([[1]])
    """
    check_tensor("argwhere", input)
    concrete(input, "argwhere()")
    return input.nonzero()


@api_boundary
def index_put(input: Tensor, indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """Return a copy of a tensor with values at positions, as `x[indices] = values` writes them.

    input: of any shape and dtype. indices: a list with an index tensor or None for each dimension:
    int64 or int32 positions that broadcast together, or masks of bool or uint8, of as many
    dimensions as they select from. values: of the dtype of `input`, broadcast to what is selected.
    accumulate: add the values, also where positions are equal; else any one of these is written.

    Raises IndexError for positions out of range and other dtypes and shapes of masks, RuntimeError
    for values that do not fit and for masks in a trace.

    >>> x, mask = jaxgrad.zeros(3), jaxgrad.tensor([True, False, True])
    >>> jaxgrad.index_put(x, [mask], jaxgrad.tensor([1.0, 2.0]))
    tensor([1., 0., 2.])
    """
    _check_indices("index_put", input, indices)
    return ops.index_put(input, without_masks(input, indices), values, accumulate)


@api_boundary
def index_put_(input: Tensor, indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """Write values at positions of a tensor in place, and return the tensor; see `index_put`.

    >>> x = jaxgrad.zeros(3)
    >>> x.index_put_([jaxgrad.tensor([1, 1])], jaxgrad.tensor(2.0), accumulate=True)
    tensor([0., 4., 0.])
    """
    _check_indices("index_put_", input, indices)
    return ops.index_put_(input, without_masks(input, indices), values, accumulate)


def _check_indices(name, input, indices):
    check_tensor(name, input)
    is_list = isinstance(indices, list | tuple)
    if not is_list or not all(item is None or isinstance(item, Tensor) for item in indices):
        kinds = [*map(type_name, indices)] if is_list else type_name(indices)
        raise TypeError(f"{name}(): argument 'indices' must be tuple of Tensors, not {kinds}")


@api_boundary
def unravel_index(indices: Tensor, shape) -> tuple[Tensor, ...]:
    """Return the coordinates in a tensor of positions in its flattened form.

    indices: integers of any shape; they count modulo the number of elements. shape: an int or a
    list of ints. Returns one int64 tensor of the shape of `indices` for each dimension.

    Raises TypeError for another dtype of `indices` and for other shapes, ValueError for a negative
    extent.

    >>> jaxgrad.unravel_index(jaxgrad.tensor([3, 5]), (2, 3))
    (tensor([1, 1]), tensor([0, 2]))
    """
    check_tensor("unravel_index", indices)
    dtype = indices.dtype
    if dtype.is_floating_point or dtype.is_complex or dtype is bool_dtype:
        raise TypeError(f"expected 'indices' to be integer dtype, but got {dtype}")
    is_int = hasattr(shape, "__index__") and not isinstance(shape, Tensor)
    if not is_int and not isinstance(shape, list | tuple):
        raise TypeError(f"expected 'shape' to be int or sequence of ints, but got {type(shape)}")
    extents = list(shape) if isinstance(shape, list | tuple) else [operator.index(shape)]
    for extent in extents:
        if not hasattr(extent, "__index__"):
            raise TypeError(
                f"expected 'shape' sequence to only contain ints, but got {type(extent)}"
            )
        if extent < 0:
            raise ValueError(f"'shape' cannot have negative values, but got {tuple(extents)}")
    strides = [math.prod(extents[dim + 1 :]) for dim in range(len(extents))]
    if not extents:
        return ()
    places = indices.to(int64).unsqueeze(-1)
    if not math.prod(extents):  # a tensor without elements has no positions
        strides, extents = [1] * len(extents), [1] * len(extents)
    places = places // places.new_tensor(strides) % places.new_tensor(extents)
    return places.unbind(-1)


@api_boundary
def _unsafe_index(self, indices):
    """Return `self[indices]`, where None stands for all of a dimension."""
    return ops.index(self, indices)


@api_boundary
def _unsafe_index_put(self, indices, values, accumulate=False):
    """Return what `index_put` returns."""
    return index_put(self, indices, values, accumulate)


@api_boundary
def _index_put_impl_(self, indices, values, accumulate=False, unsafe=False):
    """Do what `index_put_` does."""
    return index_put_(self, indices, values, accumulate)


def _clamped(self, indices):
    """The indices of a masked access, those out of range moved to the edge: the mask excludes
    them.
    """
    for index in indices:
        if index is not None and index.dtype not in (int32, int64):
            raise RuntimeError(
                f"_unsafe_masked_index found unexpected index type {index.dtype}: indices are "
                "int32 or int64"
            )
    sizes = zip(indices, self.shape, strict=False)
    return [i if i is None else i.clamp(-size, size - 1) for i, size in sizes]


@api_boundary
def _unsafe_masked_index(self, mask, indices, fill):
    """Return `self[indices]` where mask is true, and the number `fill` elsewhere. There the indices
    may be out of range.
    """
    if not self.numel():
        return self.new_full(mask.shape, fill)
    return ops.index(self, _clamped(self, indices)).masked_fill(~mask, fill)


@api_boundary
def _unsafe_masked_index_put_accumulate(self, mask, indices, values):
    """Return `self` with values added at indices, where mask is true. Elsewhere the indices may be
    out of range.
    """
    if not self.numel():
        return self.clone()
    return index_put(self, _clamped(self, indices), values.masked_fill(~mask, 0), True)
