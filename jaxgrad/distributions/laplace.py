"""The Laplace distribution."""

from __future__ import annotations

import math

from .. import ops
from ..core import dtypes
from ..frontend.factories import empty
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused
from .distribution import Distribution
from .utils import _options_of, broadcast_all


@fused
def laplace_log_prob(value, loc, scale):
    return -ops.log(2 * scale) - ops.abs(value - loc) / scale


@fused
def laplace_cdf(value, loc, scale):
    z = (value - loc) / scale
    # each half by its own tail; at `loc` the slope is that of the right one
    return ops.where(z < 0, ops.exp(ops.clamp(z, max=0)) / 2, 1 - ops.exp(-ops.clamp(z, 0)) / 2)


@fused
def laplace_icdf(probability, loc, scale):
    lower, upper = ops.log(2 * probability), -ops.log(2 - 2 * probability)
    return loc + scale * ops.where(probability < 0.5, lower, upper)


@fused
def _laplace_sample(u, loc, scale):
    return loc - scale * ops.sign(u) * ops.log1p(-ops.abs(u))


class Laplace(Distribution):
    """The Laplace distribution, with the density `exp(-abs(x - loc) / scale) / (2 * scale)`.

    loc: the mean. scale: positive. Both are tensors or numbers, which broadcast to batch_shape.

    >>> jaxgrad.distributions.Laplace(0.0, 1.0).log_prob(jaxgrad.tensor([0.0, 2.0]))
    tensor([-0.6931, -2.6931])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        return 2 * self.scale.square()

    @property
    def stddev(self) -> Tensor:
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape=()) -> Tensor:
        options = _options_of(self.loc)
        least = dtypes.finfo(self.loc.dtype).eps - 1
        u = empty(self._extended_shape(sample_shape), **options).uniform_(least, 1)
        return _laplace_sample(u, self.loc, self.scale)

    log_prob = bound(laplace_log_prob)
    cdf = bound(laplace_cdf)
    icdf = bound(laplace_icdf)

    def entropy(self) -> Tensor:
        return 1 + (2 * self.scale).log()


__getattr__ = missing_in(__name__)
