"""Convolutions and pooling as modules."""

from __future__ import annotations

import math

from . import convolution, init, pooling
from .convolution import several
from .layers import no_more_than, parameter
from .module import Module
from .padding import pad

_MODES = {"zeros", "reflect", "replicate", "circular"}


class _Convolution(Module):
    """A convolution in `dimensions`, with its weight and bias."""

    dimensions = 0

    def __init__(
        self, in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
        padding_mode, device, dtype,
    ):  # fmt: skip
        super().__init__()
        self._check(in_channels, out_channels, stride, padding, groups, padding_mode)
        count = self.dimensions
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = several(kernel_size, count, "kernel_size")
        self.stride = several(stride, count, "stride")
        self.padding = padding if isinstance(padding, str) else several(padding, count, "padding")
        self.dilation = several(dilation, count, "dilation")
        self.padding_mode = padding_mode
        shape = (*self._channels(), *self.kernel_size)
        self.weight = parameter(shape, device, dtype)
        self.register_parameter("bias", parameter((out_channels,), device, dtype) if bias else None)
        self.reset_parameters()

    def _channels(self):
        return self.out_channels, self.in_channels // self.groups

    @staticmethod
    def _check(in_channels, out_channels, stride, padding, groups, padding_mode):
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
            if channels % groups:
                raise ValueError(f"{name} must be divisible by groups: {channels} by {groups}")
        if isinstance(padding, str) and padding not in ("same", "valid"):
            raise ValueError(
                f"Invalid padding string {padding!r}, should be one of 'same' and 'valid'"
            )
        strides = (stride,) if isinstance(stride, int) else stride
        if padding == "same" and any(each != 1 for each in strides):
            raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _MODES:
            raise ValueError(
                f"padding_mode must be one of {sorted(_MODES)}, but got {padding_mode=}"
            )

    def reset_parameters(self):
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
        if self.bias is not None:
            no_more_than(self.bias, fan_in)

    def forward(self, input):
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = pad(input, self._around(), self.padding_mode), 0
        convolve = getattr(convolution, f"conv{self.dimensions}d")
        return convolve(
            input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )

    def _around(self):
        """What goes before and after each dimension, the last one first."""
        edges = convolution._edges(self.padding, self.kernel_size, self.stride, self.dilation)
        return [each for pair in reversed(edges) for each in pair]

    def extra_repr(self):
        shown = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        none = (0,) * self.dimensions
        usual = {
            "padding": none, "dilation": (1,) * self.dimensions, "output_padding": none, "groups": 1
        }  # fmt: skip
        for name, value in usual.items():
            given = getattr(self, name, value)
            if given != value:
                shown += f", {name}={given}"
        shown += "" if self.bias is not None else ", bias=False"
        if self.padding_mode == "zeros":
            return shown
        return f"{shown}, padding_mode={self.padding_mode}"


class _Forward(_Convolution):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0, dilation=1,
        groups: int = 1, bias: bool = True, padding_mode: str = "zeros", device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip


class Conv1d(_Forward):
    """`functional.conv1d` with its weight and bias: (N, C, L) to (N, out_channels, L')."""

    dimensions = 1


class Conv2d(_Forward):
    """`functional.conv2d` with its weight and bias: (N, C, H, W) to (N, out_channels, H', W').

    weight: (out_channels, in_channels / groups, *kernel_size), drawn evenly within 1 /
    sqrt(fan_in), as the bias is. padding_mode: "zeros", "reflect", "replicate" or "circular".

    >>> layer = jaxgrad.nn.Conv2d(3, 8, 3, stride=2, padding=1)
    >>> layer(jaxgrad.ones(1, 3, 6, 6)).shape
    torch.Size([1, 8, 3, 3])
    """

    dimensions = 2


class Conv3d(_Forward):
    """`functional.conv3d` with its weight and bias."""

    dimensions = 3


class _Transposed(_Convolution):
    def __init__(
        self, in_channels: int, out_channels: int, kernel_size, stride=1, padding=0,
        output_padding=0, groups: int = 1, bias: bool = True, dilation=1,
        padding_mode: str = "zeros", device=None, dtype=None,
    ):  # fmt: skip
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}, not '
                f"{padding_mode!r}"
            )
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias,
            padding_mode, device, dtype,
        )  # fmt: skip
        self.output_padding = several(output_padding, self.dimensions, "output_padding")

    def _channels(self):
        return self.in_channels, self.out_channels // self.groups

    def forward(self, input, output_size=None):
        extra = self.output_padding
        if output_size is not None:
            extra = self._extra(input, tuple(output_size)[-self.dimensions :])
        convolve = getattr(convolution, f"conv_transpose{self.dimensions}d")
        return convolve(
            input, self.weight, self.bias, self.stride, self.padding, extra, self.groups,
            self.dilation,
        )  # fmt: skip

    def _extra(self, input, wanted):
        """The output padding that leads to a size."""
        found = []
        rest = zip(self.stride, self.padding, self.dilation, self.kernel_size, wanted, strict=True)
        for length, (stride, padding, dilation, size, want) in zip(
            input.shape[-self.dimensions :], rest, strict=True
        ):
            least = (length - 1) * stride - 2 * padding + dilation * (size - 1) + 1
            if not least <= want < least + stride:
                raise ValueError(
                    f"requested an output size of {list(wanted)}, but valid sizes are from {least} "
                    f"to {least + stride - 1} where {want} is wanted"
                )
            found.append(want - least)
        return tuple(found)


class ConvTranspose1d(_Transposed):
    """`functional.conv_transpose1d` with its weight and bias."""

    dimensions = 1


class ConvTranspose2d(_Transposed):
    """`functional.conv_transpose2d` with its weight and bias.

    >>> layer = jaxgrad.nn.ConvTranspose2d(3, 8, 2, stride=2)
    >>> layer(jaxgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 8, 8, 8])
    """

    dimensions = 2


class ConvTranspose3d(_Transposed):
    """`functional.conv_transpose3d` with its weight and bias."""

    dimensions = 3


class _MaxPool(Module):
    dimensions = 0

    def __init__(
        self, kernel_size, stride=None, padding=0, dilation=1, return_indices: bool = False,
        ceil_mode: bool = False,
    ):  # fmt: skip
        super().__init__()
        self.kernel_size, self.padding, self.dilation = kernel_size, padding, dilation
        self.stride = kernel_size if stride is None else stride
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input):
        pool = getattr(pooling, f"max_pool{self.dimensions}d")
        return pool(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode,
            self.return_indices,
        )  # fmt: skip

    def extra_repr(self):
        names = "kernel_size", "stride", "padding", "dilation", "ceil_mode"
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)


class MaxPool1d(_MaxPool):
    """`functional.max_pool1d` as a module."""

    dimensions = 1


class MaxPool2d(_MaxPool):
    """`functional.max_pool2d` as a module.

    >>> jaxgrad.nn.MaxPool2d(2)(jaxgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 2, 2])
    """

    dimensions = 2


class MaxPool3d(_MaxPool):
    """`functional.max_pool3d` as a module."""

    dimensions = 3


class _AvgPool(Module):
    dimensions = 0

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode: bool = False,
        count_include_pad: bool = True, divisor_override: int | None = None,
    ):  # fmt: skip
        super().__init__()
        self.kernel_size, self.padding, self.ceil_mode = kernel_size, padding, ceil_mode
        self.stride = kernel_size if stride is None else stride
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input):
        return pooling._avg_pool(
            self.dimensions, input, self.kernel_size, self.stride, self.padding, self.ceil_mode,
            self.count_include_pad, self.divisor_override,
        )  # fmt: skip

    def extra_repr(self):
        names = "kernel_size", "stride", "padding"
        return ", ".join(f"{name}={getattr(self, name)}" for name in names)


class AvgPool1d(_AvgPool):
    """`functional.avg_pool1d` as a module."""

    dimensions = 1

    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):  # fmt: skip
        kernel_size = several(kernel_size, 1, "kernel_size")
        stride = kernel_size if stride is None else several(stride, 1, "stride")
        padding = several(padding, 1, "padding")
        super().__init__(kernel_size, stride, padding, ceil_mode, count_include_pad)


class AvgPool2d(_AvgPool):
    """`functional.avg_pool2d` as a module.

    >>> jaxgrad.nn.AvgPool2d(2)(jaxgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 2, 2])
    """

    dimensions = 2


class AvgPool3d(_AvgPool):
    """`functional.avg_pool3d` as a module."""

    dimensions = 3


class AdaptiveAvgPool1d(Module):
    """`functional.adaptive_avg_pool1d` as a module."""

    dimensions = 1

    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input):
        return pooling._adaptive_average(self.dimensions, input, self.output_size)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveAvgPool2d(AdaptiveAvgPool1d):
    """`functional.adaptive_avg_pool2d` as a module.

    >>> jaxgrad.nn.AdaptiveAvgPool2d(1)(jaxgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 1, 1])
    """

    dimensions = 2
