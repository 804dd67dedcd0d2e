"""Fourier transforms: errors, dtypes and edges as PyTorch has them."""

import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import answers, check_answer, check_refusal, refusals

import jaxgrad

REFUSED = [
    ("torch.fft.fft(tensor([1.0]), 0)", RuntimeError, "Invalid number of data points (0)"),
    ("torch.fft.irfft(tensor([1.0]))", RuntimeError, "Invalid number of data points (0)"),
    ("torch.fft.fft(tensor(1.0))", IndexError, "Dimension specified as -1 but tensor has no"),
    ("torch.fft.fft(tensor([1.0]), dim=1)", IndexError, "Dimension out of range"),
    ("torch.fft.fft(tensor([1.0]), norm='x')", RuntimeError, 'Invalid normalization mode: "x"'),
    ("torch.fft.rfft(tensor([1j]))", RuntimeError, "rfft expects a real input tensor"),
    ("torch.fft.rfftn(tensor([1j]))", RuntimeError, "rfftn expects a real-valued input tensor"),
    ("torch.fft.ihfftn(tensor([1j]))", RuntimeError, "Only supports floating-point dtypes"),
    ("torch.fft.fft(zeros(2, dtype=torch.float16))", RuntimeError, "Unsupported dtype Half"),
    ("torch.fft.fftn(zeros(2, 2), dim=(0, 0))", RuntimeError, "FFT dims must be unique"),
    ("torch.fft.fftn(zeros(2), (2, 2))", RuntimeError, "Got shape with 2 values but input tensor"),
    (
        "torch.fft.fftn(zeros(2, 2), (2,), (0, 1))",
        RuntimeError,
        "dim and shape arguments must have the same length",
    ),
    ("torch.fft.rfftn(zeros(2), dim=())", RuntimeError, "must transform at least one axis"),
    ("torch.fft.rfftfreq(4, dtype=torch.int64)", RuntimeError, "requires a floating point"),
    (
        "torch.fft.irfft(zeros(4), out=zeros(6, dtype=torch.complex64))",
        RuntimeError,
        "irfft expects a floating point output tensor, but got ComplexFloat",
    ),
    (
        "torch.fft.hfft2(zeros(4, 4), out=zeros(1, dtype=torch.complex64))",
        RuntimeError,
        "expects a floating point output tensor, but got ComplexFloat",
    ),
]


ANSWERS = [
    ("torch.fft.fft(tensor([1, 2]))", "complex64", [3.0, -1.0]),
    ("torch.fft.rfft(tensor([True, False]))", "complex64", [1.0, 1.0]),
    ("torch.fft.hfft(tensor([1, 2]))", "float32", [3.0, -1.0]),
    ("torch.fft.fftn(tensor([1.0, 2.0]), dim=())", "complex64", [1.0, 2.0]),
    ("torch.fft.irfft(tensor([1 + 5j, 2 + 7j]))", "float32", [1.5, -0.5]),
    ("torch.fft.fftfreq(5, 0.2)", "float32", [0.0, 1.0, 2.0, -2.0, -1.0]),
    ("torch.fft.rfftfreq(5, 0.2)", "float32", [0.0, 1.0, 2.0]),
    ("torch.fft.fftfreq(0)", "float32", []),
    ("torch.fft.ifftshift(tensor([1, 2, 3]))", "int64", [2, 3, 1]),
    (
        "torch.fft.fft(tensor([1.0, 2.0]), out=zeros(2, dtype=torch.complex128))",
        "complex128",
        [3, -1],
    ),
]


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_values_match_pytorch(call, dtype, values):
    check_answer(jaxgrad, call, dtype, values)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"])
def test_no_rows_give_no_rows(name):
    result = getattr(jaxgrad.fft, name)(jaxgrad.zeros(0, 3))
    assert result.shape[0] == 0 and result.ndim == 2
    count("edges")


def test_transforms_of_more_dimensions_than_xla_has_at_once():
    numbers = numpy.random.RandomState(0).randn(2, 3, 2, 3, 2)
    result = jaxgrad.fft.fftn(jaxgrad.tensor(numbers))
    numpy.testing.assert_allclose(result.numpy(), numpy.fft.fftn(numbers), 1e-12, 1e-12)
    back = jaxgrad.fft.irfftn(jaxgrad.fft.rfftn(jaxgrad.tensor(numbers)), numbers.shape)
    numpy.testing.assert_allclose(back.numpy(), numbers, 1e-12, 1e-12)
    count("closed forms", 2)


def test_computes_in_float32_under_autocast():
    x = jaxgrad.ones(8, dtype=jaxgrad.bfloat16)
    with jaxgrad.autocast("cpu"):
        assert jaxgrad.fft.rfft(x).dtype is jaxgrad.complex64
        spectrum = jaxgrad.stft(x, 4, window=x[:4], return_complex=True)
    assert spectrum.dtype is jaxgrad.complex64
    count("closed forms", 2)
