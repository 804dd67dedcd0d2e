"""Views by strides: windows of a dimension, and `as_strided`."""

import math

import jax.numpy as jnp
from jax import lax
from jaxgrad.rules import indexing, pointwise, slicing
from jaxgrad.rules import shape as shapes

from jaxgrad.core import dtypes
from jaxgrad.core.primitive import op

# windows of a dimension


def unfold(self, dimension, size, step):
    """All windows of `size` elements, `step` apart; the last dimension runs through a window."""
    dim, count = _windows(self.shape, dimension, size, step)
    (source,) = indexing.at_least_1d(self)
    if size <= step:
        steps = _resized(source, dim, count * step)
        split = (*source.shape[:dim], count, step, *source.shape[dim + 1 :])
        windows = lax.slice_in_dim(jnp.reshape(steps, split), 0, size, axis=dim + 1)
    else:
        windows = jnp.take(source, _window_places(count, size, step), dim, mode="clip")
    return jnp.reshape(jnp.moveaxis(windows, dim + 1, -1), _unfolded(self.shape, dim, count, size))


def _windows(sizes, dimension, size, step):
    """The dimension counted from 0, and the number of windows."""
    dim = shapes.wrap_dim(dimension, len(sizes))
    extent = sizes[dim] if len(sizes) else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0: unfold needs windows of some size")
    if size > extent:
        raise RuntimeError(
            f"maximum size for tensor at dimension {dim} is {extent} but size is {size}: "
            f"unfold of a tensor of shape {list(sizes)}"
        )
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0: unfold goes from window to window")
    return dim, (extent - size) // step + 1


def _unfolded(sizes, dim, count, size):
    """The shape of the windows of a tensor; a tensor without dimensions has one window."""
    return (*sizes[:dim], count, *sizes[dim + 1 :], size) if len(sizes) else (size,)


def _resized(tensor, dim, extent):
    """`tensor` padded with zeros or truncated at the end of a dimension to the size `extent`."""
    padding = [(0, 0, 0)] * tensor.ndim
    padding[dim] = (0, extent - tensor.shape[dim], 0)
    return lax.pad(tensor, jnp.zeros((), tensor.dtype), padding)


def _window_places(count, size, step):
    return jnp.arange(count)[:, None] * step + jnp.arange(size)


def unfold_backward(grad_in, input_sizes, dim, size, step):
    """Zeros of shape `input_sizes` with each window added at its place."""
    dim, count = _windows(input_sizes, dim, size, step)
    sizes = tuple(input_sizes) or (1,)
    windows = _apart(grad_in, sizes, dim, count, size)
    if size <= step:
        steps = _resized(windows, dim + 1, step)
        together = jnp.reshape(steps, (*sizes[:dim], count * step, *sizes[dim + 1 :]))
        gradient = _resized(together, dim, sizes[dim])
    else:
        places = (*[slice(None)] * dim, _window_places(count, size, step))
        gradient = jnp.zeros(sizes, grad_in.dtype).at[places].add(windows)
    return jnp.reshape(gradient, input_sizes)


def _apart(windows, sizes, dim, count, size):
    """Windows with their elements in the dimension after that of the windows."""
    return jnp.moveaxis(jnp.reshape(windows, _unfolded(sizes, dim, count, size)), -1, dim + 1)


def unfold_scatter(self, src, dimension, size, step):
    """`self` with `src` written to its windows; where they overlap, the last window wins."""
    dim, count = _windows(self.shape, dimension, size, step)
    slicing.check_source(src.shape, _unfolded(self.shape, dim, count, size))
    if not src.size:
        return self
    (target,) = indexing.at_least_1d(self)
    windows = _apart(src, target.shape, dim, count, size)
    row = jnp.reshape(windows, (*target.shape[:dim], count * size, *target.shape[dim + 1 :]))
    along = jnp.arange(target.shape[dim])
    window = jnp.minimum(along // step, count - 1)
    inside = along - window * step
    written = jnp.take(row, window * size + jnp.minimum(inside, size - 1), dim, mode="clip")
    covered = jnp.expand_dims(inside < size, [*range(1, target.ndim - dim)])
    return jnp.reshape(jnp.where(covered, written, target), self.shape)


# any strides


def as_strided(self, size, stride, storage_offset=None):
    """The elements at strides from an offset in the row-major elements of `self`."""
    offset = _checked_offset(self.size, self.dtype.itemsize, size, stride, storage_offset)
    flat, count = jnp.ravel(self), math.prod(size)
    if not count:
        return jnp.zeros(size, self.dtype)
    if _is_row_major(size, stride):
        return jnp.reshape(lax.slice_in_dim(flat, offset, offset + count), size)
    return flat.at[_strided_places(size, stride, offset)].get(mode="promise_in_bounds")


def _checked_offset(count, itemsize, size, stride, storage_offset):
    """The offset, after a check that all positions are within `count` elements."""
    offset = 0 if storage_offset is None else storage_offset
    if len(size) != len(stride):
        raise RuntimeError(
            f"mismatch in length of strides and shape: as_strided got size {list(size)} and "
            f"stride {list(stride)}"
        )
    if any(step < 0 for step in stride):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got strides: "
            f"{list(stride)}; use flip"
        )
    if offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}: as_strided needs one from 0")
    if any(extent < 0 for extent in size):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and strides="
            f"{list(stride)}: as_strided needs extents from 0"
        )
    reach = sum((extent - 1) * step for extent, step in zip(size, stride, strict=True))
    needed = 0 if 0 in size else offset + reach + 1
    if needed > count:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {offset}, and "
            f"itemsize {itemsize} requiring a storage size of {needed * itemsize} are out of "
            f"bounds for storage of size {count * itemsize}"
        )
    return offset


def _is_row_major(size, stride):
    expected = [math.prod(size[dim + 1 :]) for dim in range(len(size))]
    return all(
        extent == 1 or step == wanted
        for extent, step, wanted in zip(size, stride, expected, strict=True)
    )


def _strided_places(size, stride, offset):
    places = jnp.full(size, offset)
    for dim, (extent, step) in enumerate(zip(size, stride, strict=True)):
        if extent > 1:
            places += lax.broadcasted_iota(places.dtype, size, dim) * step
    return places


def as_strided_backward(grad, sizes, size, stride, storage_offset):
    """Zeros of shape `sizes` with each element of `grad` added where it was read."""
    zeros, count = jnp.zeros(math.prod(sizes), grad.dtype), math.prod(size)
    offset = _checked_offset(zeros.size, grad.dtype.itemsize, size, stride, storage_offset)
    if not count:
        return jnp.reshape(zeros, sizes)
    if _is_row_major(size, stride):
        padding = (offset, zeros.size - offset - count, 0)
        return jnp.reshape(lax.pad(jnp.ravel(grad), jnp.zeros((), grad.dtype), [padding]), sizes)
    places = _strided_places(size, stride, offset)
    return jnp.reshape(zeros.at[places].add(grad, mode="promise_in_bounds"), sizes)


def as_strided_scatter(self, src, size, stride, storage_offset=None):
    """`self` with `src` where `as_strided` reads; of elements for one position any one wins."""
    offset = _checked_offset(self.size, self.dtype.itemsize, size, stride, storage_offset)
    slicing.check_source(src.shape, tuple(size))
    src, flat = pointwise.to(src, dtypes.from_numpy(self.dtype)), jnp.ravel(self)
    if not src.size:
        return self
    if _is_row_major(size, stride):
        written = lax.dynamic_update_slice(flat, jnp.ravel(src), (offset,))
    else:
        places = _strided_places(size, stride, offset)
        written = flat.at[places].set(src, mode="promise_in_bounds")
    return jnp.reshape(written, self.shape)


def as_strided_scatter_backward(grad, size, stride, storage_offset):
    """`grad` with zeros where `as_strided` reads."""
    return op.as_strided_scatter(grad, jnp.zeros(size, grad.dtype), size, stride, storage_offset)
