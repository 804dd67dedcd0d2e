"""Kernels of TPUs: the decomposition on the CPU, and the lowering of Fourier transforms."""

import jax
import jax.numpy as jnp
import numpy
import pytest
from helpers import lowering

import jaxgrad as torch
from jaxgrad.core import tpu_kernels
from jaxgrad.tape.tensor import wrap

RANDOM = numpy.random.default_rng(3)
LOW_RANK = RANDOM.normal(size=(6, 2)) @ RANDOM.normal(size=(2, 4))
MATRICES = {
    "square": RANDOM.normal(size=(4, 4)),
    "tall": RANDOM.normal(size=(7, 3)),
    "wide": RANDOM.normal(size=(3, 5)),
    "batch": RANDOM.normal(size=(2, 3, 4, 3)),
    "complex": RANDOM.normal(size=(4, 3)) + 1j * RANDOM.normal(size=(4, 3)),
    "low rank": LOW_RANK,
    "complex of low rank": LOW_RANK * (1 - 2j),
    "equal values": numpy.eye(3)[[2, 0, 1]],
    "zero": numpy.zeros((3, 3)),
    "empty": numpy.zeros((3, 0)),
}


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("name", MATRICES)
def test_decomposition(name, full):
    """The factors are unitary and their product is the matrix; the values are NumPy's."""
    A = MATRICES[name]
    with jax.enable_x64(True):
        parts = tpu_kernels.decomposition(jnp.asarray(A), full, True)
        (alone,) = tpu_kernels.decomposition(jnp.asarray(A), full, False)
    values, left, right = map(numpy.asarray, parts)
    expected = numpy.linalg.svd(A, full_matrices=full)
    for part, factor in zip((left, values, right), expected, strict=True):
        assert part.shape == factor.shape
        assert part.dtype == factor.dtype
    numpy.testing.assert_allclose(values, expected[1], atol=1e-12)
    numpy.testing.assert_allclose(alone, expected[1], atol=1e-12)
    count = values.shape[-1]
    product = left[..., :count] * values[..., None, :] @ right[..., :count, :]
    numpy.testing.assert_allclose(product, A, atol=1e-12)
    for factor in (left, right.conj().swapaxes(-1, -2)):
        gram = factor.conj().swapaxes(-1, -2) @ factor
        numpy.testing.assert_allclose(gram, numpy.eye(gram.shape[-1]) + 0 * gram, atol=1e-12)


def test_decomposition_of_numbers_that_are_not_finite():
    A = jnp.array([[1.0, jnp.inf], [0.0, 1.0]])
    parts = tpu_kernels.decomposition(A, True, True)
    assert all(jnp.isnan(part).all() for part in parts)


@pytest.mark.parametrize("full", [True, False])
def test_programs_for_tpus_have_no_wide_products(full):
    """The compiler of TPUs refuses products of 64-bit types."""

    def decomposed(A):
        return tuple(part._array for part in torch.linalg.svd(wrap(A), full))

    text = lowering.lower(decomposed, jnp.ones((4, 3), jnp.float32), platforms=("tpu",)).as_text()
    products = [line for line in text.splitlines() if "dot_general" in line]
    assert products
    assert not any("xi64>" in line or "xf64>" in line for line in products)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.complex64])
def test_transforms_in_single_precision(dtype):
    def transformed(x):
        return torch.fft.fft(wrap(x))._array

    text = lowering.lower(transformed, jnp.ones(6, dtype), platforms=("tpu",)).as_text()
    assert "stablehlo.fft" in text


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "fft2", "hfft"])
def test_transforms_in_double_precision(name):
    """The error names the operators and says what to do."""
    dtype = jnp.float64 if name == "rfft" else jnp.complex128

    def transformed(x):
        return getattr(torch.fft, name)(wrap(x))._array

    with jax.enable_x64(True):
        x = jnp.ones((2, 6), dtype)
    lowering.lower(transformed, x, platforms=("cuda", "rocm"))
    with pytest.raises(NotImplementedError, match=r"torch\.fft.* platform tpu: .*torch\.complex64"):
        lowering.lower(transformed, x, platforms=("tpu",))
