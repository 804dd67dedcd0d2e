"""Windows of signals, as factories: `hann_window` and its kin, and the shapes of all windows.

A shape computes `numbers` of one form in double precision, from the number of steps between the
first and the last element, which is the window's length for a periodic window and else one less.
"""

from __future__ import annotations

import math
import operator
from typing import Unpack

from ..core import dtypes
from ..frontend.factories import create
from ..frontend.factory_options import FactoryOptions, dtype_of
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary

BLACKMAN = (0.42, 0.5, 0.08)


def cosines(shape, dtype, module, steps, *coefficients):
    """Sum of (-1)**i * coefficients[i] * cos(i * x) over one period."""
    angles = module.arange(*shape) * (2 * math.pi / steps)
    signed = [(-1) ** i * coefficient for i, coefficient in enumerate(coefficients)]
    return sum(factor * module.cos(i * angles) for i, factor in enumerate(signed)).astype(dtype)


def triangle(shape, dtype, module, steps):
    """From 0 up to 1 and back."""
    return (1 - module.abs(module.arange(*shape) * (2 / steps) - 1)).astype(dtype)


def kaiser(shape, dtype, module, steps, beta):
    """Modified Bessel functions I0 of a half circle of radius beta, relative to that of beta."""
    across = module.arange(*shape) * (2 / steps) - 1
    heights = module.sqrt(module.maximum(1 - across * across, 0))
    return (module.i0(beta * heights) / module.i0(beta * module.ones(()))).astype(dtype)


@api_boundary
def hann_window(
    window_length: int, periodic: bool = True, **options: Unpack[FactoryOptions]
) -> Tensor:
    """Return the window `0.5 - 0.5 * cos(x)` of shape (window_length,).

    window_length: 0 or more. periodic: the window is one period of a longer one, as for `stft`;
    else it is symmetric and ends with its first value. dtype: floating point; the default dtype if
    None. Other options as for `zeros`.

    Raises RuntimeError for a negative length or another dtype.

    >>> jaxgrad.hann_window(4), jaxgrad.hann_window(5, periodic=False)
    (tensor([0.0000, 0.5000, 1.0000, 0.5000]), tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000]))
    """
    return _window("hann_window", cosines, window_length, periodic, options, 0.5, 0.5)


@api_boundary
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    **options: Unpack[FactoryOptions],
) -> Tensor:
    """Return the window `alpha - beta * cos(x)`; other arguments and errors as for `hann_window`.

    >>> jaxgrad.hamming_window(4)
    tensor([0.0800, 0.5400, 1.0000, 0.5400])
    """
    return _window("hamming_window", cosines, window_length, periodic, options, alpha, beta)


@api_boundary
def blackman_window(
    window_length: int, periodic: bool = True, **options: Unpack[FactoryOptions]
) -> Tensor:
    """Return the window `0.42 - 0.5 * cos(x) + 0.08 * cos(2 * x)`; arguments as for `hann_window`.

    >>> jaxgrad.blackman_window(4).round(decimals=2)
    tensor([-0.0000, 0.3400, 1.0000, 0.3400])
    """
    return _window("blackman_window", cosines, window_length, periodic, options, *BLACKMAN)


@api_boundary
def bartlett_window(
    window_length: int, periodic: bool = True, **options: Unpack[FactoryOptions]
) -> Tensor:
    """Return the triangle from 0 to 1 and back; arguments and errors as for `hann_window`.

    >>> jaxgrad.bartlett_window(4)
    tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _window("bartlett_window", triangle, window_length, periodic, options)


@api_boundary
def kaiser_window(
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    **options: Unpack[FactoryOptions],
) -> Tensor:
    """Return the window `i0(beta * sqrt(1 - x**2)) / i0(beta)` for x from -1 to 1.

    beta: the larger, the narrower. Other arguments and errors as for `hann_window`.

    >>> jaxgrad.kaiser_window(4, beta=2.0)
    tensor([0.4387, 0.8348, 1.0000, 0.8348])
    """
    return _window("kaiser_window", kaiser, window_length, periodic, options, beta)


def _window(name, function, length, periodic, options, *numbers):
    dtype = dtype_of(options, dtypes.get_default_dtype())
    if not dtype.is_floating_point:
        raise RuntimeError(f"{name} expects floating point dtypes, got: {dtype!r}")
    if operator.index(length) < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={length}"
        )
    return filled(name, function, length, not periodic, dtype, options, *numbers)


def filled(name, function, length, is_symmetric, dtype, options, *numbers) -> Tensor:
    """The window of a shape; one of length 1 is 1."""
    if length == 1:
        return create(name, _ones, (1,), dtype, options)
    steps = length - 1 if is_symmetric else length
    return create(name, function, (length,), dtype, options, max(steps, 1), *numbers)


def _ones(shape, dtype, module):
    return module.ones(shape, dtype)
