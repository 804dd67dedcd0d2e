"""Distances of rows."""

import jax.numpy as jnp
import numpy
from jax import lax
from jaxgrad.rules import norm as norms

from jaxgrad.core import dtypes, promotion


def _check_order(name, p):
    if not p >= 0:  # NaN too
        raise RuntimeError(f"{name} only supports non-negative p values, not {p}")


def _check_cdist(x1, x2, p, compute_mode):
    for role, x in (("X1", x1), ("X2", x2)):
        if dtypes.from_numpy(x.dtype).category != dtypes.FLOATING:
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {role} got: "
                f"{dtypes.from_numpy(x.dtype).scalar_type}"
            )
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {role} got: {x.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        )
    if x1.dtype != x2.dtype:
        names = [dtypes.from_numpy(x.dtype).scalar_type for x in (x1, x2)]
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}: cdist")
    _check_order("cdist", p)
    if compute_mode not in (None, 0, 1, 2):
        raise RuntimeError(f"possible modes: 0, 1, 2, but was: {compute_mode}")
    promotion.broadcast_shapes("cdist", x1.shape[:-2], x2.shape[:-2])


def cdist_forward(x1, x2, p, compute_mode):
    _check_cdist(x1, x2, p, compute_mode)
    differences = norms._wide(_pairs(x1, x2))
    return lax.squeeze(norms._norm(differences, p, (differences.ndim - 1,)), (-1,)).astype(x1.dtype)


def _pairs(x1, x2):
    """The differences of all rows of both."""
    return x1[..., :, None, :] - x2[..., None, :, :]


def cdist_backward(grad, x1, x2, p, cdist):
    """The gradient of `x1`; where two rows are equal, their distance contributes 0."""
    differences = norms._wide(_pairs(x1, x2))
    grad, cdist = (norms._wide(array)[..., None] for array in (grad, cdist))
    slopes = norms._norm_backward(grad, differences, p, cdist, (differences.ndim - 1,))
    return jnp.sum(slopes, axis=-2).astype(x1.dtype)


def cdist_backward_x2(grad, x1, x2, p, cdist):
    return cdist_backward(grad.mT, x2, x1, p, cdist.mT)


def euclidean_dist(x1, x2):
    """By `|x|² - 2 x·y + |y|²`, as one product of matrices."""
    _check_cdist(x1, x2, 2, None)
    first, second = ((x * x).sum(-1, keepdims=True) for x in (x1, x2))
    products = jnp.matmul(x1, x2.mT, precision=lax.Precision.HIGHEST)
    return jnp.sqrt(jnp.maximum(first - 2 * products + second.mT, 0))


def euclidean_dist_backward(grad, x1, x2, result):
    """The gradient of `x1`; where a distance is 0 it is 0."""
    ratio = jnp.where(result == 0, 0, grad / norms._nonzero(result))
    product = jnp.matmul(ratio, x2, precision=lax.Precision.HIGHEST)
    return x1 * ratio.sum(-1, keepdims=True) - product


def pdist_forward(self, p):
    _check_pdist(self, p)
    rows, columns = numpy.triu_indices(self.shape[0], 1)
    return cdist_forward(self, self, p, None)[rows, columns]


def _check_pdist(self, p):
    if self.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {self.ndim}D")
    if dtypes.from_numpy(self.dtype).category != dtypes.FLOATING:
        raise RuntimeError(f"pdist only supports floating-point dtypes, not {self.dtype}")
    _check_order("pdist", p)


def pdist_backward(grad, self, p, pdist):
    """The gradient of `self`: that of `cdist` for the pairs in a square, which needs no scatter."""
    square = [_squareform(condensed, self.shape[0]) for condensed in (grad, pdist)]
    return cdist_backward(square[0], self, self, p, square[1])


def _squareform(condensed, count):
    """The values of the pairs i < j as a symmetric matrix with zeros on its diagonal."""
    if count < 2:
        return jnp.zeros((count, count), condensed.dtype)
    i, j = (lax.broadcasted_iota(jnp.int32, (count, count), axis) for axis in (0, 1))
    low, high = jnp.minimum(i, j), jnp.maximum(i, j)
    position = low * (2 * count - low - 1) // 2 + high - low - 1
    values = jnp.take(condensed, jnp.where(i == j, 0, position), mode="clip")
    return jnp.where(i == j, 0, values)
