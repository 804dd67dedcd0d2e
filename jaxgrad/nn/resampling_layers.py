"""Layers that resample images, pad them, and move channels into space."""

from __future__ import annotations

from .. import ops
from .function_layer import REQUIRED, FunctionLayer
from .module import Module
from .padding import pad
from .resampling import interpolate

# resampling


class Upsample(Module):
    """Return images of another size, (n, c, *sizes) to (n, c, *size); see `functional.interpolate`.

    The arguments are those of the function. Attribute `name`: the name of the class.

    >>> jaxgrad.nn.Upsample(scale_factor=2)(jaxgrad.tensor([[[0.0, 3.0]]]))
    tensor([[[0., 0., 3., 3.]]])
    """

    def __init__(
        self,
        size=None,
        scale_factor=None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ):
        super().__init__()
        self.name, self.size, self.mode = type(self).__name__, size, mode
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(map(float, scale_factor))
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input):
        return interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self):
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Return images of another size, each pixel that of the place in the old image.

    >>> jaxgrad.nn.UpsamplingNearest2d(size=(1, 4))(jaxgrad.tensor([[[[0.0, 3.0]]]]))
    tensor([[[[0., 0., 3., 3.]]]])
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Return images of another size, interpolated with aligned corners.

    >>> jaxgrad.nn.UpsamplingBilinear2d(size=(1, 4))(jaxgrad.tensor([[[[0.0, 3.0]]]]))
    tensor([[[[0., 1., 2., 3.]]]])
    """

    def __init__(self, size=None, scale_factor=None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


# channels


class PixelShuffle(FunctionLayer, function=ops.pixel_shuffle, upscale_factor=REQUIRED):
    """Move channels into space: (..., c * r * r, h, w) to (..., c, h * r, w * r).

    Source: Shi et al., "Real-Time Single Image and Video Super-Resolution Using an Efficient
    Sub-Pixel Convolutional Neural Network", 2016.

    >>> jaxgrad.nn.PixelShuffle(2)(jaxgrad.ones(1, 4, 3, 3)).shape
    torch.Size([1, 1, 6, 6])
    """

    shown = ("upscale_factor",)


class PixelUnshuffle(FunctionLayer, function=ops.pixel_unshuffle, downscale_factor=REQUIRED):
    """Move squares of pixels into channels: the inverse of `PixelShuffle`.

    >>> jaxgrad.nn.PixelUnshuffle(2)(jaxgrad.ones(1, 1, 6, 6)).shape
    torch.Size([1, 4, 3, 3])
    """

    shown = ("downscale_factor",)


class ChannelShuffle(FunctionLayer, function=ops.channel_shuffle, groups=REQUIRED):
    """Put the channels of (n, c, *sizes) in another order, one of each group in turn.

    Source: Zhang et al., "ShuffleNet", 2018.

    >>> jaxgrad.nn.ChannelShuffle(2)(jaxgrad.arange(4.0).view(1, 4, 1)).flatten()
    tensor([0., 2., 1., 3.])
    """

    shown = ("groups",)


# padding


class _Pad(Module):
    """A layer that pads the last `dimensions` dimensions in the mode `mode`."""

    dimensions = 0

    def __init__(self, padding):
        super().__init__()
        count = 2 * self.dimensions
        # PyTorch keeps a sequence of any length as it is
        self.padding = (padding,) * count if isinstance(padding, int) else tuple(padding)

    def forward(self, input):
        return pad(input, self.padding, self.mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPad(_Pad):
    """A layer that pads with a constant."""

    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input):
        return pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    """A layer that pads with zeros."""

    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class _ReflectionPad(_Pad):
    """A layer that mirrors at the edges."""

    mode = "reflect"


class _ReplicationPad(_Pad):
    """A layer that repeats the edges."""

    mode = "replicate"


class _CircularPad(_Pad):
    """A layer that wraps around."""

    mode = "circular"

    def forward(self, input):
        count = self.dimensions + 1
        if input.ndim not in (count, count + 1):
            raise ValueError(f"expected {count}D or {count + 1}D input (got {input.ndim}D input)")
        return super().forward(input)


class ConstantPad1d(_ConstantPad):
    """Extend (n, c, w) or (c, w) at the ends by a constant.

    padding: the sizes before and after w, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 2)
    >>> jaxgrad.nn.ConstantPad1d((1, 1), 9.0)(x).flatten()
    tensor([9., 1., 2., 9.])
    """

    dimensions = 1


class ConstantPad2d(_ConstantPad):
    """Extend (n, c, h, w) or (c, h, w) at the ends by a constant.

    padding: the sizes before and after w, then h, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 2)
    >>> jaxgrad.nn.ConstantPad2d((1, 1, 0, 0), 9.0)(x).flatten()
    tensor([9., 1., 2., 9.])
    """

    dimensions = 2


class ConstantPad3d(_ConstantPad):
    """Extend (n, c, d, h, w) or (c, d, h, w) at the ends by a constant.

    padding: the sizes before and after w, then h and d, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 1, 2)
    >>> jaxgrad.nn.ConstantPad3d((1, 1, 0, 0, 0, 0), 9.0)(x).flatten()
    tensor([9., 1., 2., 9.])
    """

    dimensions = 3


class ZeroPad1d(_ZeroPad):
    """Extend (n, c, w) or (c, w) at the ends by zeros.

    padding: the sizes before and after w, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 2)
    >>> jaxgrad.nn.ZeroPad1d((1, 1))(x).flatten()
    tensor([0., 1., 2., 0.])
    """

    dimensions = 1


class ZeroPad2d(_ZeroPad):
    """Extend (n, c, h, w) or (c, h, w) at the ends by zeros.

    padding: the sizes before and after w, then h, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 2)
    >>> jaxgrad.nn.ZeroPad2d((1, 1, 0, 0))(x).flatten()
    tensor([0., 1., 2., 0.])
    """

    dimensions = 2


class ZeroPad3d(_ZeroPad):
    """Extend (n, c, d, h, w) or (c, d, h, w) at the ends by zeros.

    padding: the sizes before and after w, then h and d, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 1, 2)
    >>> jaxgrad.nn.ZeroPad3d((1, 1, 0, 0, 0, 0))(x).flatten()
    tensor([0., 1., 2., 0.])
    """

    dimensions = 3


class ReflectionPad1d(_ReflectionPad):
    """Extend (n, c, w) or (c, w) at the ends by a reflection without the edge.

    padding: the sizes before and after w, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 2)
    >>> jaxgrad.nn.ReflectionPad1d((1, 1))(x).flatten()
    tensor([2., 1., 2., 1.])
    """

    dimensions = 1


class ReflectionPad2d(_ReflectionPad):
    """Extend (n, c, h, w) or (c, h, w) at the ends by a reflection without the edge.

    padding: the sizes before and after w, then h, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 2)
    >>> jaxgrad.nn.ReflectionPad2d((1, 1, 0, 0))(x).flatten()
    tensor([2., 1., 2., 1.])
    """

    dimensions = 2


class ReflectionPad3d(_ReflectionPad):
    """Extend (n, c, d, h, w) or (c, d, h, w) at the ends by a reflection without the edge.

    padding: the sizes before and after w, then h and d, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 1, 2)
    >>> jaxgrad.nn.ReflectionPad3d((1, 1, 0, 0, 0, 0))(x).flatten()
    tensor([2., 1., 2., 1.])
    """

    dimensions = 3


class ReplicationPad1d(_ReplicationPad):
    """Extend (n, c, w) or (c, w) at the ends by copies of the edge.

    padding: the sizes before and after w, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 2)
    >>> jaxgrad.nn.ReplicationPad1d((1, 1))(x).flatten()
    tensor([1., 1., 2., 2.])
    """

    dimensions = 1


class ReplicationPad2d(_ReplicationPad):
    """Extend (n, c, h, w) or (c, h, w) at the ends by copies of the edge.

    padding: the sizes before and after w, then h, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 2)
    >>> jaxgrad.nn.ReplicationPad2d((1, 1, 0, 0))(x).flatten()
    tensor([1., 1., 2., 2.])
    """

    dimensions = 2


class ReplicationPad3d(_ReplicationPad):
    """Extend (n, c, d, h, w) or (c, d, h, w) at the ends by copies of the edge.

    padding: the sizes before and after w, then h and d, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 1, 2)
    >>> jaxgrad.nn.ReplicationPad3d((1, 1, 0, 0, 0, 0))(x).flatten()
    tensor([1., 1., 2., 2.])
    """

    dimensions = 3


class CircularPad1d(_CircularPad):
    """Extend (n, c, w) or (c, w) at the ends by its other end.

    padding: the sizes before and after w, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 2)
    >>> jaxgrad.nn.CircularPad1d((1, 1))(x).flatten()
    tensor([2., 1., 2., 1.])
    """

    dimensions = 1


class CircularPad2d(_CircularPad):
    """Extend (n, c, h, w) or (c, h, w) at the ends by its other end.

    padding: the sizes before and after w, then h, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 2)
    >>> jaxgrad.nn.CircularPad2d((1, 1, 0, 0))(x).flatten()
    tensor([2., 1., 2., 1.])
    """

    dimensions = 2


class CircularPad3d(_CircularPad):
    """Extend (n, c, d, h, w) or (c, d, h, w) at the ends by its other end.

    padding: the sizes before and after w, then h and d, or one for all.

    >>> x = jaxgrad.tensor([1.0, 2.0]).view(1, 1, 1, 2)
    >>> jaxgrad.nn.CircularPad3d((1, 1, 0, 0, 0, 0))(x).flatten()
    tensor([2., 1., 2., 1.])
    """

    dimensions = 3
