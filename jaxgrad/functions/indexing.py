"""Positions of elements."""

from __future__ import annotations

import math
import operator

from ..core.dtypes import bool as bool_dtype
from ..core.dtypes import int64
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary
from .arguments import check_tensor


@api_boundary
def argwhere(input: Tensor) -> Tensor:
    """Return the indices of all elements that are not zero, an int64 tensor of shape (count, ndim).

    input: of any shape and dtype. Raises RuntimeError in a trace, because the count depends on the
    values.

    >>> jaxgrad.argwhere(jaxgrad.tensor([0, 5]))
    tensor([[1]])
    """
    check_tensor("argwhere", input)
    return input.nonzero()


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
    places = indices.to(int64)
    return tuple(
        places.new_zeros(places.shape) if not extent or not stride else places // stride % extent
        for stride, extent in zip(strides, extents, strict=True)
    )
