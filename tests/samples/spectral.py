"""Short-time Fourier transforms, and windows of signals."""

from samples import Dtype, S, T, samples_of

WINDOWS = "hann_window hamming_window blackman_window bartlett_window kaiser_window"
MODULE = "signal.windows"
SYMMETRIC = " ".join(
    f"{MODULE}.{name}"
    for name in (
        *("bartlett", "blackman", "cosine", "exponential", "gaussian", "general_hamming"),
        *("hamming", "hann", "kaiser", "nuttall"),
    )
)
DOUBLE = Dtype("float64")
WINDOW = T(4, low=0.5)
REAL_WINDOW = T(4, low=0.5, real=True)

SAMPLES = [
    S("stft", T(7), 4, window=WINDOW, return_complex=True, complex=True),
    S("stft", T(2, 6), 4, 2, 3, T(3, low=0.5), False, normalized=True, return_complex=True),
    S("stft", T(7), 4, 3, 2, window=T(2), return_complex=True, onesided=False, pad_mode="circular"),
    S("Tensor.stft", T(6), 4, window=WINDOW, center=False, return_complex=True),
    S("istft", T(3, 4), 4, window=REAL_WINDOW, complex="only"),
    S(
        "istft",
        T(2, 4, 4),
        4,
        2,
        3,
        T(3, low=0.5, real=True),
        False,
        True,
        length=6,
        complex="only",
    ),
    S("istft", T(4, 4), 4, window=WINDOW, return_complex=True, complex="only"),
    S("Tensor.istft", T(3, 4), 4, window=REAL_WINDOW, length=3, complex="only"),
    *samples_of(WINDOWS, 5, dtype=DOUBLE),
    *samples_of(WINDOWS, 6, False, dtype=DOUBLE),
    S("hamming_window", 4, True, 0.75, 0.25),
    S("kaiser_window", 4, True, 2.5),
    *samples_of(SYMMETRIC, 5, dtype=DOUBLE),
    *samples_of(SYMMETRIC, 4, sym=False),
    S(f"{MODULE}.general_cosine", 5, a=[0.5, 0.25, 0.125], dtype=DOUBLE),
    S(f"{MODULE}.exponential", 4, center=1.25, tau=2.0, sym=False),
    S(f"{MODULE}.gaussian", 4, std=2.0),
    S(f"{MODULE}.kaiser", 4, beta=2.5),
]
