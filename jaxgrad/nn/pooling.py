"""The greatest or the mean element of each window.

Windows are taken apart into strided slices, one for each place in a window, and the slices compared
or added, along one dimension after the other: XLA makes one loop of that, faster than of its own
windows.
"""

from __future__ import annotations

import functools
import math

import jax.numpy as jnp
import numpy as np
from jax import lax

from .. import ops
from ..ops.autocast import widened
from .convolution import per_dimension
from .lowering import operator

# windows that are longer are gathered
_LONGEST = 16


def _slices(array, axis, size, stride, dilation, count):
    """For each place in a window, what is there in all windows along an axis."""
    for place in range(size):
        start = place * dilation
        yield lax.slice_in_dim(array, start, start + (count - 1) * stride + 1, stride, axis)


def _greater(best, other):
    """Where another element takes the place of the best so far: the first of equals stays, and NaN
    wins."""
    return (other > best) | (other != other)


@operator
def greatest(array, sizes, strides, edges, dilations, counts):
    """The greatest of each window along the last dimensions."""
    return _greatest(array, sizes, strides, edges, dilations, counts)[0]


@operator
def greatest_with_places(array, sizes, strides, edges, dilations, counts):
    """The same, and its number within what the last dimensions make."""
    shape = array.shape[array.ndim - len(sizes) :]
    places = jnp.broadcast_to(np.arange(math.prod(shape)).reshape(shape), array.shape)
    made, places = _greatest(array, sizes, strides, edges, dilations, counts, places)
    return made, places.astype(jnp.int64)


def _greatest(array, sizes, strides, edges, dilations, counts, places=None):
    floating = jnp.issubdtype(array.dtype, jnp.inexact)
    least = -jnp.inf if floating else jnp.iinfo(array.dtype).min
    first = array.ndim - len(sizes)
    # the last dimension first, so that of equals the first in memory is taken
    for number in reversed(range(len(sizes))):
        axis = first + number
        window = axis, sizes[number], strides[number], dilations[number], counts[number]
        array = _padded(array, axis, edges[number], least)
        if places is not None:
            places = _padded(places, axis, edges[number], 0)
        array, places = _greatest_along(array, places, *window)
    return array, places


def _padded(array, axis, edges, value):
    widths = [(0, 0, 0)] * array.ndim
    widths[axis] = (*edges, 0)
    return lax.pad(array, jnp.asarray(value, array.dtype), widths) if any(edges) else array


def _greatest_along(array, places, axis, size, stride, dilation, count):
    if size > _LONGEST:
        return _gathered(array, places, axis, size, stride, dilation, count)
    window = axis, size, stride, dilation, count
    best, *others = _slices(array, *window)
    if places is None:
        for other in others:
            best = jnp.where(_greater(best, other), other, best)
        return best, None
    found, *further = _slices(places, *window)
    for other, place in zip(others, further, strict=True):
        wins = _greater(best, other)
        best, found = jnp.where(wins, other, best), jnp.where(wins, place, found)
    return best, found


def _gathered(array, places, axis, size, stride, dilation, count):
    starts = np.arange(count)[:, None] * stride
    index = starts + np.arange(size) * dilation
    windows = jnp.take(array, index, axis)
    chosen = jnp.expand_dims(jnp.argmax(lax.stop_gradient(windows), axis + 1), axis + 1)
    taken = [
        None if each is None else jnp.take_along_axis(each, chosen, axis + 1).squeeze(axis + 1)
        for each in (windows, None if places is None else jnp.take(places, index, axis))
    ]
    return tuple(taken)


@operator
def sums(array, sizes, strides, edges, counts):
    """The sum of each window along the last dimensions."""
    first = array.ndim - len(sizes)
    for number in reversed(range(len(sizes))):
        axis, size, stride = first + number, sizes[number], strides[number]
        array = _padded(array, axis, edges[number], 0)
        if size > _LONGEST:
            index = np.arange(counts[number])[:, None] * stride + np.arange(size)
            array = jnp.take(array, index, axis).sum(axis + 1)
        else:
            slices = _slices(array, axis, size, stride, 1, counts[number])
            array = functools.reduce(jnp.add, slices)
    return array


class Windows:
    """The windows of a pooling: along each dimension how long they are, their steps, what is added
    before and after, and how many there are."""

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
            made = "x".join(map(str, (input.shape[-dimensions - 1], *self.counts)))
            raise RuntimeError(
                f"Given input size: ({shown}). Calculated output size: ({made}). Output size is "
                "too small"
            )
        self.edges = tuple(map(self.edge, range(dimensions)))

    def check(self):
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

    def reach(self, i):
        """From the first to the last place of a window."""
        return self.dilations[i] * (self.sizes[i] - 1)

    def count(self, i, ceil_mode):
        length, step = self.lengths[i], self.strides[i]
        room = length + 2 * self.padding[i] - self.reach(i) - 1
        count = (room + (step - 1 if ceil_mode else 0)) // step + 1
        # none begins in what is added at the end
        if ceil_mode and (count - 1) * step >= length + self.padding[i]:
            count -= 1
        return count

    def edge(self, i):
        end = (self.counts[i] - 1) * self.strides[i] + self.reach(i) + 1
        return self.padding[i], max(0, end - self.lengths[i] - self.padding[i])

    def members(self, with_padding: bool):
        """How many elements each window has, as an array that broadcasts."""
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
    pool = greatest_with_places if return_indices else greatest
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
    made = sums(input, windows.sizes, windows.strides, windows.edges, windows.counts)
    if divisor is None:
        members = windows.members(count_include_pad)
        divisor = int(members.flat[0])
        if (members != divisor).any():
            divisor = input.new_tensor(members.tolist())
    if not input.dtype.is_floating_point and not input.dtype.is_complex:
        return made.div(divisor, rounding_mode="trunc")
    return made / divisor


def max_pool1d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False,
    return_indices: bool = False,
):  # fmt: skip
    """`max_pool2d` in one dimension: input (N, C, L) or (C, L)."""
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool2d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False,
    return_indices: bool = False,
):  # fmt: skip
    """The greatest element of each window of an image; of equals the first gets the gradient.

    input: (N, C, H, W) or (C, H, W). stride: the size of a window by default. padding: so many
    places around the image, which never win. ceil_mode: windows may go beyond the end.
    return_indices: also which element of its image each is. Raises RuntimeError where no window
    fits.

    >>> F.max_pool2d(jaxgrad.tensor([[[1.0, 5.0], [3.0, 2.0]]]), 2)
    tensor([[[5.]]])
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(
    input, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False,
    return_indices: bool = False,
):  # fmt: skip
    """`max_pool2d` in three dimensions: input (N, C, D, H, W) or (C, D, H, W)."""
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def avg_pool1d(
    input, kernel_size, stride=None, padding=0, ceil_mode: bool = False,
    count_include_pad: bool = True,
):  # fmt: skip
    """`avg_pool2d` in one dimension: input (N, C, L) or (C, L)."""
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def avg_pool2d(
    input, kernel_size, stride=None, padding=0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
):  # fmt: skip
    """The mean of each window of an image.

    input: (N, C, H, W) or (C, H, W). count_include_pad: the zeros of `padding` count too.
    divisor_override: what sums are divided by, instead of the number of elements.

    >>> F.avg_pool2d(jaxgrad.tensor([[[1.0, 5.0], [3.0, 3.0]]]), 2)
    tensor([[[3.]]])
    """
    return _avg_pool(
        2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def avg_pool3d(
    input, kernel_size, stride=None, padding=0, ceil_mode: bool = False,
    count_include_pad: bool = True, divisor_override: int | None = None,
):  # fmt: skip
    """`avg_pool2d` in three dimensions: input (N, C, D, H, W) or (C, D, H, W)."""
    return _avg_pool(
        3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


def _adaptive_average(dimensions, input, output_size):
    """Along each dimension the mean of `output_size` parts, which overlap where it does not divide
    the length."""
    wanted = per_dimension(output_size, dimensions, "output_size")
    for number in reversed(range(dimensions)):
        axis = number - dimensions
        length = input.shape[axis]
        parts = length if wanted[number] is None else wanted[number]
        if length % parts == 0:
            apart = (*input.shape[:axis], parts, length // parts, *input.shape[axis:][1:])
            input = input.reshape(apart).mean(axis)
            continue
        means = input.new_tensor(_parts(length, parts).tolist())
        input = ops.matmul(input.transpose(axis, -1), means).transpose(axis, -1)
    return input


def _parts(length, parts):
    """A matrix that takes the mean of each part."""
    found = np.zeros((length, parts))
    for part in range(parts):
        start, end = part * length // parts, -(-(part + 1) * length // parts)
        found[start:end, part] = 1 / (end - start)
    return found


def adaptive_avg_pool1d(input, output_size):
    """`adaptive_avg_pool2d` in one dimension."""
    return _adaptive_average(1, input, output_size)


def adaptive_avg_pool2d(input, output_size):
    """The means of as many parts of an image as `output_size` says: a number, or a pair in which
    None keeps the length.

    >>> F.adaptive_avg_pool2d(jaxgrad.tensor([[[1.0, 5.0], [3.0, 3.0]]]), 1)
    tensor([[[3.]]])
    """
    return _adaptive_average(2, input, output_size)
