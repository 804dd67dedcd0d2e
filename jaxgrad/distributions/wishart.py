"""The Wishart distribution."""

from __future__ import annotations

import math
import warnings

import jax
import jax.numpy as jnp

from .. import ops
from ..core import dtypes
from ..core.tracebacks import users_stacklevel
from ..frontend.factories import arange, full, zeros
from ..frontend.jax_interop import own_operator
from ..frontend.random import default_generator, follows_torch, new_key, randn
from ..functions.creation import tril_indices
from ..functions.random import _standard_gamma
from ..names.missing import missing_in
from ..tape.tensor import Tensor, is_concrete
from . import constraints
from ._formulas import fused
from .exp_family import ExponentialFamily
from .multivariate_normal import MATRICES, OfMatrix, half_log_det, solved
from .utils import _options_of

ALGORITHM = "threefry2x32"
_TRIES = 10


def mvdigamma(x, n):
    """The derivative of `mvlgamma(x, n)`."""
    return ops.sum(ops.digamma(x.unsqueeze(-1) - arange(n, **_options_of(x)) / 2), -1)


@fused
def wishart_log_prob(value, df, factor):
    n = factor.shape[-1]
    inside = solved(factor, solved(factor, value).mT)
    trace = ops.sum(ops.diagonal(inside, 0, -2, -1), -1)
    log_det = ops.linalg_slogdet(value)[1]
    return (df - n - 1) / 2 * log_det - trace / 2 - _log_normalizer(df, factor)


def _log_normalizer(df, factor):
    n = factor.shape[-1]
    return df * (n * math.log(2) / 2 + half_log_det(factor)) + ops.mvlgamma(df / 2, n)


@fused
def wishart_entropy(df, factor):
    n = factor.shape[-1]
    log_det = 2 * half_log_det(factor) + n * math.log(2) + mvdigamma(df / 2, n)
    return _log_normalizer(df, factor) - (df - n - 1) / 2 * log_det + df * n / 2


@fused
def wishart_variance(df, covariance):
    diagonal = ops.diagonal(covariance, 0, -2, -1)
    products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
    return df[..., None, None] * (ops.square(covariance) + products)


@fused
def wishart_mode(df, covariance):
    factor = df - covariance.shape[-1] - 1
    return ops.masked_fill(factor, factor <= 0, math.nan)[..., None, None] * covariance


def _bartlett(concentration, factor, key):
    """A matrix by Bartlett's decomposition.

    concentration: those of the gamma variables behind the diagonal, of shape (n,).
    """
    n = factor.shape[-1]
    first, second = jax.random.split(key)
    gamma = ops._gamma_sample(concentration, jax.random.key_data(first))
    root = jnp.maximum(jnp.sqrt(2 * gamma), jnp.finfo(gamma.dtype).eps)
    normals = jax.random.normal(second, (n, n), factor.dtype)
    product = factor @ (jnp.tril(normals, -1) + jnp.diag(root))
    return product @ product.T


def _is_regular(matrix):
    """Whether a factorization succeeds by more than rounding: the squares on the diagonal of the
    factor are what each row adds to those before it.
    """
    rest = jnp.square(jnp.diagonal(jnp.linalg.cholesky(matrix)))
    return jnp.all(rest > 8 * len(rest) * jnp.finfo(rest.dtype).eps * jnp.diagonal(matrix))


def _regular(concentration, factor, key, tries):
    """A matrix that is not singular, if one of so many further tries gives it."""
    known = jax.lax.stop_gradient((concentration, factor))

    def is_to_retry(state):
        return (state[1] < tries) & ~_is_regular(_bartlett(*known, state[0]))

    def retry(state):
        return jax.random.fold_in(key, state[1]), state[1] + 1

    # the key is found without gradients, and the matrix made of it again
    key, _ = jax.lax.while_loop(is_to_retry, retry, (key, jnp.int32(0)))
    return _bartlett(concentration, factor, key)


@own_operator
def _matrices(df, factor, key, shape, tries):
    """Matrices of a Wishart distribution; shape: that of samples and batch."""
    n = factor.shape[-1]
    concentration = (df[..., None] - jnp.arange(n, dtype=df.dtype)) / 2
    count = math.prod(shape)
    concentration = jnp.broadcast_to(concentration, (*shape, n)).reshape(count, n)
    factor = jnp.broadcast_to(factor, (*shape, n, n)).reshape(count, n, n)
    keys = jax.random.split(jax.random.wrap_key_data(key, impl=ALGORITHM), len(factor))
    matrices = jax.vmap(lambda *args: _regular(*args, tries))(concentration, factor, keys)
    return matrices.reshape(*shape, n, n)


class Wishart(ExponentialFamily, OfMatrix):
    """The Wishart distribution of positive-definite matrices, that of the sum of `outer(v, v)` for
    `df` vectors v from a normal distribution of mean 0, where df is an integer.

    df: the degrees of freedom, greater than n - 1, a tensor that broadcasts or a number; ValueError
    for others. covariance_matrix: that of the vectors, positive definite, of shape (..., n, n), or
    in its place precision_matrix, its inverse, or scale_tril, its lower triangular Cholesky factor.
    event_shape is (n, n). Raises AssertionError for several of the three or none, and warns of a df
    below n, for which samples are nearly singular. Source: Bartlett, "On the theory of statistical
    regression", 1933, for the samples.

    >>> wishart = jaxgrad.distributions.Wishart(3.0, jaxgrad.eye(2))
    >>> wishart.mean
    tensor([[3., 0.],
            [0., 3.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        df: Tensor | float,
        covariance_matrix: Tensor | None = None,
        precision_matrix: Tensor | None = None,
        scale_tril: Tensor | None = None,
        validate_args: bool | None = None,
    ):
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        tensors = [matrix for matrix in matrices.values() if matrix is not None]
        if len(tensors) != 1:
            raise AssertionError(
                "Exactly one of covariance_matrix or precision_matrix or scale_tril may be "
                "specified."
            )
        df = df if isinstance(df, Tensor) else full((), df, **_options_of(tensors[0]))
        batch_shape = self._take_matrix(df.shape, matrices)
        self.df = df.expand(batch_shape)
        event_shape = tensors[0].shape[-2:]
        self._check_df(event_shape[-1])
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._factorize()

    def _check_df(self, n):
        if not is_concrete(self.df):
            return
        if bool((self.df <= n - 1).any()):
            raise ValueError(
                f"Value of df={self.df} expected to be greater than ndim - 1 = {n - 1}."
            )
        if bool((self.df < n).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for "
                "ndim - 1 < df < ndim.",
                stacklevel=users_stacklevel(),
            )

    @property
    def arg_constraints(self):
        return {**MATRICES, "df": constraints.greater_than(self.event_shape[-1] - 1)}

    @property
    def mean(self) -> Tensor:
        return self.df[..., None, None] * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        return wishart_mode(self.df, self.covariance_matrix)

    @property
    def variance(self) -> Tensor:
        return wishart_variance(self.df, self.covariance_matrix)

    def rsample(self, sample_shape=(), max_try_correction: int | None = None) -> Tensor:
        """Return random matrices with gradients with respect to the parameters.

        sample_shape: a list of ints. max_try_correction: how often a singular matrix is drawn
        again, 10 times by default. Returns sample_shape + batch_shape + (n, n).

        >>> jaxgrad.distributions.Wishart(3.0, jaxgrad.eye(2)).rsample((4,)).shape
        torch.Size([4, 2, 2])
        """
        tries = _TRIES if max_try_correction is None else max_try_correction
        if not self._follows_torch:
            return self._of_key(sample_shape, tries)
        # PyTorch draws matrices that are regular again, once
        first = self._bartlett_sampling(sample_shape)
        if not tries:
            return first
        is_wanted = self._is_regular(first)
        if not is_concrete(is_wanted):
            last = self._bartlett_sampling(sample_shape)
            is_kept = ~self._is_regular(last) & is_wanted
            return ops.where(self._beside_matrices(is_kept), first, last)
        last = self._drawn_again(first, is_wanted) if is_wanted.any() else first
        for _ in range(tries):
            is_wanted = ~self._is_regular(last)
            if not is_wanted.any():
                break
            last = self._drawn_again(last, is_wanted)
        return last

    @property
    def _follows_torch(self) -> bool:
        return follows_torch(default_generator, self.df, self._unbroadcasted_scale_tril)

    def _of_key(self, sample_shape, tries) -> Tensor:
        shape = tuple(sample_shape) + tuple(self._batch_shape)
        key = new_key(None, "Wishart.rsample", self.df)
        return _matrices(self.df, self._unbroadcasted_scale_tril, key, shape, tries)

    def _is_regular(self, matrices) -> Tensor:
        """For each of the samples, whether a matrix of its batch is positive definite."""
        is_regular = constraints.positive_definite.check(matrices.detach())
        dims = tuple(range(-len(self._batch_shape), 0))
        return is_regular.any(dims) if dims else is_regular

    def _beside_matrices(self, is_wanted) -> Tensor:
        return is_wanted.reshape(is_wanted.shape + (1,) * (len(self._batch_shape) + 2))

    def _drawn_again(self, matrices, is_wanted) -> Tensor:
        """The samples, where those that are wanted are new ones."""
        new = self._bartlett_sampling((int(is_wanted.sum()),))
        if is_wanted.all():
            return new.reshape(matrices.shape)
        return matrices.index_put((is_wanted,), new)

    def _bartlett_sampling(self, sample_shape=()) -> Tensor:
        """Random matrices as `rsample` draws them, where singular ones stay."""
        if not self._follows_torch:
            return self._of_key(sample_shape, 0)
        n = self._event_shape[-1]
        shape = tuple(sample_shape) + tuple(self._batch_shape)
        options = _options_of(self._unbroadcasted_scale_tril)
        shapes = ((self.df.unsqueeze(-1) - arange(n, **options)) / 2).expand(*shape, n)
        normals = zeros((*shape, n, n), **options)
        gammas = ops.clamp(_standard_gamma(shapes) / 0.5, dtypes.finfo(self.df.dtype).tiny)
        diagonal = ops.clamp(ops.sqrt(gammas), dtypes.finfo(self.df.dtype).eps)
        rows, columns = tril_indices(n, n, -1)
        normals[..., rows, columns] = randn(*shape, n * (n - 1) // 2, **options)
        product = self._unbroadcasted_scale_tril @ (normals + ops.diag_embed(diagonal))
        return product @ product.mT

    def log_prob(self, value) -> Tensor:
        return wishart_log_prob(self._checked(value), self.df, self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        return wishart_entropy(self.df, self._unbroadcasted_scale_tril)

    @property
    def _natural_params(self):
        n = self._event_shape[-1]
        return -self.precision_matrix / 2, (self.df - n - 1) / 2

    def _log_normalizer(self, x, y):
        n = self._event_shape[-1]
        order = y + (n + 1) / 2
        log_det = n * math.log(2) - ops.linalg_slogdet(-2 * x)[1]
        return order * log_det + ops.mvlgamma(order, n)


__getattr__ = missing_in(__name__)
