"""Discrete Fourier transforms, composed of `_fft_c2c`, `_fft_r2c` and `_fft_c2r`."""

from __future__ import annotations

import operator
from typing import Unpack

from .. import ops
from ..core import dtypes
from ..frontend.factories import create
from ..frontend.factory_options import FactoryOptions, dtype_of
from ..ops.autocast import widened
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary
from .out import takes_out, takes_real_out

_NORMALIZATIONS = {None: "backward", "backward": "backward", "forward": "forward", "ortho": "ortho"}


@takes_out
def fft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the discrete Fourier transform of one dimension.

    input: of any shape with a dimension; float32, float64, complex64, complex128, or integers and
    bools, which become the default dtype.
    n: the number of points; input is cropped or padded with zeros at the end to it. None: all.
    norm: "backward" (the default) does not scale `fft` and divides `ifft` by n, "forward" does the
    opposite, "ortho" divides both by sqrt(n).

    Returns a complex tensor. Raises RuntimeError for n < 1, another norm or half precision,
    IndexError for a dim that input does not have.

    >>> jaxgrad.fft.fft(jaxgrad.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j, -2.-2.j])
    """
    return _one_to_complex("fft", input, n, dim, norm, True)


@takes_out
def ifft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the inverse Fourier transform of one dimension; arguments and errors as for `fft`.

    >>> jaxgrad.fft.ifft(jaxgrad.tensor([10 + 0j, -2 + 2j, -2 + 0j, -2 - 2j]))
    tensor([1.+0.j, 2.+0.j, 3.+0.j, 4.+0.j])
    """
    return _one_to_complex("ifft", input, n, dim, norm, False)


@takes_out
def rfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the first half of the Fourier transform of a real tensor, n // 2 + 1 points.

    The others are conjugates of these. input: real; other arguments and errors as for `fft`.

    >>> jaxgrad.fft.rfft(jaxgrad.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([10.+0.j, -2.+2.j, -2.+0.j])
    """
    return _one_from_real("rfft", input, n, dim, norm, True)


@takes_real_out
def irfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the real tensor whose `rfft` is input.

    n: the number of points of the result; None: 2 * (input.shape[dim] - 1). The imaginary parts of
    the first point and, for even n, of the last do not count. Other arguments and errors as for
    `fft`.

    >>> jaxgrad.fft.irfft(jaxgrad.tensor([10 + 0j, -2 + 2j, -2 + 0j]))
    tensor([1., 2., 3., 4.])
    """
    return _one_to_real(input, n, dim, norm, False)


@takes_real_out
def hfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the Fourier transform, which is real, of a signal whose second half is the conjugate
    of the first; input is the first half. Arguments and errors as for `irfft`.

    >>> jaxgrad.fft.hfft(jaxgrad.tensor([2.5 + 0j, -0.5 - 0.5j, -0.5 + 0j]))
    tensor([1., 2., 3., 4.])
    """
    return _one_to_real(input, n, dim, norm, True)


@takes_out
def ihfft(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """Return the first half of the inverse Fourier transform of a real tensor: `hfft` backwards.

    Arguments and errors as for `rfft`.

    >>> jaxgrad.fft.ihfft(jaxgrad.tensor([1.0, 2.0, 3.0, 4.0]))
    tensor([ 2.5000-0.0000j, -0.5000-0.5000j, -0.5000-0.0000j])
    """
    return _one_from_real("ihfft", input, n, dim, norm, False)


@takes_out
def fftn(input: Tensor, s=None, dim=None, norm: str | None = None) -> Tensor:
    """Return the discrete Fourier transform of several dimensions.

    s: the number of points of each; -1: all. dim: an int or a list of ints. Without dim these are
    the last dimensions, as many as s has numbers, and without s all. Other arguments as for `fft`.

    Returns a complex tensor. Raises RuntimeError for a number of points below 1, a repeated
    dimension, s and dim of different lengths, and as `fft`.

    >>> jaxgrad.fft.fftn(jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
    tensor([[10.+0.j, -2.+0.j],
            [-4.+0.j,  0.+0.j]])
    """
    return _several_to_complex(input, s, dim, norm, True)


@takes_out
def ifftn(input: Tensor, s=None, dim=None, norm: str | None = None) -> Tensor:
    """Return the inverse Fourier transform of several dimensions; arguments as for `fftn`.

    >>> jaxgrad.fft.ifftn(jaxgrad.tensor([[10.0, -2.0], [-4.0, 0.0]]))
    tensor([[1.+0.j, 2.+0.j],
            [3.+0.j, 4.+0.j]])
    """
    return _several_to_complex(input, s, dim, norm, False)


@takes_out
def rfftn(input: Tensor, s=None, dim=None, norm: str | None = None) -> Tensor:
    """Return the Fourier transform of several dimensions of a real tensor, of the last of them only
    the first half. Arguments and errors as for `fftn`; at least one dimension.

    >>> jaxgrad.fft.rfftn(jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])).real
    tensor([[10., -2.],
            [-4.,  0.]])
    """
    if input.is_complex():
        raise RuntimeError(
            f"rfftn expects a real-valued input tensor, but got {input.dtype.scalar_type}"
        )
    input, dims, extents = _transformed("rfftn", _promoted(input), s, dim, True)
    return ops._fft_r2c(_resized(input, dims, extents), dims, _number_of(norm, True), True)


@takes_real_out
def irfftn(input: Tensor, s=None, dim=None, norm: str | None = None) -> Tensor:
    """Return the real tensor whose `rfftn` is input.

    s: the numbers of points of the result, the last by default 2 * (input.shape[dim[-1]] - 1).
    Other arguments and errors as for `rfftn`.

    >>> jaxgrad.fft.irfftn(jaxgrad.tensor([[10.0, -2.0], [-4.0, 0.0]]))
    tensor([[1., 2.],
            [3., 4.]])
    """
    input, dims, last = _half_spectrum("irfftn", input, s, dim)
    return ops._fft_c2r(input, dims, _number_of(norm, False), last)


@takes_real_out
def hfftn(input: Tensor, s=None, dim=None, norm: str | None = None) -> Tensor:
    """Return the Fourier transform of several dimensions of a signal that is its own conjugate when
    mirrored; input is its first half, and the result is real. Arguments as for `irfftn`.

    >>> jaxgrad.fft.hfftn(jaxgrad.tensor([[2.5, -0.5], [-1.0, 0.0]]))
    tensor([[1., 2.],
            [3., 4.]])
    """
    input, dims, last = _half_spectrum("hfftn", input, s, dim)
    normalization = _number_of(norm, True)
    if len(dims) > 1:
        input = ops._fft_c2c(input, dims[:-1], normalization, True)
    return ops._fft_c2r(input.conj(), dims[-1:], normalization, last)


@takes_out
def ihfftn(input: Tensor, s=None, dim=None, norm: str | None = None) -> Tensor:
    """Return the first half of the inverse Fourier transform of several dimensions of a real
    tensor: `hfftn` backwards. Arguments as for `rfftn`.

    >>> jaxgrad.fft.ihfftn(jaxgrad.tensor([[1.0, 2.0], [3.0, 4.0]])).real
    tensor([[ 2.5000, -0.5000],
            [-1.0000,  0.0000]])
    """
    if input.is_complex():
        kind = input.dtype.scalar_type
        raise RuntimeError(f"Only supports floating-point dtypes, but found: {kind}")
    input, dims, extents = _transformed("ihfftn", _promoted(input), s, dim, True)
    normalization = _number_of(norm, False)
    half = ops._fft_r2c(_resized(input, dims, extents), dims[-1:], normalization, True)
    if len(dims) == 1:
        return half.conj()
    return ops._fft_c2c(ops.conj_physical(half), dims[:-1], normalization, False)


def _of_two(function, doc, with_out=takes_out):
    """`function` of the last two dimensions by default; with_out: the decorator for `out=`."""

    def of_two(input: Tensor, s=None, dim=(-2, -1), norm: str | None = None) -> Tensor:
        return function(input, s, dim, norm)

    of_two.__name__ = of_two.__qualname__ = f"{function.__name__[:-1]}2"
    of_two.__doc__ = doc
    return with_out(of_two)


_OF_TWO = """Return `{}`, of the last two dimensions by default; arguments and errors as there.

>>> jaxgrad.fft.{}(jaxgrad.ones(1, 2, 2)).shape
torch.Size([1, 2, 2])
"""

fft2 = _of_two(fftn, _OF_TWO.format("fftn", "fft2"))
ifft2 = _of_two(ifftn, _OF_TWO.format("ifftn", "ifft2"))
rfft2 = _of_two(rfftn, _OF_TWO.format("rfftn", "rfft2"))
irfft2 = _of_two(irfftn, _OF_TWO.format("irfftn", "irfft2"), takes_real_out)
hfft2 = _of_two(hfftn, _OF_TWO.format("hfftn", "hfft2"), takes_real_out)
ihfft2 = _of_two(ihfftn, _OF_TWO.format("ihfftn", "ihfft2"))


# of one dimension


def _one_to_complex(name, input, n, dim, norm, forward):
    if not input.is_complex():
        return _one_from_real(name, input, n, dim, norm, forward, onesided=False)
    input, dim = _resized_line(_promoted(input), n, dim)
    return ops._fft_c2c(input, [dim], _number_of(norm, forward), forward)


def _one_from_real(name, input, n, dim, norm, forward, onesided=True):
    if input.is_complex():
        raise RuntimeError(
            f"{name} expects a real input tensor, but got {input.dtype.scalar_type}: take .real "
            "first, or the transform of complex tensors"
        )
    input, dim = _resized_line(_promoted(input), n, dim)
    spectrum = ops._fft_r2c(input, [dim], _number_of(norm, forward), onesided)
    # exp(+i...) of real numbers is the conjugate of exp(-i...)
    return spectrum if forward else spectrum.conj()


def _one_to_real(input, n, dim, norm, forward):
    input = _promoted(input, to_complex=True)
    dim = _wrapped(dim, input.ndim)
    count = 2 * (input.shape[dim] - 1) if n is None else n
    _check_points(count)
    if n is not None:
        input = _resized(input, [dim], [n // 2 + 1])
    spectrum = input.conj() if forward else input
    return ops._fft_c2r(spectrum, [dim], _number_of(norm, forward), count)


def _resized_line(input, n, dim):
    """The input resized to n points, and the dimension counted from 0."""
    dim = _wrapped(dim, input.ndim)
    _check_points(input.shape[dim] if n is None else n)
    return (input if n is None else _resized(input, [dim], [n])), dim


# of several dimensions


def _several_to_complex(input, s, dim, norm, forward):
    input, dims, extents = _transformed("fftn", _promoted(input, to_complex=True), s, dim)
    return ops._fft_c2c(_resized(input, dims, extents), dims, _number_of(norm, forward), forward)


def _half_spectrum(name, input, s, dim):
    """The half of a spectrum with the right number of points, its dimensions, and the number of
    points of the last of them in the result."""
    input, dims, extents = _transformed(name, _promoted(input, to_complex=True), s, dim, True)
    count = -1 if s is None else _listed(s)[-1]
    last = 2 * (input.shape[dims[-1]] - 1) if count == -1 else count
    _check_points(last)
    return _resized(input, dims, [*extents[:-1], last // 2 + 1]), dims, last


def _transformed(name, input, s, dim, needs_one=False):
    """The input, its dimensions to transform, counted from 0, and the number of points of each."""
    if dim is None:
        count = input.ndim if s is None else len(_listed(s))
        if count > input.ndim:
            raise RuntimeError(
                f"Got shape with {count} values but input tensor only has {input.ndim} dimensions."
            )
        dims = list(range(input.ndim - count, input.ndim))
    else:
        dims = [_wrapped(axis, input.ndim) for axis in _listed(dim)]
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"FFT dims must be unique: {dims} names one twice")
    if s is not None and len(_listed(s)) != len(dims):
        raise RuntimeError("When given, dim and shape arguments must have the same length")
    if needs_one and not dims:
        raise RuntimeError(f"{name} must transform at least one axis")
    wanted = [-1] * len(dims) if s is None else _listed(s)
    extents = [input.shape[d] if n == -1 else n for d, n in zip(dims, wanted, strict=True)]
    for extent in extents:
        _check_points(extent)
    return input, dims, extents


def _listed(numbers):
    numbers = [numbers] if isinstance(numbers, int) else numbers
    if not isinstance(numbers, list | tuple) or not all(map(_is_int, numbers)):
        raise TypeError(f"s and dim of a transform must be tuple of ints, not {numbers!r}")
    return list(numbers)


def _is_int(value):
    return hasattr(value, "__index__") and not isinstance(value, bool)


# of all


def _promoted(input, to_complex=False):
    """The input as a floating point or complex tensor."""
    (input,) = widened(input)
    if input.dtype in (dtypes.float16, dtypes.bfloat16):
        raise RuntimeError(f"Unsupported dtype {input.dtype.scalar_type}: convert to float32 first")
    is_inexact = input.is_floating_point() or input.is_complex()
    dtype = input.dtype if is_inexact else dtypes.get_default_dtype()
    return input.to(dtype.to_complex() if to_complex else dtype)


def _wrapped(dim, ndim):
    if ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], "
            f"but got {dim})"
        )
    return dim % ndim


def _check_points(count):
    if count < 1:
        raise RuntimeError(f"Invalid number of data points ({count}) specified")


def _number_of(norm, forward):
    """The normalization of the operators: 0 none, 1 the square root of n, 2 n."""
    if norm not in _NORMALIZATIONS:
        raise RuntimeError(
            f'Invalid normalization mode: "{norm}": choose "backward", "forward" or "ortho"'
        )
    if norm == "ortho":
        return 1
    divides = norm == "forward" if forward else norm != "forward"
    return 2 if divides else 0


def _resized(input, dims, extents):
    """The input cropped, or padded with zeros, at the end of some dimensions."""
    padding = [0] * (2 * input.ndim)
    for dim, extent in zip(dims, extents, strict=True):
        missing = extent - input.shape[dim]
        if missing < 0:
            input = input.narrow(dim, 0, extent)
        padding[2 * (input.ndim - 1 - dim) + 1] = max(missing, 0)
    return ops.constant_pad_nd(input, padding) if any(padding) else input


# frequencies and their order


@api_boundary
def fftfreq(n: int, d: float = 1.0, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return the frequencies of the points of `fft`, in cycles for each unit of `d`.

    n: the number of points. d: the distance of samples. Returns shape (n,): 0, 1, ..., -2, -1, each
    divided by n * d. dtype: if None, the default dtype; other options as for `zeros`.

    >>> jaxgrad.fft.fftfreq(4, 0.5)
    tensor([ 0.0000,  0.5000, -1.0000, -0.5000])
    """
    n = operator.index(n)
    return _frequencies("fftfreq", _fftfreq, n, (n,), d, options)


@api_boundary
def rfftfreq(n: int, d: float = 1.0, **options: Unpack[FactoryOptions]) -> Tensor:
    """Return the frequencies of the points of `rfft`, of shape (n // 2 + 1,), none negative.

    Arguments as for `fftfreq`.

    >>> jaxgrad.fft.rfftfreq(4, 0.5)
    tensor([0.0000, 0.5000, 1.0000])
    """
    n = operator.index(n)
    return _frequencies("rfftfreq", _rfftfreq, n, (n // 2 + 1,), d, options)


def _frequencies(name, function, n, shape, d, options):
    dtype = dtype_of(options, dtypes.get_default_dtype())
    if n < 0:
        raise RuntimeError(f"{name}: n must not be negative, but got {n}")
    if not (dtype.is_floating_point or dtype.is_complex):
        raise RuntimeError(f"{name} requires a floating point or complex dtype, but got {dtype!r}")
    step = 1 / (n * d) if n * d else float("inf")
    return create(name, function, shape, dtype, options, n, step)


def _fftfreq(shape, dtype, module, n, step):
    counts = module.arange(*shape)
    return (module.where(counts < (n + 1) // 2, counts, counts - n) * step).astype(dtype)


def _rfftfreq(shape, dtype, module, n, step):
    return (module.arange(*shape) * step).astype(dtype)


@api_boundary
def fftshift(input: Tensor, dim=None) -> Tensor:
    """Return the input rolled so that the frequency 0 of a transform comes to the middle.

    input: of any shape and dtype. dim: an int or a list of ints; None: all dimensions.

    >>> jaxgrad.fft.fftshift(jaxgrad.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _shifted(input, dim, lambda extent: extent // 2)


@api_boundary
def ifftshift(input: Tensor, dim=None) -> Tensor:
    """Undo `fftshift`; arguments as there.

    >>> jaxgrad.fft.ifftshift(jaxgrad.tensor([-2, -1, 0, 1]))
    tensor([ 0,  1, -2, -1])
    """
    return _shifted(input, dim, lambda extent: (extent + 1) // 2)


def _shifted(input, dim, shift):
    dims = list(range(input.ndim)) if dim is None else _listed(dim)
    if not dims:
        return input.clone()
    return ops.roll(input, [shift(input.shape[_wrapped(d, input.ndim)]) for d in dims], dims)
