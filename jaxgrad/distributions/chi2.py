"""The chi-squared distribution."""

from __future__ import annotations

from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from .gamma import Gamma


class Chi2(Gamma):
    """The chi-squared distribution, the gamma distribution of concentration `df / 2` and rate 1/2.

    df: the degrees of freedom, positive, a tensor of shape batch_shape or a number.

    >>> jaxgrad.distributions.Chi2(2.0).log_prob(jaxgrad.tensor(1.0))
    tensor(-1.1931)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2


__getattr__ = missing_in(__name__)
