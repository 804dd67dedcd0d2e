"""Activations that PyTorch composes of other operators."""

from __future__ import annotations

import functools
import math

from .. import ops
from ..core import dtypes
from ..frontend.factories import like
from ..late import LateModule
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary
from .arguments import check_tensor

# only `rrelu` draws
random, rejection = map(LateModule, ("jaxgrad.frontend.random", "jaxgrad.frontend.rejection"))

# The fixed point of the map of mean and variance is (0, 1) for these constants.
SELU_ALPHA, SELU_SCALE = 1.6732632423543772, 1.0507009873554805
SELU_MINIMUM = -SELU_ALPHA * SELU_SCALE  # the limit of `selu` at -inf


@api_boundary
def selu(input: Tensor) -> Tensor:
    """Return `scale * elu(input, alpha)` with `scale = 1.0507...` and `alpha = 1.6733...`.

    input: any shape, floating-point dtype; the result has both. Raises NotImplementedError for
    another dtype. Source: Klambauer et al., "Self-Normalizing Neural Networks", 2017.

    >>> jaxgrad.selu(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return ops.elu(input, SELU_ALPHA, SELU_SCALE)


@api_boundary
def selu_(input: Tensor) -> Tensor:
    """Apply `selu` in place and return `input`.

    >>> jaxgrad.selu_(jaxgrad.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return ops.elu_(input, SELU_ALPHA, SELU_SCALE)


@api_boundary
def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """Return `input` where it is positive, else `weight * input`, with the slope `weight` at 0.

    input: any shape, floating-point dtype; the result has both. weight: one element, or (C,) with C
    the size of dimension 1 of `input`, of the same dtype. Raises RuntimeError for another size or
    dtype. Source: He et al., "Delving Deep into Rectifiers", 2015.

    >>> jaxgrad.prelu(jaxgrad.tensor([-2.0, 2.0]), jaxgrad.tensor([0.25]))
    tensor([-0.5000,  2.0000])
    """
    check_tensor("prelu", input)
    check_tensor("prelu", weight, "argument 'weight'")
    return ops._prelu_kernel(input, _along_channels(input, weight))


@api_boundary
def prelu_backward(grad_output: Tensor, input: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return the gradients of both arguments of `prelu`, each of its argument's shape.

    grad_output: of the shape of `input`; the other arguments and the errors are those of `prelu`.

    >>> one = jaxgrad.ones(1)
    >>> jaxgrad.ops.prelu_backward(one, jaxgrad.tensor([-2.0]), jaxgrad.tensor([0.25]))
    (tensor([0.2500]), tensor([-2.]))
    """
    spread = _along_channels(input, weight)
    of_input, of_weight = ops._prelu_kernel_backward(grad_output, input, spread)
    return of_input, of_weight.sum_to_size(*spread.shape).reshape(weight.shape)


def _along_channels(input, weight):
    """The weights in a shape that broadcasts to that of `input`."""
    count = weight.numel()
    if count != 1 and not input.ndim:
        raise RuntimeError("Not allow zero-dim input tensor: prelu with several weights")
    channels = input.shape[1] if input.ndim > 1 else 1
    if count not in (1, channels):
        raise RuntimeError(
            "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
            f"{count} and channel size = {channels}: prelu"
        )
    if weight.ndim > 1:
        raise RuntimeError(
            f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}"
        )
    if weight.ndim == input.ndim:
        return weight
    leading, trailing = (1,) * min(input.ndim, 1), (1,) * (input.ndim - 2)
    return weight.reshape((*leading, count, *trailing) if input.ndim > 1 else leading)


# leaky with random slopes


@api_boundary
def rrelu(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator=None,
) -> Tensor:
    """Return `input` where it is positive, else `slope * input`.

    The slope is drawn for each element from the uniform distribution between `lower` and `upper`,
    or is their mean without `training`. input: any shape, floating-point dtype; the result has
    both. generator: the default one if it is None. Raises RuntimeError if `lower` exceeds `upper`
    or one of them is infinite. Source: Xu et al., "Empirical Evaluation of Rectified Activations in
    Convolutional Network", 2015.

    >>> jaxgrad.rrelu(jaxgrad.tensor([-1.0, 2.0]), 0.1, 0.3)
    tensor([-0.2000,  2.0000])
    """
    check_tensor("rrelu", input)
    return _rrelu(input, None, lower, upper, training, generator, ops._rrelu)


@api_boundary
def rrelu_(
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator=None,
) -> Tensor:
    """Apply `rrelu` in place and return `input`.

    >>> jaxgrad.rrelu_(jaxgrad.tensor([-1.0, 2.0]), 0.1, 0.3)
    tensor([-0.2000,  2.0000])
    """
    check_tensor("rrelu_", input)
    return _rrelu(input, None, lower, upper, training, generator, ops._rrelu_)


@api_boundary
def rrelu_with_noise(
    input: Tensor,
    noise: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator=None,
) -> Tensor:
    """Return what `rrelu` does and, with `training`, write the slopes into `noise`.

    noise: a tensor of the shape and dtype of `input`; where that is positive it becomes 1. The
    other arguments and the errors are those of `rrelu`.

    >>> noise = jaxgrad.zeros(2)
    >>> jaxgrad.ops.rrelu_with_noise(jaxgrad.tensor([-1.0, 2.0]), noise, 0.5, 0.5, True), noise
    (tensor([-0.5000,  2.0000]), tensor([0.5000, 1.0000]))
    """
    check_tensor("rrelu_with_noise", input)
    return _rrelu(input, noise, lower, upper, training, generator, ops._rrelu)


@api_boundary
def rrelu_with_noise_(
    input: Tensor,
    noise: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator=None,
) -> Tensor:
    """Apply `rrelu_with_noise` in place and return `input`.

    >>> noise = jaxgrad.zeros(2)
    >>> jaxgrad.ops.rrelu_with_noise_(jaxgrad.tensor([-1.0, 2.0]), noise, 0.5, 0.5, True)
    tensor([-0.5000,  2.0000])
    """
    check_tensor("rrelu_with_noise_", input)
    return _rrelu(input, noise, lower, upper, training, generator, ops._rrelu_)


def _rrelu(input, noise, lower, upper, training, generator, operator):
    for role, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {role} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError(
            f"Lower bound should be less than or equal to the upper bound: rrelu got {lower} and "
            f"{upper}"
        )
    if not training:
        # the mean slope reads no noise
        unread = input.new_empty(0) if noise is None else noise
        return operator(input, unread, lower, upper, False)
    slopes = _slopes(input.detach(), lower, upper, generator)
    if noise is not None:
        slopes = noise.copy_(slopes)
    return operator(input, slopes.detach(), lower, upper, True)


def _slopes(input, lower, upper, generator):
    """A random slope for each element, 1 for those that are positive."""
    if not input.dtype.is_floating_point:
        raise NotImplementedError(f"\"rrelu\" not implemented for '{input.dtype.scalar_type}'")
    options = like("rrelu", input, {"generator": generator})
    source = random.generator_of("rrelu", dict(options))
    parameters_of = functools.partial(rejection.slopes, low=float(lower), high=float(upper))
    # how many numbers are drawn depends on the values, which may differ where the numbers must not
    if not random.is_mapped():
        slopes = random.samples_in_turn(source, "rrelu", parameters_of, input)
        if slopes is not None:
            return slopes.to(input.dtype)
    drawn = random.rand(tuple(input.shape), **options) * (upper - lower) + lower
    return ops.where(input <= 0, drawn, 1)


@api_boundary
def _masked_softmax(self, mask, dim=None, mask_type=None):
    """Return the softmax along a dimension, by default the last, of the elements where `mask` is
    False; the others give 0.

    mask: bool, in the shape of the input; of shape (l, l) for inputs of shape (n, h, l, l) with
    `mask_type` 0, of shape (n, l) with 1. Raises RuntimeError for another mask or type.

    >>> jaxgrad._masked_softmax(jaxgrad.zeros(3), jaxgrad.tensor([True, False, False]))
    tensor([0.0000, 0.5000, 0.5000])
    """
    if mask.dtype is not dtypes.bool:
        raise RuntimeError(f"Mask should be a boolean tensor, not one of {mask.dtype}")
    if mask_type is None and (self.ndim, mask.ndim) == (4, 2):
        raise RuntimeError("Mask Type should be defined: 0 for masks (l, l), 1 for masks (n, l)")
    if mask_type == 1:
        mask = mask[:, None, None]
    elif mask_type != 0 and mask.shape != self.shape:
        raise RuntimeError(
            "For mask_type == 2 mask shape should match input shape, but they are "
            f"{list(mask.shape)} and {list(self.shape)}"
        )
    return self.masked_fill(mask, -math.inf).softmax(self.ndim - 1 if dim is None else dim)


@api_boundary
def _safe_softmax(self, dim, dtype=None):
    """Return the softmax along a dimension; 0, not NaN, where all elements there are -inf.

    >>> jaxgrad._safe_softmax(jaxgrad.tensor([[0.0, 0.0], [-math.inf, -math.inf]]), 1)
    tensor([[0.5000, 0.5000],
            [0.0000, 0.0000]])
    """
    is_empty = (self == -math.inf).all(dim, True)
    # not the softmax of such a line, whose derivative is NaN
    return self.masked_fill(is_empty, 0).softmax(dim, dtype).masked_fill(is_empty, 0)
