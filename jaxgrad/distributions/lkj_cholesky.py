"""The distribution of Lewandowski, Kurowicka and Joe of correlation matrices, by their factors."""

from __future__ import annotations

import math
import operator

from .. import ops
from ..autograd.grad_mode import no_grad
from ..core import dtypes
from ..frontend.factories import arange
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import bound, fused
from .beta import Beta
from .distribution import Distribution
from .utils import _options_of, _standard_normal, broadcast_all


@fused
def lkj_log_prob(value, concentration):
    n = value.shape[-1]
    diagonal = ops.diagonal(value, 0, -2, -1)[..., 1:]
    powers = n - arange(2, n + 1, **_options_of(value)) + 2 * (concentration.unsqueeze(-1) - 1)
    alpha = concentration + (n - 1) / 2
    normalizer = ops.mvlgamma(alpha - 0.5, n - 1) - (n - 1) * ops.lgamma(alpha)
    constant = (n - 1) / 2 * math.log(math.pi)
    return ops.sum(powers * ops.log(diagonal), -1) - normalizer - constant


@fused
def _beta_parameters(concentration, n):
    """Of the squared length of each row without its diagonal element; the first row has none."""
    more = ops.clamp(arange(n, **_options_of(concentration)) - 1, 0) / 2
    return more + 0.5, (concentration + (n - 2) / 2).unsqueeze(-1) - more


@fused
def _lkj_sample(squares, normals):
    below = ops.tril(normals, -1)
    lengths = ops.sqrt(ops.sum(ops.square(below), -1, keepdim=True))
    direction = below / ops.where(lengths > 0, lengths, 1)
    rows = direction * ops.sqrt(squares).unsqueeze(-1)
    rest = ops.clamp(1 - ops.sum(ops.square(rows), -1), dtypes.finfo(rows.dtype).tiny)
    return rows + ops.diag_embed(ops.sqrt(rest))


class LKJCholesky(Distribution):
    """The distribution of the Cholesky factors of correlation matrices m with a density in
    proportion to `det(m) ** (concentration - 1)`. For a concentration of 1 it is uniform over
    correlation matrices.

    dim: the number n of rows, at least 2; ValueError for less. concentration: positive, a tensor of
    shape batch_shape or a number. event_shape is (n, n). Samples are made by the onion method.
    Source: Lewandowski, Kurowicka and Joe, "Generating random correlation matrices based on vines
    and extended onion method", 2009.

    >>> jaxgrad.distributions.LKJCholesky(3, 0.5).sample().shape
    torch.Size([3, 3])
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(
        self,
        dim: int,
        concentration: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ):
        dim = operator.index(dim)
        if dim < 2:
            raise ValueError(
                f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}."
            )
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def sample(self, sample_shape=()) -> Tensor:
        with no_grad():
            beta = Beta(*_beta_parameters(self.concentration, self.dim), validate_args=False)
            values, shape = beta.sample(sample_shape), self._extended_shape(sample_shape)
            return _lkj_sample(values, _standard_normal(shape, **_options_of(values)))

    log_prob = bound(lkj_log_prob)


__getattr__ = missing_in(__name__)
