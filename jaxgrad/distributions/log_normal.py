"""The log-normal distribution."""

from __future__ import annotations

from .. import ops
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import ExpTransform


@fused
def _variance(loc, scale):
    square = ops.square(scale)
    return ops.expm1(square) * ops.exp(2 * loc + square)


class LogNormal(TransformedDistribution):
    """The distribution of `exp(x)` for x from a normal distribution.

    loc: the mean of the normal distribution. scale: its standard deviation, positive. Both are
    tensors or numbers, which broadcast to batch_shape.

    >>> jaxgrad.distributions.LogNormal(0.0, 1.0).mean
    tensor(1.6487)
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ):
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The mean of the normal distribution."""
        return self.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviation of the normal distribution."""
        return self.base_dist.scale

    @property
    def mean(self) -> Tensor:
        return (self.loc + self.scale.square() / 2).exp()

    @property
    def mode(self) -> Tensor:
        return (self.loc - self.scale.square()).exp()

    variance = bound(_variance)

    def entropy(self) -> Tensor:
        return self.base_dist.entropy() + self.loc


__getattr__ = missing_in(__name__)
