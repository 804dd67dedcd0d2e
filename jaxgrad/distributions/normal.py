"""The normal distribution."""

from __future__ import annotations

import math

from .. import ops
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import HALF_LOG_TAU, bound, fused
from .exp_family import ExponentialFamily
from .utils import _options_of, _standard_normal, broadcast_all


@fused
def normal_log_prob(value, loc, scale):
    z = (value - loc) / scale
    return -ops.square(z) / 2 - ops.log(scale) - HALF_LOG_TAU


@fused
def normal_cdf(value, loc, scale):
    return ops.erfc((loc - value) / (scale * math.sqrt(2))) / 2


@fused
def normal_icdf(probability, loc, scale):
    return loc + scale * ops.special_ndtri(probability)


class Normal(ExponentialFamily):
    """The normal distribution, with the density `exp(-((x - loc) / scale) ** 2 / 2) / (scale *
    sqrt(2 * pi))`.

    loc: the mean. scale: the standard deviation, positive. Both are tensors or numbers, which
    broadcast to batch_shape.

    >>> normal = jaxgrad.distributions.Normal(0.0, jaxgrad.tensor([1.0, 2.0]))
    >>> normal.log_prob(jaxgrad.tensor(0.0))
    tensor([-0.9189, -1.6121])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def stddev(self) -> Tensor:
        return self.scale

    @property
    def variance(self) -> Tensor:
        return self.scale.square()

    def rsample(self, sample_shape=()) -> Tensor:
        noise = _standard_normal(self._extended_shape(sample_shape), **_options_of(self.loc))
        return self.loc + noise * self.scale

    log_prob = bound(normal_log_prob)
    cdf = bound(normal_cdf)
    icdf = bound(normal_icdf)

    def entropy(self) -> Tensor:
        return self.scale.log() + (HALF_LOG_TAU + 0.5)

    @property
    def _natural_params(self):
        variance = self.scale.square()
        return self.loc / variance, -0.5 / variance

    def _log_normalizer(self, x, y):
        return -0.25 * x.square() / y + 0.5 * ops.log(-math.pi / y)


__getattr__ = missing_in(__name__)
