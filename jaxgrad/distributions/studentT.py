"""Student's t-distribution."""

from __future__ import annotations

import math

from .. import ops
from ..functions.random import _standard_gamma
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused, where_defined
from ._special import half_step, half_step_slope
from .distribution import Distribution
from .utils import _options_of, _standard_normal, broadcast_all


def _log_scale(df, scale):
    """The logarithm of the factor that normalizes the density."""
    return ops.log(scale) + (ops.log(df) + math.log(math.pi)) / 2 - half_step(df / 2)


@fused
def student_log_prob(value, df, loc, scale):
    power = (df + 1) / 2 * ops.log1p(ops.square((value - loc) / scale) / df)
    return -power - _log_scale(df, scale)


@fused
def student_entropy(df, scale):
    return (df + 1) / 2 * half_step_slope(df / 2) + _log_scale(df, scale)


@fused
def _variance(df, scale):
    def variance(df):
        return ops.square(scale) * df / (df - 2)

    variances = where_defined(df > 2, variance, df, 3, math.inf)
    return ops.masked_fill(variances, df <= 1, math.nan)


@fused
def _student_sample(noise, gamma, df, loc, scale):
    return loc + scale * noise * ops.rsqrt(gamma / (df / 2))


class StudentT(Distribution):
    """Student's t-distribution, with a density in proportion to `(1 + ((x - loc) / scale) ** 2 /
    df) ** (-(df + 1) / 2)`.

    df: the degrees of freedom, positive. loc: the median. scale: positive. They are tensors or
    numbers, which broadcast to batch_shape. There is a mean for df > 1 and a finite variance for
    df > 2.

    >>> jaxgrad.distributions.StudentT(jaxgrad.tensor([1.0, 2.0, 3.0])).variance
    tensor([nan, inf, 3.])
    """

    arg_constraints = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc.masked_fill(self.df <= 1, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    variance = bound(_variance)

    def rsample(self, sample_shape=()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        noise = _standard_normal(shape, **_options_of(self.df))
        gamma = _standard_gamma((self.df / 2).expand(shape))
        return _student_sample(noise, gamma, self.df, self.loc, self.scale)

    log_prob = bound(student_log_prob)
    entropy = bound(student_entropy)


__getattr__ = missing_in(__name__)
