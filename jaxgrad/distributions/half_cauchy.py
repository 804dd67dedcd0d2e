"""The half-Cauchy distribution."""

from __future__ import annotations

import math

from .. import ops
from ..frontend.factories import full_like, zeros_like
from ..frontend.tensor_data import as_tensor
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused
from .cauchy import Cauchy
from .transformed_distribution import TransformedDistribution
from .transforms import AbsTransform
from .utils import _options_of


@fused
def half_cauchy_log_prob(value, scale):
    log_prob = math.log(2 / math.pi) - ops.log(scale) - ops.log1p(ops.square(value / scale))
    return ops.masked_fill(log_prob, value < 0, -math.inf)


@fused
def half_cauchy_cdf(value, scale):
    return ops.atan2(value, scale) * (2 / math.pi)


@fused
def half_cauchy_icdf(probability, scale):
    lower = ops.tan(math.pi / 2 * probability)
    return scale * ops.where(probability < 0.5, lower, 1 / ops.tan(math.pi / 2 * (1 - probability)))


class HalfCauchy(TransformedDistribution):
    """The distribution of `abs(x)` for x from a Cauchy distribution of median 0: the density is
    twice its density for x >= 0. The mean is infinite.

    scale: that of the Cauchy distribution, positive, a tensor of shape batch_shape or a number.

    >>> jaxgrad.distributions.HalfCauchy(1.0).cdf(jaxgrad.tensor(1.0))
    tensor(0.5000)
    """

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True

    def __init__(self, scale: Tensor | float, validate_args: bool | None = None):
        base = Cauchy(0, scale, validate_args=False)
        super().__init__(base, AbsTransform(), validate_args=validate_args)

    @property
    def scale(self) -> Tensor:
        """The scale of the Cauchy distribution."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return full_like(self.scale, math.inf)

    @property
    def mode(self) -> Tensor:
        return zeros_like(self.scale)

    @property
    def variance(self) -> Tensor:
        return self.base_dist.variance

    def log_prob(self, value) -> Tensor:
        value = as_tensor(self._checked(value), **_options_of(self.scale))
        return half_cauchy_log_prob(value, self.scale)

    cdf = bound(half_cauchy_cdf)
    icdf = bound(half_cauchy_icdf)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() - math.log(2)


__getattr__ = missing_in(__name__)
