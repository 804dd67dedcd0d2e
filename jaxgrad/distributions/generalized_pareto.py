"""The generalized Pareto distribution."""

from __future__ import annotations

import math

from .. import ops
from ..frontend.random import rand
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused, where_defined
from ._special import expm1_quotient, log1p_quotient
from .distribution import Distribution
from .exponential import exponential_quantile
from .utils import _options_of, broadcast_all


def _log_survival(value, loc, scale, concentration):
    """`-log1p(concentration * z) / concentration`, and -z for a concentration of 0."""
    z = (value - loc) / scale
    is_above = _is_above(value, loc, scale, concentration)
    survival = -z * log1p_quotient(ops.masked_fill(concentration * z, is_above, 0))
    return ops.masked_fill(survival, is_above, -math.inf)


def _is_above(value, loc, scale, concentration):
    """Whether a value is above the support, which has an end for a negative concentration."""
    return concentration * (value - loc) / scale < -1


generalized_pareto_log_survival = fused(_log_survival)


@fused
def generalized_pareto_log_prob(value, loc, scale, concentration):
    survival = _log_survival(value, loc, scale, concentration)
    # at the upper end of a distribution of concentration -1 the density does not depend on it
    power = ops.masked_fill(survival, (concentration == -1) & ops.isinf(survival), 0)
    logs = (1 + concentration) * power - ops.log(scale)
    return ops.masked_fill(logs, _is_above(value, loc, scale, concentration), -math.inf)


@fused
def generalized_pareto_log_cdf(value, loc, scale, concentration):
    return ops.log(-ops.expm1(_log_survival(value, loc, scale, concentration)))


@fused
def generalized_pareto_cdf(value, loc, scale, concentration):
    return -ops.expm1(_log_survival(value, loc, scale, concentration))


@fused
def _generalized_pareto_sample(exponential, loc, scale, concentration):
    return loc + scale * exponential * expm1_quotient(concentration * exponential)


@fused
def _mean(loc, scale, concentration):
    return where_defined(
        concentration < 1, lambda c: loc + scale / (1 - c), concentration, 0.5, math.nan
    )


@fused
def _variance(scale, concentration):
    def variance(c):
        return ops.square(scale / (1 - c)) / (1 - 2 * c)

    return where_defined(concentration < 0.5, variance, concentration, 0.25, math.nan)


@fused
def _upper_end(loc, scale, concentration):
    return where_defined(concentration < 0, lambda c: loc - scale / c, concentration, -1, math.inf)


class GeneralizedPareto(Distribution):
    """The generalized Pareto distribution, with the survival function `(1 + concentration * z) **
    (-1 / concentration)` for `z = (x - loc) / scale`, which is `exp(-z)` for a concentration of 0.

    loc: the lower end. scale: positive. concentration: a real number; where it is negative, the
    upper end is `loc - scale / concentration`. They are tensors or numbers, which broadcast to
    batch_shape. There is a mean for a concentration below 1, a variance below 0.5.

    >>> generalized_pareto = jaxgrad.distributions.GeneralizedPareto(0.0, 1.0, 0.0)
    >>> generalized_pareto.cdf(jaxgrad.tensor(1.0))
    tensor(0.6321)
    """

    arg_constraints = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(
        self,
        loc: Tensor | float,
        scale: Tensor | float,
        concentration: Tensor | float,
        validate_args: bool | None = None,
    ):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def _parameters(self):
        return self.loc, self.scale, self.concentration

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.interval(self.loc, _upper_end(*self._parameters))

    mean = bound(_mean)
    variance = bound(_variance)
    log_prob = bound(generalized_pareto_log_prob)
    cdf = bound(generalized_pareto_cdf)

    @property
    def mode(self) -> Tensor:
        return self.loc

    def rsample(self, sample_shape=()) -> Tensor:
        unit = rand(self._extended_shape(sample_shape), **_options_of(self.loc))
        return self.icdf(unit)

    def log_survival_function(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability of a greater value.

        value: broadcasts with batch_shape.

        >>> generalized_pareto = jaxgrad.distributions.GeneralizedPareto(0.0, 1.0, 0.0)
        >>> generalized_pareto.log_survival_function(jaxgrad.tensor(2.0))
        tensor(-2.)
        """
        return generalized_pareto_log_survival(self._checked(value), *self._parameters)

    def log_cdf(self, value: Tensor) -> Tensor:
        """Return the logarithm of `cdf`.

        value: broadcasts with batch_shape.

        >>> generalized_pareto = jaxgrad.distributions.GeneralizedPareto(0.0, 1.0, 0.0)
        >>> generalized_pareto.log_cdf(jaxgrad.tensor(2.0))
        tensor(-0.1454)
        """
        return generalized_pareto_log_cdf(self._checked(value), *self._parameters)

    def icdf(self, value) -> Tensor:
        return _generalized_pareto_sample(
            exponential_quantile(value, self.scale), *self._parameters
        )

    def entropy(self) -> Tensor:
        return self.scale.log() + self.concentration + 1


__getattr__ = missing_in(__name__)
