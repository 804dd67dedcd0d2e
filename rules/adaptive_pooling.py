"""Pooling to a given size: adaptive, fractional and of regions; and the inverse of max pooling."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy
from jaxgrad.rules import pooling

from jaxgrad.core import aval, device_axes, dtypes, promotion
from jaxgrad.core import symbolic_extents as symbolic
from jaxgrad.core.dtypes import BOOLEAN, COMPLEX, INTEGRAL

# adaptive: bin i of m along n elements is [floor(i * n / m), ceil((i + 1) * n / m))


def adaptive_means_2d(self, output_size):
    return _adaptive_mean("adaptive_avg_pool2d", 2, self, output_size)


def adaptive_means_3d(self, output_size):
    return _adaptive_mean("adaptive_avg_pool3d", 3, self, output_size)


def adaptive_means_2d_backward(grad_output, self):
    return _adaptive_mean_backward("adaptive_avg_pool2d_backward", 2, grad_output, self)


def adaptive_means_3d_backward(grad_output, self):
    return _adaptive_mean_backward("adaptive_avg_pool3d_backward", 3, grad_output, self)


def adaptive_means_as(self, shape, dimensions):
    """The means of bins, as many as the last dimensions of a shape tell."""
    return _mean(self, shape[len(shape) - dimensions :])


def adaptive_max_pool2d(self, output_size):
    return _adaptive_max("adaptive_max_pool2d", 2, self, output_size)


def adaptive_max_pool3d(self, output_size):
    return _adaptive_max("adaptive_max_pool3d", 3, self, output_size)


def adaptive_max_pool2d_backward(grad_output, self, indices):
    return _max_backward("adaptive_max_pool2d_backward", 2, grad_output, self, indices)


def adaptive_max_pool3d_backward(grad_output, self, indices):
    return _max_backward("adaptive_max_pool3d_backward", 3, grad_output, self, indices)


def _sizes(name, self, output_size, dimensions):
    if len(output_size) != dimensions:
        raise RuntimeError(f"{name}: output_size must be {dimensions} (internal error)")
    if min(output_size) < 0:
        shown = ", ".join(map(str, output_size))
        raise RuntimeError(
            f"{name}: elements of output_size must be greater than or equal to 0 but received "
            f"{{{shown}}}: Trying to create tensor with negative dimension"
        )
    aval.check_bytes((*self.shape[:-dimensions], *output_size), self.dtype)
    return output_size


def _bins(length, parts):
    """The first element of each bin, and the one after its last."""
    number = symbolic.namespace(length).arange(parts)
    return number * length // max(parts, 1), -(-(number + 1) * length // max(parts, 1))


def _bins_of_elements(length, parts):
    """The first bin in which each element is, and the one after its last."""
    element = numpy.arange(length)
    starts, ends = _bins(length, parts)
    return numpy.searchsorted(ends, element, "right"), numpy.searchsorted(starts, element, "right")


def _divides(length, parts):
    return parts and length % parts == 0


def _adaptive_mean(name, dimensions, self, output_size):
    promotion.refuse(name, self, BOOLEAN, INTEGRAL)
    pooling.check_planes(name, self, dimensions, with_channels=False)
    return _mean(self, _sizes(name, self, output_size, dimensions))


@promotion.in_single
def _mean(self, output_size):
    first = self.ndim - len(output_size)
    for axis, parts in reversed(list(enumerate(output_size, first))):
        length = self.shape[axis]
        if _divides(length, parts):
            self = _split(self, axis, parts).mean(axis + 1)
            continue
        starts, ends = _bins(length, parts)
        if symbolic.is_symbolic(length):
            self = _mean_of_bins(self, axis, starts, ends)
            continue
        total = _sum_of_ranges(self, axis, starts, ends)
        self = total / _along(ends - starts, axis, total).astype(self.dtype)
    return self


def _elements_of_bins(array, axis, starts, ends, other):
    """All elements for each bin along a dimension of any length, with `other` outside of it."""
    places = jnp.arange(array.shape[axis])
    inside = (places >= starts[:, None]) & (places < ends[:, None])
    mask = inside.reshape(inside.shape + (1,) * (array.ndim - axis - 1))
    return jnp.where(mask, jnp.expand_dims(array, axis), other)


def _mean_of_bins(array, axis, starts, ends):
    total = _elements_of_bins(array, axis, starts, ends, 0).sum(axis + 1, dtype=array.dtype)
    return total / _along(ends - starts, axis, total).astype(array.dtype)


def _split(array, axis, parts):
    shape = array.shape
    size = shape[axis] // max(parts, 1)
    return array.reshape(*shape[:axis], parts, size, *shape[axis + 1 :])


def _along(numbers, axis, like):
    return jnp.asarray(numbers).reshape((-1,) + (1,) * (like.ndim - axis - 1))


def _sum_of_ranges(array, axis, starts, ends):
    """The sums of the elements from `starts` to `ends` along a dimension."""
    size = (ends - starts).max(initial=0)
    if not size:
        return jnp.zeros((*array.shape[:axis], len(starts), *array.shape[axis + 1 :]), array.dtype)
    if size > pooling.MAX_UNROLLED:
        offsets = numpy.arange(size)
        elements = _up_to(array, axis, starts[:, None] + offsets, ends[:, None])
        return elements.sum(axis + 1, dtype=array.dtype)
    columns = (_up_to(array, axis, starts + offset, ends) for offset in range(size))
    return functools.reduce(jnp.add, columns)


def _up_to(array, axis, index, ends):
    """Elements at indices along a dimension, and 0 for those from `ends` on."""
    inside = index < ends
    elements = jnp.take(array, numpy.where(inside, index, 0), axis)
    # selected, not multiplied by 0: an infinity is in its own ranges alone
    mask = jnp.asarray(inside).reshape(inside.shape + (1,) * (array.ndim - axis - 1))
    return elements if inside.all() else jnp.where(mask, elements, 0)


def _adaptive_mean_backward(name, dimensions, grad_output, self):
    _check_gradient(name, grad_output, self, dimensions)
    return _mean_backward(grad_output, self.shape)


@promotion.in_single
def _mean_backward(grad, shape):
    for axis, length in enumerate(shape):
        parts = grad.shape[axis]
        if parts == length:
            continue
        if _divides(length, parts):
            size = length // parts
            widened = jnp.expand_dims(grad / size, axis + 1)
            wide = (*grad.shape[: axis + 1], size, *grad.shape[axis + 1 :])
            grad = jnp.broadcast_to(widened, wide)
            grad = grad.reshape(*wide[:axis], length, *wide[axis + 2 :])
            continue
        starts, ends = _bins(length, parts)
        if symbolic.is_symbolic(length):
            operand = (*grad.shape[:axis], length, *grad.shape[axis + 1 :])
            mean = functools.partial(_mean_of_bins, axis=axis, starts=starts, ends=ends)
            transpose = jax.linear_transpose(mean, device_axes.operand(operand, grad))
            (grad,) = transpose(grad)
            continue
        grad = grad / _along(ends - starts, axis, grad).astype(grad.dtype)
        grad = _sum_of_ranges(grad, axis, *_bins_of_elements(length, parts))
    return grad


def _check_gradient(name, grad_output, self, dimensions):
    planes = self.ndim - dimensions
    if grad_output.ndim != self.ndim or grad_output.shape[:planes] != self.shape[:planes]:
        raise RuntimeError(
            f"{name}: Expected dimensions {self.ndim} for `grad_output` and the planes of the "
            f"input of size {list(self.shape)}, but got size {list(grad_output.shape)}"
        )


def _adaptive_max(name, dimensions, self, output_size):
    promotion.refuse(name, self, BOOLEAN, INTEGRAL, COMPLEX)
    # as in PyTorch, the first dimension alone may be empty, also if it is that of the channels
    pooling.check_planes(name, self, dimensions, with_channels=self.ndim == dimensions + 2)
    sizes = _sizes(name, self, output_size, dimensions)
    first = self.ndim - dimensions
    return pooling.greatest_of_boxes(self, list(enumerate(sizes, first)), _max_of_bins)


def _max_of_bins(bins, array, positions):
    axis, parts = bins
    length = array.shape[axis]
    if _divides(length, parts) and not symbolic.is_symbolic(length):
        size = length // parts
        windows = pooling.Windows.of(axis, length, size, size, 0, 1, False)
        return pooling.max_of_windows(windows, array, positions)
    starts, ends = _bins(length, parts)
    if symbolic.is_symbolic(length):
        elements = _elements_of_bins(array, axis, starts, ends, -jnp.inf)
        place = jnp.expand_dims(pooling.index_of_greatest(elements, axis + 1), axis + 1)
        sources = [jnp.expand_dims(source, axis) for source in (array, *positions)]
        best, *taken = [pooling.pick(source, place, axis + 1) for source in sources]
        return best, [place.squeeze(axis + 1), *taken]
    offsets = numpy.arange((ends - starts).max(initial=1))
    # of shorter bins the last element counts twice
    index = numpy.minimum(starts[:, None] + offsets, ends[:, None] - 1)
    return pooling.max_at((axis, index), array, positions)


def _max_backward(name, dimensions, grad_output, self, indices):
    _check_gradient(name, grad_output, self, dimensions)
    return pooling.add_at(grad_output, self.shape, indices, dimensions)


def _refuse_indices_2d(grad_output, self, *options):
    pooling.refuse_indices("max pooling", options[-1], self.shape[-2:])


def _refuse_indices_3d(grad_output, self, *options):
    pooling.refuse_indices("max pooling", options[-1], self.shape[-3:])


adaptive_max_pool2d_backward.precondition = _refuse_indices_2d
adaptive_max_pool3d_backward.precondition = _refuse_indices_3d

# fractional: random samples choose where the windows of each plane begin


def fractional_max_pool2d(self, kernel_size, output_size, random_samples):
    name = "fractional_max_pool2d"
    # the samples of planes are in the order w, h
    return _fractional(name, 2, self, kernel_size, output_size, random_samples, (1, 0))


def fractional_max_pool3d(self, kernel_size, output_size, random_samples):
    name = "fractional_max_pool3d"
    return _fractional(name, 3, self, kernel_size, output_size, random_samples, (0, 1, 2))


def _fractional(name, dimensions, self, kernel_size, output_size, samples, order):
    promotion.refuse(name, self, BOOLEAN, INTEGRAL, COMPLEX)
    pooling.check_planes(name, self, dimensions, with_channels=self.ndim == dimensions + 2)
    _check_fractional(name, dimensions, self, kernel_size, output_size)
    _check_samples(self, dimensions, samples)
    planes = self.shape[:-dimensions]
    samples = samples[: planes[0]] if self.ndim > dimensions + 1 else samples[0]
    lengths = self.shape[-dimensions:]
    starts = [
        _starts(samples[..., number], length, size, parts)
        for number, length, size, parts in zip(
            order, lengths, kernel_size, output_size, strict=True
        )
    ]
    boxes = [
        (axis, start[..., None] + jnp.arange(size, dtype=jnp.int32))
        for axis, start, size in zip(range(-dimensions, 0), starts, kernel_size, strict=True)
    ]
    return pooling.greatest_of_boxes(self, boxes, _max_of_samples)


def _starts(sample, length, size, parts):
    """Where windows begin: (..., parts) of (...) samples, in PyTorch's precision."""
    if parts == 1:
        return jnp.full((*sample.shape, 1), length - size, jnp.int32)
    sample = sample[..., None]
    alpha = jnp.asarray((length - size) / (parts - 1) if parts else 0, sample.dtype)
    steps = jnp.arange(parts).astype(sample.dtype)
    begin = jnp.trunc((steps + sample) * alpha) - jnp.trunc(sample * alpha)
    return jnp.where(steps == parts - 1, length - size, begin.astype(jnp.int32))


def _max_of_samples(box, array, positions):
    """`reduce` of `greatest_of_boxes` for indices (planes..., windows, elements) of each plane."""
    axis, index = box
    axis += array.ndim
    planes, (parts, size) = index.shape[:-2], index.shape[-2:]
    others = [1] * (array.ndim - len(planes) - 1)
    others.insert(axis - len(planes), parts * size)
    flat = index.reshape(*planes, *others)

    def take(source):
        shape = source.shape
        taken = jnp.take_along_axis(source, flat, axis)
        return taken.reshape(*shape[:axis], parts, size, *shape[axis + 1 :])

    elements = take(array)
    chosen = jnp.expand_dims(pooling.index_of_greatest(elements, axis + 1), axis + 1)
    of_windows = [*planes, *[1] * (elements.ndim - len(planes))]
    of_windows[axis], of_windows[axis + 1] = parts, size
    places = jnp.broadcast_to(index.reshape(of_windows), elements.shape)
    best, *taken = (
        jnp.take_along_axis(candidates, chosen, axis + 1).squeeze(axis + 1)
        for candidates in (elements, places, *map(take, positions))
    )
    return best, taken


def _check_fractional(name, dimensions, self, kernel_size, output_size):
    for what, numbers in (("kernel_size", kernel_size), ("output_size", output_size)):
        if len(numbers) != dimensions:
            raise RuntimeError(f"{name}: {what} must either be a single Int or tuple of Ints")
    lengths = self.shape[-dimensions:]
    for length, size, parts in zip(lengths, kernel_size, output_size, strict=True):
        if size < 1 or parts < 0:
            raise RuntimeError(f"{name}(): pool size {size} and output size {parts} are too small")
        # PyTorch's limit differs by one for volumes
        if parts + size - 1 > length - (dimensions == 3):
            raise RuntimeError(
                f"{name}(): pool size {size} too large relative to input length {length} for "
                f"{parts} windows"
            )


def _check_samples(self, dimensions, samples):
    if samples.dtype != self.dtype:
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    if samples.ndim != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {samples.ndim}")
    batch = self.shape[0] if self.ndim > dimensions + 1 else 1
    if samples.shape[0] < batch:
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if samples.shape[1] != self.shape[-dimensions - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if samples.shape[2] != dimensions:
        raise RuntimeError(
            f"Expect _random_samples.size(2) equals to {dimensions}; got {samples.shape[2]}."
        )


def fractional_max_pool2d_backward(grad_output, self, kernel_size, output_size, indices):
    name = "fractional_max_pool2d_backward"
    return _fractional_backward(name, 2, grad_output, self, output_size, indices)


def fractional_max_pool3d_backward(grad_output, self, kernel_size, output_size, indices):
    name = "fractional_max_pool3d_backward"
    return _fractional_backward(name, 3, grad_output, self, output_size, indices)


def _fractional_backward(name, dimensions, grad_output, self, output_size, indices):
    if grad_output.shape[-dimensions:] != tuple(output_size):
        raise RuntimeError(f"{name}(): gradOutput sizes unexpected: {list(grad_output.shape)}")
    return _max_backward(name, dimensions, grad_output, self, indices)


fractional_max_pool2d_backward.precondition = _refuse_indices_2d
fractional_max_pool3d_backward.precondition = _refuse_indices_3d

# the inverse of max pooling


def max_unpool2d(self, indices, output_size):
    _check_count("height, width", output_size, "output_size", 2)
    return _unpool("max_unpooling2d", self, indices, output_size)


def max_unpool3d(self, indices, output_size, stride, padding):
    for what, numbers in (("output_size", output_size), ("stride", stride), ("padding", padding)):
        _check_count("depth, height, width", numbers, what, 3)
    if min(stride) <= 0:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(stride)}")
    return _unpool("max_unpooling3d", self, indices, output_size)


def _check_count(names, numbers, what, count):
    if len(numbers) != count:
        word = {2: "two", 3: "three"}[count]
        raise RuntimeError(
            f"There should be exactly {word} elements ({names}) in {what}, but got "
            f"{len(numbers)} elements."
        )


def _unpool(name, self, indices, output_size):
    dimensions = len(output_size)
    promotion.refuse(f"max_unpool{dimensions}d", self, BOOLEAN, INTEGRAL, COMPLEX)
    _check_unpooled(name, self, indices, dimensions)
    shape = (*self.shape[: self.ndim - dimensions], *output_size)
    places = pooling.flat_places(indices, shape, dimensions)
    zeros = jnp.zeros(math.prod(shape), self.dtype).at[places]
    # of equal indices the last is written
    written = zeros.set(self.reshape(-1), mode="drop", wrap_negative_indices=False)
    return written.reshape(shape)


def _check_unpooled(name, self, indices, dimensions):
    kind = dtypes.from_numpy(indices.dtype)
    if kind not in (dtypes.int64, dtypes.from_numpy(promotion.available(dtypes.int64))):
        name_of_kind = kind.scalar_type
        raise RuntimeError(f"elements in indices should be type int64 but got: {name_of_kind}")
    if self.ndim not in (dimensions + 1, dimensions + 2):
        raise RuntimeError(
            f"Input to {name} should be a {dimensions + 1}d or {dimensions + 2}d Tensor, but got a "
            f"tensor with {self.ndim} dimensions."
        )
    if self.shape != indices.shape:
        raise RuntimeError(
            "Expected shape of indices to be same as that of the input tensor "
            f"({list(self.shape)}) but got indices tensor with shape: {list(indices.shape)}"
        )
    pooling.check_planes(name, self, dimensions)


def max_unpool2d_backward(grad_output, self, indices, output_size):
    if grad_output.shape != (*self.shape[:-2], *output_size):
        raise RuntimeError(
            f"max_unpool2d_backward: inconsistent gradOutput size: output {list(output_size)}, "
            f"gradOutput {list(grad_output.shape)}"
        )
    return pooling.max_pool_double_backward(grad_output, indices, 2)


def _refuse_unpooled(self, indices, output_size, *options):
    pooling.refuse_indices("max unpooling", indices, output_size)


def _refuse_unpooled_backward(grad_output, self, indices, output_size):
    pooling.refuse_indices("max unpooling", indices, output_size)


max_unpool2d.precondition = max_unpool3d.precondition = _refuse_unpooled
max_unpool2d_backward.precondition = _refuse_unpooled_backward

# of regions


def RoiPooling2d_forward(input, rois, pooledHeight, pooledWidth, spatialScale):
    """The greatest element of each of `pooledHeight * pooledWidth` boxes of each region, and its
    index in the plane; 0 and -1 for a box without elements.
    """
    promotion.refuse("RoiPooling2d_forward", input, BOOLEAN, INTEGRAL, COMPLEX)
    if input.ndim != 4 or rois.ndim != 2 or rois.shape[1] != 5:
        raise RuntimeError(
            "RoiPooling2d_forward: expected input of size (n, c, h, w) and rois of size (k, 5), "
            f"but got {list(input.shape)} and {list(rois.shape)}"
        )
    scaled = rois[:, 1:] * spatialScale
    # C's round: halves away from zero
    x1, y1, x2, y2 = jnp.trunc(scaled + jnp.copysign(0.5, scaled)).astype(jnp.int32).T
    rows = _boxes(y1, y2, pooledHeight, input.shape[2])
    columns = _boxes(x1, x2, pooledWidth, input.shape[3])
    planes = jnp.take(input, rois[:, 0].astype(jnp.int32), 0, mode="clip")
    best, index = jax.vmap(_of_region)(planes, rows, columns)
    full = [starts < ends for starts, ends in (rows, columns)]
    full = (full[0][:, :, None] & full[1][:, None, :])[:, None]
    index = jnp.where(full, index, -1)
    return jnp.where(full, best, 0), index.astype(promotion.available(dtypes.int64))


def _boxes(start, end, parts, length):
    """Where the boxes of regions begin and end: two arrays (regions, parts)."""
    size = (end - start).astype(jnp.float32)[:, None] / parts
    number = jnp.arange(parts, dtype=jnp.float32)
    edges = jnp.floor(number * size), jnp.ceil((number + 1) * size)
    return tuple(jnp.clip(edge.astype(jnp.int32) + start[:, None], 0, length) for edge in edges)


def _of_region(planes, rows, columns):
    return pooling.greatest_of_boxes(planes, [(1, rows), (2, columns)], _max_of_region)


def _max_of_region(box, array, positions):
    """`reduce` of `greatest_of_boxes` for boxes between two traced arrays."""
    axis, (starts, ends) = box
    element = jnp.arange(array.shape[axis])
    inside = (element >= starts[:, None]) & (element < ends[:, None])
    inside = inside.reshape(inside.shape + (1,) * (array.ndim - axis - 1))
    elements = jnp.where(inside, jnp.expand_dims(array, axis), -jnp.inf)
    chosen = pooling.index_of_greatest(elements, axis + 1)
    # what comes before the box wins if all in it is -inf
    first = starts.reshape((-1,) + (1,) * (array.ndim - axis - 1))
    chosen = jnp.maximum(chosen.astype(jnp.int32), jnp.minimum(first, array.shape[axis] - 1))
    best, *taken = (
        pooling.pick(jnp.expand_dims(source, axis), jnp.expand_dims(chosen, axis + 1), axis + 1)
        for source in (array, *positions)
    )
    return best, [chosen, *taken]


def roi_pooling2d_backward(grad, shape, rois, indices):
    """`grad` added at the indices of the image of each region."""
    batch, channels = rois[:, 0].astype(jnp.int32), jnp.arange(shape[1])
    plane = (batch[:, None] * shape[1] + channels)[:, :, None, None]
    places = jnp.where(indices < 0, math.prod(shape), plane * (shape[2] * shape[3]) + indices)
    zeros = jnp.zeros(math.prod(shape), grad.dtype).at[places.reshape(-1)]
    return zeros.add(grad.reshape(-1), mode="drop", wrap_negative_indices=False).reshape(shape)


def _refuse_regions(input, rois, *options):
    images = numpy.asarray(rois)[:, :1] if rois.ndim == 2 else numpy.zeros(0)
    wrong = images[(images < 0) | (images >= input.shape[0])]
    if wrong.size:
        raise RuntimeError(
            f"RoiPooling2d_forward: a region is of image {wrong[0]:g}, of {input.shape[0]} images"
        )


RoiPooling2d_forward.precondition = _refuse_regions
