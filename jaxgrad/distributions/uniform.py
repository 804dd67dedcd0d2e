"""The uniform distribution."""

from __future__ import annotations

import math

from .. import ops
from ..frontend.random import rand
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused
from .distribution import Distribution
from .utils import _options_of, broadcast_all


@fused
def uniform_log_prob(value, low, high):
    is_inside = (low <= value) & (value < high)
    inside = -ops.log(high - low)
    return ops.where(is_inside, inside, inside - math.inf)


@fused
def uniform_cdf(value, low, high):
    return ops.clamp((value - low) / (high - low), 0, 1)


class Uniform(Distribution):
    """The uniform distribution, with the density `1 / (high - low)` on [low, high).

    low, high: the ends, tensors or numbers, which broadcast to batch_shape. `high` itself is in the
    support, where the density is 0.

    >>> jaxgrad.distributions.Uniform(0.0, 2.0).log_prob(jaxgrad.tensor([0.5, 2.0]))
    tensor([-0.6931,    -inf])
    """

    has_rsample = True

    def __init__(
        self, low: Tensor | float, high: Tensor | float, validate_args: bool | None = None
    ):
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self):
        return {
            "low": constraints.less_than(self.high),
            "high": constraints.greater_than(self.low),
        }

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        return math.nan * self.high

    @property
    def stddev(self) -> Tensor:
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self) -> Tensor:
        return (self.high - self.low).square() / 12

    def rsample(self, sample_shape=()) -> Tensor:
        unit = rand(self._extended_shape(sample_shape), **_options_of(self.low))
        return self.low + unit * (self.high - self.low)

    log_prob = bound(uniform_log_prob)
    cdf = bound(uniform_cdf)

    def icdf(self, value) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        return (self.high - self.low).log()


__getattr__ = missing_in(__name__)
