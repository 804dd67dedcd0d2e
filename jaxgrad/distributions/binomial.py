"""The binomial distribution."""

from __future__ import annotations

import math

from .. import ops
from ..autograd.grad_mode import no_grad
from ..frontend.factories import arange
from ..functions.random import binomial
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import fused, times_log
from ._probabilities import BINARY, ProbsOrLogits
from ._special import LARGE, large_binomial, log_beta
from .distribution import Distribution
from .utils import _options_of


def _log_prob(value, count, logits):
    log_p, log_q = ops.log_sigmoid(logits), ops.log_sigmoid(-logits)
    is_outside = (value < 0) | (value > count)
    value = ops.masked_fill(value, is_outside, 0)
    powers = times_log(value, log_p) + times_log(count - value, log_q)
    small = powers - ops.log1p(count) - log_beta(value + 1, count - value + 1)
    are_large = (value >= LARGE) & (count - value >= LARGE)
    logs = ops.where(are_large, large_binomial(value, count, log_p, log_q), small)
    return ops.masked_fill(logs, is_outside, -math.inf)


binomial_log_prob = fused(_log_prob)


@fused
def binomial_entropy(values, count, logits):
    is_possible = values <= count
    logs = _log_prob(ops.where(is_possible, values, count), count, logits)
    is_possible = is_possible & (logs > -math.inf)
    logs = ops.masked_fill(logs, ~is_possible, 0)
    return -ops.sum(ops.masked_fill(ops.exp(logs) * logs, ~is_possible, 0), 0)


@fused
def _mode(count, probs):
    return ops.minimum(ops.floor((count + 1) * probs), count)


class Binomial(ProbsOrLogits, Distribution):
    """The binomial distribution of the number of successes in `total_count` independent trials.

    total_count: the number of trials, a tensor or an int, not negative. probs: the probability of
    success in each. logits: its log-odds. Give one of the two, a tensor or a number; ValueError for
    both or none. They broadcast to batch_shape.

    >>> jaxgrad.distributions.Binomial(2, 0.5).log_prob(jaxgrad.tensor([0.0, 1.0])).exp()
    tensor([0.2500, 0.5000])
    """

    arg_constraints = {"total_count": constraints.nonnegative_integer, **BINARY}
    has_enumerate_support = True

    def __init__(
        self,
        total_count: Tensor | int = 1,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ):
        (self.total_count,) = self._take(probs, logits, total_count)
        # known under a trace too
        self._most = total_count if isinstance(total_count, int) else None
        super().__init__(self.param_shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        return _mode(self.total_count, self.probs)

    @property
    def variance(self) -> Tensor:
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value) -> Tensor:
        return binomial_log_prob(self._checked(value), self.total_count, self.logits)

    def _values(self):
        """0 to the largest count. Raises RuntimeError for a traced count."""
        most = int(self.total_count.max().item()) if self._most is None else self._most
        return arange(most + 1, **_options_of(self._param))

    def entropy(self) -> Tensor:
        values = self._enumerated(self._values(), False)
        return binomial_entropy(values, self.total_count, self.logits)

    def enumerate_support(self, expand=True) -> Tensor:
        values = self._values()
        if self._most is None and int(self.total_count.min().item()) != len(values) - 1:
            raise NotImplementedError(
                "Inhomogeneous total count not supported by `enumerate_support`."
            )
        return self._enumerated(values, expand)


__getattr__ = missing_in(__name__)
