"""The multivariate normal distribution."""

from __future__ import annotations

from .. import ops
from ..core.aval import Size
from ..frontend.factories import eye
from ..functions.linalg_solve import cholesky
from ..functions.shape import broadcast_shapes
from ..names.missing import missing_in
from ..tape.tensor import Tensor
from . import constraints
from ._formulas import HALF_LOG_TAU, fused
from .distribution import Distribution
from .utils import _options_of, _standard_normal, lazy_property

MATRICES = {
    "covariance_matrix": constraints.positive_definite,
    "precision_matrix": constraints.positive_definite,
    "scale_tril": constraints.lower_cholesky,
}


def half_log_det(factor):
    """Half of the logarithm of the determinant of `factor @ factor.mT`."""
    return ops.sum(ops.log(ops.diagonal(factor, 0, -2, -1)), -1)


def times(matrix, vector):
    """The product of matrices and vectors, whose batch dimensions broadcast."""
    return ops.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def solved(factor, matrix):
    """The solution of a lower triangular system for `matrix`; batch dimensions broadcast."""
    batch = broadcast_shapes(factor.shape[:-2], matrix.shape[:-2])
    factor = factor.expand(batch + factor.shape[-2:])
    matrix = matrix.expand(batch + matrix.shape[-2:])
    return ops.linalg_solve_triangular(factor, matrix, upper=False)


def mahalanobis(factor, vectors):
    """The squared lengths of `inverse(factor) @ vectors`, for a lower triangular factor.

    factor: (batch, n, n). vectors: (sample, batch, n), so that each factor serves all samples.
    """
    samples, vectors = vectors.ndim - factor.ndim + 1, vectors.to(factor.dtype)
    if samples < 1 or vectors.shape[samples:-1] != factor.shape[:-2]:
        return ops.sum(ops.square(solved(factor, vectors.unsqueeze(-1))), (-2, -1))
    columns = vectors.reshape(-1, *factor.shape[:-1]).movedim(0, -1)
    squares = ops.sum(ops.square(ops.linalg_solve_triangular(factor, columns, upper=False)), -2)
    return squares.movedim(-1, 0).reshape(vectors.shape[:-1])


def precision_to_scale_tril(precision):
    """The Cholesky factor of the inverse of a matrix."""
    flipped = cholesky(ops.flip(precision, (-2, -1)))
    inverse = ops.flip(flipped, (-2, -1)).mT
    return solved(inverse, eye(precision.shape[-1], **_options_of(precision)))


@fused
def multivariate_normal_log_prob(value, loc, factor):
    squares = mahalanobis(factor, value - loc)
    return -squares / 2 - loc.shape[-1] * HALF_LOG_TAU - half_log_det(factor)


@fused
def multivariate_normal_entropy(factor):
    return factor.shape[-1] * (HALF_LOG_TAU + 0.5) + half_log_det(factor)


class OfMatrix(Distribution):
    """A distribution with a covariance matrix, a precision matrix, or a Cholesky factor of the
    covariance: one is given, and the others are computed from it.
    """

    def _take_matrix(self, batch_shape: Size, matrices: dict[str, Tensor | None]):
        """Keep the matrix that is given, in a batch that broadcasts with `batch_shape`; returns the
        shape of the batch.
        """
        ((name, matrix),) = [pair for pair in matrices.items() if pair[1] is not None]
        if matrix.ndim < 2:
            raise ValueError(
                f"{name} must be at least two-dimensional, with optional leading batch dimensions"
            )
        batch_shape = broadcast_shapes(matrix.shape[:-2], batch_shape)
        setattr(self, name, matrix.expand(batch_shape + matrix.shape[-2:]))
        self._matrix = matrix
        return batch_shape

    def _factorize(self):
        """Make the factor of the matrix that is given; called once that has been checked."""
        names = [name for name in MATRICES if name in vars(self)]
        self._unbroadcasted_scale_tril = _FACTORS[names[0]](self._matrix)
        del self._matrix

    def _over_batch(self, matrix):
        return matrix.expand(self._batch_shape + matrix.shape[-2:])

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The Cholesky factor of the covariance matrix."""
        return self._over_batch(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance matrix."""
        factor = self._unbroadcasted_scale_tril
        return self._over_batch(factor @ factor.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance matrix."""
        return self._over_batch(ops.cholesky_inverse(self._unbroadcasted_scale_tril))


_precision_to_scale_tril = precision_to_scale_tril  # by PyTorch's name: packages call it

_FACTORS = {
    "scale_tril": lambda matrix: matrix,
    "covariance_matrix": cholesky,
    "precision_matrix": precision_to_scale_tril,
}


class MultivariateNormal(OfMatrix):
    """The normal distribution of vectors, with the density `exp(-d @ inverse(covariance) @ d / 2) /
    sqrt((2 * pi) ** n * det(covariance))` for `d = x - loc`.

    loc: the mean, of shape (..., n). covariance_matrix: positive definite, of shape (..., n, n), or
    in its place precision_matrix, its inverse, or scale_tril, its lower triangular Cholesky factor,
    which is the fastest. Batch dimensions broadcast. Raises ValueError for several of the three or
    none, and for too few dimensions.

    >>> normal = jaxgrad.distributions.MultivariateNormal(jaxgrad.zeros(2), jaxgrad.eye(2))
    >>> normal.log_prob(jaxgrad.tensor([0.0, 0.0]))
    tensor(-1.8379)
    """

    arg_constraints = {"loc": constraints.real_vector, **MATRICES}
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        if loc.ndim < 1:
            raise ValueError("loc must be at least one-dimensional.")
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        if sum(matrix is not None for matrix in matrices.values()) != 1:
            raise ValueError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        batch_shape = self._take_matrix(loc.shape[:-1], matrices)
        self.loc = loc.expand(batch_shape + loc.shape[-1:])
        super().__init__(batch_shape, loc.shape[-1:], validate_args=validate_args)
        self._factorize()

    @property
    def mean(self) -> Tensor:
        return self.loc

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        squares = self._unbroadcasted_scale_tril.square().sum(-1)
        return squares.expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=()) -> Tensor:
        noise = _standard_normal(self._extended_shape(sample_shape), **_options_of(self.loc))
        return self.loc + times(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value) -> Tensor:
        value = self._checked(value)
        return multivariate_normal_log_prob(value, self.loc, self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        entropy = multivariate_normal_entropy(self._unbroadcasted_scale_tril)
        return entropy.expand(self._batch_shape)


__getattr__ = missing_in(__name__)
