"""Combinations of elements of vectors."""

from __future__ import annotations

import itertools

import numpy as np

from .. import ops
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary


def _check_vector(input):
    if input.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")


@api_boundary
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return every combination of one element of each vector, as rows.

    tensors: vectors of one dtype. The result of k vectors of extents n1, ..., nk is
    (n1 * ... * nk, k); one vector is returned as it is. Raises RuntimeError for other shapes.

    >>> jaxgrad.cartesian_prod(jaxgrad.tensor([1, 2]), jaxgrad.tensor([3, 4]))
    tensor([[1, 3],
            [1, 4],
            [2, 3],
            [2, 4]])
    """
    for vector in tensors:
        _check_vector(vector)
    if len(tensors) == 1:
        return tensors[0]
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList: cartesian_prod got no tensors")
    if len({vector.dtype for vector in tensors}) > 1:
        raise RuntimeError("meshgrid expects all tensors to have the same dtype")
    shape = [vector.shape[0] for vector in tensors]
    axes = [[-1 if n == k else 1 for n in range(len(tensors))] for k in range(len(tensors))]
    grids = [x.reshape(axis).expand(shape) for x, axis in zip(tensors, axes, strict=True)]
    return ops.stack([grid.reshape(-1) for grid in grids], 1)


@api_boundary
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return the combinations of `r` elements of a vector, as rows.

    input: (n,). with_replacement: an element may occur more than once in a row.
    Raises RuntimeError for another shape or a negative `r`.

    >>> jaxgrad.combinations(jaxgrad.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    _check_vector(input)
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input[:0].detach()
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(input.shape[0]), r)), np.int64).reshape(-1, r)
    columns = [input[rows[:, n]] for n in range(r)]
    return ops.stack(columns, 1)
