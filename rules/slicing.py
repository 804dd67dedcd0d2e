"""Operators that read and write one index or a slice of a dimension."""

import jax.numpy as jnp
from jax import lax
from jaxgrad.rules import shape as shapes

from jaxgrad.core import dtypes, promotion, symbolic_extents
from jaxgrad.core.primitive import op

# one index of a dimension


def select(self, dim, index):
    dim, index = _place(self.shape, dim, index)
    return lax.index_in_dim(self, index, dim, keepdims=False)


def _place(sizes, dim, index):
    """The dimension and the index, both counted from 0."""
    if not len(sizes):
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim = shapes.wrap_dim(dim, len(sizes))
    if not -sizes[dim] <= index < sizes[dim]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(sizes)} at dimension "
            f"{dim}"
        )
    return dim, index % sizes[dim]


def select_backward(grad_output, input_sizes, dim, index):
    """Zeros of shape `input_sizes` with `grad_output` at one index of a dimension."""
    dim, index = _place(input_sizes, dim, index)
    return _placed(lax.expand_dims(grad_output, [dim]), input_sizes, dim, index, 1)


def _placed(piece, sizes, dim, start, step):
    """Zeros with `piece` at every `step`th index of a dimension from `start` on."""
    stretch = max((piece.shape[dim] - 1) * step + 1, 0)
    padding = [(0, 0, 0)] * len(sizes)
    padding[dim] = (start, sizes[dim] - start - stretch, step - 1)
    return lax.pad(piece, jnp.zeros((), piece.dtype), padding)


def select_scatter(self, src, dim, index):
    dim, index = _place(self.shape, dim, index)
    check_source(src.shape, (*self.shape[:dim], *self.shape[dim + 1 :]))
    return lax.dynamic_update_index_in_dim(
        self, promotion.cast(src, dtypes.from_numpy(self.dtype)), index, dim
    )


def zeros_like_select(tensor, dim, index):
    return jnp.zeros_like(select(tensor, dim, index))


def check_source(got, expected):
    if got != expected:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {list(got)}, "
            f"slice size = {list(expected)}"
        )


# slices


def _bounds(sizes, dim, start, end, step):
    """The dimension, start, end and step of a slice, normalized as Python does."""
    if not len(sizes):
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    if step <= 0:
        raise RuntimeError(
            f"slice step must be positive, but got {step}: use flip to turn a dimension round"
        )
    dim = shapes.wrap_dim(dim, len(sizes))
    part = _python_slice(start, end, step)
    first, last, step = symbolic_extents.bounds_of(part, sizes[dim])
    return dim, first, symbolic_extents.larger(first, last), step


_python_slice = slice


def slice(self, dim=0, start=None, end=None, step=1):
    dim, start, end, step = _bounds(self.shape, dim, start, end, step)
    return lax.slice_in_dim(self, start, end, step, dim)


def slice_backward(grad_output, input_sizes, dim, start, end, step):
    """Zeros of shape `input_sizes` with `grad_output` on a slice."""
    dim, start, _, step = _bounds(input_sizes, dim, start, end, step)
    return _placed(grad_output, input_sizes, dim, start, step)


def slice_backward_wrapper(grad, sizes, dim, start, end, step):
    dim, start, end, step = _bounds(sizes, dim, start, end, step)
    return op.slice_backward(grad, sizes, dim, start, end, step)


def slice_scatter(self, src, dim=0, start=None, end=None, step=1):
    dim, start, end, step = _bounds(self.shape, dim, start, end, step)
    count = len(range(start, end, step))
    check_source(src.shape, (*self.shape[:dim], count, *self.shape[dim + 1 :]))
    places = (*[_python_slice(None)] * dim, _python_slice(start, end, step))
    return self.at[places].set(promotion.cast(src, dtypes.from_numpy(self.dtype)))


def zeros_like_slice(tensor, dim, start, end, step):
    return jnp.zeros_like(slice(tensor, dim, start, end, step))


def narrow(self, dim, start, length):
    dim, start = _narrow_place(self.shape, dim, start)
    extent = self.shape[dim]
    if length < 0:
        raise RuntimeError(f"narrow(): length must be non-negative. It is {length}")
    if start + length > extent:
        raise RuntimeError(
            f"start ({start}) + length ({length}) exceeds dimension size ({extent})."
        )
    return lax.slice_in_dim(self, start, start + length, axis=dim)


def _narrow_place(sizes, dim, start):
    if not len(sizes):
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    dim = shapes.wrap_dim(dim, len(sizes))
    extent = sizes[dim]
    if not -extent <= start <= extent:
        raise IndexError(
            f"start out of range (expected to be in range of [{-extent}, {extent}], but got "
            f"{start})"
        )
    return dim, start + extent if start < 0 else start


def narrow_backward(grad, sizes, dim, start):
    dim, start = _narrow_place(sizes, dim, start)
    return op.slice_backward(grad, sizes, dim, start, start + grad.shape[dim], 1)


# the same with an index that is data, or an int known to a trace; callers check its range, unless a
# trace computes it (`in_range` False)


def dynamic_select(self, dim, index, in_range):
    if not in_range:
        return self.at[_at(dim, index)].get(mode="fill")
    if isinstance(index, int):
        return lax.index_in_dim(self, index, dim, keepdims=False)
    return lax.dynamic_index_in_dim(self, index, dim, keepdims=False)


def _at(dim, index):
    # wide enough to count a negative index from the end
    return (*[_python_slice(None)] * dim, jnp.asarray(index).astype(int))


def dynamic_select_backward(grad_output, input_sizes, dim, index, in_range):
    if not in_range:
        zeros = jnp.zeros(input_sizes, grad_output.dtype)
        return dynamic_select_scatter(zeros, grad_output, dim, index, in_range)
    piece = lax.expand_dims(grad_output, [dim])
    return dynamic_slice_backward(piece, input_sizes, dim, index, 1)


def dynamic_slice(self, dim, start, length, step):
    stretch = max((length - 1) * step + 1, 0)
    if isinstance(start, int):
        return lax.slice_in_dim(self, start, start + stretch, step, dim)
    stretched = lax.dynamic_slice_in_dim(self, start, stretch, dim)
    return lax.slice_in_dim(stretched, 0, stretch, step, dim)


def dynamic_slice_backward(grad_output, input_sizes, dim, start, step):
    if isinstance(start, int):
        return _placed(grad_output, input_sizes, dim, start, step)
    stretch = max((grad_output.shape[dim] - 1) * step + 1, 0)
    sizes = (*input_sizes[:dim], stretch, *input_sizes[dim + 1 :])
    zeros = jnp.zeros(input_sizes, grad_output.dtype)
    stretched = _placed(grad_output, sizes, dim, 0, step)
    return lax.dynamic_update_slice_in_dim(zeros, stretched, start, dim)


# writing through a view


def narrow_scatter(self, value, dim, start):
    dim, start = _narrow_place(self.shape, dim, start)
    return lax.dynamic_update_slice_in_dim(self, value, start, dim)


def dynamic_select_scatter(self, value, dim, index, in_range):
    if not in_range:
        return self.at[_at(dim, index)].set(value, mode="drop")
    return lax.dynamic_update_index_in_dim(self, value, index, dim)


def dynamic_slice_scatter(self, value, dim, start, step):
    if step == 1:
        return lax.dynamic_update_slice_in_dim(self, value, start, dim)
    places = start + step * jnp.arange(value.shape[dim])
    return self.at[_at(dim, places)].set(value, unique_indices=True)
