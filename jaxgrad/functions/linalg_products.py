"""Products in torch.linalg that are composed of other operators."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

from .. import ops
from ..core import dtypes
from ..ops.autocast import lowered
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary
from .out import takes_exact_out
from .polynomial import powers_of

_REFUSAL = "multi_dot(): expected out tensor to have dtype {expected} but got {dtype}"


@functools.partial(takes_exact_out, refusal=_REFUSAL)
def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Return the product of matrices, computed in the order that takes the fewest multiplications.

    tensors: two or more matrices, each with as many rows as the one before has columns, of one
    dtype; the first and the last may be vectors, and the result lacks their dimension.
    Raises RuntimeError for other shapes and dtypes.

    >>> x = jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> jaxgrad.linalg.multi_dot([x, x, jaxgrad.tensor([1.0, 0.0])])
    tensor([ 7., 15.])
    """
    tensors = list(tensors)
    _check_chain(tensors)
    if len(tensors) == 2:
        return ops.matmul(*tensors)
    shape = [*tensors[0].shape[:-1], *(tensors[-1].shape[1:])]
    if tensors[0].ndim == 1:
        tensors[0] = tensors[0].unsqueeze(0)
    if tensors[-1].ndim == 1:
        tensors[-1] = tensors[-1].unsqueeze(-1)
    extents = [tensors[0].shape[0], *(matrix.shape[1] for matrix in tensors)]
    return _multiplied(tensors, _splits(extents), 0, len(tensors) - 1).reshape(shape)


def _check_chain(tensors):
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    for position, role in ((0, "first"), (-1, "last")):
        if tensors[position].ndim not in (1, 2):
            raise RuntimeError(
                f"multi_dot(): the {role} tensor must be 1D or 2D but got {tensors[position].ndim}D"
            )
    for position, tensor in enumerate(tensors):
        if 0 < position < len(tensors) - 1 and tensor.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {position} must be 2D but got {tensor.ndim}D")
        if tensor.dtype is not tensors[0].dtype:
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{tensors[0].dtype} and tensor {position} {tensor.dtype}"
            )
    for position, (one, two) in enumerate(itertools.pairwise(tensors)):
        if one.shape[-1] != two.shape[0]:
            raise RuntimeError(
                f"multi_dot(): tensors {position} and {position + 1} with shapes "
                f"{list(one.shape)} and {list(two.shape)} cannot be multiplied"
            )


def _splits(extents):
    """For each part of a chain of matrices, as (first, last), after which it is best split.

    `extents`: the rows of the first matrix and the columns of each. Source: Cormen et al.,
    "Introduction to Algorithms", matrix-chain multiplication.
    """
    count = len(extents) - 1
    cost, split = {(n, n): 0 for n in range(count)}, {}
    for length in range(1, count):
        for first in range(count - length):
            last = first + length
            cost[first, last], split[first, last] = min(
                (
                    cost[first, n]
                    + cost[n + 1, last]
                    + extents[first] * extents[n + 1] * extents[last + 1],
                    n,
                )
                for n in range(first, last)
            )
    return split


def _multiplied(tensors, splits, first, last):
    if first == last:
        return tensors[first]
    middle = splits[first, last]
    left = _multiplied(tensors, splits, first, middle)
    return ops.mm(left, _multiplied(tensors, splits, middle + 1, last))


@api_boundary
def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Return the diagonals of matrices, as a view.

    A: (..., n, m), any dtype. offset: which diagonal, 0 the main one, positive above it. dim1,
    dim2: the dimensions of the matrices. The result has the diagonal as its last dimension.
    Raises IndexError for other dimensions.

    >>> jaxgrad.linalg.diagonal(jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([1., 4.])
    """
    return A.diagonal(offset, dim1, dim2)


@takes_exact_out
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """Return the sums of the products of the elements of vectors along `dim`, `x` conjugated.

    x, y: of shapes that broadcast and of one dtype, floating point or complex.
    Raises RuntimeError for other shapes and dtypes.

    >>> jaxgrad.linalg.vecdot(jaxgrad.tensor([1.0, 2.0]), jaxgrad.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if x.dtype.category < dtypes.FLOATING:
        raise RuntimeError(
            "linalg.vecdot: Expected a floating point or complex tensor as input. Got "
            f"{x.dtype.scalar_type}"
        )
    if x.dtype is not y.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{x.dtype.scalar_type} and y of type {y.dtype.scalar_type} instead"
        )
    x, y = lowered(x, y)
    if x.ndim == y.ndim == 1:
        return ops.vdot(x, y)
    return (x.conj() * y).sum(dim)


@api_boundary
def vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """Return the powers of each element along a new last dimension, from 0 to N - 1.

    x: (..., n), float32, float64, complex or integers. N: the number of powers, at least 2; n if
    not given. The result is (..., n, N), of dtype int64 for integers.
    Raises RuntimeError for other dtypes or numbers of powers.

    >>> jaxgrad.linalg.vander(jaxgrad.tensor([2.0, 3.0]), N=3)
    tensor([[1., 2., 4.],
            [1., 3., 9.]])
    """
    if x.dtype in (dtypes.bool, dtypes.float16, dtypes.bfloat16):
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got "
            f"{x.dtype.scalar_type}"
        )
    x = x.unsqueeze(-1) if x.ndim == 0 else x
    count = x.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError(f"N must be greater than 1. It is {count}")
    return powers_of(x, count)
