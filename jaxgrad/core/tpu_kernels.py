"""Kernels of TPUs in the place of JAX's, for programs with 64-bit types.

JAX lowers a singular value decomposition for TPUs to products with int64, which the compiler of
TPUs refuses, and a Fourier transform in float64 as such, of which the compiler says only that its
type is unexpected.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax
from jax.extend.mlir.dialects import stablehlo
from jax.interpreters import mlir

_WIDE_TRANSFORM = (
    "the operators of torch.fft, and torch.stft and torch.istft, in float64 and complex128: there "
    "is no kernel for the platform tpu: convert the tensor to torch.float32 or torch.complex64, or "
    "move it to the CPU with .cpu() and the results back with .to(device)"
)


def singular_values(A, full_matrices: bool, compute_uv: bool):
    """The singular values of a matrix and, where asked for, the vectors, by its polar factor."""
    rows, columns = A.shape
    if rows < columns:
        values, *vectors = singular_values(_adjoint(A), full_matrices, compute_uv)
        return [values, *map(_adjoint, reversed(vectors))]
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
    return [_spoilt(part, bad) for part in (values, left, _adjoint(right))]


def _adjoint(matrix):
    return matrix.T.conj()


def _spoilt(array, bad):
    return jnp.where(bad, jnp.full_like(array, jnp.nan), array)


def _orthonormal(left, values):
    """The left vectors, which are not orthogonal yet where singular values are 0."""
    is_singular = values[-1] <= len(values) * jnp.finfo(values.dtype).eps * values[0]
    return lax.cond(is_singular, _orthonormalized, lambda vectors: vectors, left)


def _orthonormalized(left):
    vectors, triangle = lax.linalg.qr(left, full_matrices=False)
    return vectors * jnp.where(jnp.diagonal(triangle).real >= 0, 1, -1).astype(left.dtype)


def decomposition(A, *, full_matrices, compute_uv, subset_by_index=None, algorithm=None):
    """What JAX's primitive of the singular value decomposition returns."""
    if subset_by_index is not None:
        raise NotImplementedError("a part of the singular values, on the platform tpu")

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


def transform(context, operand, *, fft_type, fft_lengths):
    """The lowering of a Fourier transform: StableHLO's, or an error in 64 bits."""
    if jnp.finfo(context.avals_in[0].dtype).bits == 64:
        raise NotImplementedError(_WIDE_TRANSFORM)
    kind = stablehlo.FftTypeAttr.get(fft_type.name)
    lengths = mlir.dense_int_array(fft_lengths)
    return stablehlo.FftOp(operand, kind, lengths).results


def register_decomposition():
    """Let JAX use this decomposition on TPUs."""
    svd = mlir.lower_fun(decomposition, multiple_results=True)
    mlir.register_lowering(lax.linalg.svd_p, svd, platform="tpu")


def register_transform():
    """Let JAX say what to do about a transform in 64 bits on a TPU."""
    mlir.register_lowering(lax.fft_p, transform, platform="tpu")
