"""The Pareto distribution."""

from __future__ import annotations

import math

from .. import ops
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused, where_defined
from .exponential import Exponential, exponential_quantile, standard_exponential
from .transformed_distribution import DirectDistribution
from .transforms import AffineTransform, ExpTransform
from .utils import broadcast_all


@fused
def pareto_log_prob(value, scale, alpha):
    return ops.log(alpha / value) + alpha * ops.log(scale / value)


@fused
def pareto_cdf(value, scale, alpha):
    return -ops.expm1(-alpha * ops.log(ops.clamp(value / scale, 1)))


@fused
def _pareto_sample(exponential, scale, alpha):
    return scale * ops.exp(exponential / alpha)


@fused
def _mean(scale, alpha):
    return where_defined(alpha > 1, lambda a: scale * a / (a - 1), alpha, 2, math.inf)


@fused
def _variance(scale, alpha):
    def variance(a):
        return ops.square(scale / (a - 1)) * a / (a - 2)

    return where_defined(alpha > 2, variance, alpha, 3, math.inf)


class Pareto(DirectDistribution):
    """The Pareto distribution, with the density `alpha * scale ** alpha / x ** (alpha + 1)` for x
    >= scale.

    scale: the least value. alpha: the shape. Both are positive, tensors or numbers, which broadcast
    to batch_shape. The mean is infinite for an alpha up to 1, the variance up to 2.

    >>> jaxgrad.distributions.Pareto(1.0, 3.0).mean
    tensor(1.5000)
    """

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}

    def __init__(
        self, scale: Tensor | float, alpha: Tensor | float, validate_args: bool | None = None
    ):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        super().__init__(self.scale.shape, validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.greater_than_eq(self.scale)

    @property
    def base_dist(self) -> Exponential:
        """The exponential distribution that the transforms start from."""
        return Exponential(self.alpha, validate_args=False)

    @property
    def transforms(self) -> list:
        """The transforms that lead from `base_dist` to this distribution."""
        return [ExpTransform(), AffineTransform(0, self.scale)]

    mean = bound(_mean)

    @property
    def mode(self) -> Tensor:
        return self.scale

    variance = bound(_variance)

    def rsample(self, sample_shape=()) -> Tensor:
        noise = standard_exponential(self._extended_shape(sample_shape), self.scale)
        return _pareto_sample(noise, self.scale, self.alpha)

    log_prob = bound(pareto_log_prob)
    cdf = bound(pareto_cdf)

    def icdf(self, value) -> Tensor:
        return _pareto_sample(exponential_quantile(value, self.scale), self.scale, self.alpha)

    def entropy(self) -> Tensor:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())


__getattr__ = missing_in(__name__)
