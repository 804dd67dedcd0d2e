"""Windows of an image as columns, and back: functions and layers."""

from __future__ import annotations

from .. import ops
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary, names_defaults
from .common_types import Extents
from .function_layer import REQUIRED, FunctionLayer


@names_defaults
@api_boundary
def unfold(
    input: Tensor,
    kernel_size: Extents,
    dilation: Extents = 1,
    padding: Extents = 0,
    stride: Extents = 1,
) -> Tensor:
    """Return the windows of an image as columns.

    input: (N, C, H, W) or (C, H, W), floating-point or complex dtype. kernel_size: height and width
    of a window, one integer for both. dilation: the distance of its elements. padding: zeros before
    and after each dimension. stride: the distance of windows. The result is (N, C * kernel
    elements, windows), or without N. Raises RuntimeError for shapes and numbers that do not fit.

    >>> F.unfold(jaxgrad.tensor([[[1.0, 2.0, 3.0]]]), (1, 2))
    tensor([[1., 2.],
            [2., 3.]])
    """
    return ops.im2col(input, kernel_size, dilation, padding, stride)


@names_defaults
@api_boundary
def fold(
    input: Tensor,
    output_size: Extents,
    kernel_size: Extents,
    dilation: Extents = 1,
    padding: Extents = 0,
    stride: Extents = 1,
) -> Tensor:
    """Return the image that is the sum of windows given as columns: the transpose of `unfold`.

    input: (N, C * kernel elements, windows) or without N, floating-point or complex dtype.
    output_size: height and width of the image. Other arguments are those of `unfold`. The result
    is (N, C, *output_size), or without N.
    Raises RuntimeError for shapes and numbers that do not fit.

    >>> F.fold(jaxgrad.tensor([[1.0, 2.0], [2.0, 3.0]]), (1, 3), (1, 2))
    tensor([[[1., 4., 3.]]])
    """
    return ops.col2im(input, output_size, kernel_size, dilation, padding, stride)


_WINDOWS = {"kernel_size": REQUIRED, "dilation": 1, "padding": 0, "stride": 1}


class Unfold(FunctionLayer, function=unfold, **_WINDOWS):
    """The windows of (N, C, H, W) or (C, H, W) as columns; see `functional.unfold`.

    >>> jaxgrad.nn.Unfold(2)(jaxgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 12, 9])
    """

    shown = tuple(_WINDOWS)


class Fold(FunctionLayer, function=fold, output_size=REQUIRED, **_WINDOWS):
    """The sum of windows given as columns; see `functional.fold`.

    >>> jaxgrad.nn.Fold((4, 4), 2)(jaxgrad.ones(1, 12, 9)).shape
    torch.Size([1, 3, 4, 4])
    """

    shown = ("output_size", *_WINDOWS)
