"""The logistic-normal distribution."""

from __future__ import annotations

from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from .normal import Normal
from .transformed_distribution import TransformedDistribution
from .transforms import StickBreakingTransform


class LogisticNormal(TransformedDistribution):
    """The distribution of k + 1 probabilities that `StickBreakingTransform` makes of k numbers from
    normal distributions.

    loc: their means. scale: their standard deviations, positive. Both are tensors or numbers, which
    broadcast to batch_shape + (k,).

    >>> jaxgrad.distributions.LogisticNormal(jaxgrad.zeros(2), jaxgrad.ones(2)).sample().shape
    torch.Size([3])
    """

    arg_constraints = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True

    def __init__(
        self, loc: Tensor | float, scale: Tensor | float, validate_args: bool | None = None
    ):
        base = Normal(loc, scale, validate_args=validate_args)
        base = base if base.batch_shape else base.expand((1,))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Tensor:
        """The means of the normal distributions."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Tensor:
        """The standard deviations of the normal distributions."""
        return self.base_dist.base_dist.scale


__getattr__ = missing_in(__name__)
