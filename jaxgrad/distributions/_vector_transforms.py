"""Transforms of vectors and matrices."""

from __future__ import annotations

import math

from .. import ops
from ..core import dtypes
from ..core.aval import Size
from ..frontend.factories import arange, eye
from ..functions.linalg_solve import cholesky
from . import constraints
from ._formulas import fused
from ._number_transforms import clipped_sigmoid, softplus
from ._transform import PlainTransform, Transform, need_dims
from .utils import _options_of, tril_matrix_to_vec, vec_to_tril_matrix


class CorrCholeskyTransform(Transform):
    """From a real vector of n (n - 1) / 2 elements to the Cholesky factor of a correlation matrix
    of n rows.

    The hyperbolic tangents of the elements are partial correlations; each row breaks a stick of
    length 1 by them. Source: Lewandowski, Kurowicka and Joe, "Generating random correlation
    matrices based on vines and extended onion method", 2009.

    >>> jaxgrad.distributions.CorrCholeskyTransform()(jaxgrad.tensor([0.0]))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain = constraints.real_vector, constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        return _correlation_factor(x)

    def _inverse(self, y):
        return _partial_correlations(y)

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        return _correlation_det(x, y)

    def forward_shape(self, shape):
        need_dims(shape, 1)
        count = shape[-1]
        rows = round(math.sqrt(0.25 + 2 * count) + 0.5)
        if rows * (rows - 1) // 2 != count:
            raise ValueError(
                f"Input is not a flattened lower-diagonal number: {count} elements are no triangle"
            )
        return Size(shape[:-1]) + (rows, rows)

    def inverse_shape(self, shape):
        need_dims(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError(f"Input is not square: its shape is {list(shape)}")
        return Size(shape[:-2]) + (shape[-1] * (shape[-1] - 1) // 2,)


def _shifted(x, value):
    """The last dimension moved to the right by one, with `value` in front."""
    return ops.constant_pad_nd(x[..., :-1], (1, 0), value)


@fused
def _correlation_factor(x):
    eps = dtypes.finfo(x.dtype).eps
    partial = vec_to_tril_matrix(ops.clamp(ops.tanh(x), -1 + eps, 1 - eps), -1)
    rest = ops.cumprod(ops.sqrt(1 - ops.square(partial)), -1)
    return (partial + eye(partial.shape[-1], **_options_of(x))) * _shifted(rest, 1)


@fused
def _partial_correlations(y):
    rest = _shifted(1 - ops.cumsum(y * y, -1), 1)
    return ops.atanh(tril_matrix_to_vec(y, -1) / ops.sqrt(tril_matrix_to_vec(rest, -1)))


@fused
def _correlation_det(x, y):
    # the lengths that are left in each row before the last element
    rest = tril_matrix_to_vec(1 - ops.cumsum(y * y, -1), -2)
    tanh = -2 * (x + softplus(-2 * x) - math.log(2))
    return ops.sum(ops.log(rest), -1) / 2 + ops.sum(tanh, -1)


class SoftmaxTransform(PlainTransform):
    """`y = softmax(x)` over the last dimension, which is not bijective; its inverse is `log(y)`.

    >>> jaxgrad.distributions.SoftmaxTransform()(jaxgrad.tensor([0.0, 0.0]))
    tensor([0.5000, 0.5000])
    """

    domain, codomain = constraints.real_vector, constraints.simplex

    def _call(self, x):
        return ops.softmax(x, -1)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        need_dims(shape, 1)
        return Size(shape)

    inverse_shape = forward_shape


class StickBreakingTransform(PlainTransform):
    """From a real vector of n elements to n + 1 probabilities: the sigmoid of each element, shifted
    so that 0 gives equal parts, breaks a part off what is left of a stick of length 1.

    >>> jaxgrad.distributions.StickBreakingTransform()(jaxgrad.tensor([0.0, 0.0]))
    tensor([0.3333, 0.3333, 0.3333])
    """

    domain, codomain = constraints.real_vector, constraints.simplex
    bijective = True

    def _call(self, x):
        return _broken_stick(x)

    def _inverse(self, y):
        return _stick_logits(y)

    def log_abs_det_jacobian(self, x, y):
        return _stick_det(x, y)

    def forward_shape(self, shape):
        need_dims(shape, 1)
        return Size(shape[:-1]) + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        need_dims(shape, 1)
        return Size(shape[:-1]) + (shape[-1] - 1,)


def _parts_left(x, count):
    """The logarithm of the number of parts after each of `count` breaks."""
    return ops.log(arange(count, 0, -1, **_options_of(x)))


@fused
def _broken_stick(x):
    broken = clipped_sigmoid(x - _parts_left(x, x.shape[-1]))
    rest = ops.cumprod(1 - broken, -1)
    return ops.constant_pad_nd(broken, (0, 1), 1) * ops.constant_pad_nd(rest, (1, 0), 1)


@fused
def _stick_logits(y):
    first = y[..., :-1]
    rest = ops.clamp(1 - ops.cumsum(first, -1), dtypes.finfo(y.dtype).tiny)
    return ops.log(first) - ops.log(rest) + _parts_left(y, first.shape[-1])


@fused
def _stick_det(x, y):
    x = x - _parts_left(x, x.shape[-1])
    return ops.sum(-x + ops.log_sigmoid(x) + ops.log(y[..., :-1]), -1)


class LowerCholeskyTransform(PlainTransform):
    """From any square matrix to a lower triangular one with a positive diagonal, by `exp` of it.

    >>> jaxgrad.distributions.LowerCholeskyTransform()(jaxgrad.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(0, -2, -1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(0, -2, -1).log().diag_embed()


class PositiveDefiniteTransform(PlainTransform):
    """From any square matrix to a positive-definite one: the product of the factor that
    `LowerCholeskyTransform` gives with its transpose.

    >>> jaxgrad.distributions.PositiveDefiniteTransform()(jaxgrad.zeros(2, 2))
    tensor([[1., 0.],
            [0., 1.]])
    """

    domain, codomain = constraints.independent(constraints.real, 2), constraints.positive_definite

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(cholesky(y))
