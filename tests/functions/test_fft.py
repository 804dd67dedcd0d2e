"""Fourier transforms and windows: errors, dtypes and edges as PyTorch has them."""

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
    ("torch.hann_window(-1)", RuntimeError, "requires non-negative window_length"),
    ("torch.hann_window(4, dtype=torch.int64)", RuntimeError, "expects floating point dtypes"),
    ("torch.signal.windows.hann(-1)", ValueError, "requires non-negative window length"),
    (
        "torch.signal.windows.hann(4, dtype=torch.float16)",
        ValueError,
        "expects float32 or float64 dtypes",
    ),
    ("torch.signal.windows.general_cosine(4, a=[])", ValueError, "cannot be empty"),
    ("torch.signal.windows.general_cosine(4, a=3)", TypeError, "must be a list/tuple"),
    ("torch.signal.windows.exponential(4, tau=0)", ValueError, "Tau must be positive"),
    ("torch.signal.windows.exponential(4, center=1)", ValueError, "Center must be None"),
    ("torch.signal.windows.gaussian(4, std=0)", ValueError, "deviation must be positive"),
    ("torch.signal.windows.kaiser(4, beta=-1)", ValueError, "beta must be non-negative"),
]

STFT = "torch.stft({}, window=torch.ones(4), return_complex=True)"
ISTFT = "torch.istft({}, window=torch.ones(4))"
REFUSED += [
    (STFT.format("zeros(2), 4"), RuntimeError, "Padding size should be less than"),
    (STFT.format("zeros(3), 4, center=False"), RuntimeError, "expected 0 < n_fft < 3, but got"),
    (STFT.format("zeros(1, 1, 8), 4"), RuntimeError, "expected a 1D or 2D tensor"),
    (STFT.format("zeros(8), 4, 0"), RuntimeError, "expected hop_length > 0, but got"),
    (STFT.format("zeros(8), 4, win_length=5"), RuntimeError, "expected 0 < win_length <= n_fft"),
    (STFT.format("zeros(8), 6"), RuntimeError, "expected a 1D window tensor of size equal to"),
    (STFT.format("zeros(8), 4, pad_mode='x'"), NotImplementedError, "Unrecognised padding mode x"),
    (
        STFT.format("zeros(8), 4, align_to_window=True"),
        RuntimeError,
        "align_to_window should only be set when center = false",
    ),
    (
        "torch.stft(zeros(8), 4, window=torch.ones(4))",
        RuntimeError,
        "stft requires the return_complex parameter be given for real inputs",
    ),
    (
        "torch.stft(zeros(8) + 0j, 4, window=torch.ones(4), onesided=True)",
        RuntimeError,
        "Cannot have onesided output if window or input is complex",
    ),
    (ISTFT.format("zeros(3, 4), 4"), RuntimeError, "istft requires a complex-valued input tensor"),
    (ISTFT.format("zeros(3, 0) + 0j, 4"), RuntimeError, "input tensor cannot be empty"),
    (
        ISTFT.format("zeros(1, 1, 3, 4) + 0j, 4"),
        RuntimeError,
        "expected a tensor with 3 or 4 dimensions",
    ),
    (ISTFT.format("zeros(2, 4) + 0j, 4"), RuntimeError, "expected the frequency dimension"),
    (ISTFT.format("zeros(3, 4) + 0j, 4, 5"), RuntimeError, "expected 0 < hop_length <= win_length"),
    (ISTFT.format("zeros(4, 4) + 0j, 6"), RuntimeError, "Invalid window shape"),
    (
        "torch.istft(zeros(3, 4) + 0j, 4, 4, window=torch.hann_window(4), center=False)",
        RuntimeError,
        "window overlap add min",
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
    ("torch.hann_window(0)", "float32", []),
    ("torch.kaiser_window(1, dtype=torch.float64)", "float64", [1.0]),
    ("torch.signal.windows.gaussian(1, sym=False)", "float32", [1.0]),
    (
        "torch.fft.fft(tensor([1.0, 2.0]), out=zeros(2, dtype=torch.complex128))",
        "complex128",
        [3, -1],
    ),
]


@refusals(REFUSED)
def test_refuses_as_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


@answers(ANSWERS)
def test_answers_as_pytorch(call, dtype, values):
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


def test_warns_without_a_window():
    with pytest.warns(UserWarning, match="A window was not provided"):
        jaxgrad.stft(jaxgrad.ones(8), 4, return_complex=True)
    count("errors")


@pytest.mark.slow
def test_pairs_and_padding_beyond_the_end_warn():
    signal, window = jaxgrad.arange(8.0), jaxgrad.hann_window(4)
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        pairs = jaxgrad.stft(signal, 4, window=window, return_complex=False)
    with pytest.warns(UserWarning, match="padded with zeros"):
        back = jaxgrad.istft(jaxgrad.view_as_complex(pairs), 4, window=window, length=11)
    numpy.testing.assert_allclose(back[:8].numpy(), signal.numpy(), 1e-5, 1e-5)
    assert back[10].item() == 0
    count("closed forms", 2)


def test_windows_aligned_with_the_beginning_reach_the_end():
    window = jaxgrad.tensor([1.0, 2.0, 3.0])
    result = jaxgrad.stft(
        jaxgrad.arange(6.0), 4, 1, 3, window, False, return_complex=True, align_to_window=True
    )
    assert result[0].real.tolist() == [8.0, 14.0, 20.0, 26.0]
    count("closed forms")


def test_a_compiled_round_trip():
    window = jaxgrad.hann_window(4)

    @jaxgrad.jit
    def there_and_back(x):
        spectrum = jaxgrad.stft(x, 4, window=window, return_complex=True)
        return jaxgrad.istft(spectrum, 4, window=window)

    x = jaxgrad.arange(8.0)
    numpy.testing.assert_allclose(there_and_back(x).numpy(), x.numpy(), 1e-5, 1e-5)
    count("closed forms")


def test_computes_in_float32_under_autocast():
    x = jaxgrad.ones(8, dtype=jaxgrad.bfloat16)
    with jaxgrad.autocast("cpu"):
        assert jaxgrad.fft.rfft(x).dtype is jaxgrad.complex64
        spectrum = jaxgrad.stft(x, 4, window=x[:4], return_complex=True)
    assert spectrum.dtype is jaxgrad.complex64
    count("closed forms", 2)
