"""The Poisson distribution."""

from __future__ import annotations

from .. import ops
from ..autograd.grad_mode import no_grad
from ..functions.random import poisson
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused, xlogy
from ._special import LARGE, large_poisson
from .exp_family import ExponentialFamily
from .utils import broadcast_all


@fused
def poisson_log_prob(value, rate):
    small = xlogy(value, rate) - rate - ops.lgamma(value + 1)
    return ops.where((value >= LARGE) & (rate > 0), large_poisson(value, rate), small)


class Poisson(ExponentialFamily):
    """The Poisson distribution: `rate ** k * exp(-rate) / factorial(k)` for k = 0, 1, and so on.

    rate: the mean, not negative, a tensor of shape batch_shape or a number.

    >>> jaxgrad.distributions.Poisson(2.0).log_prob(jaxgrad.tensor([0.0, 1.0]))
    tensor([-2.0000, -1.3069])
    """

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate

    @property
    def mode(self) -> Tensor:
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        return self.rate

    def sample(self, sample_shape=()) -> Tensor:
        with no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    log_prob = bound(poisson_log_prob)

    @property
    def _natural_params(self):
        return (self.rate.log(),)

    def _log_normalizer(self, x):
        return ops.exp(x)


__getattr__ = missing_in(__name__)
