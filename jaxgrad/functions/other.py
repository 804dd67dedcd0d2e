"""Other operations: products, distances, covariances and combinations of tensors."""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np

from .. import ops
from ..core import dtypes
from ..core.pytorch_tensors import type_name
from ..core.tracebacks import users_stacklevel
from ..frontend import factories, tensor_data
from ..tape.tensor import Tensor, is_concrete
from ..tape.torch_function import api_boundary
from .out import takes_out

# products


@takes_out
def tensordot(a: Tensor, b: Tensor, dims=2) -> Tensor:
    """Return the product summed over the last dimensions of `a` and the first of `b`.

    a, b: of one dtype, not bool. dims: how many dimensions, or a pair of lists: which dimensions of
    `a`, and which of `b`, or both as a tensor of two rows; dimensions of extent 1 broadcast. The
    result has the other dimensions of `a`, then those of `b`.
    Raises RuntimeError if dtypes or extents differ, or if `dims` is malformed.

    >>> jaxgrad.tensordot(jaxgrad.tensor([[1.0, 2.0]]), jaxgrad.tensor([3.0, 4.0]), 1)
    tensor([11.])
    """
    first, second = _dims_of(dims, a, b)
    if isinstance(first, int) or isinstance(second, int):
        raise TypeError("tensordot(): argument 'dims_self' (position 3) must be tuple of ints")
    if len(first) != len(second):
        raise RuntimeError("both dimension lists should have same length: of tensordot's dims")
    if a.dtype is not b.dtype:
        raise RuntimeError(f"both inputs should have same dtype: {a.dtype} and {b.dtype}")
    first, second = (_wrapped(dims, x) for dims, x in ((first, a), (second, b)))
    for i, j in zip(first, second, strict=True):
        extents = a.shape[i], b.shape[j]
        if extents[1] == 1:
            a = a.sum(i, keepdim=True, dtype=a.dtype)
        elif extents[0] == 1:
            b = b.sum(j, keepdim=True, dtype=b.dtype)
        elif extents[0] != extents[1]:
            raise RuntimeError(
                f"contracted dimensions need to match, but first has size {extents[0]} in dim {i} "
                f"and second has size {extents[1]} in dim {j}: tensordot"
            )
    return _contracted(a, b, first, second)


def _contracted(a, b, first, second):
    rows = [n for n in range(a.ndim) if n not in first]
    columns = [n for n in range(b.ndim) if n not in second]
    shape = [*(a.shape[n] for n in rows), *(b.shape[n] for n in columns)]
    count = math.prod(a.shape[n] for n in first)
    if not rows and not columns:
        return ops.dot(a.permute(first).reshape(-1), b.permute(second).reshape(-1)).reshape(())
    left = a.permute(rows + first).reshape(math.prod(a.shape[n] for n in rows), count)
    right = b.permute(second + columns).reshape(count, math.prod(b.shape[n] for n in columns))
    return ops.mm(left, right).reshape(shape)


def _dims_of(dims, a, b):
    """The dimensions of both tensors that `dims` means."""
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, list | tuple):
        first, second = dims
        return first, second
    if not isinstance(dims, int):
        raise RuntimeError(
            "tensordot expects dims to be int or tuple[list[int], list[int]] or list[list[int]] "
            f"containing two lists, but got dims={dims}"
        )
    if dims < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
    if dims > min(a.ndim, b.ndim):
        raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
    return range(-dims, 0), range(dims)


def _wrapped(dims, tensor):
    """Dimensions of a tensor counted from 0; each may occur once."""
    positions = []
    for dim in dims:
        if not -tensor.ndim <= dim < tensor.ndim:
            raise IndexError(
                "Dimension out of range (expected to be in range of "
                f"[{-tensor.ndim}, {tensor.ndim - 1}], but got {dim})"
            )
        if dim % tensor.ndim in positions:
            raise RuntimeError(
                f"dim {dim % tensor.ndim} appears multiple times in the list of dims"
            )
        positions.append(dim % tensor.ndim)
    return positions


@takes_out
def kron(input: Tensor, other: Tensor) -> Tensor:
    """Return the Kronecker product: `input` with each element replaced by its product with `other`.

    input, other: of any shape; one with fewer dimensions gets more in front. Dtypes promote. The
    extents of the result are the products of those of both.

    >>> jaxgrad.kron(jaxgrad.tensor([1.0, 10.0]), jaxgrad.tensor([1.0, 2.0]))
    tensor([ 1.,  2., 10., 20.])
    """
    count = max(input.ndim, other.ndim)
    first, second = ((1,) * (count - x.ndim) + tuple(x.shape) for x in (input, other))
    left = input.reshape([extent for n in first for extent in (n, 1)])
    right = other.reshape([extent for n in second for extent in (1, n)])
    shape = [n * m for n, m in zip(first, second, strict=True)]
    return ops._unsafe_view(left * right, shape)


@api_boundary
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return `input1 @ weight[k] @ input2 + bias[k]` for each k.

    input1: (..., n). input2: (..., m), of the same dimensions `...`. weight: (p, n, m). bias: (p,).
    All of one dtype; the result is (..., p). Raises RuntimeError for other shapes and dtypes.

    >>> x = jaxgrad.tensor([1.0, 2.0])
    >>> jaxgrad.nn.functional.bilinear(x, x, jaxgrad.ones(1, 2, 2))
    tensor([9.])
    """
    _check_bilinear(input1, input2, weight, bias)
    shape = (*input1.shape[:-1], weight.shape[0])
    first, second = (x.reshape(-1, x.shape[-1]) for x in (input1, input2))
    product = ops._trilinear(first, weight, second, [1, 3], [0], [1, 2], [2, 3]).reshape(shape)
    return product if bias is None else product + bias


def _check_bilinear(input1, input2, weight, bias):
    tensors = {"input1": input1, "input2": input2, "weight": weight, "bias": bias}
    tensors = {name: tensor for name, tensor in tensors.items() if tensor is not None}
    if len({tensor.dtype for tensor in tensors.values()}) > 1:
        listed = ", ".join(f"{name}: {tensor.dtype}" for name, tensor in tensors.items())
        raise RuntimeError(f"All tensors must have the same dtype, got {listed}")
    if input1.ndim != input2.ndim:
        raise RuntimeError(
            f"bilinear(): input dimensions do not match: got {input1.ndim} and {input2.ndim}"
        )
    for n, (one, two) in enumerate(zip(input1.shape[:-1], input2.shape[:-1], strict=True)):
        if one != two:
            raise RuntimeError(
                f"bilinear(): input batch dimensions do not match at dim {n}: got {one} and {two}"
            )
    for role, got, expected in (
        ("input1", input1.shape[-1], weight.shape[1]),
        ("input2", input2.shape[-1], weight.shape[2]),
        ("bias", weight.shape[0] if bias is None else bias.shape[0], weight.shape[0]),
    ):
        if got != expected:
            raise RuntimeError(
                f"bilinear(): {role} size does not match weight size: got {got} but expected "
                f"{expected}"
            )


# covariances


@api_boundary
def cov(
    input: Tensor,
    *,
    correction: int = 1,
    fweights: Tensor | None = None,
    aweights: Tensor | None = None,
) -> Tensor:
    """Return the covariances of variables, the rows of `input`; the columns are observations.

    input: (n, m), or (m,) for one variable; not bool. correction: the sum of products is divided by
    the number of observations less this. fweights: (m,), integers, how often each observation
    counts. aweights: (m,), floating point, its weight. Neither may be negative. The result is
    (n, n), or 0-D for one variable. Raises RuntimeError for other shapes and dtypes.

    >>> jaxgrad.cov(jaxgrad.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    _check_variables("cov", input)
    if input.dtype is dtypes.bool:
        raise RuntimeError("cov(): bool dtype is not supported for input: convert with .to(dtype)")
    rows = input.reshape(1, -1) if input.ndim < 2 else input
    weights = _weights(rows.shape[1], fweights, aweights)
    total = rows.shape[1] if weights is None else weights.sum()
    if weights is not None and _is_certain(total == 0):
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    weighted = rows if weights is None else rows * weights
    centred = rows - (weighted.sum(1) / total).unsqueeze(1)
    factor = total - correction
    if aweights is not None and correction != 0:
        factor = total - correction * (weights * aweights).sum() / total
    other = centred if weights is None else centred * weights
    return ops.true_divide(ops.mm(centred, other.t().conj()), _divisor(factor)).squeeze()


def _divisor(factor):
    """The divisor of the sum of products, 0 where the degrees of freedom are negative."""
    if _is_certain(factor <= 0):
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number "
            "of observations.",
            stacklevel=users_stacklevel(),
        )
    return factor.clamp_min(0) if isinstance(factor, Tensor) else max(factor, 0)


def _is_certain(condition):
    """Whether a condition holds; a traced one is not known."""
    if isinstance(condition, Tensor) and not is_concrete(condition):
        return False
    return bool(condition)


def _check_variables(name, input):
    if input.ndim > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with "
            f"{input.ndim} dimensions"
        )


def _weights(count, fweights, aweights):
    """The product of both weights of `count` observations, or None."""
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is not None:
            _check_weights(name, weights, count)
    if fweights is None or aweights is None:
        return aweights if fweights is None else fweights
    return fweights * aweights


def _check_weights(name, weights, count):
    kind = "integral", dtypes.INTEGRAL
    if name == "aweights":
        kind = "floating point", dtypes.FLOATING
    if weights.ndim > 1:
        raise RuntimeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with "
            f"{weights.ndim} dimensions"
        )
    if weights.dtype.category != kind[1]:
        raise RuntimeError(
            f"cov(): expected {name} to have {kind[0]} dtype but got {name} with "
            f"{weights.dtype.scalar_type} dtype"
        )
    if weights.numel() != count:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input "
            f"but got {weights.numel()} != {count}"
        )
    if count and _is_certain((weights < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")


@api_boundary
def corrcoef(input: Tensor) -> Tensor:
    """Return the correlation coefficients of variables, the rows of `input`.

    input: (n, m) for n variables with m observations, or (m,) for one variable. The result is
    (n, n), or 0-D for one variable, with parts between -1 and 1.
    Raises RuntimeError for more dimensions.

    >>> jaxgrad.corrcoef(jaxgrad.tensor([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    _check_variables("corrcoef", input)
    matrix = cov(input)
    if matrix.ndim == 0:
        return matrix / matrix
    variances = matrix.diagonal()
    deviations = (variances.real if matrix.is_complex() else variances).sqrt()
    matrix = matrix / deviations.unsqueeze(1) / deviations
    if matrix.is_complex():
        return ops.complex(matrix.real.clamp(-1, 1), matrix.imag.clamp(-1, 1))
    return matrix.clamp(-1, 1)


# combinations


@api_boundary
def block_diag(*tensors: Tensor) -> Tensor:
    """Return a matrix with the given matrices along its diagonal and zeros elsewhere.

    tensors: each of at most 2 dimensions; one with fewer is a row. Dtypes promote.
    Raises RuntimeError for more dimensions.

    >>> jaxgrad.block_diag(jaxgrad.tensor([[1.0, 2.0]]), jaxgrad.tensor(3.0))
    tensor([[1., 2., 0.],
            [0., 0., 3.]])
    """
    _check_tensors(tensors)
    return ops.block_diag(tensors) if tensors else tensor_data.tensor([[]])


def _check_tensors(tensors):
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            kind = type_name(tensor)
            raise TypeError(f"expected Tensor as element {position} in argument 0, but got {kind}")


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


@takes_out
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """Return the powers of each element of a vector, as rows, the highest power first.

    x: (n,). N: the number of powers, from 0 to N - 1; n if not given. increasing: the lowest power
    first. The result is (n, N), of dtype int64 for integers.
    Raises RuntimeError for another shape or a negative `N`.

    >>> jaxgrad.vander(jaxgrad.tensor([2.0, 3.0]), 3)
    tensor([[4., 2., 1.],
            [9., 3., 1.]])
    """
    if x.ndim != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor. Its shape is {list(x.shape)}")
    if N is not None and N < 0:
        raise RuntimeError(f"N must be non-negative. It is {N}")
    powers = powers_of(x, x.shape[0] if N is None else N)
    return powers if increasing else powers.flip(1)


def powers_of(x: Tensor, count: int) -> Tensor:
    """Return the powers from 0 to `count - 1` along a new last dimension, int64 for integers."""
    wide = x.unsqueeze(-1)
    if x.dtype.category < dtypes.FLOATING:
        wide = wide.to(dtypes.int64)
    ones = factories.ones_like(wide)
    if count < 2:
        return ones.expand(*x.shape, count)
    powers = ops.cumprod(wide.expand(*x.shape, count - 1), -1)
    return ops.cat([ones, powers], -1)
