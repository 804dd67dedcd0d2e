"""The exponential distribution."""

from __future__ import annotations

from .. import ops
from ..core import dtypes
from ..frontend.factories import empty, zeros_like
from ..frontend.tensor_data import as_tensor
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused
from .exp_family import ExponentialFamily
from .utils import _options_of, broadcast_all


def standard_exponential(shape, like: Tensor) -> Tensor:
    """Positive numbers from the exponential distribution of rate 1, in the dtype of `like`."""
    return empty(shape, **_options_of(like)).exponential_()


def exponential_quantile(probability, like: Tensor) -> Tensor:
    """The number below which a standard exponential sample lies with a probability."""
    if not isinstance(probability, Tensor):
        probability = as_tensor(probability, **_options_of(like))
    return -(-probability).log1p()


def minus_log_uniform(shape, like: Tensor, end: float = 1.0) -> Tensor:
    """`-log(u)` for uniform numbers u from the smallest normal number to `end`, which makes an
    exponential distribution of rate 1, as PyTorch's samplers draw it.
    """
    options = _options_of(like)
    unit = empty(shape, **options).uniform_(dtypes.finfo(options["dtype"]).tiny, end)
    return -unit.log()


@fused
def exponential_log_prob(value, rate):
    return ops.log(rate) - rate * value


@fused
def exponential_cdf(value, rate):
    return -ops.expm1(-rate * value)


@fused
def exponential_icdf(probability, rate):
    return -ops.log1p(-probability) / rate


class Exponential(ExponentialFamily):
    """The exponential distribution, with the density `rate * exp(-rate * x)` for x >= 0.

    rate: positive, a tensor of shape batch_shape or a number.

    >>> jaxgrad.distributions.Exponential(2.0).log_prob(jaxgrad.tensor([0.0, 1.0]))
    tensor([ 0.6931, -1.3069])
    """

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate: Tensor | float, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.rate)

    @property
    def stddev(self) -> Tensor:
        return self.rate.reciprocal()

    @property
    def variance(self) -> Tensor:
        return self.rate.pow(-2)

    def rsample(self, sample_shape=()) -> Tensor:
        return standard_exponential(self._extended_shape(sample_shape), self.rate) / self.rate

    log_prob = bound(exponential_log_prob)
    cdf = bound(exponential_cdf)
    icdf = bound(exponential_icdf)

    def entropy(self) -> Tensor:
        return 1 - self.rate.log()

    @property
    def _natural_params(self):
        return (-self.rate,)

    def _log_normalizer(self, x):
        return -ops.log(-x)


__getattr__ = missing_in(__name__)
