"""Batch norm as part of the layer before it, as torch.nn.utils.fusion."""

from __future__ import annotations

import copy

from ... import ops
from ...frontend import factories
from ...names.missing import missing_in
from ...tape.tensor import Tensor
from ..module import Module
from ..parameter import Parameter


def _fused(layer: Module, bn: Module, fuse, *options) -> Module:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    fused_layer = copy.deepcopy(layer)
    fused_layer.weight, fused_layer.bias = fuse(
        fused_layer.weight,
        fused_layer.bias,
        bn.running_mean,
        bn.running_var,
        bn.eps,
        bn.weight,
        bn.bias,
        *options,
    )
    return fused_layer


def fuse_conv_bn_eval(conv: Module, bn: Module, transpose: bool = False) -> Module:
    """Return a copy of a convolution that computes what it and the batch norm after it compute.

    Both are in evaluation mode, else AssertionError. transpose: the convolution is transposed.

    >>> conv, norm = jaxgrad.nn.Conv1d(2, 3, 2).eval(), jaxgrad.nn.BatchNorm1d(3).eval()
    >>> x = jaxgrad.ones(1, 2, 4)
    >>> fused = jaxgrad.nn.utils.fuse_conv_bn_eval(conv, norm)
    >>> bool(jaxgrad.allclose(fused(x), norm(conv(x)), atol=1e-6))
    True
    """
    return _fused(conv, bn, fuse_conv_bn_weights, transpose)


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of a convolution with a batch norm after it.

    conv_w, conv_b: those of the convolution. bn_rm, bn_rv: the running mean and variance, (channels
    of the output,). bn_w, bn_b: weight and bias of the batch norm, by default ones and zeros. The
    results have the dtypes of `conv_w` and `conv_b`.

    >>> one, ten = jaxgrad.ones(1), jaxgrad.tensor([10.0])
    >>> fuse = jaxgrad.nn.utils.fuse_conv_bn_weights
    >>> [x.detach().flatten() for x in fuse(jaxgrad.ones(1, 1, 1), None, one, one, 0.0, ten, None)]
    [tensor([10.]), tensor([-10.])]
    """
    scale = ops.rsqrt(bn_rv + bn_eps) * (1 if bn_w is None else bn_w)
    shape = [1] * conv_w.ndim
    shape[1 if transpose else 0] = -1
    return _parameters(conv_w, conv_b, bn_rm, scale, scale.reshape(shape), bn_b)


def fuse_linear_bn_eval(linear: Module, bn: Module) -> Module:
    """Return a copy of a linear layer that computes what it and the batch norm after it compute.

    Both are in evaluation mode, and the batch norm has one feature or as many as the output, else
    AssertionError.

    >>> linear, norm = jaxgrad.nn.Linear(2, 3).eval(), jaxgrad.nn.BatchNorm1d(3).eval()
    >>> fused, x = jaxgrad.nn.utils.fuse_linear_bn_eval(linear, norm), jaxgrad.ones(4, 2)
    >>> bool(jaxgrad.allclose(fused(x), norm(linear(x)), atol=1e-6))
    True
    """
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError(
            "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
            f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
        )
    return _fused(linear, bn, fuse_linear_bn_weights)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor,
    bn_b: Tensor,
) -> tuple[Parameter, Parameter]:
    """Return weight and bias of a linear layer with a batch norm after it.

    Arguments and results are as for `fuse_conv_bn_weights`.

    >>> one, ten = jaxgrad.ones(1), jaxgrad.tensor([10.0])
    >>> fuse = jaxgrad.nn.utils.fuse_linear_bn_weights
    >>> [x.detach().flatten() for x in fuse(jaxgrad.ones(1, 1), None, one, one, 0.0, ten, ten)]
    [tensor([10.]), tensor([0.])]
    """
    scale = bn_w * ops.rsqrt(bn_rv + bn_eps)
    factor = scale.unsqueeze(-1).to(linear_w.dtype)
    return _parameters(linear_w, linear_b, bn_rm, scale, factor, bn_b)


def _parameters(weight, bias, mean, scale, factor, shift):
    kind = weight.dtype if bias is None else bias.dtype
    before = factories.zeros_like(mean) if bias is None else bias
    after = (before - mean) * scale
    after = after if shift is None else after + shift
    return (
        Parameter((weight * factor).to(weight.dtype), weight.requires_grad),
        Parameter(after.to(kind), before.requires_grad),
    )


__getattr__ = missing_in(__name__)
