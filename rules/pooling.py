"""Max and average pooling.

Windows are unrolled into strided slices, one for each offset in a window, and reduced along one
dimension after the other. XLA fuses these slices into one loop, which is faster than its
`reduce_window`. The gradient of a maximum is added at its index, which XLA does on CPUs in two
nanoseconds an element; to compare indices instead makes it compute them again for each element.
"""

import functools
import math
import typing

import jax.numpy as jnp
import numpy
from jax import lax

from jaxgrad.core import dtypes, promotion
from jaxgrad.core import symbolic_extents as symbolic
from jaxgrad.core.dtypes import BOOLEAN, COMPLEX, INTEGRAL

# Longer windows are gathered: unrolled slices would make the program long.
MAX_UNROLLED = 16


class Windows(typing.NamedTuple):
    """The windows along one dimension of `length` elements: window i begins at `i * stride -
    padding`, and its elements are `dilation` apart.
    """

    axis: int
    length: int
    size: int
    stride: int
    padding: int = 0
    dilation: int = 1
    count: int = 0

    @classmethod
    def of(cls, axis, length, size, stride, padding, dilation, ceil_mode):
        room = length + 2 * padding - dilation * (size - 1) - 1
        count = (room + (stride - 1 if ceil_mode else 0)) // stride + 1
        if ceil_mode:  # no window starts in the padding at the end
            count = symbolic.smaller(count, -(-(length + padding) // stride))
        return cls(axis, length, size, stride, padding, dilation, count)

    @property
    def edges(self):
        """The padding before and after, of which ceil_mode may want more after."""
        if symbolic.is_symbolic(self.length):
            return self.padding, self.padding + self.stride - 1  # enough for all lengths
        end = (self.count - 1) * self.stride + self.dilation * (self.size - 1) + 1
        return self.padding, max(0, end - self.length - self.padding)

    @property
    def starts(self):
        return symbolic.namespace(self.count).arange(self.count) * self.stride - self.padding

    @property
    def indices(self):
        """The element at each offset in each window, -1 in the padding."""
        indices = self.starts[:, None] + numpy.arange(self.size) * self.dilation
        return symbolic.namespace(self.count).where(indices < self.length, indices, -1).clip(-1)

    def slices(self, array):
        """Yield, for each offset in a window, the elements of all windows at this offset."""
        for offset in range(self.size):
            start = offset * self.dilation
            end = start + (self.count - 1) * self.stride + 1
            yield lax.slice_in_dim(array, start, end, self.stride, self.axis)

    def padded(self, array, value):
        widths = [(0, 0, 0)] * array.ndim
        widths[self.axis] = (*self.edges, 0)
        return lax.pad(array, jnp.asarray(value, array.dtype), widths) if any(self.edges) else array


# the arguments

_COUNTS = {1: "one int", 2: "two ints", 3: "three ints"}


def _per_dimension(name, what, numbers, dimensions):
    """One number for each dimension, of one or of so many."""
    numbers = (numbers,) if isinstance(numbers, int) else tuple(numbers)
    if len(numbers) not in (1, dimensions):
        omitted = "omitted, " if what == "stride" else ""
        raise RuntimeError(
            f"{name}: {what} must either be {omitted}a single int, or a tuple of "
            f"{_COUNTS[dimensions]}"
        )
    return numbers * dimensions if len(numbers) == 1 else numbers


def _windows(name, self, dimensions, kernel_size, stride, padding, dilation, ceil_mode):
    """The windows along each of the last dimensions, after the checks of all arguments."""
    sizes = _per_dimension(name, "kernel_size", kernel_size, dimensions)
    strides = _per_dimension(name, "stride", stride, dimensions) if stride or stride == 0 else sizes
    padding = _per_dimension(name, "padding", padding, dimensions)
    dilation = _per_dimension(name, "dilation", dilation, dimensions)
    _check_numbers(sizes, strides, padding, dilation)
    _check_input(name, self, dimensions)
    first = self.ndim - dimensions
    windows = [
        Windows.of(first + i, self.shape[first + i], *geometry, ceil_mode)
        for i, geometry in enumerate(zip(sizes, strides, padding, dilation, strict=True))
    ]
    if any(symbolic.chosen(lambda count=w.count: count < 1) for w in windows):
        shown = "x".join(map(str, self.shape[first - 1 :]))
        result = "x".join(
            map(str, (self.shape[first - 1], *(axis_windows.count for axis_windows in windows)))
        )
        raise RuntimeError(
            f"Given input size: ({shown}). Calculated output size: ({result}). Output size is too "
            "small"
        )
    return windows


def _check_input(name, self, dimensions):
    shown = f"{dimensions + 1}D or {dimensions + 2}D (batch mode) tensor"
    if self.ndim not in (dimensions + 1, dimensions + 2):
        raise RuntimeError(
            f"{name}: non-empty {shown} expected for input, but got input of size: "
            f"{list(self.shape)}"
        )
    if 0 in self.shape[-dimensions - 1 :]:
        raise RuntimeError(
            f"{name}: Expected {shown} with optional 0 dim batch size for input, but got:"
            f"{list(self.shape)}. Expected input's non-batch dimensions to have positive length"
        )


def _check_numbers(sizes, strides, padding, dilation):
    if 0 in strides:
        raise RuntimeError("stride should not be zero")
    for what, numbers in (("kernel size", sizes), ("stride", strides), ("dilation", dilation)):
        if min(numbers) <= 0:
            raise RuntimeError(f"{what} should be greater than zero, but got {list(numbers)}")
    for pad, size, step in zip(padding, sizes, dilation, strict=True):
        if pad < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {pad}")
        if pad > ((size - 1) * step + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={pad}, "
                f"kernel_size={size} and dilation={step}"
            )
        if pad > size // 2:
            raise RuntimeError(
                "pad should be smaller than or equal to half of kernel size, but got "
                f"pad={pad}, kernel_size={size}"
            )


def check_planes(name, self, dimensions, with_channels=True):
    """Raise RuntimeError for a tensor that is not (N, C, ...) or (C, ...), or empty but for N."""
    if self.ndim not in (dimensions + 1, dimensions + 2):
        raise RuntimeError(
            f"{name}(): Expected {dimensions + 1}D or {dimensions + 2}D tensor, but got: "
            f"{list(self.shape)}"
        )
    for dim in range(self.ndim - dimensions - with_channels, self.ndim):
        if not self.shape[dim]:
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but "
                f"input has sizes {list(self.shape)} with dimension {dim} being empty"
            )


# maxima


def max_pool2d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode):
    return _max_pool("max_pool2d", 2, self, kernel_size, stride, padding, dilation, ceil_mode)


def max_pool3d_with_indices(self, kernel_size, stride, padding, dilation, ceil_mode):
    return _max_pool("max_pool3d", 3, self, kernel_size, stride, padding, dilation, ceil_mode)


def _max_pool(name, dimensions, self, *options):
    promotion.refuse(name, self, BOOLEAN, COMPLEX)
    windows = _windows(name, self, dimensions, *options)
    best, index = greatest_of_boxes(self, windows, max_of_windows)
    if any(axis_windows.dilation > 1 for axis_windows in windows):
        # all of a window may be padding; its index is no element's
        outer = symbolic.namespace(
            *[axis_windows.count for axis_windows in windows]
        ).logical_or.outer
        empty = functools.reduce(outer, [(e.indices < 0).all(1) for e in windows])
        index = jnp.where(empty, -1, index) if _may_hold(empty) else index
    return best, index


def _may_hold(mask):
    """Whether a mask may be true: a traced one, or one of NumPy that is somewhere."""
    return not isinstance(mask, numpy.ndarray) or mask.any()


def greatest_of_boxes(array, boxes, reduce):
    """The greatest elements of boxes, and their flat indices in the last dimensions.

    `boxes`: the extents of the boxes along each of the last dimensions, in the form that `reduce`
    takes. `reduce(box, array, positions)` returns the greatest elements along one dimension, and a
    list: their positions in it, then the elements of `positions` there.
    """
    lengths, positions = array.shape[array.ndim - len(boxes) :], []
    # last dimension first, so that the first maximum in memory order wins a tie
    for box in reversed(boxes):
        array, positions = reduce(box, array, positions)
    kind = jnp.int32 if symbolic.chosen(lambda: math.prod(lengths) < 2**31) else jnp.int64
    index = jnp.zeros((), kind)
    for length, position in zip(lengths, positions, strict=True):
        index = index * length + position.astype(kind)
    return array, index.astype(promotion.available(dtypes.int64))


def max_of_windows(windows, array, positions):
    """`reduce` of `greatest_of_boxes` for `Windows`."""
    index = windows.indices
    if windows.size > MAX_UNROLLED:
        return max_at((windows.axis, index), array, positions)
    columns = windows.slices(windows.padded(array, _least(array.dtype)))
    carried = [windows.slices(windows.padded(source, 0)) for source in positions]
    best, offset, taken = _greatest_column(windows.axis, index, columns, carried)
    position = _along(windows.starts, windows.axis, best) + offset * windows.dilation
    return best, [position, *taken]


def _greatest_column(axis, index, columns, carried):
    """The greatest of the elements at one offset each, with their offset and what they carry."""
    best, *others = columns
    taken, *other_taken = zip(*carried, strict=True) if carried else [()] * index.shape[1]
    # offsets, not positions: selecting arrays of constants is five times slower
    offset = jnp.zeros(best.shape, jnp.int32)
    for number, other in enumerate(others, 1):
        wins = _wins(best, other)
        empty = (_columns_before(index, number) < 0).all(1)
        if _may_hold(empty):
            # any element wins over padding, -inf too
            wins |= _along(empty, axis, best)
        best, offset = jnp.where(wins, other, best), jnp.where(wins, number, offset)
        pairs = zip(other_taken[number - 1], taken, strict=True)
        taken = [jnp.where(wins, new, old) for new, old in pairs]
    return best, offset, taken


def _columns_before(table, number):
    is_constant = isinstance(table, numpy.ndarray)
    # indexing a table of varying length would be a gather
    return table[:, :number] if is_constant else lax.slice_in_dim(table, 0, number, axis=1)


def _least(dtype):
    return -jnp.inf if jnp.issubdtype(dtype, jnp.floating) else jnp.iinfo(dtype).min


def _wins(best, other):
    """Where `other` replaces `best`: the first of equal elements stays, and the last NaN wins."""
    return (other > best) | (other != other)


def _along(numbers, axis, like):
    """A value for each index of a dimension, in a shape that broadcasts."""
    kind = None if numbers.dtype == bool else jnp.int32
    return jnp.asarray(numbers, kind).reshape((-1,) + (1,) * (like.ndim - axis - 1))


def max_at(box, array, positions):
    """`reduce` of `greatest_of_boxes` for a dimension and (boxes, elements), -1 for none.

    Without -1 the elements of a box are adjacent, and its last one may repeat.
    """
    axis, index = box
    if index.shape[1] <= MAX_UNROLLED and index.min(initial=0) >= 0:
        columns, *carried = (
            [jnp.take(source, column, axis) for column in index.T] for source in (array, *positions)
        )
        best, offset, taken = _greatest_column(axis, index, columns, carried)
        last = _along(index[:, -1], axis, best)
        return best, [jnp.minimum(_along(index[:, 0], axis, best) + offset, last), *taken]
    # the first and the last element of a box may count twice
    inside = index >= 0
    first = numpy.take_along_axis(index, inside.argmax(1, keepdims=True), 1)
    comes_before = ~numpy.logical_or.accumulate(inside, 1)
    nearest = numpy.where(comes_before, first, index.max(1, keepdims=True))
    index = numpy.where(inside, index, nearest)
    elements = jnp.take(array, index, axis)
    chosen = jnp.expand_dims(index_of_greatest(elements, axis + 1), axis + 1)
    places = jnp.asarray(index, jnp.int32).reshape(index.shape + (1,) * (array.ndim - axis - 1))
    taken = [places, *(jnp.take(source, index, axis) for source in positions)]
    best, *taken = (pick(candidates, chosen, axis + 1) for candidates in (elements, *taken))
    return best, taken


def index_of_greatest(elements, axis):
    """The index of the first greatest element, or of the last NaN."""
    first = jnp.argmax(elements, axis)
    if not jnp.issubdtype(elements.dtype, jnp.floating):
        return first
    lost = jnp.isnan(elements)
    last = elements.shape[axis] - 1 - jnp.argmax(jnp.flip(lost, axis), axis)
    return jnp.where(jnp.any(lost, axis), last, first)


def pick(elements, chosen, axis):
    """The elements that are chosen along a dimension; other dimensions broadcast."""
    elements = elements.reshape((1,) * (chosen.ndim - elements.ndim) + elements.shape)
    return jnp.take_along_axis(elements, chosen, axis).squeeze(axis)


# gradients of maxima


def max_pool2d_with_indices_backward(
    grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices
):
    options = kernel_size, stride, padding, dilation, ceil_mode
    windows = _windows("max_pool2d_backward", self, 2, *options)
    _check_gradient("max_pool2d_backward", grad_output, self, windows)
    return add_at(grad_output, self.shape, indices, 2)


def max_pool3d_with_indices_backward(
    grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices
):
    options = kernel_size, stride, padding, dilation, ceil_mode
    windows = _windows("max_pool3d_backward", self, 3, *options)
    _check_gradient("max_pool3d_backward", grad_output, self, windows)
    return add_at(grad_output, self.shape, indices, 3)


def _check_gradient(name, grad_output, self, windows):
    expected = (
        *self.shape[: self.ndim - len(windows)],
        *(axis_windows.count for axis_windows in windows),
    )
    if grad_output.shape != expected:
        raise RuntimeError(
            f"{name}: Expected a gradient of size {list(expected)} for an input of size "
            f"{list(self.shape)}, but got: {list(grad_output.shape)}"
        )


def add_at(grad, shape, indices, dimensions):
    """Zeros of a shape with `grad` added at flat indices of the last dimensions."""
    if grad.shape != indices.shape:
        raise RuntimeError(
            f"expected sizes {list(indices.shape)} of the indices for the gradient, but got "
            f"{list(grad.shape)}"
        )
    places, size = flat_places(indices, shape, dimensions), math.prod(shape)
    zeros = jnp.zeros(size, grad.dtype).at[places]
    added = zeros.add(grad.reshape(-1), mode="drop", wrap_negative_indices=False)
    return added.reshape(shape)


def max_pool_double_backward(grad, indices, dimensions):
    """Elements of `grad` at flat indices of its last dimensions."""
    if not grad.size:
        return jnp.zeros(indices.shape, grad.dtype)
    places = flat_places(indices, grad.shape, dimensions)
    return (
        grad.reshape(-1)
        .at[places]
        .get(mode="fill", fill_value=0, wrap_negative_indices=False)
        .reshape(indices.shape)
    )


def flat_places(indices, shape, dimensions):
    """Indices in planes as indices in the whole tensor, beyond it for those beyond the plane."""
    if indices.shape[: indices.ndim - dimensions] != shape[: len(shape) - dimensions]:
        raise RuntimeError(
            f"expected indices for a tensor of size {list(shape)}, but got {list(indices.shape)}"
        )
    size, plane = math.prod(shape), math.prod(shape[len(shape) - dimensions :])
    kind = jnp.int32 if symbolic.chosen(lambda: size < 2**31) else jnp.int64
    planes = math.prod(shape[: len(shape) - dimensions])
    flat = indices.reshape(planes, math.prod(indices.shape[indices.ndim - dimensions :]))
    inside = (flat >= 0) & (flat < plane)
    flat = jnp.where(
        inside, flat.astype(kind) + (jnp.arange(planes, dtype=kind) * plane)[:, None], size
    )
    return flat.reshape(-1)


def refuse_indices(what, indices, sizes, least=0):
    """Raise RuntimeError for an index beyond planes of these sizes, or below `least`."""
    flat = numpy.asarray(indices).ravel()
    wrong = flat[(flat < least) | (flat >= math.prod(sizes))]
    if wrong.size:
        shown = "x".join(map(str, sizes))
        raise RuntimeError(
            f"Found an invalid max index: {wrong[0]} (output volumes are of size {shown}) in {what}"
        )


def _refuse_indices_2d(grad_output, self, *options):
    refuse_indices("max_pool2d_with_indices_backward", options[-1], self.shape[-2:], -1)


def _refuse_indices_3d(grad_output, self, *options):
    refuse_indices("max_pool3d_with_indices_backward", options[-1], self.shape[-3:], -1)


max_pool2d_with_indices_backward.precondition = _refuse_indices_2d
max_pool3d_with_indices_backward.precondition = _refuse_indices_3d


# means


def avg_pool2d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    options = kernel_size, stride, padding, 1, ceil_mode
    return _avg_pool("avg_pool2d", 2, self, options, count_include_pad, divisor_override)


def avg_pool3d(self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override):
    options = kernel_size, stride, padding, 1, ceil_mode
    return _avg_pool("avg_pool3d", 3, self, options, count_include_pad, divisor_override)


def avg_pool2d_backward(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    options = kernel_size, stride, padding, 1, ceil_mode
    name = "avg_pool2d_backward"
    return _avg_pool_backward(
        grad_output, name, 2, self, options, count_include_pad, divisor_override
    )


def avg_pool3d_backward(
    grad_output, self, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
):
    options = kernel_size, stride, padding, 1, ceil_mode
    name = "avg_pool3d_backward"
    return _avg_pool_backward(
        grad_output, name, 3, self, options, count_include_pad, divisor_override
    )


@promotion.in_single
def _mean(self, windows, divisors):
    for axis_windows in reversed(windows):
        self = _sum_of_windows(axis_windows, self)
    if jnp.issubdtype(self.dtype, jnp.integer):
        return lax.div(*promotion.broadcast("avg_pool", self, jnp.asarray(divisors, self.dtype)))
    return self / jnp.asarray(divisors, self.dtype)


def _avg_pool(name, dimensions, self, options, count_include_pad, divisor):
    _check_mean(name, self, divisor)
    windows = _windows(name, self, dimensions, *options)
    return _mean(self, windows, _divisors(windows, count_include_pad, divisor))


@promotion.in_single
def _spread(grad, windows, divisors):
    grad = grad / jnp.asarray(divisors, grad.dtype)
    for axis_windows in windows:
        grad = _sum_over_windows(axis_windows, grad)
    return grad


def _avg_pool_backward(grad, name, dimensions, self, options, count_include_pad, divisor):
    _check_mean(name, self, divisor)
    windows = _windows(name, self, dimensions, *options)
    _check_gradient(name, grad, self, windows)
    return _spread(grad, windows, _divisors(windows, count_include_pad, divisor))


def _check_mean(name, self, divisor):
    promotion.refuse(name, self, BOOLEAN)
    dtype = dtypes.from_numpy(self.dtype)
    if dtype.category == INTEGRAL and dtype is not dtypes.int64:
        promotion.refuse(name, self, INTEGRAL)
    if divisor == 0:
        raise RuntimeError("divisor must be not zero")


def _divisors(windows, with_padding, override):
    """The number of elements in each window: a number, or an array that broadcasts."""
    if override is not None:
        return override
    arrays = symbolic.namespace(*[axis_windows.count for axis_windows in windows])
    counts = arrays.ones((), numpy.int64)
    for axis_windows in windows:
        last = axis_windows.length + (axis_windows.padding if with_padding else 0)
        ends = arrays.minimum(axis_windows.starts + axis_windows.size, last)
        starts = axis_windows.starts if with_padding else axis_windows.starts.clip(0)
        counts = arrays.multiply.outer(counts, ends - starts)
    if arrays is jnp:
        return counts
    return int(counts.flat[0]) if (counts == counts.flat[0]).all() else counts


def _sum_of_windows(windows, array):
    """The sum of the elements of each window along a dimension."""
    axis, size, count = windows.axis, windows.size, windows.count
    array = windows.padded(array, 0)
    if size <= MAX_UNROLLED:
        return functools.reduce(jnp.add, windows.slices(array))
    if size == windows.stride:
        parts = lax.slice_in_dim(array, 0, count * size, 1, axis)
        return parts.reshape(*array.shape[:axis], count, size, *array.shape[axis + 1 :]).sum(
            axis + 1
        )
    index = symbolic.namespace(count).arange(count)[:, None] * windows.stride + numpy.arange(size)
    return jnp.take(array, index, axis).sum(axis + 1)


def _sum_over_windows(windows, array):
    """The sum, for each element of a dimension, over the windows in which it is: the transpose of
    `_sum_of_windows`.
    """
    axis, size, stride, count = windows.axis, windows.size, windows.stride, windows.count
    before, rest = windows.padding, windows.length + windows.padding
    if size <= stride:
        shape = array.shape
        spread = jnp.broadcast_to(
            jnp.expand_dims(array, axis + 1), (*shape[: axis + 1], size, *shape[axis + 1 :])
        )
        spread = _widened(spread, axis + 1, 0, stride - size)
        spread = spread.reshape(*shape[:axis], count * stride, *shape[axis + 1 :])
        return _widened(spread, axis, -before, rest - count * stride)
    span = (count - 1) * stride + 1
    if size <= MAX_UNROLLED:
        parts = (
            _widened(array, axis, offset - before, rest - offset - span, stride - 1)
            for offset in range(size)
        )
        return functools.reduce(jnp.add, parts)
    array = _widened(array, axis, size - 1 - before, rest - span, stride - 1)
    places = symbolic.namespace(windows.length).arange(windows.length)
    index = places[:, None] + numpy.arange(size)
    return jnp.take(array, index, axis).sum(axis + 1)


def _widened(array, axis, before, after, between=0):
    """Zeros before, after and between the elements of a dimension; where negative, less of them."""
    widths = [(0, 0, 0)] * array.ndim
    widths[axis] = before, after, between
    return lax.pad(array, jnp.zeros((), array.dtype), widths)
