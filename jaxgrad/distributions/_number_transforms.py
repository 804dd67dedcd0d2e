"""Transforms of numbers, element by element."""

from __future__ import annotations

import math

from .. import ops
from ..core import dtypes
from ..frontend.factories import full_like
from ..functions.shape import broadcast_shapes
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import fused, xlogy
from ._transform import PlainTransform, Transform, with_event_dim
from .utils import _sum_rightmost, broadcast_all


class ExpTransform(PlainTransform):
    """`y = exp(x)`, from the real to the positive numbers.

    >>> jaxgrad.distributions.ExpTransform()(jaxgrad.tensor(1.0))
    tensor(2.7183)
    """

    domain, codomain = constraints.real, constraints.positive
    bijective, sign = True, 1

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x, y):
        return x


class PowerTransform(Transform):
    """`y = x ** exponent`, of positive numbers.

    exponent: a tensor or a number; broadcasts with x.

    >>> jaxgrad.distributions.PowerTransform(2.0)(jaxgrad.tensor(3.0))
    tensor(9.)
    """

    domain = codomain = constraints.positive
    bijective = True

    def __init__(self, exponent: Tensor | float, cache_size: int = 0):
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @property
    def sign(self):
        return self.exponent.sign()

    def __eq__(self, other):
        return isinstance(other, PowerTransform) and _is_same(self.exponent, other.exponent)

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return _power_det(x, self.exponent)

    def forward_shape(self, shape):
        return broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


@fused
def _power_det(x, exponent):
    return ops.log(ops.abs(exponent)) + xlogy(exponent - 1, x)


def _is_same(one, other) -> bool:
    """Whether two parameters, numbers or tensors, are equal."""
    if one is other:
        return True
    is_equal = one == other
    return bool(is_equal.all()) if isinstance(is_equal, Tensor) else is_equal


def softplus(x):
    """`log(1 + exp(x))`; PyTorch's is x itself from 20 on."""
    return -ops.log_sigmoid(-x)


def clipped_sigmoid(x):
    """The sigmoid, kept inside of (0, 1) by the precision of the dtype."""
    finfo = dtypes.finfo(x.dtype)
    return ops.clamp(ops.sigmoid(x), finfo.tiny, 1 - finfo.eps)


_clipped_sigmoid = fused(clipped_sigmoid)


@fused
def _clipped_logit(y):
    finfo = dtypes.finfo(y.dtype)
    y = ops.clamp(y, finfo.tiny, 1 - finfo.eps)
    return ops.log(y) - ops.log1p(-y)


class SigmoidTransform(PlainTransform):
    """`y = 1 / (1 + exp(-x))`, from the real numbers to (0, 1).

    >>> jaxgrad.distributions.SigmoidTransform()(jaxgrad.tensor(0.0))
    tensor(0.5000)
    """

    domain, codomain = constraints.real, constraints.unit_interval
    bijective, sign = True, 1

    def _call(self, x):
        return _clipped_sigmoid(x)

    def _inverse(self, y):
        return _clipped_logit(y)

    def log_abs_det_jacobian(self, x, y):
        return _sigmoid_det(x)


@fused
def _sigmoid_det(x):
    return -softplus(-x) - softplus(x)


class SoftplusTransform(PlainTransform):
    """`y = log(1 + exp(x))`, from the real to the positive numbers.

    >>> jaxgrad.distributions.SoftplusTransform()(jaxgrad.tensor(0.0))
    tensor(0.6931)
    """

    domain, codomain = constraints.real, constraints.positive
    bijective, sign = True, 1

    def _call(self, x):
        return softplus(x)

    def _inverse(self, y):
        return _softplus_inverse(y)

    def log_abs_det_jacobian(self, x, y):
        return -softplus(-x)


@fused
def _softplus_inverse(y):
    return y + ops.log(-ops.expm1(-y))


class TanhTransform(PlainTransform):
    """`y = tanh(x)`, from the real numbers to (-1, 1). `atanh` of a y near -1 or 1 is not precise:
    use `cache_size=1`.

    >>> jaxgrad.distributions.TanhTransform()(jaxgrad.tensor(0.0))
    tensor(0.)
    """

    domain, codomain = constraints.real, constraints.interval(-1.0, 1.0)
    bijective, sign = True, 1

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x, y):
        return _tanh_det(x)


@fused
def _tanh_det(x):
    return 2 * (math.log(2) - x - softplus(-2 * x))


class AbsTransform(PlainTransform):
    """`y = abs(x)`, which is not bijective; its inverse is `x = y`.

    >>> jaxgrad.distributions.AbsTransform()(jaxgrad.tensor(-2.0))
    tensor(2.)
    """

    domain, codomain = constraints.real, constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class AffineTransform(Transform):
    """`y = loc + scale * x`.

    loc, scale: tensors or numbers; they broadcast with x. event_dim: how many of the last
    dimensions belong together.

    >>> jaxgrad.distributions.AffineTransform(1.0, 2.0)(jaxgrad.tensor(3.0))
    tensor(7.)
    """

    bijective = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, event_dim: int = 0, cache_size: int = 0
    ):
        super().__init__(cache_size)
        self.loc, self.scale, self._event_dim = loc, scale, event_dim

    @property
    def event_dim(self):
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return with_event_dim(constraints.real, self._event_dim)

    codomain = domain

    def __eq__(self, other):
        is_affine = isinstance(other, AffineTransform)
        return is_affine and _is_same(self.loc, other.loc) and _is_same(self.scale, other.scale)

    @property
    def sign(self):
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        if isinstance(self.scale, Tensor):
            log_scale = self.scale.abs().log().expand(x.shape)
        else:
            log_scale = full_like(x, math.log(abs(self.scale)))
        return _sum_rightmost(log_scale, self._event_dim)

    def forward_shape(self, shape):
        return broadcast_shapes(shape, *(getattr(p, "shape", ()) for p in (self.loc, self.scale)))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """`y = distribution.cdf(x)`, to (0, 1).

    distribution: one with `cdf`, `icdf` and `log_prob`.

    >>> from jaxgrad.distributions import CumulativeDistributionTransform, Exponential
    >>> CumulativeDistributionTransform(Exponential(1.0))(jaxgrad.tensor(1.0))
    tensor(0.6321)
    """

    codomain = constraints.unit_interval
    bijective, sign = True, 1

    def __init__(self, distribution, cache_size: int = 0):
        super().__init__(cache_size)
        self.distribution = distribution

    @property
    def domain(self):
        return self.distribution.support

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x, y):
        return self.distribution.log_prob(x)
