"""The half-normal distribution."""

from __future__ import annotations

import math

from .. import ops
from ..frontend.factories import zeros_like
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import HALF_LOG_TAU, bound, fused
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform


@fused
def half_normal_log_prob(value, scale):
    log_prob = math.log(2) - HALF_LOG_TAU - ops.square(value / scale) / 2 - ops.log(scale)
    return ops.masked_fill(log_prob, value < 0, -math.inf)


@fused
def half_normal_cdf(value, scale):
    return ops.erf(value / (scale * math.sqrt(2)))


@fused
def half_normal_icdf(probability, scale):
    return scale * math.sqrt(2) * ops.erfinv(probability)


class HalfNormal(TransformedDistribution):
    """The distribution of `abs(x)` for x from a normal distribution of mean 0: the density is twice
    its density for x >= 0.

    scale: the standard deviation of the normal distribution, positive, a tensor of shape
    batch_shape or a number.

    >>> jaxgrad.distributions.HalfNormal(1.0).cdf(jaxgrad.tensor(1.0))
    tensor(0.6827)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None):
        base = Normal(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the normal distribution."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.scale.square() * (1 - 2 / math.pi)

    log_prob = bound(half_normal_log_prob)
    cdf = bound(half_normal_cdf)
    icdf = bound(half_normal_icdf)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


__getattr__ = missing_in(__name__)
