"""Short-time Fourier transforms: errors, warnings and round trips."""

import numpy
import pytest
from helpers.checks import count
from helpers.pytorch_answers import check_refusal, refusals

import jaxgrad

STFT = "torch.stft({}, window=torch.ones(4), return_complex=True)"
ISTFT = "torch.istft({}, window=torch.ones(4))"

REFUSED = [
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


@refusals(REFUSED)
def test_errors_match_pytorch(call, error, words):
    check_refusal(jaxgrad, call, error, words)


def test_stft_warns_without_a_window():
    with pytest.warns(UserWarning, match="A window was not provided"):
        jaxgrad.stft(jaxgrad.ones(8), 4, return_complex=True)
    count("errors")


@pytest.mark.slow
def test_stft_in_pairs_and_istft_beyond_the_end_warn():
    signal, window = jaxgrad.arange(8.0), jaxgrad.hann_window(4)
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        pairs = jaxgrad.stft(signal, 4, window=window, return_complex=False)
    with pytest.warns(UserWarning, match="padded with zeros"):
        back = jaxgrad.istft(jaxgrad.view_as_complex(pairs), 4, window=window, length=11)
    numpy.testing.assert_allclose(back[:8].numpy(), signal.numpy(), 1e-5, 1e-5)
    assert back[10].item() == 0
    count("closed forms", 2)


def test_stft_with_windows_aligned_with_the_beginning():
    window = jaxgrad.tensor([1.0, 2.0, 3.0])
    result = jaxgrad.stft(
        jaxgrad.arange(6.0), 4, 1, 3, window, False, return_complex=True, align_to_window=True
    )
    assert result[0].real.tolist() == [8.0, 14.0, 20.0, 26.0]
    count("closed forms")


def test_a_compiled_round_trip_of_stft_and_istft():
    window = jaxgrad.hann_window(4)

    @jaxgrad.jit
    def there_and_back(x):
        spectrum = jaxgrad.stft(x, 4, window=window, return_complex=True)
        return jaxgrad.istft(spectrum, 4, window=window)

    x = jaxgrad.arange(8.0)
    numpy.testing.assert_allclose(there_and_back(x).numpy(), x.numpy(), 1e-5, 1e-5)
    count("closed forms")
