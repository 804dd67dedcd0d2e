"""Short-time Fourier transforms: `stft` and `istft`."""

from __future__ import annotations

import warnings

import numpy as np

from .. import ops
from ..core.symbolic_extents import is_symbolic
from ..core.tracebacks import users_stacklevel
from ..frontend.array_creation import beside
from ..frontend.factories import arange, ones
from ..frontend.tensor_data import tensor
from ..ops.autocast import widened
from ..tape.tensor import Tensor, is_concrete
from ..tape.torch_function import api_boundary, names_defaults

_NO_WINDOW = (
    "A window was not provided. A rectangular window will be applied,"
    "which is known to cause spectral leakage. "
    "Other windows such as torch.hann_window or torch.hamming_window "
    "are recommended to reduce spectral leakage."
    "To suppress this warning and use a rectangular window, explicitly set "
    "`window=torch.ones(n_fft, device=<device>)`."
)
_NO_INVERSE_WINDOW = (
    "A window was not provided. A rectangular window will be applied, which inverts only an stft "
    "that had none: pass the window of stft, or window=torch.ones(n_fft)"
)
_PAIRS = (
    "stft with return_complex=False is deprecated. In a future pytorch release, stft will return "
    "complex tensors for all inputs, and return_complex=False will raise an error.\n"
    "Note: you can still call torch.view_as_real on the complex output to recover the old return "
    "format."
)
_TOO_LONG = (
    "The length of signal is shorter than the length parameter. Result is being padded with zeros "
    "in the tail. Please check your center and hop_length settings"
)
_BY_ROOT, _BY_N = 1, 2
_LOWEST_ENVELOPE = 1e-11
# numpy's names of the modes of padding that copy elements
_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


@names_defaults
@api_boundary
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Tensor:
    """Return the Fourier transforms of windows of a signal.

    input: (n,) or (batch, n), floating point or complex. n_fft: the points of each transform.
    hop_length: from window to window; None: n_fft // 4. win_length: up to n_fft, which is the
    default; the window is padded with zeros to n_fft. window: (win_length,); None: ones.
    center: pad the signal by n_fft // 2 on both sides, by `pad_mode`, so that window t is centered
    at t * hop_length. normalized: divide by sqrt(n_fft). onesided: only the first half of each
    transform, n_fft // 2 + 1; None: for a real signal and window. return_complex: must be given for
    a real signal; False: pairs in a last dimension of 2. align_to_window: without center, the first
    window of win_length begins with the signal.

    Returns complex numbers of shape (batch, points, windows). Raises RuntimeError for sizes or
    dtypes that do not fit.

    >>> jaxgrad.stft(jaxgrad.ones(8), 4, window=jaxgrad.ones(4), return_complex=True)[:, 0]
    tensor([4.+0.j, 0.+0.j, 0.+0.j])
    """
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    if input.ndim not in (1, 2):
        raise RuntimeError(f"stft: expected a 1D or 2D tensor, but got {input.ndim} dimensions")
    if n_fft <= 0:
        raise RuntimeError(f"stft: expected n_fft > 0, but got n_fft={n_fft}")
    input, window = widened(input, window)
    signal = _padded(input, n_fft // 2, pad_mode) if center else input
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    is_complex = input.is_complex() or (window is not None and window.is_complex())
    _check_stft(signal, n_fft, hop_length, win_length, window, is_complex, return_complex)
    signal = signal.unsqueeze(0) if input.ndim == 1 else signal
    if align_to_window:
        missing = n_fft - win_length
        signal = ops.constant_pad_nd(signal, [missing // 2, missing - missing // 2])
    frames = signal.unfold(-1, n_fft, hop_length)
    weights = _weights(window, win_length, n_fft, signal)
    frames = frames if weights is None else frames * weights
    # in place, since the result is no view in PyTorch
    transformed = _transforms(frames, normalized, onesided).transpose_(1, 2)
    transformed = transformed.squeeze_(0) if input.ndim == 1 else transformed
    wants_complex = is_complex if return_complex is None else return_complex
    return transformed if wants_complex else ops.view_as_real(transformed)


def _padded(input, count, mode):
    """The signal extended by `count` on both sides."""
    if mode == "constant":
        return ops.constant_pad_nd(input, [count, count])
    if mode not in _MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    length = input.shape[-1]
    most = count if mode == "replicate" else length - (mode == "reflect")
    if not length or count > most:
        raise RuntimeError(
            "Padding size should be less than the corresponding input dimension, but got: padding "
            f"({count}, {count}) at dimension 2 of input {[1, *input.shape]}"
        )
    return input.index_select(-1, _places(length, count, mode, beside(input)))


def _places(length, count, mode, device) -> Tensor:
    """The indices of the elements of an extended signal."""
    if not is_symbolic(length):
        return tensor(np.pad(np.arange(length), count, _MODES[mode]), device=device)
    places = arange(-count, length + count, device=device)
    if mode == "circular":
        return places % length
    if mode == "replicate":
        return places.clamp(0, length - 1)
    return length - 1 - (length - 1 - places.abs()).abs()


def _check_stft(signal, n_fft, hop_length, win_length, window, is_complex, return_complex):
    if window is None:
        warnings.warn(_NO_WINDOW, stacklevel=users_stacklevel())
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs, and will further "
            "require that return_complex=True in a future PyTorch release."
        )
    if return_complex is False:
        warnings.warn(_PAIRS, stacklevel=users_stacklevel())
    if not (signal.is_floating_point() or signal.is_complex()):
        raise RuntimeError(
            f"stft: expected a tensor of floating point or complex values, not {signal.dtype!r}"
        )
    length = signal.shape[-1]
    if not 0 < n_fft <= length:
        raise RuntimeError(f"stft: expected 0 < n_fft < {length}, but got n_fft={n_fft}")
    if hop_length <= 0:
        raise RuntimeError(f"stft: expected hop_length > 0, but got hop_length={hop_length}")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(
            f"stft: expected 0 < win_length <= n_fft, but got win_length={win_length}"
        )
    if window is not None and window.shape != (win_length,):
        raise RuntimeError(
            f"stft: expected a 1D window tensor of size equal to win_length={win_length}, but got "
            f"window with size {list(window.shape)}"
        )


def _weights(window, win_length, n_fft, like):
    """The window with zeros on both sides up to `n_fft`; None for one of ones."""
    if window is None and win_length == n_fft:
        return None
    if window is None:
        window = ones(win_length, dtype=like.dtype, device=beside(like))
    missing = n_fft - win_length
    if not missing:
        return window
    return ops.constant_pad_nd(window, [missing // 2, missing - missing // 2])


def _transforms(frames, normalized, onesided):
    normalization = _BY_ROOT if normalized else 0
    if not frames.is_complex():
        return ops._fft_r2c(frames, [2], normalization, onesided is None or onesided)
    if onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    return ops._fft_c2c(frames, [2], normalization, True)


@api_boundary
def istft(
    input: Tensor,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Tensor | None = None,
    center: bool = True,
    normalized: bool = False,
    onesided: bool | None = None,
    length: int | None = None,
    return_complex: bool = False,
) -> Tensor:
    """Return the signal whose `stft` is input: the least-squares estimate if there is none.

    input: (points, windows) or (batch, points, windows), complex. length: the length of the signal,
    cropped or padded with zeros at the end; None: as long as the windows say. onesided: input holds
    the first half of each transform; None: as its size says. return_complex: a complex signal.
    Other arguments as for `stft`.

    Raises RuntimeError for sizes or dtypes that do not fit, and if the squared windows add up to
    less than 1e-11 somewhere; inside a trace the result is infinite or NaN there.

    >>> window = jaxgrad.hann_window(4)
    >>> spectrum = jaxgrad.stft(jaxgrad.arange(8.0), 4, window=window, return_complex=True)
    >>> jaxgrad.istft(spectrum, 4, window=window).round()
    tensor([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    _check_istft(input, n_fft, hop_length, win_length, window)
    points = input.shape[-2]
    onesided = points != n_fft if onesided is None else onesided
    _check_points(points, n_fft, onesided, window, return_complex)
    spectra = (input.unsqueeze(0) if input.ndim == 2 else input).transpose(1, 2)
    weights = _weights(window, win_length, n_fft, input.real)
    if weights is None:
        weights = ones(n_fft, dtype=input.real.dtype, device=beside(input))
    frames = _frames(spectra, n_fft, normalized, onesided, return_complex) * weights
    expected = n_fft + hop_length * (frames.shape[1] - 1)
    start, end = _ends(n_fft, expected, center, length)
    signal = ops.unfold_backward(frames, [frames.shape[0], expected], 1, n_fft, hop_length)
    squares = (weights**2).expand(1, frames.shape[1], n_fft)
    envelope = ops.unfold_backward(squares, [1, expected], 1, n_fft, hop_length)[:, start:end]
    _check_envelope(envelope)
    signal = signal[:, start:end] / envelope
    signal = signal.squeeze(0) if input.ndim == 2 else signal
    if end <= expected:
        return signal
    warnings.warn(_TOO_LONG, stacklevel=users_stacklevel())
    return ops.constant_pad_nd(signal, [0, end - expected])


def _check_istft(input, n_fft, hop_length, win_length, window):
    if window is None:
        warnings.warn(_NO_INVERSE_WINDOW, stacklevel=users_stacklevel())
    if not input.is_complex():
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with "
            "return_complex=True."
        )
    if not input.numel():
        raise RuntimeError("istft: input tensor cannot be empty.")
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"istft: expected a tensor with 3 or 4 dimensions, but got {input.ndim + 1}: complex "
            "numbers count as one"
        )
    if not 0 < hop_length <= win_length:
        raise RuntimeError("istft: expected 0 < hop_length <= win_length")
    if not 0 < win_length <= n_fft:
        raise RuntimeError("istft: expected 0 < win_length <= n_fft")
    if window is not None and window.shape != (win_length,):
        raise RuntimeError(
            "istft: Invalid window shape. window has to be 1D and length of `win_length`"
        )


def _check_points(points, n_fft, onesided, window, return_complex):
    wanted = n_fft // 2 + 1 if onesided else n_fft
    if points != wanted:
        name = "n_fft / 2 + 1" if onesided else "n_fft"
        raise RuntimeError(
            "istft: expected the frequency dimension (3rd to the last) of the input tensor to "
            f"match {name} when onesided={onesided}, but got {points}"
        )
    if return_complex and onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if not return_complex and window is not None and window.is_complex():
        raise RuntimeError("Complex windows are incompatible with return_complex=False")


def _frames(spectra, n_fft, normalized, onesided, return_complex):
    normalization = _BY_ROOT if normalized else _BY_N
    if return_complex:
        return ops._fft_c2c(spectra, [2], normalization, False)
    half = spectra if onesided else spectra[:, :, : n_fft // 2 + 1]
    return ops._fft_c2r(half, [2], normalization, n_fft)


def _ends(n_fft, expected, center, length):
    """Where the signal begins and ends in the sum of the windows."""
    start = n_fft // 2 if center else 0
    if length is not None:
        return start, start + length
    return start, expected - start


def _check_envelope(envelope):
    """Raise RuntimeError where nothing is known of the signal, if the values are known."""
    if is_concrete(envelope) and bool((envelope.detach().abs().min() < _LOWEST_ENVELOPE).item()):
        raise RuntimeError(
            "istft: window overlap add min: 1: the squared windows add up to less than 1e-11 at "
            "some elements; choose a shorter hop_length or another window"
        )
