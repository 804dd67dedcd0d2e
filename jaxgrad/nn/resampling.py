"""Images of another size, and channels moved into space: functions and layers."""

from __future__ import annotations

import warnings

from .. import ops
from ..core.symbolic_extents import is_symbolic
from ..core.tracebacks import users_stacklevel
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary, names_defaults
from . import functional, pooling
from .common_types import Extents, Ratios
from .function_layer import REQUIRED, FunctionLayer
from .module import Module

# the operator of each mode by the number of dimensions of the input
_OPERATORS = {
    "nearest": {3: "upsample_nearest1d", 4: "upsample_nearest2d", 5: "upsample_nearest3d"},
    "nearest-exact": {
        3: "_upsample_nearest_exact1d",
        4: "_upsample_nearest_exact2d",
        5: "_upsample_nearest_exact3d",
    },
    "linear": {3: "upsample_linear1d"},
    "bilinear": {4: "upsample_bilinear2d"},
    "trilinear": {5: "upsample_trilinear3d"},
    "bicubic": {4: "upsample_bicubic2d"},
    "lanczos": {4: "_upsample_lanczos2d_aa"},
    "area": {3: "adaptive_avg_pool1d", 4: "adaptive_avg_pool2d", 5: "adaptive_avg_pool3d"},
}
_ANTIALIASED = {
    "bilinear": "_upsample_bilinear2d_aa",
    "bicubic": "_upsample_bicubic2d_aa",
    "lanczos": "_upsample_lanczos2d_aa",
}
_WITHOUT_CORNERS = ("nearest", "nearest-exact", "area")


def _scaled(extent, scale):
    """An extent times a scale, rounded down."""
    if not is_symbolic(extent):
        if not abs(extent * scale) < 2**63:
            raise RuntimeError(f"value cannot be converted to type int64_t: {extent} * {scale}")
        return int(extent * scale)
    numerator, denominator = float(scale).as_integer_ratio()
    return extent * numerator // denominator


@names_defaults
@api_boundary
def interpolate(
    input: Tensor,
    size: Extents | None = None,
    scale_factor: Ratios | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Return images of another size: (n, c, *sizes) to (n, c, *size).

    input: 3-D, 4-D or 5-D, floating point; uint8 for two dimensions and for "nearest". size: the
    new sizes, or one for all. scale_factor: or their ratios to the old ones; the new sizes are
    rounded down. mode: "nearest", "nearest-exact", "area", "linear" (3-D), "bilinear" or "bicubic"
    (4-D), "trilinear" (5-D), or "lanczos" (4-D, with `antialias`). align_corners: whether the
    centers of the corner elements keep their places, and not the outer corners.
    recompute_scale_factor: whether the places follow the rounded sizes, and not `scale_factor`.
    antialias: whether a wider filter is used for smaller images; "bilinear", "bicubic", "lanczos".
    Raises ValueError for arguments that do not fit, NotImplementedError for a mode that does not
    fit the dimensions, RuntimeError for a size of 0.

    >>> F.interpolate(jaxgrad.tensor([[[0.0, 3.0]]]), size=4, mode="linear", align_corners=True)
    tensor([[[0., 1., 2., 3.]]])
    """
    if mode in _WITHOUT_CORNERS and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear "
            "| bicubic | trilinear"
        )
    size, scales = _checked_sizes(input, size, scale_factor)
    if recompute_scale_factor and scales is None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    if antialias and not (mode in _ANTIALIASED and input.ndim == 4):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires "
            "a 4-D tensor as input"
        )
    name = _operator_of(mode, input.ndim, align_corners, antialias)
    if scales is not None:
        size = [_scaled(old, scale) for old, scale in zip(input.shape[2:], scales, strict=True)]
    if mode == "area":
        return getattr(pooling, name)(input, size)
    if scales is None or recompute_scale_factor:
        scales = [None] * len(size)
    if mode in _WITHOUT_CORNERS:
        return getattr(ops, name)(input, size, *scales)
    return getattr(ops, name)(input, size, bool(align_corners), *scales)


def _checked_sizes(input, size, scale_factor):
    """Return the sizes, or None, and the scale factors of all dimensions, or None."""
    count = input.dim() - 2
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is None and scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    if size is not None:
        return _sizes(input, size, count), None
    if not isinstance(scale_factor, list | tuple):
        return None, [_number(scale_factor)] * count
    if len(scale_factor) != count:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input "
            f"with spatial dimensions of {list(input.shape[2:])} and scale_factor of shape "
            f"{scale_factor}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
            "scale_factor in (s1, s2, ...,sK) format."
        )
    return None, [_number(scale) for scale in scale_factor]


def _sizes(input, size, count):
    if not isinstance(size, list | tuple):
        return [size.item() if isinstance(size, Tensor) else size] * count
    if len(size) != count:
        raise ValueError(
            "Input and output must have the same number of spatial dimensions, but got input with "
            f"spatial dimensions of {list(input.shape[2:])} and output size of {size}. Please "
            "provide input tensor in (N, C, d1, d2, ...,dK) format and output size in (o1, o2, "
            "...,oK) format."
        )
    size = [extent.item() if isinstance(extent, Tensor) else extent for extent in size]
    if not all(hasattr(extent, "__index__") or is_symbolic(extent) for extent in size):
        raise TypeError(
            "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, "
            f"int], but got size with types {[type(extent) for extent in size]}"
        )
    return size


def _number(scale):
    scale = scale.item() if isinstance(scale, Tensor) else scale
    if not isinstance(scale, int | float):
        raise TypeError(f"scale_factor must be a number, not {type(scale).__name__}")
    return float(scale)


def _operator_of(mode, ndim, align_corners, antialias):
    if mode == "lanczos" and ndim == 4:
        if align_corners:
            raise ValueError("Lanczos mode does not support align_corners=True")
        if not antialias:
            raise ValueError("Lanczos mode requires antialias=True")
    if antialias:
        return _ANTIALIASED[mode]
    operators = _OPERATORS.get(mode, {})
    if ndim in operators:
        return operators[ndim]
    if ndim in (3, 4, 5) and mode in ("linear", "bilinear", "trilinear"):
        (needed,) = operators
        raise NotImplementedError(f"Got {ndim}D input, but {mode} mode needs {needed}D input")
    if mode not in _OPERATORS and ndim in (3, 4, 5):
        raise NotImplementedError(
            f"interpolate: mode {mode!r} is unknown: choose one of nearest, linear, bilinear, "
            "bicubic, trilinear, lanczos, area, nearest-exact"
        )
    raise NotImplementedError(
        f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {ndim}D) for the modes: "
        "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact (got "
        f"{mode})"
    )


def _warn_of_deprecation(name):
    warnings.warn(
        f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.",
        stacklevel=users_stacklevel(),
    )


@api_boundary
def upsample(
    input: Tensor,
    size: Extents | None = None,
    scale_factor: Ratios | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Return `interpolate` of these arguments, with a warning. Write instead:

    >>> F.interpolate(jaxgrad.tensor([[[0.0, 3.0]]]), size=4)
    tensor([[[0., 0., 3., 3.]]])
    """
    _warn_of_deprecation("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


@api_boundary
def upsample_nearest(
    input: Tensor, size: Extents | None = None, scale_factor: Ratios | None = None
) -> Tensor:
    """Return `interpolate` in the mode "nearest", with a warning. Write instead:

    >>> F.interpolate(jaxgrad.tensor([[[0.0, 3.0]]]), size=4)
    tensor([[[0., 0., 3., 3.]]])
    """
    _warn_of_deprecation("upsample_nearest")
    return interpolate(input, size, scale_factor, mode="nearest")


@api_boundary
def upsample_bilinear(
    input: Tensor, size: Extents | None = None, scale_factor: Ratios | None = None
) -> Tensor:
    """Return `interpolate` in the mode "bilinear" and `align_corners`, with a warning. Write:

    >>> x = jaxgrad.tensor([[[[0.0, 3.0]]]])
    >>> F.interpolate(x, (1, 4), mode="bilinear", align_corners=True)
    tensor([[[[0., 1., 2., 3.]]]])
    """
    _warn_of_deprecation("upsample_bilinear")
    return interpolate(input, size, scale_factor, mode="bilinear", align_corners=True)


# layers


class Upsample(Module):
    """Return images of another size, (n, c, *sizes) to (n, c, *size); see `functional.interpolate`.

    The arguments are those of the function. Attribute `name`: the name of the class.

    >>> jaxgrad.nn.Upsample(scale_factor=2)(jaxgrad.tensor([[[0.0, 3.0]]]))
    tensor([[[0., 0., 3., 3.]]])
    """

    name: str
    scale_factor: float | tuple[float, ...] | None

    def __init__(
        self,
        size: Extents | None = None,
        scale_factor: Ratios | None = None,
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

    def forward(self, input: Tensor) -> Tensor:
        return functional.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        if self.scale_factor is not None:
            return f"scale_factor={self.scale_factor!r}, mode={self.mode!r}"
        return f"size={self.size!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Return images of another size, each pixel that of the place in the old image.

    >>> jaxgrad.nn.UpsamplingNearest2d(size=(1, 4))(jaxgrad.tensor([[[[0.0, 3.0]]]]))
    tensor([[[[0., 0., 3., 3.]]]])
    """

    def __init__(self, size: Extents | None = None, scale_factor: Ratios | None = None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Return images of another size, interpolated with aligned corners.

    >>> jaxgrad.nn.UpsamplingBilinear2d(size=(1, 4))(jaxgrad.tensor([[[[0.0, 3.0]]]]))
    tensor([[[[0., 1., 2., 3.]]]])
    """

    def __init__(self, size: Extents | None = None, scale_factor: Ratios | None = None):
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
