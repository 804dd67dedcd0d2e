"""The continuous Bernoulli distribution."""

from __future__ import annotations

from .. import ops
from ..frontend.random import rand
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused
from ._probabilities import BINARY, ProbsOrLogits
from ._special import expm1_quotient, langevin, langevin_slope, log1p_quotient, log_sinh_quotient
from .exp_family import ExponentialFamily
from .utils import _options_of, clamp_probs, lazy_property, logits_to_probs


def log_normalizer(logits):
    """`log((exp(logits) - 1) / logits)`."""
    return logits / 2 + log_sinh_quotient(logits / 2)


@fused
def continuous_bernoulli_log_prob(value, logits):
    return logits * value - log_normalizer(logits)


@fused
def continuous_bernoulli_mean(logits):
    return 0.5 + langevin(logits / 2) / 2


@fused
def continuous_bernoulli_variance(logits):
    return langevin_slope(logits / 2) / 4


@fused
def continuous_bernoulli_entropy(logits):
    return log_normalizer(logits) - logits * (0.5 + langevin(logits / 2) / 2)


@fused
def continuous_bernoulli_cdf(value, logits):
    """`(exp(logits * x) - 1) / (exp(logits) - 1)`."""
    x = ops.clamp(value, 0, 1)
    return x * ops.exp(log_normalizer(logits * x) - log_normalizer(logits))


@fused
def continuous_bernoulli_icdf(probability, logits):
    # that of negative logits, which do not overflow, reflected
    is_positive = logits > 0
    negative = ops.where(is_positive, -logits, logits)
    part = ops.where(is_positive, 1 - probability, probability)
    quantile = part * expm1_quotient(negative) * log1p_quotient(part * ops.expm1(negative))
    return ops.where(is_positive, 1 - quantile, quantile)


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """The continuous Bernoulli distribution, with a density in proportion to `probs ** x * (1 -
    probs) ** (1 - x)` for x from 0 to 1.

    probs: kept away from 0 and 1 by the precision of the dtype. logits: its log-odds. Give one of
    the two, a tensor of shape batch_shape or a number; ValueError for both or none. lims: no
    effect, since no region of the parameter needs an approximation. Source: Loaiza-Ganem and
    Cunningham, "The continuous Bernoulli: fixing a pervasive error in variational autoencoders",
    2019.

    >>> jaxgrad.distributions.ContinuousBernoulli(jaxgrad.tensor([0.5, 0.9])).mean
    tensor([0.5000, 0.6699])
    """

    arg_constraints = BINARY
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ):
        self._take(probs, logits)
        self._lims = lims
        super().__init__(self.param_shape, validate_args=validate_args)
        if probs is not None:
            self.probs = clamp_probs(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The parameter between 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _cont_bern_log_norm(self) -> Tensor:
        """The logarithm of the factor that normalizes `probs ** x * (1 - probs) ** (1 - x)`."""
        return -ops.log_sigmoid(-self.logits) - log_normalizer(self.logits)

    mean = bound(continuous_bernoulli_mean)
    variance = bound(continuous_bernoulli_variance)

    def rsample(self, sample_shape=()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(rand(shape, **_options_of(self._param)))

    log_prob = bound(continuous_bernoulli_log_prob)
    cdf = bound(continuous_bernoulli_cdf)
    icdf = bound(continuous_bernoulli_icdf)
    entropy = bound(continuous_bernoulli_entropy)

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        return log_normalizer(x)


__getattr__ = missing_in(__name__)
