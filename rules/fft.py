"""Discrete Fourier transforms over several dimensions, between real and complex tensors.

A normalization is PyTorch's number: 0 none, 1 the square root of the number n of points of a
transform, 2 n. Gradients are the adjoint transforms, with the same normalization.
"""

import math

import jax.numpy as jnp
import numpy
from jax import lax
from jaxgrad.rules import shape as shapes

from jaxgrad.core import dtypes, lacking, promotion, symbolic_extents
from jaxgrad.core.primitive import op

_BY_ROOT, _BY_N = 1, 2
_MOST_DIMS = 3  # of one lax.fft


def fft_c2c(self, dim, normalization, forward):
    """The transform of a complex tensor, of exp(-i...) where `forward`, else of exp(+i...)."""
    _expect(self, dtypes.COMPLEX, "is_complex")
    dims = _wrapped(dim, self.ndim)
    if not dims or not self.size:
        return self
    count = math.prod(self.shape[d] for d in dims)
    transform = _over(lax.FftType.FFT if forward else lax.FftType.IFFT, self, dims)
    return _scaled(transform, count, normalization, not forward)


def fft_r2c(self, dim, normalization, onesided):
    """The transform of a real tensor; of the last of the dimensions only the first half of the
    points where `onesided`: the others are their conjugates."""
    _expect(self, dtypes.FLOATING, "is_floating_point")
    dims = _wrapped(dim, self.ndim)
    if not onesided and len(dims) > 1:
        return fft_c2c(lax.complex(self, jnp.zeros_like(self)), dims, normalization, True)
    *others, last = dims
    extent = self.shape[last]
    kept = extent // 2 + 1 if onesided else extent
    if not self.size:
        shape = (*self.shape[:last], kept, *self.shape[last + 1 :])
        return jnp.zeros(shape, promotion.available(dtypes.from_numpy(self.dtype).to_complex()))
    half = jnp.moveaxis(_lax_fft(jnp.moveaxis(self, last, -1), lax.FftType.RFFT, extent), -1, last)
    transform = _over(lax.FftType.FFT, half, others)
    if not onesided:
        starts, ends = [0] * transform.ndim, [*transform.shape]
        starts[last], ends[last] = 1, extent - extent // 2
        mirrored = lax.slice(transform, starts, ends)
        transform = jnp.concatenate([transform, lax.conj(lax.rev(mirrored, (last,)))], last)
    return _scaled(transform, math.prod(self.shape[d] for d in dims), normalization, False)


def fft_c2r(self, dim, normalization, last_dim_size):
    """The transform with exp(+i...) of the half of a tensor, of which the last of the dimensions
    had `last_dim_size` points, to real numbers.

    Imaginary parts of the points without a mirror image, 0 and the middle, are not read.
    """
    _expect(self, dtypes.COMPLEX, "is_complex")
    if last_dim_size < 1:
        raise RuntimeError(f"Invalid number of data points ({last_dim_size}) specified")
    *others, last = _wrapped(dim, self.ndim)
    shape = (*self.shape[:last], last_dim_size, *self.shape[last + 1 :])
    if not math.prod(shape) or not self.size:
        return jnp.zeros(shape, self.real.dtype)
    spectrum = _over(lax.FftType.IFFT, self, others)
    rows = _half(jnp.moveaxis(spectrum, last, -1), last_dim_size)
    transform = jnp.moveaxis(_lax_fft(rows, lax.FftType.IRFFT, last_dim_size), -1, last)
    count = math.prod(shape[d] for d in (*others, last))
    return _scaled(transform, count, normalization, True)


def _half(rows, extent):
    """The first half of `extent` points in the last dimension, zeros where `rows` has fewer."""
    half = extent // 2 + 1
    if rows.shape[-1] >= half:
        return rows[..., :half]
    zero = jnp.zeros((), rows.dtype)
    ends = [(0, 0, 0)] * (rows.ndim - 1) + [(0, half - rows.shape[-1], 0)]
    return lax.pad(rows, zero, ends)


def _over(kind, array, dims):
    """A complex transform over dimensions, three at a time, as XLA has them."""
    for start in range(0, len(dims), _MOST_DIMS):
        some = tuple(dims[start : start + _MOST_DIMS])
        ends = tuple(range(-len(some), 0))
        moved = jnp.moveaxis(array, some, ends)
        transform = _lax_fft(moved, kind, *[array.shape[d] for d in some])
        array = jnp.moveaxis(transform, ends, some)
    return array


_WIDE = (
    "convert the tensor to torch.float32 or torch.complex64, or move it to the CPU with .cpu() and "
    "the results back with .to(device)"
)


def _lax_fft(array, kind, *extents):
    if any(map(symbolic_extents.is_symbolic, extents)):
        return _by_products(array, kind, extents)

    def transform(array):
        return lax.fft(array, kind, extents)

    if jnp.finfo(array.dtype).bits < 64:
        return transform(array)
    # the compiler of TPUs says only that the type is unexpected
    names = "the operators of torch.fft, and torch.stft and torch.istft, in float64 and complex128"
    return lacking.without_kernel(transform, array, operators=names, tpu=_WIDE)


def _by_products(array, kind, extents):
    """The transform over the last dimensions by matrices of roots of unity: XLA has none of sizes
    that vary. It takes the square of the points as steps.
    """
    if kind in (lax.FftType.RFFT, lax.FftType.IRFFT):  # of one dimension
        (extent,) = extents
        is_real = kind == lax.FftType.IRFFT
        count = extent // 2 + 1
        if not is_real:
            return _product(array, _roots(extent, extent, count, array.dtype, -1))
        number = jnp.arange(count)
        alone = (number == 0) | (2 * number == extent)
        weights = jnp.where(alone, 1, 2).astype(array.real.dtype) / extent
        return _product(array * weights, _roots(extent, count, extent, array.dtype, 1)).real
    sign = -1 if kind == lax.FftType.FFT else 1
    for place, extent in enumerate(extents):
        axis = array.ndim - len(extents) + place
        moved = jnp.moveaxis(array, axis, -1)
        moved = _product(moved, _roots(extent, extent, extent, array.dtype, sign))
        array = jnp.moveaxis(moved if sign < 0 else moved / extent, -1, axis)
    return array


def _roots(extent, rows, columns, dtype, sign):
    """The matrix of exp(sign * 2 pi i * row * column / extent)."""
    places = jnp.arange(rows)[:, None] * jnp.arange(columns) % extent
    angles = places.astype(jnp.finfo(dtype).dtype) * (sign * 2 * math.pi / extent)
    return lax.complex(jnp.cos(angles), jnp.sin(angles))


def _product(array, matrix):
    return jnp.matmul(array.astype(matrix.dtype), matrix, precision="highest")


def _scaled(array, count, normalization, inverse):
    """A result of XLA, which divides inverse transforms by `count`, normalized as asked."""
    if normalization == (_BY_N if inverse else 0):
        return array
    if symbolic_extents.is_symbolic(count):
        count = jnp.asarray(count).astype(array.real.dtype)
        wanted = count ** {0: 0, _BY_ROOT: 0.5, _BY_N: 1}[normalization]
    else:
        wanted = {0: 1.0, _BY_ROOT: math.sqrt(count), _BY_N: float(count)}[normalization]
    return array * ((count if inverse else 1.0) / wanted)


def _wrapped(dim, ndim):
    return tuple(shapes.wrap_dim(d, ndim) for d in dim)


def _expect(array, category, name):
    dtype = dtypes.from_numpy(array.dtype)
    if dtype.category != category:
        raise RuntimeError(
            f"Expected self.{name}() to be true, but got False: the dtype is {dtype!r}"
        )
    if dtype.itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {dtype.scalar_type}: convert to float32 first")


# gradients


def fft_r2c_backward(grad, self_shape, dim, normalization, onesided):
    """The real part of the adjoint transform.

    The half of a spectrum needs no filling up with zeros: `_fft_c2r` adds each inner point and its
    conjugate, which is twice its real part, so these points are halved.
    """
    if not onesided:
        return lax.real(op._fft_c2c(grad, dim, normalization, False))
    *_, last = _wrapped(dim, len(self_shape))
    halved = grad * _of_inner_points(0.5, last, self_shape, grad.dtype)
    return op._fft_c2r(halved, dim, normalization, self_shape[last])


def fft_c2r_backward(grad, dim, normalization):
    """The transform of the real gradient; inner points of the half count twice."""
    *_, last = _wrapped(dim, grad.ndim)
    spectrum = op._fft_r2c(grad, dim, normalization, True)
    return spectrum * _of_inner_points(2.0, last, grad.shape, grad.dtype)


def _of_inner_points(weight, last, shape, dtype):
    """`weight` for the points of a half that have a mirror image, 1 for the others."""
    extent = shape[last]
    weights = numpy.full(extent // 2 + 1, weight, numpy.finfo(dtype).dtype)
    weights[0] = 1
    if extent % 2 == 0:
        weights[-1] = 1
    return jnp.asarray(weights.reshape((-1, *[1] * (len(shape) - 1 - last))))


# the transform of early PyTorch, on complex numbers as pairs of real ones


def fft_with_size(
    self, signal_ndim, complex_input, complex_output, inverse, sizes, normalized, onesided
):
    """The transform of the last `signal_ndim` dimensions, a last dimension of 2 being complex."""
    dims, normalization = _layout_of_pairs(signal_ndim, inverse, normalized)
    if not complex_input:
        transform = fft_r2c(self, dims, normalization, onesided)
        return _pairs(lax.conj(transform) if inverse else transform)
    spectrum = lax.complex(self[..., 0], self[..., 1])
    if complex_output:
        return _pairs(fft_c2c(spectrum, dims, normalization, not inverse))
    if onesided:
        half = spectrum if inverse else lax.conj(spectrum)
        return fft_c2r(half, dims, normalization, sizes[-1])
    return lax.real(fft_c2c(spectrum, dims, normalization, not inverse))


def fft_with_size_backward(
    grad, self, signal_ndim, complex_input, complex_output, inverse, sizes, normalized, onesided
):
    """The adjoint transform of each kind."""
    dims, normalization = _layout_of_pairs(signal_ndim, inverse, normalized)
    if complex_output:
        grad = lax.complex(grad[..., 0], grad[..., 1])
    if not complex_input:
        cotangent = lax.conj(grad) if inverse else grad
        return fft_r2c_backward(cotangent, self.shape, dims, normalization, onesided)
    if complex_output:
        return _pairs(op._fft_c2c(grad, dims, normalization, inverse))
    if not onesided:
        whole = lax.complex(grad, jnp.zeros_like(grad))
        return _pairs(op._fft_c2c(whole, dims, normalization, inverse))
    gradient = fft_c2r_backward(grad, dims, normalization)
    return _pairs(gradient if inverse else lax.conj(gradient))


def _layout_of_pairs(signal_ndim, inverse, normalized):
    """The dimensions, counted from the end without the pairs, and the normalization."""
    return tuple(range(-signal_ndim, 0)), _BY_ROOT if normalized else _BY_N if inverse else 0


def _pairs(array):
    return jnp.stack([lax.real(array), lax.imag(array)], -1)
