"""Covariances and correlations of variables."""

from __future__ import annotations

import warnings

from .. import ops
from ..core import dtypes
from ..core.tracebacks import users_stacklevel
from ..tape.tensor import Tensor, is_concrete
from ..tape.torch_function import api_boundary


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
