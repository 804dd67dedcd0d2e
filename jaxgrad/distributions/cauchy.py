"""The Cauchy distribution."""

from __future__ import annotations

import math

from .. import ops
from ..frontend.factories import empty, full_like
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused
from .distribution import Distribution
from .utils import _options_of, broadcast_all


@fused
def cauchy_log_prob(value, loc, scale):
    return -ops.log1p(ops.square((value - loc) / scale)) - ops.log(scale) - math.log(math.pi)


@fused
def cauchy_cdf(value, loc, scale):
    # `atan(z) / pi + 1/2` has no digits of a small probability
    return ops.atan2(scale, loc - value) / math.pi


@fused
def cauchy_icdf(probability, loc, scale):
    lower = -1 / ops.tan(math.pi * probability)
    upper = 1 / ops.tan(math.pi * (1 - probability))
    return loc + scale * ops.where(probability < 0.5, lower, upper)


class Cauchy(Distribution):
    """The Cauchy distribution, with the density `1 / (pi * scale * (1 + ((x - loc) / scale) **
    2))`. It has no mean, and an infinite variance.

    loc: the median. scale: half of the width at half of the height, positive. Both are tensors or
    numbers, which broadcast to batch_shape.

    >>> jaxgrad.distributions.Cauchy(0.0, 1.0).cdf(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7500])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return full_like(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return full_like(self.loc, math.inf)

    def rsample(self, sample_shape=()) -> Tensor:
        noise = empty(self._extended_shape(sample_shape), **_options_of(self.loc)).cauchy_()
        return self.loc + noise * self.scale

    log_prob = bound(cauchy_log_prob)
    cdf = bound(cauchy_cdf)
    icdf = bound(cauchy_icdf)

    def entropy(self) -> Tensor:
        return self.scale.log() + math.log(4 * math.pi)


__getattr__ = missing_in(__name__)
