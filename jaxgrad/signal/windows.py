"""Windows of signals: torch.signal.windows.

Unlike `hann_window` and its kin they are symmetric unless `sym=False`.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Unpack

from ..core import dtypes
from ..core.device import strided
from ..core.tracebacks import shows_users_frames
from ..frontend.factories import create
from ..frontend.factory_options import FactoryOptions, dtype_of
from ..functions.windows import BLACKMAN, cosines, filled, triangle
from ..functions.windows import kaiser as _kaiser
from ..names.missing import missing_in
from ..tape.tensor import Tensor

__all__ = ["bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine"]
__all__ += ["general_hamming", "hamming", "hann", "kaiser", "nuttall"]

_NUTTALL = (0.3635819, 0.4891775, 0.1365995, 0.0106411)


@shows_users_frames
def hann(M: int, *, sym: bool = True, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return the Hann window `0.5 - 0.5 * cos(x)` of shape (M,).

    M: the length, 0 or more. sym: symmetric, for the design of filters; else periodic, for spectra.
    dtype: float32 or float64; the default dtype if None. Other options as for `zeros`; with
    `requires_grad` the window is a leaf.

    Raises ValueError for a negative length, another dtype or a layout that is not strided.

    >>> jaxgrad.signal.windows.hann(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _window("general_cosine", cosines, M, sym, options, 0.5, 0.5)


@shows_users_frames
def hamming(M: int, *, sym: bool = True, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return the Hamming window `0.54 - 0.46 * cos(x)`; arguments and errors as for `hann`.

    >>> jaxgrad.signal.windows.hamming(5)
    tensor([0.0800, 0.5400, 1.0000, 0.5400, 0.0800])
    """
    return _window("general_cosine", cosines, M, sym, options, 0.54, 1 - 0.54)


@shows_users_frames
def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, **options: Unpack[FactoryOptions]
) -> Tensor:
    """Return the window `alpha - (1 - alpha) * cos(x)`; other arguments and errors as for `hann`.

    >>> jaxgrad.signal.windows.general_hamming(3, alpha=0.75)
    tensor([0.5000, 1.0000, 0.5000])
    """
    return _window("general_cosine", cosines, M, sym, options, alpha, 1 - alpha)


@shows_users_frames
def general_cosine(
    M: int, *, a: Iterable[float], sym: bool = True, **options: Unpack[FactoryOptions]
) -> Tensor:
    """Return the window `a[0] - a[1] * cos(x) + a[2] * cos(2 * x) - ...`.

    a: a list of numbers, at least one. Other arguments and errors as for `hann`; TypeError for
    another a, ValueError for an empty one.

    >>> jaxgrad.signal.windows.general_cosine(3, a=[0.5, 0.25])
    tensor([0.2500, 0.7500, 0.2500])
    """
    if M > 1 and not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    if M > 1 and not a:
        raise ValueError("Coefficients cannot be empty")
    return _window("general_cosine", cosines, M, sym, options, *a)


@shows_users_frames
def blackman(M: int, *, sym: bool = True, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return the Blackman window `0.42 - 0.5 * cos(x) + 0.08 * cos(2 * x)`; arguments and errors as
    for `hann`.

    >>> jaxgrad.signal.windows.blackman(5).round(decimals=2).abs()
    tensor([0.0000, 0.3400, 1.0000, 0.3400, 0.0000])
    """
    return _window("blackman", cosines, M, sym, options, *BLACKMAN)


@shows_users_frames
def nuttall(M: int, *, sym: bool = True, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return the window of four cosines with the lowest side lobes; arguments and errors as for
    `hann`.

    >>> jaxgrad.signal.windows.nuttall(3)
    tensor([3.6280e-04, 1.0000e+00, 3.6280e-04])
    """
    return _window("general_cosine", cosines, M, sym, options, *_NUTTALL)


@shows_users_frames
def bartlett(M: int, *, sym: bool = True, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return the triangle from 0 to 1 and back; arguments and errors as for `hann`.

    >>> jaxgrad.signal.windows.bartlett(5)
    tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return _window("bartlett", triangle, M, sym, options)


@shows_users_frames
def kaiser(
    M: int, *, beta: float = 12.0, sym: bool = True, **options: Unpack[FactoryOptions]
) -> Tensor:
    """Return the window `i0(beta * sqrt(1 - x**2)) / i0(beta)` for x from -1 to 1.

    beta: 0 or more, the larger the narrower; ValueError if negative. Other arguments and errors as
    for `hann`.

    >>> jaxgrad.signal.windows.kaiser(3, beta=2.0)
    tensor([0.4387, 1.0000, 0.4387])
    """
    _check("kaiser", M, options)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _window("kaiser", _kaiser, M, sym, options, beta)


@shows_users_frames
def cosine(M: int, *, sym: bool = True, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return half a period of a sine, `sin(pi * (n + 0.5) / M)`; arguments and errors as for
    `hann`.

    >>> jaxgrad.signal.windows.cosine(3)
    tensor([0.5000, 1.0000, 0.5000])
    """
    points = M if sym or M <= 1 else M + 1
    return _new_window("cosine", _sine, M, options, math.pi / max(points, 1))


@shows_users_frames
def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    **options: Unpack[FactoryOptions],
) -> Tensor:
    """Return the window `exp(-abs(n - center) / tau)`.

    center: the place of the maximum, only without sym; None: the middle. tau: the decay, positive.
    Other arguments and errors as for `hann`; ValueError for a center or a tau that does not fit.

    >>> jaxgrad.signal.windows.exponential(3)
    tensor([0.3679, 1.0000, 0.3679])
    """
    _check("exponential", M, options)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    middle = _middle(M, sym) if center is None else center
    return _new_window("exponential", _exponential, M, options, middle, 1 / tau)


@shows_users_frames
def gaussian(
    M: int, *, std: float = 1.0, sym: bool = True, **options: Unpack[FactoryOptions]
) -> Tensor:
    """Return the window `exp(-(n - (M - 1) / 2)**2 / (2 * std**2))`.

    std: positive, else ValueError. Other arguments and errors as for `hann`.

    >>> jaxgrad.signal.windows.gaussian(3)
    tensor([0.6065, 1.0000, 0.6065])
    """
    _check("gaussian", M, options)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _new_window("gaussian", _gaussian, M, options, _middle(M, sym), 1 / (std * math.sqrt(2)))


def _middle(M, sym):
    return (M - 1 if sym or M <= 1 else M) / 2


def _sine(shape, dtype, module, step):
    return module.sin((module.arange(*shape) + 0.5) * step).astype(dtype)


def _exponential(shape, dtype, module, center, scale):
    return module.exp(-module.abs((module.arange(*shape) - center) * scale)).astype(dtype)


def _gaussian(shape, dtype, module, center, scale):
    return module.exp(-(((module.arange(*shape) - center) * scale) ** 2)).astype(dtype)


def _window(name, function, M, sym, options, *numbers):
    return filled(name, function, M, sym, _check(name, M, options), options, *numbers)


def _new_window(name, function, M, options, *numbers):
    return create(name, function, (M,), _check(name, M, options), options, *numbers)


def _check(name, M, options):
    """The dtype of the window; raises ValueError for a length, layout or dtype that is refused."""
    dtype = dtype_of(options, dtypes.get_default_dtype())
    if operator.index(M) < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if options.get("layout") not in (None, strided):
        raise ValueError(
            f"{name} is implemented for strided tensors only, got: {options['layout']!r}"
        )
    if dtype not in (dtypes.float32, dtypes.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype!r}")
    return dtype


__getattr__ = missing_in(__name__)
