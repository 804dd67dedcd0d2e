"""The Dirichlet distribution."""

from __future__ import annotations

from .. import ops
from ..functions.random import _sample_dirichlet
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused, xlogy
from .exp_family import ExponentialFamily


@fused
def dirichlet_log_prob(value, concentration):
    powers = ops.sum(xlogy(concentration - 1, value), -1)
    return powers - dirichlet_log_normalizer(concentration)


def dirichlet_log_normalizer(concentration):
    """The logarithm of the integral of `(x ** (concentration - 1)).prod(-1)`."""
    return ops.sum(ops.lgamma(concentration), -1) - ops.lgamma(ops.sum(concentration, -1))


@fused
def dirichlet_mode(concentration):
    """That of a density without a bound is the first corner, as in PyTorch."""
    more = ops.clamp(concentration - 1, 0)
    is_unbounded = ops.all(concentration < 1, -1, keepdim=True)
    total = ops.where(is_unbounded, 1, ops.sum(more, -1, keepdim=True))
    corner = ops.constant_pad_nd(ops.sum(0 * more, -1, keepdim=True) + 1, (0, more.shape[-1] - 1))
    return ops.where(is_unbounded, corner, more / total)


@fused
def dirichlet_variance(concentration):
    total = ops.sum(concentration, -1, keepdim=True)
    mean = concentration / total
    return mean * (1 - mean) / (total + 1)


@fused
def dirichlet_entropy(concentration):
    total = ops.sum(concentration, -1)
    centers = ops.sum((concentration - 1) * ops.digamma(concentration), -1)
    more = (total - concentration.shape[-1]) * ops.digamma(total)
    return dirichlet_log_normalizer(concentration) + more - centers


class Dirichlet(ExponentialFamily):
    """The Dirichlet distribution of k probabilities, with a density in proportion to `(x **
    (concentration - 1)).prod(-1)`.

    concentration: positive, a tensor of shape batch_shape + (k,). Raises ValueError for one without
    dimensions.

    >>> jaxgrad.distributions.Dirichlet(jaxgrad.tensor([1.0, 1.0, 2.0])).mean
    tensor([0.2500, 0.2500, 0.5000])
    """

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration: Tensor, validate_args: bool | None = None):
        if concentration.ndim < 1:
            raise ValueError("`concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        shape = concentration.shape
        super().__init__(shape[:-1], shape[-1:], validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return self.concentration / self.concentration.sum(-1, keepdim=True)

    mode = bound(dirichlet_mode)
    variance = bound(dirichlet_variance)

    def rsample(self, sample_shape=()) -> Tensor:
        return _sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    log_prob = bound(dirichlet_log_prob)
    entropy = bound(dirichlet_entropy)

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return dirichlet_log_normalizer(x)


__getattr__ = missing_in(__name__)
