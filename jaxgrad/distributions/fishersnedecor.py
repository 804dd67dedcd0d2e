"""Fisher's F-distribution."""

from __future__ import annotations

import math

from .. import ops
from ..core import dtypes
from ..functions.random import _standard_gamma
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused, where_defined, xlogy
from ._special import log_beta
from .distribution import Distribution
from .utils import broadcast_all


@fused
def fisher_log_prob(value, df1, df2):
    a, b, ratio = df1 / 2, df2 / 2, df1 / df2
    powers = a * ops.log(ratio) + xlogy(a - 1, value) - (a + b) * ops.log1p(ratio * value)
    return powers - log_beta(a, b)


@fused
def _mean(df2):
    return where_defined(df2 > 2, lambda df2: df2 / (df2 - 2), df2, 3, math.nan)


@fused
def _mode(df1, df2):
    mode = (df1 - 2) / df1 * (df2 / (df2 + 2))
    return ops.masked_fill(mode, df1 <= 2, math.nan)


@fused
def _variance(df1, df2):
    def variance(df2):
        return 2 * ops.square(df2 / (df2 - 2)) * (df1 + df2 - 2) / (df1 * (df2 - 4))

    return where_defined(df2 > 4, variance, df2, 5, math.nan)


@fused
def _fisher_sample(gamma1, gamma2, df1, df2):
    tiny = dtypes.finfo(gamma1.dtype).tiny
    mean2 = ops.clamp(gamma2 / df2, tiny)
    return ops.clamp(gamma1 / df1 / mean2, tiny)


class FisherSnedecor(Distribution):
    """The F-distribution of Fisher and Snedecor: that of the ratio of two variables from
    chi-squared distributions, each divided by its degrees of freedom.

    df1, df2: the degrees of freedom, positive, tensors or numbers, which broadcast to batch_shape.
    There is a mean for df2 > 2, a mode for df1 > 2 and a variance for df2 > 4.

    >>> jaxgrad.distributions.FisherSnedecor(1.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None):
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    mean = bound(_mean)
    mode = bound(_mode)
    variance = bound(_variance)

    def rsample(self, sample_shape=()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        gammas = [_standard_gamma((df / 2).expand(shape)) for df in (self.df1, self.df2)]
        return _fisher_sample(*gammas, self.df1, self.df2)

    log_prob = bound(fisher_log_prob)


__getattr__ = missing_in(__name__)
