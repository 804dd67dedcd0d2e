"""Activations composed of operators."""

from __future__ import annotations

import functools

from .. import ops
from ..core import dtypes, promotion
from ..core.tracebacks import api_boundary
from ..ops.autocast import lowered
from .functional import hardtanh


def in_single(function):
    """`function`, which maps tensors to one tensor, computed in float32 where PyTorch would promote
    them to half precision, and rounded once: the tensor form of `promotion.in_single`.
    """

    @functools.wraps(function)
    def computed(*tensors):
        dtype = promotion.result_type(*tensors)
        if dtype not in (dtypes.float16, dtypes.bfloat16):
            return function(*tensors)
        return function(*(tensor.float() for tensor in tensors)).to(dtype)

    return computed


@in_single
def _hardsigmoid(input):
    return hardtanh(input + 3, 0, 6) / 6


@in_single
def _hardswish(input):
    return input * hardtanh(input + 3, 0, 6) / 6


@in_single
def _mish(input):
    return input * ops.softplus(input).tanh()


@in_single
def _softsign(input):
    return input / (input.abs() + 1)


@in_single
def _gated(values, gates):
    return values * gates.sigmoid()


@api_boundary
def hardsigmoid(input, inplace: bool = False):
    """Return `min(max(input + 3, 0), 6) / 6` elementwise, a piecewise linear sigmoid.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    Source: Howard et al., "Searching for MobileNetV3", 2019.

    >>> F.hardsigmoid(jaxgrad.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    result = _hardsigmoid(input)
    return input.copy_(result) if inplace else result


@api_boundary
def hardswish(input, inplace: bool = False):
    """Return `input * hardsigmoid(input)` elementwise.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    Source: Howard et al., "Searching for MobileNetV3", 2019.

    >>> F.hardswish(jaxgrad.tensor([-4.0, 1.5, 4.0]))
    tensor([-0.0000,  1.1250,  4.0000])
    """
    result = _hardswish(input)
    return input.copy_(result) if inplace else result


@api_boundary
def mish(input, inplace: bool = False):
    """Return `input * tanh(softplus(input))` elementwise.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    Source: Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2019.

    >>> F.mish(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """
    result = _mish(input)
    return input.copy_(result) if inplace else result


@api_boundary
def softsign(input):
    """Return `input / (1 + |input|)` elementwise.

    input: any shape, floating-point dtype; the result has both.
    Source: Glorot and Bengio, "Understanding the Difficulty of Training Deep Networks", 2010.

    >>> F.softsign(jaxgrad.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return _softsign(input)


@api_boundary
def tanhshrink(input):
    """Return `input - tanh(input)` elementwise.

    input: any shape, floating-point or complex dtype; the result has both.

    >>> F.tanhshrink(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.2384])
    """
    return input - input.tanh()


@api_boundary
def hardshrink(input, lambd: float = 0.5):
    """Return `input` where `|input| > lambd`, else 0.

    input: any shape, floating-point dtype; the result has both. lambd: the threshold.

    >>> F.hardshrink(jaxgrad.tensor([-1.0, 0.2]))
    tensor([-1.,  0.])
    """
    return ops.where(input.detach().abs() <= lambd, 0, input)


@api_boundary
def softshrink(input, lambd: float = 0.5):
    """Return `sign(input) * max(|input| - lambd, 0)` elementwise.

    input: any shape, floating-point dtype; the result has both.
    Raises RuntimeError if `lambd` is negative.

    >>> F.softshrink(jaxgrad.tensor([-1.0, 0.2]))
    tensor([-0.5000,  0.0000])
    """
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    shrunk = ops.where(input > 0, input - lambd, input + lambd)
    return ops.where(input.detach().abs() <= lambd, 0, shrunk)


@api_boundary
def glu(input, dim: int = -1):
    """Return `a * sigmoid(b)`, where `a` and `b` are the two halves of `input` along `dim`.

    input: at least one dimension, an even size along `dim`, floating point; the result has half
    that size. Raises RuntimeError for another shape. Source: Dauphin et al., "Language Modeling
    with Gated Convolutional Networks", 2016.

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
    return _gated(*input.chunk(2, dim))


@api_boundary
def prelu(input, weight):
    """Return `input` where it is positive, else `weight * input`.

    input: any shape, floating-point dtype; the result has both. weight: one element, or (C,) with C
    the size of dimension 1 of `input`, of the same dtype. Raises RuntimeError for another size.
    Source: He et al., "Delving Deep into Rectifiers", 2015.

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
