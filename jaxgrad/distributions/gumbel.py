"""The Gumbel distribution."""

from __future__ import annotations

import math

from .. import ops
from ..core import dtypes
from ..frontend.factories import full_like, ones_like
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused
from .exponential import minus_log_uniform
from .transformed_distribution import DirectDistribution
from .transforms import AffineTransform, ExpTransform
from .uniform import Uniform
from .utils import broadcast_all, euler_constant


@fused
def gumbel_log_prob(value, loc, scale):
    z = (value - loc) / scale
    return -z - ops.exp(-z) - ops.log(scale)


@fused
def gumbel_cdf(value, loc, scale):
    return ops.exp(-ops.exp((loc - value) / scale))


@fused
def gumbel_icdf(probability, loc, scale):
    return loc - scale * ops.log(-ops.log(probability))


@fused
def _gumbel_sample(exponential, loc, scale):
    return loc - scale * ops.log(exponential)


class Gumbel(DirectDistribution):
    """The Gumbel distribution, with the distribution function `exp(-exp(-(x - loc) / scale))`.

    loc: the mode. scale: positive. Both are tensors or numbers, which broadcast to batch_shape.

    >>> jaxgrad.distributions.Gumbel(0.0, 1.0).cdf(jaxgrad.tensor(0.0))
    tensor(0.3679)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args)

    @property
    def base_dist(self) -> Uniform:
        """The uniform distribution that the transforms start from."""
        finfo = dtypes.finfo(self.loc.dtype)
        low, high = full_like(self.loc, finfo.tiny), full_like(self.loc, 1 - finfo.eps)
        return Uniform(low, high, validate_args=False)

    @property
    def transforms(self) -> list:
        """The transforms that lead from `base_dist` to this distribution."""
        minus_log = [ExpTransform().inv, AffineTransform(0, -ones_like(self.scale))]
        return [*minus_log, ExpTransform().inv, AffineTransform(self.loc, -self.scale)]

    @property
    def mean(self) -> Tensor:
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        return self.stddev.square()

    def rsample(self, sample_shape=()) -> Tensor:
        end = 1 - dtypes.finfo(self.loc.dtype).eps
        noise = minus_log_uniform(self._extended_shape(sample_shape), self.loc, end)
        return _gumbel_sample(noise, self.loc, self.scale)

    log_prob = bound(gumbel_log_prob)
    cdf = bound(gumbel_cdf)
    icdf = bound(gumbel_icdf)

    def entropy(self) -> Tensor:
        return self.scale.log() + (1 + euler_constant)


__getattr__ = missing_in(__name__)
