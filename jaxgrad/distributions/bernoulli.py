"""The Bernoulli distribution."""

from __future__ import annotations

import math

from .. import ops
from ..autograd.grad_mode import no_grad
from ..frontend.factories import arange
from ..functions.random import bernoulli
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused, times_log
from ._probabilities import BINARY, ProbsOrLogits
from .exp_family import ExponentialFamily
from .utils import _options_of


def _log_prob(value, logits):
    succeeded = times_log(value, ops.log_sigmoid(logits))
    return succeeded + times_log(1 - value, ops.log_sigmoid(-logits))


bernoulli_log_prob = fused(_log_prob)


@fused
def bernoulli_entropy(logits, probs):
    return -_log_prob(probs, logits)


@fused
def _mode(probs):
    return ops.masked_fill((probs >= 0.5).to(probs.dtype), probs == 0.5, math.nan)


class Bernoulli(ProbsOrLogits, ExponentialFamily):
    """The Bernoulli distribution: 1 with probability `probs`, else 0.

    probs: the probability of a 1. logits: its log-odds. Give one of the two, a tensor of shape
    batch_shape or a number; ValueError for both or none. Probabilities are kept away from 0 and 1
    by the precision of their dtype where their logarithm is taken.

    >>> bernoulli = jaxgrad.distributions.Bernoulli(jaxgrad.tensor([0.5, 0.1]))
    >>> bernoulli.log_prob(jaxgrad.tensor([0.0, 1.0]))
    tensor([-0.6931, -2.3026])
    """

    arg_constraints = BINARY
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ):
        self._take(probs, logits)
        super().__init__(self.param_shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.probs

    mode = bound(_mode)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()) -> Tensor:
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value) -> Tensor:
        return bernoulli_log_prob(self._checked(value), self.logits)

    entropy = bound(bernoulli_entropy)

    def enumerate_support(self, expand=True) -> Tensor:
        return self._enumerated(arange(2, **_options_of(self._param)), expand)

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        return -ops.log_sigmoid(-x)


__getattr__ = missing_in(__name__)
