"""The Kumaraswamy distribution."""

from __future__ import annotations

import math

from .. import ops
from ..frontend.factories import ones_like, zeros_like
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import fused, xlogy
from ._special import log_beta
from .exponential import exponential_quantile, minus_log_uniform
from .transformed_distribution import DirectDistribution
from .transforms import AffineTransform, PowerTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant


def _tail(value, a):
    """`1 - value ** a`, precise for a value near 1."""
    return -ops.expm1(a * ops.log(value))


@fused
def kumaraswamy_log_prob(value, a, b):
    # the value 0, which has no logarithm, has the tail 1
    tail = ops.where(value > 0, _tail(ops.where(value > 0, value, 1), a), 1 - ops.pow(value, a))
    return ops.log(a * b) + xlogy(a - 1, value) + xlogy(b - 1, tail)


@fused
def kumaraswamy_cdf(value, a, b):
    power = ops.pow(value, a)
    is_low = power < 0.5
    low, high = ops.where(is_low, power, 0), ops.where(is_low, 0.5, value)
    return ops.where(is_low, -ops.expm1(b * ops.log1p(-low)), 1 - ops.pow(_tail(high, a), b))


@fused
def _kumaraswamy_sample(exponential, a, b):
    return ops.pow(-ops.expm1(-exponential / b), 1 / a)


def _log_moment(a, b, order):
    return ops.log(b) + log_beta(1 + order / a, b)


@fused
def _mean(a, b):
    return ops.exp(_log_moment(a, b, 1))


@fused
def _variance(a, b):
    one, two = _log_moment(a, b, 1), _log_moment(a, b, 2)
    return ops.exp(2 * one) * ops.expm1(two - 2 * one)


@fused
def _mode(a, b):
    is_unique = (a >= 1) & (b >= 1) & (a * b > 1)
    safe_a, safe_b = ops.where(is_unique, a, 2), ops.where(is_unique, b, 2)
    mode = ops.pow((safe_a - 1) / (safe_a * safe_b - 1), 1 / safe_a)
    return ops.masked_fill(mode, ~is_unique, math.nan)


@fused
def _entropy(a, b):
    harmonic = ops.digamma(b + 1) + euler_constant
    return (1 - 1 / b) + (1 - 1 / a) * harmonic - ops.log(a * b)


class Kumaraswamy(DirectDistribution):
    """The Kumaraswamy distribution, with the distribution function `1 - (1 - x ** a) ** b` for x
    from 0 to 1, where a is `concentration1` and b `concentration0`.

    concentration1, concentration0: positive, tensors or numbers, which broadcast to batch_shape.
    Source: Kumaraswamy, "A generalized probability density function for double-bounded random
    processes", 1980.

    >>> jaxgrad.distributions.Kumaraswamy(2.0, 2.0).cdf(jaxgrad.tensor(0.5))
    tensor(0.4375)
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval

    def __init__(
        self,
        concentration1: Tensor | float,
        concentration0: Tensor | float,
        validate_args: bool | None = None,
    ):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args)

    @property
    def base_dist(self) -> Uniform:
        """The uniform distribution that the transforms start from."""
        zeros, ones = zeros_like(self.concentration0), ones_like(self.concentration0)
        return Uniform(zeros, ones, validate_args=False)

    @property
    def transforms(self) -> list:
        """The transforms that lead from `base_dist` to this distribution."""
        powers = [self.concentration0.reciprocal(), self.concentration1.reciprocal()]
        first, last = map(PowerTransform, powers)
        return [first, AffineTransform(1.0, -1.0), last]

    @property
    def mean(self) -> Tensor:
        return _mean(self.concentration1, self.concentration0)

    @property
    def mode(self) -> Tensor:
        return _mode(self.concentration1, self.concentration0)

    @property
    def variance(self) -> Tensor:
        return _variance(self.concentration1, self.concentration0)

    def rsample(self, sample_shape=()) -> Tensor:
        noise = minus_log_uniform(self._extended_shape(sample_shape), self.concentration1)
        return _kumaraswamy_sample(noise, self.concentration1, self.concentration0)

    def log_prob(self, value) -> Tensor:
        value = self._checked(value)
        return kumaraswamy_log_prob(value, self.concentration1, self.concentration0)

    def cdf(self, value) -> Tensor:
        return kumaraswamy_cdf(self._checked(value), self.concentration1, self.concentration0)

    def icdf(self, value) -> Tensor:
        exponential = exponential_quantile(value, self.concentration1)
        return _kumaraswamy_sample(exponential, self.concentration1, self.concentration0)

    def entropy(self) -> Tensor:
        return _entropy(self.concentration1, self.concentration0)


__getattr__ = missing_in(__name__)
