"""Dropout of elements and of whole channels, as PyTorch's operators have it."""

from __future__ import annotations

import math

import numpy as np

from .. import ops
from ..core import dtypes
from ..frontend.factories import empty_like, like, ones_like
from ..frontend.random import drawn_below
from ..tape.tensor import Tensor, may_require_grad
from ..tape.torch_function import api_boundary
from .activation import SELU_MINIMUM
from .arguments import check_probability, check_tensor


@api_boundary
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Return `input` with elements set to 0 with probability `p` and the others divided by 1 - p,
    and the mask of those that are kept.

    input: a floating-point or complex tensor. train: False keeps all. Raises RuntimeError for an
    integer dtype and a probability outside [0, 1].

    >>> jaxgrad.native_dropout(jaxgrad.ones(2), 1.0, True)
    (tensor([0., 0.]), tensor([False, False]))
    """
    check_tensor("native_dropout", input)
    if not input.numel():
        return input, empty_like(input)
    if train is False:
        return input.clone(), ones_like(input, dtype=dtypes.bool)
    mask = kept("native_dropout", input, 1 - p)
    return ops._native_drop(input, mask, 1 / (1 - p) if p < 1 else 0.0), mask


@api_boundary
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """Return the gradient of the input of `native_dropout`: that of the result where `mask` is
    true, times `scale`, and 0 elsewhere.

    grad_output: a floating-point or complex tensor. mask: of its shape. scale: 1 / (1 - p).

    >>> mask = jaxgrad.tensor([True, False])
    >>> jaxgrad.ops.native_dropout_backward(jaxgrad.ones(2), mask, 2.0)
    tensor([2., 0.])
    """
    return grad_output * (mask.to(grad_output.dtype) * scale)


@api_boundary
def _fused_dropout(input: Tensor, p: float, generator=None) -> tuple[Tensor, Tensor]:
    """Return `input` with elements kept with probability `p` and divided by it, the others 0; and
    the mask of those that are kept, as uint8.

    input: a floating-point or complex tensor. p: the probability to keep an element. generator: the
    default one if it is None. Raises RuntimeError for an integer dtype and another probability.
    """
    check_tensor("_fused_dropout", input)
    mask = kept("_fused_dropout", input, p, generator=generator)
    return ops._fused_drop(input, mask, 1 / p if p else 0.0), mask.to(dtypes.uint8)


def _dropout(name, of_channels=False, keeps_moments=False, in_place=False):
    """One of PyTorch's dropout functions, which share their code as there."""

    def call(input: Tensor, p: float, train: bool) -> Tensor:
        check_tensor(name, input)
        if not 0 <= p <= 1:
            raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")
        if not train or not p or not input.numel():
            return input
        if p == 1:  # nothing is drawn
            check_dtype(name, input)
            return input.mul_(0) if in_place else input * 0
        if of_channels and input.ndim < 2:
            raise RuntimeError(
                "Feature dropout requires at least 2 dimensions in the input, which has the shape "
                f"{list(input.shape)}"
            )
        shape = (*input.shape[:2], *[1] * (input.ndim - 2)) if of_channels else input.shape
        factor = kept(name, input, 1 - p, shape).to(input.dtype)
        if not keeps_moments:
            factor = factor * scale_of_kept(p, input.dtype)
            return input.mul_(factor) if in_place else input * factor
        scale = 1 / math.sqrt((SELU_MINIMUM**2 * p + 1) * (1 - p))
        shift = (1 - factor) * (SELU_MINIMUM * scale) - SELU_MINIMUM * scale * p
        factor = factor * scale
        return input.mul_(factor).add_(shift) if in_place else input * factor + shift

    what = "channels (dimensions 0 and 1)" if of_channels else "elements"
    how = "so that mean 0 and variance 1 are kept" if keeps_moments else "and scale the others"
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"""Drop {what} with probability `p`, {how}{", in place" * in_place}.

    input: a floating-point or complex tensor. train: False returns it as it is. Raises RuntimeError
    for a probability outside [0, 1] and for an integer dtype. torch.nn.functional has more forms.

    >>> jaxgrad.{name}(jaxgrad.ones(2, 3), 0.5, False).shape
    torch.Size([2, 3])
    """
    return api_boundary(call)


dropout = _dropout("dropout")
dropout_ = _dropout("dropout_", in_place=True)
alpha_dropout = _dropout("alpha_dropout", keeps_moments=True)
alpha_dropout_ = _dropout("alpha_dropout_", keeps_moments=True, in_place=True)
feature_dropout = _dropout("feature_dropout", True)
feature_dropout_ = _dropout("feature_dropout_", True, in_place=True)
feature_alpha_dropout = _dropout("feature_alpha_dropout", True, True)
feature_alpha_dropout_ = _dropout("feature_alpha_dropout_", True, True, True)


def kept(name, input, p, shape=None, generator=None) -> Tensor:
    """Draw which elements to keep, each with probability p; shape: that of the input, whose memory
    is in the same order then, or another one.
    """
    check_dtype(name, input)
    check_probability(p)
    is_whole = shape is None or shape == input.shape
    options = like("empty_like" if is_whole else name, input, {"generator": generator})
    return drawn_below(p, tuple(input.shape if is_whole else shape), options)


def scale_of_kept(p, dtype):
    """What kept elements are multiplied by: 1 / (1 - p), rounded as a number of the dtype."""
    if type(p) not in (int, float):
        return 1 / (1 - p)
    if dtype in (dtypes.float64, dtypes.complex128):
        return 1 / (1 - p)
    quotient = np.float32(1) / np.float32(1 - p)
    return float(quotient.astype(dtype.numpy)) if dtype.is_floating_point else float(quotient)


def check_dtype(name, input):
    """Raise RuntimeError for integers, which cannot be scaled."""
    if not may_require_grad(input):
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {input.dtype.scalar_type}"
            f": {name} takes floating point or complex tensors"
        )
