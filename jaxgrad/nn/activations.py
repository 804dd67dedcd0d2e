"""Activations that are made of others."""

from __future__ import annotations

from .. import ops
from ..ops.autocast import lowered
from .functional import hardtanh


def hardsigmoid(input, inplace: bool = False):
    """A straight line from 0 at -3 to 1 at 3, and level beyond.

    >>> F.hardsigmoid(jaxgrad.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    made = hardtanh(input + 3, 0, 6) / 6
    return input.copy_(made) if inplace else made


def hardswish(input, inplace: bool = False):
    """`input * hardsigmoid(input)`.

    >>> F.hardswish(jaxgrad.tensor([-4.0, 1.5, 4.0]))
    tensor([-0.0000,  1.1250,  4.0000])
    """
    made = input * hardtanh(input + 3, 0, 6) / 6
    return input.copy_(made) if inplace else made


def mish(input, inplace: bool = False):
    """`input * tanh(softplus(input))`.

    >>> F.mish(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """
    made = input * ops.softplus(input).tanh()
    return input.copy_(made) if inplace else made


def softsign(input):
    """`input / (1 + |input|)`.

    >>> F.softsign(jaxgrad.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return input / (input.abs() + 1)


def tanhshrink(input):
    """`input - tanh(input)`.

    >>> F.tanhshrink(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """
    return input - input.tanh()


def hardshrink(input, lambd: float = 0.5):
    """`input` where it is further from 0 than `lambd`, else 0.

    >>> F.hardshrink(jaxgrad.tensor([-1.0, 0.2]))
    tensor([-1.,  0.])
    """
    return ops.where(input.detach().abs() <= lambd, 0, input)


def softshrink(input, lambd: float = 0.5):
    """`input`, closer to 0 by `lambd`, and 0 where it is no further than that.

    >>> F.softshrink(jaxgrad.tensor([-1.0, 0.2]))
    tensor([-0.5000,  0.0000])
    """
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    nearer = ops.where(input > 0, input - lambd, input + lambd)
    return ops.where(input.detach().abs() <= lambd, 0, nearer)


def glu(input, dim: int = -1):
    """The first half along `dim` times the `sigmoid` of the second.

    >>> F.glu(jaxgrad.tensor([3.0, 0.0]))
    tensor([1.5000])
    """
    if not input.ndim:
        raise RuntimeError("glu does not support 0-dimensional tensors")
    if input.shape[dim] % 2:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim % input.ndim} is size "
            f"{input.shape[dim]}"
        )
    first, second = input.chunk(2, dim)
    return first * second.sigmoid()


def prelu(input, weight):
    """`input` where it is positive, else times `weight`: one number, or one a channel.

    >>> F.prelu(jaxgrad.tensor([-2.0, 2.0]), jaxgrad.tensor([0.25]))
    tensor([-0.5000,  2.0000])
    """
    input, weight = lowered(input, weight)
    count = weight.numel()
    channels = input.shape[1] if input.ndim > 1 else 1
    if count not in (1, channels):
        raise RuntimeError(
            f"Mismatch of parameter numbers and input channel size. Found parameter numbers = "
            f"{count} and channel size = {channels}."
        )
    weight = weight.reshape((-1, *[1] * (input.ndim - 2)) if count > 1 else ())
    return ops.where(input > 0, input, weight * input)
