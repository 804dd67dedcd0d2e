"""Operators of `torch.ops.aten` alone, composed of public functions: the functional forms of random
operators, and operators that graphs of other programs call.
"""

from __future__ import annotations

from ..functions import sorting
from ..nn import functional
from ..tape.tensor import Tensor


def _functional(name: str):
    """The form of a random method that leaves its tensor as it is."""

    def form(self, *args, **options):
        return getattr(self.detach().clone(), name)(*args, **options)

    form.__name__ = name.removesuffix("_")
    return form


def _set(self, *source):
    return self.detach().clone().set_(*source)


def _reshape_alias(self: Tensor, size, stride) -> Tensor:
    return self.as_strided(size, stride)


def _logit_backward(grad_output: Tensor, self: Tensor, eps=None) -> Tensor:
    low, outside = (0.0, float("nan")) if eps is None else (eps, 0.0)
    is_outside = (self < low) | (self > 1 - low)
    return (grad_output / (self * (1 - self))).masked_fill(is_outside, outside)


def _slow_conv3d(self, weight, kernel_size, bias=None, stride=1, padding=0) -> Tensor:
    _check_kernel("slow_conv3d", weight, kernel_size)
    return functional.conv3d(self, weight, bias, _spatial(stride), _spatial(padding))


def _thnn_conv2d(self, weight, kernel_size, bias=None, stride=1, padding=0) -> Tensor:
    _check_kernel("thnn_conv2d", weight, kernel_size)
    return functional.conv2d(self, weight, bias, _spatial(stride), _spatial(padding))


def _spatial(extents):
    return tuple(extents) if isinstance(extents, list) else extents


def _check_kernel(name, weight, kernel_size):
    count = weight.ndim - 2
    sizes = [kernel_size] * count if isinstance(kernel_size, int) else list(kernel_size)
    if sizes != list(weight.shape[2:]):
        raise RuntimeError(f"{name}: kernel_size {sizes} is not that of the weight {weight.shape}")


def _unique_dim(self, dim, sorted=True, return_inverse=False, return_counts=False):
    """The inverse and the counts are given in any case, as in PyTorch."""
    return sorting.unique(self, return_inverse=True, return_counts=True, dim=dim)


def _unique_dim_consecutive(self, dim, return_inverse=False, return_counts=False):
    return sorting.unique_consecutive(self, return_inverse=True, return_counts=True, dim=dim)


_RANDOM = {
    "uniform": "",
    "exponential": "",
    "geometric": "",
    "cauchy": "",
    "log_normal": "",
    "random": "from to",
    "bernoulli": "Tensor",
}

FUNCTIONS = {
    **{
        name if not overload else f"{name}.{overload}": _functional(f"{name}_")
        for name, overloads in _RANDOM.items()
        for overload in ("", *overloads.split())
        if overload or name != "bernoulli"
    },
    "normal_functional": _functional("normal_"),
    **dict.fromkeys(("set", "set.source_Tensor", "set.source_Storage"), _set),
    "_reshape_alias": _reshape_alias,
    "logit_backward": _logit_backward,
    "slow_conv3d": _slow_conv3d,
    "thnn_conv2d": _thnn_conv2d,
    "unique_dim": _unique_dim,
    "unique_dim_consecutive": _unique_dim_consecutive,
}
