"""The examples of a `vmap`: how many there are, and in which dimension of each input they lie."""

from __future__ import annotations

import math

from ..capture.graph_input import ArgumentInput, ExampleNumber, GraphInput
from ..core.aval import Aval, make_aval, strides_of, with_shape, with_strides
from ..core.strides import is_dense


def example_aval(aval: Aval, dim: int) -> Aval:
    """The abstract value of one example: that of a tensor without its mapped dimension."""
    shape, strides = ((*of[:dim], *of[dim + 1 :]) for of in (aval.shape, strides_of(aval)))
    return make_aval(shape, aval.dtype, aval.mode, strides)


def size_of(leaves, dims) -> int:
    """The number of examples."""
    return next(leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None)


class Examples:
    """The examples that a function is mapped over. `size`: their number; `dims`: the mapped
    dimension of each argument, or None; `written_axes`: by the number of an output that a captured
    tensor is set to its mapped dimension.
    """

    def __init__(self, leaves, dims):
        self.size, self.dims = size_of(leaves, dims), dims
        self.written_axes: dict[int, int] = {}

    def dim_of(self, captured):
        """The mapped dimension of a captured tensor, None for a shared one."""
        return None if captured.position is None else self.dims[captured.position]

    def axis(self, source: GraphInput):
        """The mapped dimension of an input, None for a shared one."""
        if source.captured is not None:
            return self.dim_of(source.captured)
        if isinstance(source, ExampleNumber):
            return 0
        return self.dims[source.position] if isinstance(source, ArgumentInput) else None

    def batched_aval(self, aval, dim):
        shape, strides = tuple(aval.shape), strides_of(aval)
        whole = with_shape(aval, (*shape[:dim], self.size, *shape[dim:]))
        # the examples lie one behind the other, if there are no places between their elements
        is_compact = dim == 0 and is_dense(shape, strides)
        return with_strides(whole, (math.prod(shape), *strides)) if is_compact else whole
