"""Linear and bilinear layers, and the identity."""

import math
from typing import Any

from ..core import dtypes
from ..core.device import DeviceLike
from ..tape.tensor import Tensor
from . import functional, init
from .module import Module
from .parameter import new_parameter


def fan_in_uniform_(tensor: Tensor, fan_in: int) -> None:
    """Draw a tensor from U(-b, b), `b = 1 / sqrt(fan_in)`, as PyTorch initializes biases."""
    bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
    init.uniform_(tensor, -bound, bound)


class Identity(Module):
    """Return the input; the constructor ignores its arguments.

    >>> jaxgrad.nn.Identity()(jaxgrad.ones(1))
    tensor([1.])
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """Compute `input @ weight.T + bias`: (*, in_features) to (*, out_features).

    weight: (out_features, in_features), bias: (out_features,) or None, both drawn from U(-b, b)
    with `b = 1 / sqrt(in_features)`. The input has the dtype of `weight`; RuntimeError for shapes
    that do not fit.

    >>> layer = jaxgrad.nn.Linear(3, 2)
    >>> layer(jaxgrad.ones(5, 3)).shape
    torch.Size([5, 2])
    """

    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = new_parameter((out_features, in_features), device, dtype)
        bias = new_parameter((out_features,), device, dtype) if bias else None
        self.register_parameter("bias", bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias again."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in_uniform_(self.bias, self.in_features)

    def forward(self, input: Tensor) -> Tensor:
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


class Bilinear(Module):
    """Compute `x1 @ weight[k] @ x2 + bias[k]` for each output feature k.

    The inputs are (*, in1_features) and (*, in2_features), the result is (*, out_features). weight:
    (out_features, in1_features, in2_features), bias: (out_features,) or None, both drawn from U(-b,
    b) with `b = 1 / sqrt(in1_features)`.

    >>> layer = jaxgrad.nn.Bilinear(2, 3, 4)
    >>> layer(jaxgrad.ones(5, 2), jaxgrad.ones(5, 3)).shape
    torch.Size([5, 4])
    """

    weight: Tensor
    bias: Tensor

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        super().__init__()
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        self.weight = new_parameter((out_features, in1_features, in2_features), device, dtype)
        bias = new_parameter((out_features,), device, dtype) if bias else None
        self.register_parameter("bias", bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias again."""
        fan_in_uniform_(self.weight, self.in1_features)
        if self.bias is not None:
            fan_in_uniform_(self.bias, self.in1_features)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return functional.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
