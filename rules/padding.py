"""Operators that extend the last dimensions of a tensor.

`padding` has the sizes before and after the last dimension, then those of the one before it, and so
on; negative ones crop. Gradients are transposes of slices and concatenations: no scatter.
"""

import jax
import jax.numpy as jnp
from jax import lax

from jaxgrad.core import device_axes, dtypes, promotion
from jaxgrad.core import symbolic_extents as symbolic


def constant_pad_nd(self, pad, value=0):
    check_lengths(self.ndim, pad)
    for dim, before, after in _by_dimension(self.ndim, pad):
        _check_extent(self.shape[dim], before, after)
    if not any(pad):
        return self
    amounts = [(0, 0, 0)] * self.ndim
    for dim, before, after in _by_dimension(self.ndim, pad):
        amounts[dim] = (before, after, 0)
    return lax.pad(self, promotion.cast(value, dtypes.from_numpy(self.dtype)), amounts)


def _check_value(self, pad, value=0):
    dtype = dtypes.from_numpy(self.dtype)
    number = value if isinstance(value, bool | int | float | complex) else value.item()
    # 2.5 becomes 2 in integers, but what does not fit is refused
    if dtype.category != dtypes.BOOLEAN:
        promotion.checked_number(float(number) if isinstance(number, int) else number, dtype)


constant_pad_nd.precondition = _check_value


def check_lengths(ndim, pad):
    if len(pad) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, but got {list(pad)}")
    if len(pad) > 2 * ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(pad)} and input of dimension {ndim}"
        )


def _check_extent(extent, before, after):
    if symbolic.chosen(lambda: extent + before + after < 0):
        raise RuntimeError(
            f"The input size {extent}, plus negative padding {before} and {after}, resulted in a "
            f"negative output size {extent + before + after}"
        )
    if symbolic.chosen(lambda: extent + min(before, 0) + min(after, 0) < 0):
        raise RuntimeError(
            f"narrow(): length must be non-negative: pad cannot crop {max(-before, 0)} and "
            f"{max(-after, 0)} of {extent} elements"
        )


def _by_dimension(ndim, pad):
    """The padded dimensions, each with the sizes before and after."""
    return [
        (ndim - 1 - place, pad[2 * place], pad[2 * place + 1]) for place in range(len(pad) // 2)
    ]


def constant_pad_nd_backward(grad, pad):
    return constant_pad_nd(grad, tuple(-amount for amount in pad))


# reflection and replication


def edge_padded(self, padding, count, *, mode):
    """`self` (n, c, *sizes) or (c, *sizes) with its last `count` dimensions padded.

    mode: "reflection" or "replication".
    """
    _check_edges(self, padding, count, mode)
    return _extended(self, mode, padding)


def edge_padded_backward(grad_output, self, padding, count, *, mode):
    """The gradient of `edge_padded`; `self` gives the shape."""
    _check_edges(self, padding, count, mode)
    operand = device_axes.operand(self.shape, grad_output)
    transpose = jax.linear_transpose(lambda x: _extended(x, mode, padding), operand)
    expected = list(self.shape)
    for dim, before, after in _by_dimension(self.ndim, padding):
        expected[dim] += before + after
    if list(grad_output.shape) != expected:
        raise RuntimeError(
            f"grad_output has an unexpected shape. Expected: {expected}, Got: "
            f"{list(grad_output.shape)}"
        )
    return transpose(grad_output)[0]


def _check_edges(self, padding, count, mode):
    if len(padding) != 2 * count:
        raise RuntimeError(f"padding size is expected to be {2 * count}, but got: {len(padding)}")
    is_batched = self.ndim == count + 2
    if self.ndim not in (count + 1, count + 2) or 0 in self.shape[is_batched:]:
        raise RuntimeError(
            f"Expected {count + 1}D or {count + 2}D (batch mode) tensor with possibly 0 batch size "
            f"and other non-zero dimensions for input, but got: {list(self.shape)}"
        )
    promotion.refuse(f"{mode}_pad{count}d", self, dtypes.BOOLEAN)
    for dim, before, after in _by_dimension(self.ndim, padding):
        extent = self.shape[dim]
        if mode == "reflection" and max(before, after) >= extent:
            raise RuntimeError(
                "Argument #4: Padding size should be less than the corresponding input dimension, "
                f"but got: padding ({before}, {after}) at dimension {dim} of input "
                f"{list(self.shape)}"
            )
        if extent + before + after < 1:
            raise RuntimeError(
                f"input {list(self.shape)} is too small. Calculated output size at dimension "
                f"{dim}: {extent + before + after}"
            )


def _extended(array, mode, padding):
    extend = _reflected if mode == "reflection" else _replicated
    for dim, before, after in _by_dimension(array.ndim, padding):
        if before or after:
            array = extend(array, dim, before, after)
    return array


def _reflected(array, dim, before, after):
    extent = array.shape[dim]
    pieces = [array]
    if before > 0:
        pieces.insert(0, lax.rev(lax.slice_in_dim(array, 1, before + 1, axis=dim), [dim]))
    if after > 0:
        piece = lax.slice_in_dim(array, extent - 1 - after, extent - 1, axis=dim)
        pieces.append(lax.rev(piece, [dim]))
    return _cropped(lax.concatenate(pieces, dim), dim, before, after)


def _replicated(array, dim, before, after):
    pieces = [array]
    if before > 0:
        pieces.insert(0, _repeated(array, dim, 0, before))
    if after > 0:
        pieces.append(_repeated(array, dim, array.shape[dim] - 1, after))
    return _cropped(lax.concatenate(pieces, dim), dim, before, after)


def _repeated(array, dim, index, count):
    piece = lax.slice_in_dim(array, index, index + 1, axis=dim)
    return jnp.broadcast_to(piece, (*array.shape[:dim], count, *array.shape[dim + 1 :]))


def _cropped(array, dim, before, after):
    extent = array.shape[dim]
    return lax.slice_in_dim(array, max(-before, 0), extent + min(after, 0), axis=dim)
