"""The Weibull distribution."""

from __future__ import annotations

from .. import ops
from ..frontend.factories import ones_like
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused, where_defined, xlogy
from .exponential import Exponential, exponential_quantile, standard_exponential
from .transformed_distribution import DirectDistribution
from .transforms import AffineTransform, PowerTransform
from .utils import broadcast_all, euler_constant


@fused
def weibull_log_prob(value, scale, concentration):
    z = value / scale
    return ops.log(concentration / scale) + xlogy(concentration - 1, z) - ops.pow(z, concentration)


@fused
def weibull_cdf(place, scale, concentration):
    return -ops.expm1(-ops.pow(place / scale, concentration))


@fused
def _weibull_sample(exponential, scale, concentration):
    return scale * ops.pow(exponential, 1 / concentration)


@fused
def _mean(scale, concentration):
    return scale * ops.exp(ops.lgamma(1 + 1 / concentration))


@fused
def _mode(scale, concentration):
    def mode(c):
        return scale * ops.pow((c - 1) / c, 1 / c)

    return where_defined(concentration > 1, mode, concentration, 2, 0.0)


@fused
def _variance(scale, concentration):
    one, two = ops.lgamma(1 + 1 / concentration), ops.lgamma(1 + 2 / concentration)
    return ops.square(scale * ops.exp(one)) * ops.expm1(two - 2 * one)


@fused
def _entropy(scale, concentration):
    return euler_constant * (1 - 1 / concentration) + ops.log(scale / concentration) + 1


class Weibull(DirectDistribution):
    """The Weibull distribution, with the distribution function `1 - exp(-(x / scale) **
    concentration)` for x > 0.

    scale, concentration: positive, tensors or numbers, which broadcast to batch_shape.

    >>> jaxgrad.distributions.Weibull(1.0, 2.0).cdf(jaxgrad.tensor(1.0))
    tensor(0.6321)
    """

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(
        self,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        super().__init__(self.scale.shape, validate_args)

    @property
    def concentration_reciprocal(self) -> Tensor:
        """`1 / concentration`."""
        return self.concentration.reciprocal()

    @property
    def base_dist(self) -> Exponential:
        """The exponential distribution that the transforms start from."""
        return Exponential(ones_like(self.scale), validate_args=False)

    @property
    def transforms(self) -> list:
        """The transforms that lead from `base_dist` to this distribution."""
        return [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]

    mean = bound(_mean)
    mode = bound(_mode)
    variance = bound(_variance)

    def rsample(self, sample_shape=()) -> Tensor:
        noise = standard_exponential(self._extended_shape(sample_shape), self.scale)
        return _weibull_sample(noise, self.scale, self.concentration)

    log_prob = bound(weibull_log_prob)
    cdf = bound(weibull_cdf)

    def icdf(self, value) -> Tensor:
        return _weibull_sample(
            exponential_quantile(value, self.scale), self.scale, self.concentration
        )

    entropy = bound(_entropy)


__getattr__ = missing_in(__name__)
