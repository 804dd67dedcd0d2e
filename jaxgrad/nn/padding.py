"""Padding of the last dimensions of a tensor."""

from __future__ import annotations

from .. import ops
from ..tape.torch_function import api_boundary

# PyTorch's modes that have operators for one, two and three dimensions
_EDGES = {"reflect": "reflection_pad{}d", "replicate": "replication_pad{}d"}
_MODES = ("constant", *_EDGES, "circular")


@api_boundary
def pad(input, pad, mode: str = "constant", value: float | None = None):
    """Return `input` with its last dimensions extended, or for negative sizes cropped, as a copy.

    input: any shape and dtype; for modes other than "constant" with one dimension more than are
    padded, or two, and for "reflect" and "replicate" not bool. pad: the sizes before and after the
    last dimension, then before and after the one before it, and so on. mode: "constant" fills with
    `value`, 0 by default; "reflect" mirrors without the edge; "replicate" repeats the edge;
    "circular" wraps around.
    Raises RuntimeError for sizes that do not fit, NotImplementedError for another mode or number of
    dimensions.

    >>> F.pad(jaxgrad.tensor([[1.0, 2.0, 3.0]]), (1, 2), value=9.0)
    tensor([[9., 1., 2., 3., 9., 9.]])
    >>> F.pad(jaxgrad.tensor([[1.0, 2.0, 3.0]]), (1, 2), "reflect")
    tensor([[2., 1., 2., 3., 2., 1.]])
    """
    pad = tuple(pad)
    if mode not in _MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}: choose one of {_MODES}")
    _check_lengths(input, pad)
    if mode == "constant":
        if isinstance(value, complex):
            raise TypeError("pad(): argument 'value' must be float, not complex")
        return ops.constant_pad_nd(input, pad, 0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    count = len(pad) // 2
    if count not in (1, 2, 3) or input.ndim - count not in (1, 2):
        raise NotImplementedError(
            f"Padding size {len(pad)} is not supported for {input.ndim}D input tensor."
        )
    if mode == "circular":
        return _wrapped(input, pad)
    return getattr(ops, _EDGES[mode].format(count))(input, pad)


def _check_lengths(input, pad):
    if len(pad) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2, but got {list(pad)}")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError(
            f"Padding length should be less than or equal to two times the input dimension but got "
            f"padding length {len(pad)} and input of dimension {input.ndim}"
        )


def _wrapped(input, pad):
    """Return `input` cropped where `pad` is negative, then wrapped around."""
    result = input
    for number in range(len(pad) // 2):
        dim, (before, after) = input.ndim - 1 - number, pad[2 * number : 2 * number + 2]
        _check_reach(input.shape[dim], before, after)
        start, end = max(-before, 0), input.shape[dim] + min(after, 0)
        kept = result if end - start == input.shape[dim] else result.narrow(dim, start, end - start)
        extent, parts = kept.shape[dim], [kept]
        if before > 0:
            parts.insert(0, kept.narrow(dim, extent - before, before))
        if after > 0:
            parts.append(kept.narrow(dim, 0, after))
        result = ops.cat(parts, dim) if len(parts) > 1 else kept
    return result.clone() if result is input or result._is_view() else result


def _check_reach(extent, before, after):
    # of what is left after the crop
    if max(before, after) > extent + min(before, 0) + min(after, 0):
        raise RuntimeError(
            f"Padding value causes wrapping around more than once: {before} and {after} at a "
            f"dimension of {extent}"
        )
    if extent + before + after < 0:
        raise RuntimeError(
            f"Negative padding value is resulting in an empty dimension: {before} and {after} at a "
            f"dimension of {extent}"
        )
