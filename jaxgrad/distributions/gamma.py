"""The gamma distribution."""

from __future__ import annotations

from .. import ops
from ..core import dtypes
from ..frontend.tensor_data import as_tensor
from ..functions.random import _standard_gamma
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused, xlogy
from ._special import LARGE, large_poisson
from .exp_family import ExponentialFamily
from .utils import _options_of, broadcast_all


@fused
def gamma_log_prob(value, concentration, rate):
    powers = xlogy(concentration, rate) + xlogy(concentration - 1, value)
    small = powers - rate * value - ops.lgamma(concentration)
    are_large = (concentration >= LARGE) & (value > 0)
    some = ops.where(are_large, value, 1)
    large = ops.log(concentration / some) + large_poisson(concentration, rate * some)
    return ops.where(are_large, large, small)


@fused
def gamma_cdf(value, concentration, rate):
    return ops.igamma(concentration, rate * value)


@fused
def gamma_entropy(concentration, rate):
    center = (1 - concentration) * ops.digamma(concentration)
    return concentration - ops.log(rate) + ops.lgamma(concentration) + center


@fused
def _gamma_sample(standard, rate):
    sample = standard / rate
    # positive, by a bound that leaves the gradient as it is
    known = sample.detach()
    return sample + (ops.clamp(known, dtypes.finfo(known.dtype).tiny) - known)


class Gamma(ExponentialFamily):
    """The gamma distribution, with the density `rate ** c * x ** (c - 1) * exp(-rate * x) /
    gamma(c)` for x >= 0, where c is `concentration`.

    concentration: the shape. rate: the inverse of the scale. Both are positive, tensors or numbers,
    which broadcast to batch_shape.

    >>> jaxgrad.distributions.Gamma(2.0, 1.0).log_prob(jaxgrad.tensor([1.0, 2.0]))
    tensor([-1.0000, -1.3069])
    """

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        concentration: Tensor | float,
        rate: Tensor | float,
        validate_args: bool | None = None,
    ):
        self.concentration, self.rate = broadcast_all(concentration, rate)
        super().__init__(self.concentration.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.rate

    @property
    def mode(self) -> Tensor:
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self) -> Tensor:
        return self.concentration / self.rate.square()

    def rsample(self, sample_shape=()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return _gamma_sample(_standard_gamma(self.concentration.expand(shape)), self.rate)

    def log_prob(self, value) -> Tensor:
        value = self._checked(as_tensor(value, **_options_of(self.rate)))
        return gamma_log_prob(value, self.concentration, self.rate)

    cdf = bound(gamma_cdf)
    entropy = bound(gamma_entropy)

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return ops.lgamma(x + 1) - (x + 1) * ops.log(-y)


__getattr__ = missing_in(__name__)
