"""The multivariate normal distribution with a covariance of low rank plus a diagonal."""

from __future__ import annotations

from .. import ops
from ..frontend.factories import eye
from ..functions.linalg_solve import cholesky
from ..functions.shape import broadcast_shapes
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import HALF_LOG_TAU, fused
from .distribution import Distribution
from .multivariate_normal import half_log_det, mahalanobis, solved, times
from .utils import _options_of, _standard_normal, lazy_property


def capacitance_tril(factor, diagonal):
    """The Cholesky factor of `I + W.mT @ inverse(D) @ W`, for the factor W and the diagonal D."""
    weighted = factor.mT / diagonal.unsqueeze(-2)
    return cholesky(weighted @ factor + eye(factor.shape[-1], **_options_of(factor)))


def lowrank_log_det(diagonal, capacitance):
    """The logarithm of the determinant of `W @ W.mT + D`, by the matrix determinant lemma."""
    return 2 * half_log_det(capacitance) + ops.sum(ops.log(diagonal), -1)


def lowrank_mahalanobis(factor, diagonal, vectors, capacitance):
    """`vectors @ inverse(W @ W.mT + D) @ vectors`, by Woodbury's identity."""
    weighted = times(factor.mT / diagonal.unsqueeze(-2), vectors)
    return ops.sum(ops.square(vectors) / diagonal, -1) - mahalanobis(capacitance, weighted)


@fused
def lowrank_log_prob(value, loc, factor, diagonal, capacitance):
    squares = lowrank_mahalanobis(factor, diagonal, value - loc, capacitance)
    log_det = lowrank_log_det(diagonal, capacitance)
    return -(squares + log_det) / 2 - loc.shape[-1] * HALF_LOG_TAU


@fused
def lowrank_entropy(diagonal, capacitance):
    return diagonal.shape[-1] * (HALF_LOG_TAU + 0.5) + lowrank_log_det(diagonal, capacitance) / 2


@fused
def _scale_tril(factor, diagonal):
    root = ops.sqrt(diagonal).unsqueeze(-1)
    scaled = factor / root
    return root * cholesky(scaled @ scaled.mT + eye(root.shape[-2], **_options_of(factor)))


@fused
def _precision_matrix(factor, diagonal, capacitance):
    weighted = solved(capacitance, factor.mT / diagonal.unsqueeze(-2))
    return ops.diag_embed(1 / diagonal) - weighted.mT @ weighted


class LowRankMultivariateNormal(Distribution):
    """The normal distribution of vectors with the covariance `cov_factor @ cov_factor.mT +
    diag(cov_diag)`, whose cost grows with the rank.

    loc: the mean, of shape (..., n). cov_factor: of shape (..., n, m). cov_diag: positive, of shape
    (..., n). Batch dimensions broadcast. Raises ValueError for other shapes.

    >>> zero, one = jaxgrad.zeros(2), jaxgrad.ones(2)
    >>> normal = jaxgrad.distributions.LowRankMultivariateNormal(zero, one.unsqueeze(-1), one)
    >>> normal.covariance_matrix
    tensor([[2., 1.],
            [1., 2.]])
    """

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        cov_factor: Tensor,
        cov_diag: Tensor,
        validate_args: bool | None = None,
    ):
        batch_shape, event_shape = _shapes(loc, cov_factor, cov_diag)
        self.loc = loc.expand(batch_shape + event_shape)
        self.cov_factor = cov_factor.expand(batch_shape + cov_factor.shape[-2:])
        self.cov_diag = cov_diag.expand(batch_shape + event_shape)
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = capacitance_tril(cov_factor, cov_diag)

    @property
    def _unbroadcasted(self):
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @lazy_property
    def variance(self) -> Tensor:
        return self.cov_factor.square().sum(-1) + self.cov_diag

    def _over_batch(self, matrix):
        return matrix.expand(self._batch_shape + matrix.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance matrix."""
        return self._over_batch(_scale_tril(*self._unbroadcasted))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        factor, diagonal = self._unbroadcasted
        return self._over_batch(factor @ factor.mT + diagonal.diag_embed())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        return self._over_batch(_precision_matrix(*self._unbroadcasted, self._capacitance_tril))

    def rsample(self, sample_shape=()) -> Tensor:
        shape, options = self._extended_shape(sample_shape), _options_of(self.loc)
        of_factor = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], **options)
        of_diagonal = _standard_normal(shape, **options)
        factor, diagonal = self._unbroadcasted
        return self.loc + times(factor, of_factor) + diagonal.sqrt() * of_diagonal

    def log_prob(self, value) -> Tensor:
        value = self._checked(value)
        return lowrank_log_prob(value, self.loc, *self._unbroadcasted, self._capacitance_tril)

    def entropy(self) -> Tensor:
        entropy = lowrank_entropy(self._unbroadcasted_cov_diag, self._capacitance_tril)
        return entropy.expand(self._batch_shape)


def _shapes(loc, cov_factor, cov_diag):
    """The shape of the batch and of the event."""
    if loc.ndim < 1:
        raise ValueError("loc must be at least one-dimensional.")
    event_shape = loc.shape[-1:]
    if cov_factor.ndim < 2:
        raise ValueError(
            "cov_factor must be at least two-dimensional, with optional leading batch dimensions"
        )
    if cov_factor.shape[-2:-1] != event_shape:
        raise ValueError(
            f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m, and its "
            f"shape is {cov_factor.shape}"
        )
    if cov_diag.shape[-1:] != event_shape:
        raise ValueError(
            f"cov_diag must be a batch of vectors with shape {event_shape}, and its shape is "
            f"{cov_diag.shape}"
        )
    try:
        batches = loc.shape[:-1], cov_factor.shape[:-2], cov_diag.shape[:-1]
        return broadcast_shapes(*batches), event_shape
    except RuntimeError as error:
        raise ValueError(
            f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag "
            f"{cov_diag.shape}"
        ) from error


__getattr__ = missing_in(__name__)
