"""Max and average pooling.

Windows are unrolled into strided slices, one for each offset in a window, and reduced along one
dimension after the other. XLA fuses these slices into one loop, which is faster than its
`reduce_window`.
"""

from __future__ import annotations

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import ops
from ..core.tracebacks import api_boundary
from ..ops.autocast import widened
from .convolution import per_dimension
from .lowering import operator

# Longer windows are gathered: unrolled slices would make the program long.
_MAX_UNROLLED = 16


def _slices(array, axis, size, stride, dilation, count):
    """Yield, for each offset in a window, the elements of all windows at this offset."""
    for offset in range(size):
        start = offset * dilation
        yield lax.slice_in_dim(array, start, start + (count - 1) * stride + 1, stride, axis)


def _wins(best, other):
    """Return where `other` replaces `best`: a tie keeps the first, and NaN wins."""
    return (other > best) | (other != other)


@operator
def max_pool(array, sizes, strides, edges, dilations, counts):
    """Return the maximum of each window along the last dimensions."""
    return _max_pool_separable(array, sizes, strides, edges, dilations, counts)[0]


@operator
def max_pool_with_indices(array, sizes, strides, edges, dilations, counts):
    """Return `max_pool` and the flat index of each maximum in the last dimensions."""
    shape = array.shape[array.ndim - len(sizes) :]
    indices = jnp.broadcast_to(np.arange(math.prod(shape)).reshape(shape), array.shape)
    result, indices = _max_pool_separable(array, sizes, strides, edges, dilations, counts, indices)
    return result, indices.astype(jnp.int64)


def _max_pool_separable(array, sizes, strides, edges, dilations, counts, indices=None):
    floating = jnp.issubdtype(array.dtype, jnp.inexact)
    least = -jnp.inf if floating else jnp.iinfo(array.dtype).min
    first = array.ndim - len(sizes)
    # Last dimension first, so that the first maximum in memory order wins a tie.
    for number in reversed(range(len(sizes))):
        axis = first + number
        window = axis, sizes[number], strides[number], dilations[number], counts[number]
        array = _pad_axis(array, axis, edges[number], least)
        if indices is not None:
            indices = _pad_axis(indices, axis, edges[number], 0)
        array, indices = _max_along(array, indices, *window)
    return array, indices


def _pad_axis(array, axis, edges, value):
    widths = [(0, 0, 0)] * array.ndim
    widths[axis] = (*edges, 0)
    return lax.pad(array, jnp.asarray(value, array.dtype), widths) if any(edges) else array


def _max_along(array, indices, axis, size, stride, dilation, count):
    if size > _MAX_UNROLLED:
        return _max_by_gather(array, indices, axis, size, stride, dilation, count)
    window = axis, size, stride, dilation, count
    best, *others = _slices(array, *window)
    if indices is None:
        for other in others:
            best = jnp.where(_wins(best, other), other, best)
        return best, None
    best_index, *other_indices = _slices(indices, *window)
    for other, index in zip(others, other_indices, strict=True):
        wins = _wins(best, other)
        best, best_index = jnp.where(wins, other, best), jnp.where(wins, index, best_index)
    return best, best_index


def _max_by_gather(array, indices, axis, size, stride, dilation, count):
    starts = np.arange(count)[:, None] * stride
    index = starts + np.arange(size) * dilation
    windows = jnp.take(array, index, axis)
    chosen = jnp.expand_dims(jnp.argmax(lax.stop_gradient(windows), axis + 1), axis + 1)
    taken = [
        None if each is None else jnp.take_along_axis(each, chosen, axis + 1).squeeze(axis + 1)
        for each in (windows, None if indices is None else jnp.take(indices, index, axis))
    ]
    return tuple(taken)


@operator
def sum_pool(array, sizes, strides, edges, counts):
    """Return the sum of each window along the last dimensions."""
    first = array.ndim - len(sizes)
    for number in reversed(range(len(sizes))):
        axis, size, stride = first + number, sizes[number], strides[number]
        array = _pad_axis(array, axis, edges[number], 0)
        if size > _MAX_UNROLLED:
            index = np.arange(counts[number])[:, None] * stride + np.arange(size)
            array = jnp.take(array, index, axis).sum(axis + 1)
        else:
            slices = _slices(array, axis, size, stride, 1, counts[number])
            array = functools.reduce(jnp.add, slices)
    return array


class Windows:
    """The windows of a pooling: size, stride, dilation, padding and count along each dimension."""

    def __init__(self, name, dimensions, input, sizes, stride, padding, dilation, ceil_mode):
        self.dimensions = dimensions
        if input.ndim not in (dimensions + 1, dimensions + 2):
            raise RuntimeError(
                f"{name}: non-empty {dimensions + 1}D or {dimensions + 2}D (batch mode) tensor "
                f"expected for input, but got input of size: {list(input.shape)}"
            )
        self.lengths = tuple(input.shape[-dimensions:])
        self.sizes = per_dimension(sizes, dimensions, "kernel_size")
        given = stride is None or stride == () or stride == []
        self.strides = self.sizes if given else per_dimension(stride, dimensions, "stride")
        self.padding = per_dimension(padding, dimensions, "padding")
        self.dilations = per_dimension(dilation, dimensions, "dilation")
        self.check()
        self.counts = tuple(map(self.count, range(dimensions), [ceil_mode] * dimensions))
        if min(self.counts) < 1:
            shown = "x".join(map(str, input.shape[-dimensions - 1 :]))
            result = "x".join(map(str, (input.shape[-dimensions - 1], *self.counts)))
            raise RuntimeError(
                f"Given input size: ({shown}). Calculated output size: ({result}). Output size is "
                "too small"
            )
        self.edges = tuple(map(self.edge, range(dimensions)))

    def check(self):
        """Raise RuntimeError for strides, sizes or paddings out of range."""
        if min(self.strides) <= 0:
            raise RuntimeError("stride should not be zero")
        if min(self.sizes) <= 0:
            raise RuntimeError(f"kernel size should be greater than zero, but got {self.sizes}")
        for pad, size, dilation in zip(self.padding, self.sizes, self.dilations, strict=True):
            if pad < 0:
                raise RuntimeError(f"pad must be non-negative, but got pad: {pad}")
            if pad > ((size - 1) * dilation + 1) // 2:
                raise RuntimeError(
                    "pad should be at most half of effective kernel size, but got "
                    f"pad={pad}, kernel_size={size} and dilation={dilation}"
                )

    def extent(self, i):
        """Return the distance from the first to the last element of a window."""
        return self.dilations[i] * (self.sizes[i] - 1)

    def count(self, i, ceil_mode):
        """Return the number of windows along dimension `i`."""
        length, step = self.lengths[i], self.strides[i]
        room = length + 2 * self.padding[i] - self.extent(i) - 1
        count = (room + (step - 1 if ceil_mode else 0)) // step + 1
        # As in PyTorch, no window starts in the padding at the end.
        if ceil_mode and (count - 1) * step >= length + self.padding[i]:
            count -= 1
        return count

    def edge(self, i):
        """Return the padding before and after dimension `i`."""
        end = (self.counts[i] - 1) * self.strides[i] + self.extent(i) + 1
        return self.padding[i], max(0, end - self.lengths[i] - self.padding[i])

    def divisors(self, with_padding: bool):
        """Return the number of elements in each window, as an array that broadcasts."""
        found = np.ones((), np.int64)
        for i in range(self.dimensions):
            starts = np.arange(self.counts[i]) * self.strides[i] - self.padding[i]
            last = self.lengths[i] + (self.padding[i] if with_padding else 0)
            ends = np.minimum(starts + self.sizes[i], last)
            found = np.multiply.outer(found, ends - (starts if with_padding else starts.clip(0)))
        return found


def _max_pool(dimensions, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices):
    name = f"max_pool{dimensions}d"
    if dimensions == 3:
        (input,) = widened(input)
    windows = Windows(name, dimensions, input, kernel_size, stride, padding, dilation, ceil_mode)
    pool = max_pool_with_indices if return_indices else max_pool
    return pool(
        input, windows.sizes, windows.strides, windows.edges, windows.dilations, windows.counts
    )


def _avg_pool(
    dimensions, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor
):
    name = f"avg_pool{dimensions}d"
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")
    if dimensions == 3:
        (input,) = widened(input)
    windows = Windows(name, dimensions, input, kernel_size, stride, padding, 1, ceil_mode)
    result = sum_pool(input, windows.sizes, windows.strides, windows.edges, windows.counts)
    if divisor is None:
        divisors = windows.divisors(count_include_pad)
        divisor = int(divisors.flat[0])
        if (divisors != divisor).any():
            divisor = input.new_tensor(divisors.tolist())
    if not input.dtype.is_floating_point and not input.dtype.is_complex:
        return result.div(divisor, rounding_mode="trunc")
    return result / divisor


@api_boundary
def max_pool1d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False,
    return_indices: bool = False,
):  # fmt: skip
    """Return the maximum of each window of (N, C, L) or (C, L).

    Other arguments, the size of the result and errors are those of `max_pool2d`.

    >>> F.max_pool1d(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]), 2)
    tensor([[5., 3.]])
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@api_boundary
def max_pool2d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False,
    return_indices: bool = False,
):  # fmt: skip
    """Return the maximum of each window of (N, C, H, W) or (C, H, W).

    input: real dtype. kernel_size, stride, padding, dilation: an integer, or one for each
    dimension; stride defaults to kernel_size; padding is of -inf. ceil_mode: also windows that
    start inside and end outside. return_indices: also the int64 index of each maximum in its H * W
    plane. The result is (N, C, H', W') with `H' = (H + 2 * padding - dilation * (kH - 1) - 1) /
    stride + 1`, rounded down, or up with `ceil_mode`. The first maximum of a window receives the
    gradient. Raises RuntimeError for shapes, strides or paddings that do not fit.

    >>> F.max_pool2d(jaxgrad.tensor([[[1.0, 5.0], [3.0, 2.0]]]), 2)
    tensor([[[5.]]])
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@api_boundary
def max_pool3d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False,
    return_indices: bool = False,
):  # fmt: skip
    """Return the maximum of each window of (N, C, D, H, W) or (C, D, H, W).

    Other arguments, the size of the result and errors are those of `max_pool2d`.

    >>> F.max_pool3d(jaxgrad.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@api_boundary
def avg_pool1d(
    input, kernel_size, stride=None, padding=0, ceil_mode: bool = False,
    count_include_pad: bool = True,
):  # fmt: skip
    """Return the mean of each window of (N, C, L) or (C, L).

    Other arguments, the size of the result and errors are those of `avg_pool2d`.

    >>> F.avg_pool1d(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]), 2)
    tensor([[3.0000, 2.5000]])
    """
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@api_boundary
def avg_pool2d(
    input, kernel_size, stride=None, padding=0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
):  # fmt: skip
    """Return the mean of each window of (N, C, H, W) or (C, H, W).

    input: real or complex dtype; integer means are truncated. kernel_size, stride, padding,
    ceil_mode: as for `max_pool2d`, with padding of zeros. count_include_pad: count the padding in
    the divisor. divisor_override: the divisor of every window. Raises RuntimeError for shapes,
    strides or paddings that do not fit, and for a divisor 0.

    >>> F.avg_pool2d(jaxgrad.tensor([[[1.0, 5.0], [3.0, 3.0]]]), 2)
    tensor([[[3.]]])
    """
    return _avg_pool(
        2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@api_boundary
def avg_pool3d(
    input, kernel_size, stride=None, padding=0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
):  # fmt: skip
    """Return the mean of each window of (N, C, D, H, W) or (C, D, H, W).

    Other arguments, the size of the result and errors are those of `avg_pool2d`.

    >>> F.avg_pool3d(jaxgrad.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[3.5000]]]])
    """
    return _avg_pool(
        3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def _adaptive_avg_pool(dimensions, input, output_size):
    """Return the means of `output_size` windows along each dimension; windows overlap where it does
    not divide the length.
    """
    wanted = per_dimension(output_size, dimensions, "output_size")
    for number in reversed(range(dimensions)):
        axis = number - dimensions
        length = input.shape[axis]
        parts = length if wanted[number] is None else wanted[number]
        if length % parts == 0:
            apart = (*input.shape[:axis], parts, length // parts, *input.shape[axis:][1:])
            input = input.reshape(apart).mean(axis)
            continue
        means = input.new_tensor(_averaging_matrix(length, parts).tolist())
        input = ops.matmul(input.transpose(axis, -1), means).transpose(axis, -1)
    return input


def _averaging_matrix(length, parts):
    """Return the matrix (length, parts) whose columns average the windows of adaptive pooling."""
    found = np.zeros((length, parts))
    for part in range(parts):
        start, end = part * length // parts, -(-(part + 1) * length // parts)
        found[start:end, part] = 1 / (end - start)
    return found


@api_boundary
def adaptive_avg_pool1d(input, output_size):
    """Return the means of `output_size` windows of (N, C, L) or (C, L).

    Arguments and errors are those of `adaptive_avg_pool2d`.

    >>> F.adaptive_avg_pool1d(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]), 2)
    tensor([[3.0000, 2.5000]])
    """
    return _adaptive_avg_pool(1, input, output_size)


@api_boundary
def adaptive_avg_pool2d(input, output_size):
    """Return the means of `output_size` windows of (N, C, H, W) or (C, H, W).

    input: floating-point or complex dtype. output_size: an integer, or a pair in which None keeps
    the size. Window i of n along a size L covers `floor(i * L / n)` to `ceil((i + 1) * L / n)`.
    Raises RuntimeError for an `output_size` of another length.

    >>> F.adaptive_avg_pool2d(jaxgrad.tensor([[[1.0, 5.0], [3.0, 3.0]]]), 1)
    tensor([[[3.]]])
    """
    return _adaptive_avg_pool(2, input, output_size)
