"""Activations composed of operators."""

from __future__ import annotations

import functools
import warnings

from .. import ops
from ..core import dtypes, promotion
from ..core.tracebacks import users_stacklevel
from ..frontend.factories import empty_like, zeros_like
from ..functions import activations
from ..tape.torch_function import api_boundary
from . import functional


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
def _softsign(input):
    return input / (input.abs() + 1)


@api_boundary
def hardsigmoid(input, inplace: bool = False):
    """Return `min(max(input + 3, 0), 6) / 6` elementwise, a piecewise linear sigmoid.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    Source: Howard et al., "Searching for MobileNetV3", 2019.

    >>> F.hardsigmoid(jaxgrad.tensor([-4.0, 0.0, 4.0]))
    tensor([0.0000, 0.5000, 1.0000])
    """
    return functional._activation("hardsigmoid", inplace, input)


@api_boundary
def hardswish(input, inplace: bool = False):
    """Return `input * hardsigmoid(input)` elementwise.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    Source: Howard et al., "Searching for MobileNetV3", 2019.

    >>> F.hardswish(jaxgrad.tensor([-4.0, 1.5, 4.0]))
    tensor([-0.0000,  1.1250,  4.0000])
    """
    return functional._activation("hardswish", inplace, input)


@api_boundary
def mish(input, inplace: bool = False):
    """Return `input * tanh(softplus(input))` elementwise.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    Source: Misra, "Mish: A Self Regularized Non-Monotonic Activation Function", 2019.

    >>> F.mish(jaxgrad.tensor([0.0, 1.0]))
    tensor([0.0000, 0.8651])
    """
    return functional._activation("mish", inplace, input)


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
def selu(input, inplace: bool = False):
    """Return `scale * elu(input, alpha)` with `scale = 1.0507...` and `alpha = 1.6733...`.

    input: any shape, floating-point dtype; the result has both. inplace: overwrite `input`.
    Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.

    >>> F.selu(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return activations.selu_(input) if inplace else activations.selu(input)


@api_boundary
def rrelu(
    input,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
):
    """Return `input` where it is positive, else `slope * input`, with a random slope.

    Each slope is drawn from the uniform distribution between `lower` and `upper`, or is their mean
    without `training`. input: any shape, floating-point dtype; the result has both. inplace:
    overwrite `input`. Raises RuntimeError if `lower` exceeds `upper`. Source: Xu et al., "Empirical
    Evaluation of Rectified Activations in Convolutional Network", 2015.

    >>> F.rrelu(jaxgrad.tensor([-1.0, 2.0]), 0.1, 0.3)
    tensor([-0.2000,  2.0000])
    """
    function = activations.rrelu_ if inplace else activations.rrelu
    return function(input, lower, upper, training)


@api_boundary
def gumbel_softmax(logits, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1):
    """Return samples of a Gumbel-softmax distribution, or of classes with their gradient.

    logits: unnormalized log-probabilities of any shape, floating point; the result has both and
    sums to 1 along `dim`. tau: the temperature, positive. hard: return 1 at the greatest sample and
    0 elsewhere, with the gradient of the samples. eps: has no effect.
    Source: Jang et al., "Categorical Reparameterization with Gumbel-Softmax", 2017.

    >>> F.gumbel_softmax(jaxgrad.tensor([100.0, 0.0]), hard=True)
    tensor([1., 0.])
    """
    if eps != 1e-10:
        warnings.warn(
            "`eps` parameter is deprecated and has no effect.", stacklevel=users_stacklevel()
        )
    noise = -empty_like(logits.detach()).exponential_().log()
    soft = ops.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = soft.detach().argmax(dim, keepdim=True)
    one = zeros_like(soft.detach()).scatter(dim, chosen, 1.0)
    return one - soft.detach() + soft
