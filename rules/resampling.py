"""Operators that resample the last dimensions of images, and that move channels into space.

Each dimension is resampled alone: element `i` of the result is the sum of `weights[i, k]` times the
element `indices[i, k]` of the operand. Both are constants, numpy arrays of shape (result, k). The
gradient is another resampling, with the taps of each element of the operand: no scatter, which is
slow on CPUs.
"""

import functools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy
from jax import lax

from jaxgrad.core import device_axes, dtypes
from jaxgrad.core import symbolic_extents as symbolic

# so many taps become one expression, which XLA fuses; more become a loop
_MOST_TERMS = 8

# the width of each filter with antialiasing
_WIDTHS = {"linear_aa": 2, "cubic_aa": 4, "lanczos_aa": 6}


def upsampled(self, output_size, align_corners, scales, *, mode):
    """`self` (n, c, *sizes) resampled to (n, c, *output_size).

    mode: "nearest", "nearest_exact", "linear", "cubic", or "linear_aa", "cubic_aa", "lanczos_aa"
    with antialiasing. scales: for each dimension the ratio of the sizes, None for the true one.
    """
    _check_sizes(self.shape, output_size, len(scales))
    if 0 in self.shape[1:]:
        raise RuntimeError(
            f"Non-empty {self.ndim}D data tensor expected but got a tensor with sizes "
            f"{list(self.shape)}"
        )
    _check_dtype(self, mode, len(scales))
    options = self.shape, output_size, align_corners, scales
    return _resampled(self, _all_taps(_taps, self, mode, *options))


def upsampled_by(self, output_size, align_corners, scale_factors, *, mode):
    """`upsampled` to sizes, or to the old ones times ratios; one of the two is None."""
    if (output_size is None) == (scale_factors is None):
        raise RuntimeError("Must specify exactly one of output_size and scale_factors")
    if output_size is None:
        pairs = zip(self.shape[2:], scale_factors, strict=True)
        output_size = tuple(_scaled(extent, factor) for extent, factor in pairs)
    scales = scale_factors or (None,) * len(output_size)
    return upsampled(self, output_size, align_corners, scales, mode=mode)


def _scaled(extent, factor):
    """An extent times a ratio, rounded down."""
    if not symbolic.is_symbolic(extent):
        return int(extent * factor)
    ratio = Fraction(factor).limit_denominator(1000)
    ratio = ratio if float(ratio) == factor else Fraction(factor)
    return extent * ratio.numerator // ratio.denominator


def upsampled_backward(grad_output, output_size, input_size, align_corners, scales, *, mode):
    """The gradient of `upsampled` with respect to its operand of shape `input_size`."""
    _check_sizes(input_size, output_size, len(scales))
    expected = (*input_size[:2], *output_size)
    if grad_output.shape != expected:
        raise RuntimeError(
            f"Expected grad_output to have the same shape as output: {list(expected)}, but got "
            f"{list(grad_output.shape)}"
        )
    options = input_size, output_size, align_corners, scales
    if symbolic.namespace(*input_size[2:], *output_size) is jnp:
        taps = _all_taps(_taps, grad_output, mode, *options)
        operand = device_axes.operand(input_size, grad_output)
        return jax.linear_transpose(lambda x: _resampled(x, taps), operand)(grad_output)[0]
    return _resampled(grad_output, _all_taps(_transposed_taps, grad_output, mode, *options))


def _check_sizes(shape, output_size, count):
    if len(output_size) != count:
        raise RuntimeError(
            f"It is expected output_size equals to {count}, but got size {len(output_size)}"
        )
    if len(shape) != count + 2:
        raise RuntimeError(
            f"It is expected input_size equals to {count + 2}, but got size {len(shape)}"
        )
    if any(symbolic.chosen(lambda n=extent: n <= 0) for extent in (*shape[2:], *output_size)):
        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input {list(shape[2:])} "
            f"and output {list(output_size)}"
        )


def _check_dtype(self, mode, count):
    dtype = dtypes.from_numpy(self.dtype)
    takes_bytes = mode.startswith("nearest") or count == 2
    if dtype.category == dtypes.FLOATING or (takes_bytes and dtype is dtypes.uint8):
        return
    raise NotImplementedError(
        f"\"upsample_{mode}{count}d\" not implemented for '{dtype.scalar_type}': convert to a "
        "floating-point dtype first"
    )


def _all_taps(make, array, mode, input_size, output_size, align_corners, scales):
    """The taps of each dimension, `_taps` or `_transposed_taps`."""
    # PyTorch computes the places in the dtype of the tensor, but those of half precision in single,
    # and those of bytes in double
    number = numpy.float64 if array.dtype in (numpy.float64, numpy.uint8) else numpy.float32
    taps = []
    for extent, size, scale in zip(input_size[2:], output_size, scales, strict=True):
        if _ignores_scale(mode, extent, size, len(scales)):
            scale = None
        is_table = symbolic.namespace(extent, size) is numpy  # a traced one is not kept
        function = make if is_table else make.__wrapped__
        taps.append(function(mode, extent, size, align_corners, scale, number))
    return taps


def _ignores_scale(mode, extent, size, count):
    """Whether the places follow the sizes though a ratio is given."""
    if mode == "nearest":
        return count == 2 and size in (extent, 2 * extent)
    return size == extent and mode not in ("nearest_exact", "cubic")


@functools.lru_cache(maxsize=256)
def _taps(mode, extent, size, align_corners, scale, number):
    """Indices and weights of the elements of a result of `size`; the index -1 means no tap.

    `weights` is None where all are 1. The operations are those of PyTorch's kernels, one by one:
    another rounding would choose another neighbour.
    """
    if mode.startswith("nearest"):
        return _nearest(mode, extent, size, scale), None
    step = _step(extent, size, align_corners, scale, number)
    if mode in _WIDTHS:
        return _antialiased(mode, extent, size, step)
    arrays = symbolic.namespace(extent, size)
    place = arrays.arange(size).astype(number)
    place = place * step if align_corners else (place + number(0.5)) * step - number(0.5)
    if mode == "linear":
        place = arrays.maximum(place, 0)
    first = arrays.minimum(arrays.floor(place).astype(int), extent - 1)
    beyond = arrays.clip(place - first.astype(number), 0, 1)
    if mode == "linear":
        indices = arrays.stack([first, arrays.minimum(first + 1, extent - 1)], 1)
        return indices, arrays.stack([1 - beyond, beyond], 1)
    indices = arrays.clip(first[:, None] + numpy.arange(-1, 3), 0, extent - 1)
    return indices, arrays.stack(cubic_weights(beyond, number(-0.75)), 1)


def _nearest(mode, extent, size, scale):
    """The index of the nearest element, for each of `size`."""
    # in single precision for all dtypes; PyTorch's kernels for float64 disagree about it
    number = numpy.float32
    step = _step(extent, size, False, scale, number)
    offset = number(0.5 if mode == "nearest_exact" else 0)
    arrays = symbolic.namespace(extent, size)
    place = (arrays.arange(size).astype(number) + offset) * step
    return arrays.minimum(arrays.floor(place).astype(int), extent - 1)[:, None]


def _step(extent, size, align_corners, scale, number):
    """The distance in the operand of two neighbours of the result."""
    if scale is not None and scale > 0 and not align_corners:
        return number(1 / scale)
    if symbolic.namespace(extent, size) is jnp:
        extent, size = (jnp.asarray(count, number) for count in (extent, size))
        if align_corners:
            return jnp.where(size > 1, (extent - 1) / jnp.maximum(size - 1, 1), 0)
        return extent / size
    if align_corners:
        return number(extent - 1) / number(size - 1) if size > 1 else number(0)
    return number(extent) / number(size)


def cubic_weights(beyond, a):
    """The weights of four neighbours at a place `beyond` the second, by Keys' cubic kernel."""
    before = 1 - beyond
    return [_far(1 + beyond, a), _near(beyond, a), _near(before, a), _far(1 + before, a)]


def _near(distance, a):
    """Keys' cubic convolution kernel at distances up to 1."""
    return ((a + 2) * distance - (a + 3)) * distance * distance + 1


def _far(distance, a):
    """The kernel at distances from 1 to 2."""
    return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a


def _triangle(distance):
    return numpy.maximum(1 - distance, 0)


def _pillow_cubic(distance):
    inner = numpy.where(distance < 1, _near(distance, -0.5), _far(distance, -0.5))
    return numpy.where(distance < 2, inner, 0)


def _lanczos(distance):
    return numpy.where(distance < 3, numpy.sinc(distance) * numpy.sinc(distance / 3), 0)


_FILTERS = {"linear_aa": _triangle, "cubic_aa": _pillow_cubic, "lanczos_aa": _lanczos}


def _antialiased(mode, extent, size, step):
    """The taps of a filter that is stretched where the result is smaller, as in Pillow."""
    number, stretch = type(step), max(step, 1)
    support = number(_WIDTHS[mode] / 2) * stretch
    center = step * (numpy.arange(size) + 0.5).astype(number)
    first = numpy.maximum((center - support + number(0.5)).astype(int), 0)
    last = numpy.minimum((center + support + number(0.5)).astype(int), extent)
    indices = first[:, None] + numpy.arange(max(int((last - first).max()), 1))
    distance = abs((indices - center[:, None] + 0.5) / stretch)
    weights = numpy.where(indices < last[:, None], _FILTERS[mode](distance), 0)
    weights = weights / weights.sum(1, keepdims=True)
    return numpy.where(indices < last[:, None], indices, -1), weights.astype(number)


@functools.lru_cache(maxsize=256)
def _transposed_taps(mode, extent, size, align_corners, scale, number):
    """The taps of the transposed map, from a result of `size` to an operand of `extent`."""
    indices, weights = _taps(mode, extent, size, align_corners, scale, number)
    factors = numpy.ones(indices.shape, number) if weights is None else weights
    present = indices.ravel() >= 0
    sources = numpy.repeat(numpy.arange(size), indices.shape[1])
    # one element may tap an edge several times
    pairs, places = numpy.unique((indices.ravel() * size + sources)[present], return_inverse=True)
    sums = numpy.bincount(places, factors.ravel()[present], len(pairs))
    targets, sources = pairs // size, pairs % size
    ranks = numpy.arange(len(pairs)) - numpy.searchsorted(targets, targets)
    table = numpy.full((extent, ranks.max() + 1), -1)
    factors = numpy.zeros(table.shape, number)
    table[targets, ranks], factors[targets, ranks] = sources, sums
    return table, None if weights is None else factors


def _resampled(array, taps):
    """`array` resampled in each of its last dimensions."""
    wide = array.astype(jnp.float32) if array.dtype in (jnp.float16, jnp.bfloat16) else array
    first = array.ndim - len(taps)
    dims = range(first, array.ndim)
    if array.dtype == jnp.uint8:
        # rows before columns, rounded each, as in PyTorch and Pillow
        for dim in reversed(dims):
            wide = _of_bytes(wide, dim, *taps[dim - first])
        return wide
    if all(isinstance(indices, numpy.ndarray) for indices, _ in taps):
        # what becomes smaller first, so that less remains for the others
        dims = sorted(dims, key=lambda dim: len(taps[dim - first][0]) / array.shape[dim])
    for dim in dims:
        wide = _along(wide, dim, *taps[dim - first])
    return wide.astype(array.dtype)


def _of_bytes(array, dim, indices, weights):
    if weights is None or _is_identity(array.shape[dim], indices, weights):
        return _along(array, dim, indices, weights)
    indices, weights = _merged(indices, weights)
    # weights as integers of 16 bits, with as many binary digits as fit
    digits = math.floor(math.log2((2**15 - 0.5) / abs(weights).max()))
    digits = min(digits, 22)
    scaled = weights * 2**digits
    rounded = numpy.trunc(scaled + numpy.copysign(0.5, scaled)).astype(numpy.int32)
    total = _along(array.astype(jnp.int32), dim, indices, rounded)
    return jnp.clip((total + 2 ** (digits - 1)) >> digits, 0, 255).astype(jnp.uint8)


def _merged(indices, weights):
    """The taps with one weight for each element: an edge may stand for several neighbours."""
    weights = weights.copy()
    for tap in range(indices.shape[1] - 1):
        again = (indices[:, tap] == indices[:, tap + 1]) & (indices[:, tap] >= 0)
        weights[again, tap + 1] += weights[again, tap]
        weights[again, tap] = 0
    return indices, weights


def _along(array, dim, indices, weights):
    """`array` resampled along one dimension."""
    if _is_identity(array.shape[dim], indices, weights):
        return array
    factors = indices >= 0 if weights is None else weights.astype(array.dtype)
    arrays = numpy if isinstance(indices, numpy.ndarray) else jnp
    columns = arrays.maximum(indices, 0).T.astype(numpy.int32), factors.T, (indices >= 0).T
    term = functools.partial(_term, array, dim, weights is not None)
    if indices.shape[1] <= _MOST_TERMS:
        return functools.reduce(jnp.add, map(term, *columns))
    shape = (*array.shape[:dim], indices.shape[0], *array.shape[dim + 1 :])

    def add(total, column):
        return total + term(*column), None

    return device_axes.scan(add, jnp.zeros(shape, array.dtype), columns)[0]


def _term(array, dim, is_weighted, index, factor, is_present):
    """The term that one tap adds to each element of the result."""
    column = [-1] + [1] * (array.ndim - dim - 1)
    taken = jnp.take(array, index, dim, mode="clip")
    if is_weighted:
        taken = taken * factor.reshape(column)
    # an absent tap must not multiply an infinity by 0
    if isinstance(is_present, numpy.ndarray) and is_present.all():
        return taken
    return jnp.where(is_present.reshape(column), taken, 0)


def _is_identity(extent, indices, weights):
    if not isinstance(indices, numpy.ndarray) or indices.shape[0] != extent:
        return False
    if (indices[:, 0] != numpy.arange(extent)).any():
        return False
    if weights is None:
        return indices.shape[1] == 1
    return (weights[:, 0] == 1).all() and not weights[:, 1:].any()


# channels moved into space


def pixel_shuffle(self, upscale_factor):
    _check_image("pixel_shuffle", self, "upscale_factor", upscale_factor)
    *batch, channels, height, width = self.shape
    factor = upscale_factor
    if channels % factor**2:
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square "
            f"of upscale_factor, but input.size(-3)={channels} is not divisible by {factor**2}"
        )
    left = channels // factor**2
    parts = jnp.reshape(self, (*batch, left, factor, factor, height, width))
    first = len(batch) + 1
    order = (*range(first), first + 2, first, first + 3, first + 1)
    return jnp.reshape(lax.transpose(parts, order), (*batch, left, height * factor, width * factor))


def pixel_unshuffle(self, downscale_factor):
    _check_image("pixel_unshuffle", self, "downscale_factor", downscale_factor)
    *batch, channels, height, width = self.shape
    factor = downscale_factor
    for name, place, extent in (("height", -2, height), ("width", -1, width)):
        if extent % factor:
            raise RuntimeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but "
                f"input.size({place})={extent} is not divisible by {factor}"
            )
    height, width = height // factor, width // factor
    parts = jnp.reshape(self, (*batch, channels, height, factor, width, factor))
    first = len(batch) + 1
    order = (*range(first), first + 1, first + 3, first, first + 2)
    return jnp.reshape(lax.transpose(parts, order), (*batch, channels * factor**2, height, width))


def _check_image(name, self, argument, factor):
    if self.ndim < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {self.ndim} "
            "dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {argument}, but got {factor}")


def channel_shuffle(self, groups):
    if self.ndim < 3:
        raise RuntimeError(
            f"channel_shuffle expects input with > 2 dims, but got input with sizes "
            f"{list(self.shape)}"
        )
    if groups <= 0:
        raise RuntimeError(
            f"Number of groups to divide channels in must be positive. Value of groups:{groups}"
        )
    batch, channels, *sizes = self.shape
    if channels % groups:
        raise RuntimeError(
            f"Number of channels must be divisible by groups. Got {channels} channels and "
            f"{groups} groups."
        )
    parts = jnp.reshape(self, (batch, groups, channels // groups, *sizes))
    return jnp.reshape(jnp.swapaxes(parts, 1, 2), self.shape)
