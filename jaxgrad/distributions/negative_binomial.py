"""The negative binomial distribution."""

from __future__ import annotations

import math

from .. import ops
from ..autograd.grad_mode import no_grad
from ..functions.random import _standard_gamma, poisson
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import fused, times_log
from ._probabilities import ProbsOrLogits
from ._special import LARGE, large_binomial, log_beta
from .distribution import Distribution


@fused
def negative_binomial_log_prob(value, count, logits):
    log_p, log_q = ops.log_sigmoid(logits), ops.log_sigmoid(-logits)
    is_outside = value < 0
    value = ops.masked_fill(value, is_outside, 0)
    powers = times_log(value, log_p) + times_log(count, log_q)
    # without failures to wait for there is no success
    some = ops.where(count > 0, count, 1)
    ways = -ops.log(some + value) - log_beta(some, value + 1)
    none = ops.where(value == 0, 0 * ways, 0 * ways - math.inf)
    small = powers + ops.where(count > 0, ways, none)
    # the last trial is a failure
    large = ops.log(some / (some + value)) + large_binomial(value, some + value, log_p, log_q)
    logs = ops.where((value >= LARGE) & (count >= LARGE), large, small)
    return ops.masked_fill(logs, is_outside, -math.inf)


class NegativeBinomial(ProbsOrLogits, Distribution):
    """The negative binomial distribution of the number of successes before `total_count` failures:
    `gamma(total_count + k) / (gamma(total_count) * factorial(k)) * (1 - probs) ** total_count *
    probs ** k` for k = 0, 1, and so on.

    total_count: the number of failures, not negative, a tensor or a number, not only an integer.
    probs: the probability of success in each trial, in [0, 1). logits: its log-odds. Give one of
    the two, a tensor or a number; ValueError for both or none. They broadcast to batch_shape.

    >>> negative_binomial = jaxgrad.distributions.NegativeBinomial(2.0, 0.5)
    >>> negative_binomial.log_prob(jaxgrad.tensor([0.0, 1.0])).exp()
    tensor([0.2500, 0.2500])
    """

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(
        self,
        total_count: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ):
        (self.total_count,) = self._take(probs, logits, total_count)
        super().__init__(self.param_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape=()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return poisson(_standard_gamma(self.total_count.expand(shape)) * self.logits.exp())

    def log_prob(self, value) -> Tensor:
        value = self._checked(value)
        return negative_binomial_log_prob(value, self.total_count, self.logits)


__getattr__ = missing_in(__name__)
