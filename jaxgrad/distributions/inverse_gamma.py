"""The inverse gamma distribution."""

from __future__ import annotations

import math

from .. import ops
from ..frontend.factories import full
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused, where_defined
from .gamma import Gamma
from .transformed_distribution import TransformedDistribution
from .transforms import PowerTransform
from .utils import _options_of


@fused
def _mean(concentration, rate):
    return where_defined(concentration > 1, lambda c: rate / (c - 1), concentration, 2, math.inf)


@fused
def _variance(concentration, rate):
    def variance(c):
        return ops.square(rate / (c - 1)) / (c - 2)

    return where_defined(concentration > 2, variance, concentration, 3, math.inf)


@fused
def inverse_gamma_cdf(place, concentration, rate):
    return ops.igammac(concentration, rate / place)


@fused
def inverse_gamma_entropy(concentration, rate):
    center = (1 + concentration) * ops.digamma(concentration)
    return concentration + ops.log(rate) + ops.lgamma(concentration) - center


class InverseGamma(TransformedDistribution):
    """The distribution of `1 / x` for x from a gamma distribution: the density is `rate ** c * x **
    (-c - 1) * exp(-rate / x) / gamma(c)` for x > 0, where c is `concentration`.

    concentration: the shape. rate: the scale. Both are positive, tensors or numbers, which
    broadcast to batch_shape. The mean is infinite for a concentration up to 1, the variance up
    to 2.

    >>> jaxgrad.distributions.InverseGamma(3.0, 1.0).mean
    tensor(0.5000)
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(
        self,
        concentration: Tensor | float,
        rate: Tensor | float,
        validate_args: bool | None = None,
    ):
        base = Gamma(concentration, rate, validate_args=validate_args)
        power = PowerTransform(full((), -1, **_options_of(base.rate)))
        super().__init__(base, power, validate_args=validate_args)

    @property
    def concentration(self) -> Tensor:
        """The shape."""
        return self.base_dist.concentration

    @property
    def rate(self) -> Tensor:
        """The scale."""
        return self.base_dist.rate

    mean = bound(_mean)

    @property
    def mode(self) -> Tensor:
        return self.rate / (self.concentration + 1)

    variance = bound(_variance)
    cdf = bound(inverse_gamma_cdf)
    entropy = bound(inverse_gamma_entropy)


__getattr__ = missing_in(__name__)
