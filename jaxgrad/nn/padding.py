"""Padding of the last dimensions of a tensor."""

from __future__ import annotations

import numpy as np

from .. import ops
from ..core.tracebacks import api_boundary
from ..frontend.tensor_data import tensor
from ..ops.autocast import widened

# NumPy's names of PyTorch's modes.
_NUMPY = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
_MODES = ("constant", *_NUMPY)


@api_boundary
def pad(input, pad, mode: str = "constant", value: float | None = None):
    """Return `input` with its last dimensions extended, or for negative sizes cropped, as a copy.

    input: any shape and dtype. pad: the sizes before and after the last dimension, then before and
    after the one before it, and so on. mode: "constant" fills with `value`, 0 by default; "reflect"
    mirrors without the edge; "replicate" repeats the edge; "circular" wraps around.
    Raises RuntimeError for sizes that do not fit, NotImplementedError for another mode.

    >>> F.pad(jaxgrad.tensor([[1.0, 2.0, 3.0]]), (1, 2), value=9.0)
    tensor([[9., 1., 2., 3., 9., 9.]])
    >>> F.pad(jaxgrad.tensor([[1.0, 2.0, 3.0]]), (1, 2), "reflect")
    tensor([[2., 1., 2., 3., 2., 1.]])
    """
    given, pad = input, tuple(pad)
    if len(pad) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, but got {list(pad)}")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(pad)} and input of dimension {input.ndim}"
        )
    if mode not in _MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}: choose one of {_MODES}")
    if mode == "replicate" or (mode == "reflect" and len(pad) < 6):
        (input,) = widened(input)
    for number in range(len(pad) // 2):
        before, after = pad[2 * number : 2 * number + 2]
        if before or after:
            input = _pad_axis(input, -1 - number, before, after, mode, value)
    return input.clone() if input is given else input


def _pad_axis(input, dim, before, after, mode, value):
    length = input.shape[dim]
    if length + before + after < 0:
        raise RuntimeError(
            f"The input size {length}, plus negative padding {before} and {after}, resulted in a "
            f"negative output size {length + before + after}"
        )
    if mode != "constant":
        _check_reach(length, max(before, after), mode)
        indices = _source_indices(np.arange(length), before, after, mode)
        return input.index_select(dim, tensor(indices))
    left = length + min(before, 0) + min(after, 0)
    if left < 0:
        raise RuntimeError(
            f"pad: cannot crop {max(-before, 0)} and {max(-after, 0)} of {length} elements: the "
            "length must be non-negative"
        )
    kept = input.narrow(dim, max(-before, 0), left)
    start, end = (_constant_block(input, dim, size, value) for size in (before, after))
    # `kept` also where it is empty: the result depends on the input
    parts = start, kept, end
    return ops.cat([part for part in parts if part is kept or part.shape[dim]], dim)


def _source_indices(indices, before, after, mode):
    """Return the source index of each element; "circular" crops before it wraps around."""
    if mode == "circular":
        indices = indices[max(-before, 0) : len(indices) + min(after, 0)]
        before, after = max(before, 0), max(after, 0)
    indices = np.pad(indices, (max(before, 0), max(after, 0)), _NUMPY[mode])
    return indices[max(-before, 0) : len(indices) + min(after, 0)]


def _constant_block(input, dim, count, value):
    """Return the block of constants at one end."""
    shape = list(input.shape)
    shape[dim] = max(count, 0)
    return input.new_full(shape, 0 if value is None else value)


def _check_reach(length, most, mode):
    if mode == "reflect" and most >= length:
        raise RuntimeError(
            "Argument #4: Padding size should be less than the corresponding input dimension, but "
            f"got: padding {most} at a dimension of {length}"
        )
    if mode == "circular" and most > length:
        raise RuntimeError(
            f"Padding value causes wrapping around more than once: {most} at a dimension of "
            f"{length}"
        )
