"""A kernel of TPUs in the place of JAX's, for programs with 64-bit types.

JAX lowers a singular value decomposition for TPUs to products with int64, which the compiler of
TPUs refuses.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from . import device_axes, lacking


class Factors(NamedTuple):
    """Of a singular value decomposition: matrices, the vectors of values, and adjoint matrices."""

    U: Any
    S: Any
    Vh: Any


@functools.partial(jax.custom_jvp, nondiff_argnums=(1,))
def svd(A, full_matrices: bool = True) -> Factors:
    """`jnp.linalg.svd` on every platform."""

    def on_tpu(A):
        values, left, right = decomposition(A, full_matrices, compute_uv=True)
        return Factors(left, values, right)

    def elsewhere(A):
        return Factors(*jnp.linalg.svd(A, full_matrices=full_matrices))

    return _on_platform(A, on_tpu, elsewhere)


@svd.defjvp
def _svd_jvp(full_matrices, primals, tangents):
    """Of J. Townsend, Differentiating the Singular Value Decomposition, 2016. Infinite where two
    values are equal.
    """
    (A,), (tangent,) = primals, tangents
    if full_matrices and A.shape[-1] != A.shape[-2]:
        raise NotImplementedError("the derivative of the vectors beyond the singular values")
    with jax.default_matmul_precision("float32"):
        return _tangents_of_svd(A, tangent, full_matrices)


def _tangents_of_svd(A, tangent, full_matrices):
    left, values, adjoint = factors = svd(A, full_matrices)
    right, row = _adjoints(adjoint), values[..., None, :]
    inner = _adjoints(left) @ tangent @ right
    identity = jnp.eye(values.shape[-1], dtype=values.dtype)
    column = row.swapaxes(-1, -2)
    weights = 1 / ((row - column) * (row + column) + identity) - identity
    inverse = jnp.where(row == 0, 0, 1 / jnp.where(row == 0, 1, row))
    turned, moved = inner * row, column * inner
    phases = (inner - _adjoints(inner)) * (identity * inverse / 2)
    left_tangent = left @ (weights * (turned + _adjoints(turned)) + phases)
    right_tangent = right @ (weights * (moved + _adjoints(moved)))
    if A.shape[-2] > A.shape[-1]:
        left_tangent += _outside(left, tangent @ right) * inverse
    if A.shape[-1] > A.shape[-2]:
        right_tangent += _outside(right, _adjoints(tangent) @ left) * inverse
    value_tangent = jnp.diagonal(inner, axis1=-2, axis2=-1).real
    return factors, Factors(left_tangent, value_tangent, _adjoints(right_tangent))


def _adjoints(matrices):
    return matrices.conj().swapaxes(-1, -2)


def _outside(basis, matrices):
    """The part of the columns that is orthogonal to a basis."""
    return matrices - basis @ (_adjoints(basis) @ matrices)


def svdvals(A):
    """The singular values alone, in descending order."""

    def on_tpu(A):
        return decomposition(A, full_matrices=False, compute_uv=False)[0]

    # with full matrices LAPACK is handed memory for a square of the longer side
    values = functools.partial(jnp.linalg.svd, full_matrices=False, compute_uv=False)
    return _on_platform(A, on_tpu, values)


def _on_platform(A, on_tpu, elsewhere):
    if device_axes.varies(A):  # which JAX's loops inside of `decomposition` refuse
        cure = "inside of a shard_map, pass check_vma=False to it"
        names = "linalg.svd, and what is made of it"
        return lacking.without_kernel(elsewhere, A, operators=names, tpu=cure)
    return lax.platform_dependent(A, tpu=on_tpu, default=elsewhere)


def singular_values(A, full_matrices: bool, compute_uv: bool):
    """The singular values of a matrix and, where asked for, the vectors, by its polar factor."""
    rows, columns = A.shape
    if rows < columns:
        values, *vectors = singular_values(_adjoints(A), full_matrices, compute_uv)
        return [values, *map(_adjoints, reversed(vectors))]
    basis, square = lax.linalg.qr(A, full_matrices=full_matrices)
    unitary, hermitian, *_ = lax.linalg.qdwh(square[:columns])
    right, values = lax.linalg.eigh(hermitian, sort_eigenvalues=False)
    order = jnp.argsort(-values)
    values = jnp.maximum(values[order], 0)
    # as JAX does on every platform
    bad = ~jnp.all(jnp.isfinite(A))
    if not compute_uv:
        return [_spoilt(values, bad)]
    right = right[:, order]
    left = _orthonormal(unitary @ right, values)
    left = jnp.concatenate([basis[:, :columns] @ left, basis[:, columns:]], axis=1)
    return [_spoilt(part, bad) for part in (values, left, _adjoints(right))]


def _spoilt(array, bad):
    return jnp.where(bad, jnp.full_like(array, jnp.nan), array)


def _orthonormal(left, values):
    """The left vectors, which are not orthogonal yet where singular values are 0."""
    is_singular = values[-1] <= len(values) * jnp.finfo(values.dtype).eps * values[0]
    return lax.cond(is_singular, _orthonormalized, lambda vectors: vectors, left)


def _orthonormalized(left):
    vectors, triangle = lax.linalg.qr(left, full_matrices=False)
    return vectors * jnp.where(jnp.diagonal(triangle).real >= 0, 1, -1).astype(left.dtype)


def decomposition(A, full_matrices: bool, compute_uv: bool) -> list:
    """The values, and where asked for both matrices, of a batch of matrices."""

    def parts(matrix):
        return singular_values(matrix, full_matrices, compute_uv)

    for _ in range(A.ndim - 2):
        parts = jax.vmap(parts)
    with jax.default_matmul_precision("float32"):
        return parts(A) if A.size else _empty(A, full_matrices, compute_uv)


def _empty(A, full_matrices, compute_uv):
    *batch, rows, columns = A.shape
    count = min(rows, columns)
    extents = (rows, columns) if full_matrices else (count, count)
    shapes = (rows, extents[0]), (extents[1], columns)
    vectors = [
        jnp.broadcast_to(jnp.eye(*shape, dtype=A.dtype), (*batch, *shape)) for shape in shapes
    ]
    return [jnp.zeros((*batch, count), A.real.dtype), *(vectors if compute_uv else ())]
