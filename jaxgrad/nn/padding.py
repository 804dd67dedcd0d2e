"""Padding of the last dimensions of a tensor: a function, and layers that call it."""

from __future__ import annotations

from collections.abc import Sequence

from .. import ops
from ..core.device import contiguous_format
from ..core.pytorch_tensors import type_name
from ..functions.arguments import per_dimension
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary, names_defaults
from . import functional
from .common_types import Extents
from .module import Module

# PyTorch's modes that have operators for one, two and three dimensions
_EDGES = {"reflect": "reflection_pad{}d", "replicate": "replication_pad{}d"}
_MODES = ("constant", *_EDGES, "circular")


@names_defaults
@api_boundary
def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Tensor:
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
    if not isinstance(mode, str):
        raise TypeError(f"pad(): argument 'mode' (position 3) must be str, not {type_name(mode)}")
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
    if any(isinstance(size, str) for size in pad):
        raise TypeError(f"pad(): argument 'pad' must be tuple of ints, but has a str: {pad}")
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
    is_copy = result is not input and not result._is_view() and result.is_contiguous()
    return result if is_copy else result.clone(memory_format=contiguous_format)


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


# layers


class _Pad(Module):
    """A layer that pads the last `dimensions` dimensions in the mode `mode`."""

    padding: tuple[int, ...]

    dimensions = 0

    def __init__(self, padding: Extents):
        super().__init__()
        count = 2 * self.dimensions
        # PyTorch keeps a sequence of any length as it is
        self.padding = per_dimension(padding, count)

    def forward(self, input: Tensor) -> Tensor:
        return functional.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """A layer that pads with a constant."""

    def __init__(self, padding: Extents, value: float):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return functional.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    """A layer that pads with zeros."""

    def __init__(self, padding: Extents):
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class _ReflectionPad(_Pad):
    """A layer that mirrors at the edges."""

    mode = "reflect"


class _ReplicationPad(_Pad):
    """A layer that repeats the edges."""

    mode = "replicate"


class _CircularPad(_Pad):
    """A layer that wraps around."""

    mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        count = self.dimensions + 1
        if input.ndim not in (count, count + 1):
            raise ValueError(f"expected {count}D or {count + 1}D input (got {input.ndim}D input)")
        return super().forward(input)


class ConstantPad1d(_ConstantPad):
    """Extend (n, c, w) or (c, w) at the ends by a constant.

    padding: the sizes before and after w, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 2)
    >>> jaxgrad.nn.ConstantPad1d((1, 1), 9.0)(x).flatten()
    tensor([9., 1., 2., 9.])
    """

    dimensions = 1


class ConstantPad2d(_ConstantPad):
    """Extend (n, c, h, w) or (c, h, w) at the ends by a constant.

    padding: the sizes before and after w, then h, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 2)
    >>> jaxgrad.nn.ConstantPad2d((1, 1, 0, 0), 9.0)(x).flatten()
    tensor([9., 1., 2., 9.])
    """

    dimensions = 2


class ConstantPad3d(_ConstantPad):
    """Extend (n, c, d, h, w) or (c, d, h, w) at the ends by a constant.

    padding: the sizes before and after w, then h and d, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 1, 2)
    >>> jaxgrad.nn.ConstantPad3d((1, 1, 0, 0, 0, 0), 9.0)(x).flatten()
    tensor([9., 1., 2., 9.])
    """

    dimensions = 3


class ZeroPad1d(_ZeroPad):
    """Extend (n, c, w) or (c, w) at the ends by zeros.

    padding: the sizes before and after w, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 2)
    >>> jaxgrad.nn.ZeroPad1d((1, 1))(x).flatten()
    tensor([0., 1., 2., 0.])
    """

    dimensions = 1


class ZeroPad2d(_ZeroPad):
    """Extend (n, c, h, w) or (c, h, w) at the ends by zeros.

    padding: the sizes before and after w, then h, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 2)
    >>> jaxgrad.nn.ZeroPad2d((1, 1, 0, 0))(x).flatten()
    tensor([0., 1., 2., 0.])
    """

    dimensions = 2


class ZeroPad3d(_ZeroPad):
    """Extend (n, c, d, h, w) or (c, d, h, w) at the ends by zeros.

    padding: the sizes before and after w, then h and d, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 1, 2)
    >>> jaxgrad.nn.ZeroPad3d((1, 1, 0, 0, 0, 0))(x).flatten()
    tensor([0., 1., 2., 0.])
    """

    dimensions = 3


class ReflectionPad1d(_ReflectionPad):
    """Extend (n, c, w) or (c, w) at the ends by a reflection without the edge.

    padding: the sizes before and after w, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 2)
    >>> jaxgrad.nn.ReflectionPad1d((1, 1))(x).flatten()
    tensor([2., 1., 2., 1.])
    """

    dimensions = 1


class ReflectionPad2d(_ReflectionPad):
    """Extend (n, c, h, w) or (c, h, w) at the ends by a reflection without the edge.

    padding: the sizes before and after w, then h, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 2)
    >>> jaxgrad.nn.ReflectionPad2d((1, 1, 0, 0))(x).flatten()
    tensor([2., 1., 2., 1.])
    """

    dimensions = 2


class ReflectionPad3d(_ReflectionPad):
    """Extend (n, c, d, h, w) or (c, d, h, w) at the ends by a reflection without the edge.

    padding: the sizes before and after w, then h and d, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 1, 2)
    >>> jaxgrad.nn.ReflectionPad3d((1, 1, 0, 0, 0, 0))(x).flatten()
    tensor([2., 1., 2., 1.])
    """

    dimensions = 3


class ReplicationPad1d(_ReplicationPad):
    """Extend (n, c, w) or (c, w) at the ends by copies of the edge.

    padding: the sizes before and after w, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 2)
    >>> jaxgrad.nn.ReplicationPad1d((1, 1))(x).flatten()
    tensor([1., 1., 2., 2.])
    """

    dimensions = 1


class ReplicationPad2d(_ReplicationPad):
    """Extend (n, c, h, w) or (c, h, w) at the ends by copies of the edge.

    padding: the sizes before and after w, then h, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 2)
    >>> jaxgrad.nn.ReplicationPad2d((1, 1, 0, 0))(x).flatten()
    tensor([1., 1., 2., 2.])
    """

    dimensions = 2


class ReplicationPad3d(_ReplicationPad):
    """Extend (n, c, d, h, w) or (c, d, h, w) at the ends by copies of the edge.

    padding: the sizes before and after w, then h and d, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 1, 2)
    >>> jaxgrad.nn.ReplicationPad3d((1, 1, 0, 0, 0, 0))(x).flatten()
    tensor([1., 1., 2., 2.])
    """

    dimensions = 3


class CircularPad1d(_CircularPad):
    """Extend (n, c, w) or (c, w) at the ends by its other end.

    padding: the sizes before and after w, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 2)
    >>> jaxgrad.nn.CircularPad1d((1, 1))(x).flatten()
    tensor([2., 1., 2., 1.])
    """

    dimensions = 1


class CircularPad2d(_CircularPad):
    """Extend (n, c, h, w) or (c, h, w) at the ends by its other end.

    padding: the sizes before and after w, then h, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 2)
    >>> jaxgrad.nn.CircularPad2d((1, 1, 0, 0))(x).flatten()
    tensor([2., 1., 2., 1.])
    """

    dimensions = 2


class CircularPad3d(_CircularPad):
    """Extend (n, c, d, h, w) or (c, d, h, w) at the ends by its other end.

    padding: the sizes before and after w, then h and d, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 1, 2)
    >>> jaxgrad.nn.CircularPad3d((1, 1, 0, 0, 0, 0))(x).flatten()
    tensor([2., 1., 2., 1.])
    """

    dimensions = 3
