"""The beta distribution."""

from __future__ import annotations

from .. import ops
from ..functions.random import _sample_dirichlet
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused, xlog1py, xlogy
from ._special import LARGE, large_binomial, log_beta
from .dirichlet import Dirichlet, dirichlet_mode
from .exp_family import ExponentialFamily
from .utils import broadcast_all


@fused
def beta_log_prob(value, concentration1, concentration0):
    a, b = concentration1 - 1, concentration0 - 1
    small = xlogy(a, value) + xlog1py(b, -value) - log_beta(concentration1, concentration0)
    are_large = (a >= LARGE) & (b >= LARGE) & (value > 0) & (value < 1)
    some, total = ops.where(are_large, value, 0.5), ops.where(are_large, a + b + 1, 1)
    large = ops.log(total) + large_binomial(a, a + b, ops.log(some), ops.log1p(-some))
    return ops.where(are_large, large, small)


@fused
def beta_variance(concentration1, concentration0):
    total = concentration1 + concentration0
    return concentration1 / total * (concentration0 / total) / (total + 1)


@fused
def beta_entropy(concentration1, concentration0):
    total = concentration1 + concentration0
    centers = [
        (concentration - 1) * ops.digamma(concentration)
        for concentration in (concentration1, concentration0)
    ]
    rest = log_beta(concentration1, concentration0) + (total - 2) * ops.digamma(total)
    return rest - sum(centers)


class Beta(ExponentialFamily):
    """The beta distribution, with a density in proportion to `x ** (concentration1 - 1) * (1 - x)
    ** (concentration0 - 1)` for x from 0 to 1.

    concentration1, concentration0: positive, tensors or numbers, which broadcast to batch_shape.

    >>> jaxgrad.distributions.Beta(2.0, 1.0).log_prob(jaxgrad.tensor([0.5, 1.0]))
    tensor([0.0000, 0.6931])
    """

    arg_constraints = {
        "concentration1": constraints.positive,
        "concentration0": constraints.positive,
    }
    support = constraints.unit_interval
    has_rsample = True

    def __init__(
        self,
        concentration1: Tensor | float,
        concentration0: Tensor | float,
        validate_args: bool | None = None,
    ):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        super().__init__(self.concentration1.shape, validate_args=validate_args)

    def _both(self):
        return ops.stack([self.concentration1, self.concentration0], -1)

    @property
    def _dirichlet(self) -> Dirichlet:
        """The distribution of (x, 1 - x), made anew at each read: packages write to PyTorch's."""
        return Dirichlet(self._both(), validate_args=False)

    @property
    def mean(self) -> Tensor:
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self) -> Tensor:
        return dirichlet_mode(self._both())[..., 0]

    variance = bound(beta_variance)

    def rsample(self, sample_shape=()) -> Tensor:
        shape = self._extended_shape(sample_shape) + (2,)
        return _sample_dirichlet(self._both().expand(shape))[..., 0]

    log_prob = bound(beta_log_prob)
    entropy = bound(beta_entropy)

    @property
    def _natural_params(self):
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x, y):
        return log_beta(x, y)


__getattr__ = missing_in(__name__)
