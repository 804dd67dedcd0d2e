"""Layers of convolutions and transposed convolutions in one to three dimensions."""

import math
import types
from collections.abc import Sequence

from ..core import dtypes
from ..core.device import DeviceLike
from ..functions import convolution
from ..functions.convolution import numbers_of
from ..tape.tensor import Tensor
from . import functional, init
from .common_types import Extents
from .linear import fan_in_uniform_
from .module import Module
from .parameter import new_parameter

_MODES = {"zeros", "reflect", "replicate", "circular"}


def _named(function, name):
    """The same function under another name, which errors of its arguments show."""
    code, names = function.__code__, function.__globals__
    copy = types.FunctionType(
        code, names, code.co_name, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, function.__annotations__
    copy.__doc__, copy.__qualname__ = function.__doc__, name
    return copy


class _Convolution(Module):
    """A convolution layer of `dimensions` spatial dimensions."""

    in_channels: int
    out_channels: int
    padding: tuple[int, ...] | str
    output_padding: tuple[int, ...]
    weight: Tensor
    bias: Tensor | None

    dimensions = 0
    transposed = False

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        if cls.__module__ == __name__ and "__init__" not in vars(cls):
            cls.__init__ = _named(cls.__init__, f"{cls.__name__}.__init__")

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Extents,
        stride: Extents = 1,
        padding: Extents | str = 0,
        dilation: Extents = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        super().__init__()
        self._check(in_channels, out_channels, stride, padding, groups, padding_mode)
        count = self.dimensions
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = numbers_of("kernel_size", kernel_size, count)
        self.stride = numbers_of("stride", stride, count)
        if not isinstance(padding, str):
            padding = numbers_of("padding", padding, count)
        self.padding = padding
        self.dilation = numbers_of("dilation", dilation, count)
        self.output_padding = (0,) * count
        self.padding_mode = padding_mode
        shape = (*self._weight_channels(), *self.kernel_size)
        self.weight = new_parameter(shape, device, dtype)
        self.register_parameter(
            "bias", new_parameter((out_channels,), device, dtype) if bias else None
        )
        self.reset_parameters()

    def _weight_channels(self):
        """Return the first two sizes of the weight."""
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
        if padding == "same" and any(step != 1 for step in strides):
            raise ValueError("padding='same' is not supported for strided convolutions")
        if padding_mode not in _MODES:
            raise ValueError(
                f"padding_mode must be one of {sorted(_MODES)}, but got {padding_mode=}"
            )

    def reset_parameters(self) -> None:
        """Draw weight and bias from U(-b, b), `b = 1 / sqrt(in_channels / groups * kernel
        elements)`.
        """
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
        if self.bias is not None:
            fan_in_uniform_(self.bias, fan_in)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input, weight, bias):
        """Convolve with other weights than the layer's own: subclasses that change them call it."""
        padding = self.padding
        if self.padding_mode != "zeros":
            edges = self._reversed_padding_repeated_twice
            input, padding = functional.pad(input, edges, self.padding_mode), 0
        convolve = getattr(functional, f"conv{self.dimensions}d")
        return convolve(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def __getstate__(self):
        edges = list(self._reversed_padding_repeated_twice)
        derived = {"transposed": self.transposed, "_reversed_padding_repeated_twice": edges}
        return super().__getstate__() | derived

    @property
    def _reversed_padding_repeated_twice(self) -> list[int]:
        """The padding before and after each dimension, last dimension first, as `pad` takes it."""
        edges = convolution.edges(self.padding, self.kernel_size, self.stride, self.dilation)
        return [width for pair in reversed(edges) for width in pair]

    def extra_repr(self) -> str:
        shown = (
            f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, "
            f"stride={self.stride}"
        )
        zeros, ones = (0,) * self.dimensions, (1,) * self.dimensions
        defaults = {"padding": zeros, "dilation": ones, "output_padding": zeros, "groups": 1}
        for name, default in defaults.items():
            value = getattr(self, name, default)
            if value != default:
                shown += f", {name}={value}"
        shown += "" if self.bias is not None else ", bias=False"
        if self.padding_mode == "zeros":
            return shown
        return f"{shown}, padding_mode={self.padding_mode}"


class Conv1d(_Convolution):
    """A convolution of (N, C, L) or (C, L) with a learned kernel; see `functional.conv1d`.

    Parameters are those of `Conv2d`, with a kernel of one dimension.

    >>> jaxgrad.nn.Conv1d(2, 4, 3, padding="same")(jaxgrad.ones(1, 2, 5)).shape
    torch.Size([1, 4, 5])
    """

    dimensions = 1


class Conv2d(_Convolution):
    """A convolution of (N, C, H, W) or (C, H, W) with a learned kernel; see `functional.conv2d`.

    weight: (out_channels, in_channels / groups, *kernel_size), bias: (out_channels,), both drawn
    from U(-b, b) with `b = 1 / sqrt(fan_in)`. padding_mode: "zeros", "reflect", "replicate" or
    "circular". Raises ValueError for channels that `groups` does not divide and for unknown
    paddings.

    >>> layer = jaxgrad.nn.Conv2d(3, 8, 3, stride=2, padding=1)
    >>> layer(jaxgrad.ones(1, 3, 6, 6)).shape
    torch.Size([1, 8, 3, 3])
    """

    dimensions = 2


class Conv3d(_Convolution):
    """A convolution of (N, C, D, H, W) or (C, D, H, W) with a learned kernel; see
    `functional.conv3d`.

    Parameters are those of `Conv2d`, with a kernel of three dimensions.

    >>> jaxgrad.nn.Conv3d(1, 2, 2)(jaxgrad.ones(1, 1, 3, 3, 3)).shape
    torch.Size([1, 2, 2, 2, 2])
    """

    dimensions = 3


class _Transposed(_Convolution):
    """A transposed convolution; `output_size` in a call chooses the output padding."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Extents,
        stride: Extents = 1,
        padding: Extents = 0,
        output_padding: Extents = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Extents = 1,
        padding_mode: str = "zeros",
        device: DeviceLike | None = None,
        dtype: dtypes.dtype | None = None,
    ):
        if padding_mode != "zeros":
            raise ValueError(
                f'Only "zeros" padding mode is supported for {type(self).__name__}, not '
                f"{padding_mode!r}"
            )
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )
        self.output_padding = numbers_of("output_padding", output_padding, self.dimensions)

    def _weight_channels(self):
        return self.in_channels, self.out_channels // self.groups

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        output_padding = self.output_padding
        if output_size is not None:
            output_padding = self._output_padding(input, self._sizes(input, output_size))
        convolve = getattr(functional, f"conv_transpose{self.dimensions}d")
        return convolve(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            output_padding,
            self.groups,
            self.dilation,
        )

    def _sizes(self, input, output_size):
        """Return the spatial part of `output_size`, which may name all dimensions."""
        count, sizes = self.dimensions, tuple(output_size)
        if len(sizes) not in (count, input.ndim):
            raise ValueError(
                f"ConvTranspose{count}D: for {input.ndim}D input, output_size must have {count} or "
                f"{input.ndim} elements (got {len(sizes)})"
            )
        return sizes[-count:]

    def _output_padding(self, input, output_size):
        """Return the output padding that leads to `output_size`."""
        result = []
        lengths = input.shape[-self.dimensions :]
        for length, stride, padding, dilation, kernel, size in zip(
            lengths,
            self.stride,
            self.padding,
            self.dilation,
            self.kernel_size,
            output_size,
            strict=True,
        ):
            least = (length - 1) * stride - 2 * padding + dilation * (kernel - 1) + 1
            if not least <= size < least + stride:
                raise ValueError(
                    f"requested an output size of {list(output_size)}, but valid sizes are from "
                    f"{least} to {least + stride - 1} where {size} is requested"
                )
            result.append(size - least)
        return tuple(result)


class ConvTranspose1d(_Transposed):
    """A transposed convolution of (N, C, L) or (C, L); see `functional.conv_transpose1d`.

    Parameters are those of `ConvTranspose2d`, with a kernel of one dimension.

    >>> jaxgrad.nn.ConvTranspose1d(2, 4, 2, stride=2)(jaxgrad.ones(1, 2, 3)).shape
    torch.Size([1, 4, 6])
    """

    dimensions = 1


class ConvTranspose2d(_Transposed):
    """A transposed convolution of (N, C, H, W) or (C, H, W); see `functional.conv_transpose2d`.

    weight: (in_channels, out_channels / groups, *kernel_size), bias: (out_channels,), both drawn
    from U(-b, b) with `b = 1 / sqrt(fan_in)`. A call takes `output_size` to choose among the sizes
    that one stride allows. Raises ValueError for channels that `groups` does not divide, for a
    `padding_mode` other than "zeros" and for an impossible `output_size`.

    >>> layer = jaxgrad.nn.ConvTranspose2d(3, 8, 2, stride=2)
    >>> layer(jaxgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 8, 8, 8])
    """

    dimensions = 2


class ConvTranspose3d(_Transposed):
    """A transposed convolution of (N, C, D, H, W) or (C, D, H, W); see
    `functional.conv_transpose3d`.

    Parameters are those of `ConvTranspose2d`, with a kernel of three dimensions.

    >>> jaxgrad.nn.ConvTranspose3d(1, 2, 2, stride=2)(jaxgrad.ones(1, 1, 2, 2, 2)).shape
    torch.Size([1, 2, 4, 4, 4])
    """

    dimensions = 3
