"""The host's Fourier transforms, against XLA's and NumPy's in double precision."""

import jax
import numpy
import pytest
from helpers.host_rules_windows import assert_as_xla, assert_close, drawn, on_host
from jax import lax

TYPES = [lax.FftType.FFT, lax.FftType.IFFT, lax.FftType.RFFT, lax.FftType.IRFFT]
NAMES = {
    lax.FftType.FFT: "fftn",
    lax.FftType.IFFT: "ifftn",
    lax.FftType.RFFT: "rfftn",
    lax.FftType.IRFFT: "irfftn",
}


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("lengths", [(1,), (8,), (7,), (4, 6), (5, 3), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_each_type_and_length(kind, lengths, bits):
    *others, last = lengths
    generator = numpy.random.default_rng(1)
    is_real = kind == lax.FftType.RFFT
    if kind == lax.FftType.IRFFT:
        last = last // 2 + 1
    with jax.enable_x64(True):
        dtype = f"float{bits}" if is_real else f"complex{2 * bits}"
        array = drawn(generator, (2, *others, last), dtype)
        (result,) = on_host(lambda operand: lax.fft(operand, kind, lengths), array)
    axes = tuple(range(-len(lengths), 0))
    wide = array.astype("float64" if is_real else "complex128")
    assert_close(result, getattr(numpy.fft, NAMES[kind])(wide, lengths, axes))
    assert result.dtype.itemsize == bits // (4 if result.dtype.kind == "c" else 8)


def test_of_no_signals():
    array = numpy.zeros((0, 4), numpy.complex64)
    assert_as_xla(lambda operand: lax.fft(operand, lax.FftType.FFT, (4,)), array)


def test_irregular_frequencies_at_both_ends():
    # the imaginary parts of the first and the last frequency are none of a real signal's
    array = numpy.array([1 + 2j, 3 - 1j, 2 + 5j], numpy.complex64)
    assert_as_xla(lambda operand: lax.fft(operand, lax.FftType.IRFFT, (4,)), array)
