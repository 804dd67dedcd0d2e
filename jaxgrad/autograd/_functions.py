"""Functions of the first PyTorch that its own code and tests still call."""

from __future__ import annotations

import math

from ..names.missing import missing_in
from .function import Function


class Resize(Function):
    """`Resize.apply(tensor, sizes)`: the elements of a tensor in another shape of as many.

    >>> from jaxgrad.autograd._functions import Resize
    >>> Resize.apply(jaxgrad.arange(4), (2, 2))
    tensor([[0, 1],
            [2, 3]])
    """

    @staticmethod
    def forward(ctx, tensor, sizes):
        if math.prod(sizes) != tensor.numel():
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} (with {math.prod(sizes)} "
                f"elements) of a tensor of shape {list(tensor.shape)}: a resize keeps the number "
                "of elements"
            )
        ctx.shape = tensor.shape
        return tensor.reshape(sizes)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.reshape(ctx.shape), None


class Type(Function):
    """`Type.apply(tensor, dtype)`: a tensor in another dtype, as `Tensor.type`.

    >>> from jaxgrad.autograd._functions import Type
    >>> Type.apply(jaxgrad.ones(1), jaxgrad.int64)
    tensor([1])
    """

    @staticmethod
    def forward(ctx, tensor, dtype):
        ctx.dtype = tensor.dtype
        return tensor.type(dtype)

    @staticmethod
    def backward(ctx, gradient):
        return gradient.to(ctx.dtype), None


__getattr__ = missing_in(__name__)
