"""Convolutions and transposed convolutions in one to three dimensions.

They compute the cross-correlation, as PyTorch does: the kernel is not flipped. The operator
`convolution` makes the checks that these functions do not.
"""

from __future__ import annotations

from .. import ops
from ..core.pytorch_tensors import type_name
from ..ops.autocast import lowered
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary
from ..tape.warn_once import warn_once
from .arguments import per_dimension

UNEVEN = (
    "Using padding='same' with even kernel lengths and odd dilation may require a zero-padded copy "
    "of the input be created: one end needs one row of zeros more than the other"
)


def numbers_of(name: str, value, count: int) -> tuple[int, ...]:
    """One number of the argument `name` for each of `count` dimensions.

    Raises RuntimeError for a sequence of another length than 1.
    """
    numbers = per_dimension(value, count)
    if len(numbers) not in (1, count):
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {count}")
    return numbers * count if len(numbers) == 1 else numbers


def edges(padding, kernel, stride, dilation):
    """Return the number of zeros before and after each dimension."""
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding == "same":
        stride = numbers_of("stride", stride, len(kernel))
        dilation = numbers_of("dilation", dilation, len(kernel))
        if any(step != 1 for step in stride):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        totals = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        return tuple((total // 2, total - total // 2) for total in totals)
    if isinstance(padding, str):
        raise RuntimeError(f"Invalid padding string: {padding!r}, should be 'valid' or 'same'")
    padding = numbers_of("padding", padding, len(kernel))
    if min(padding) < 0:
        raise RuntimeError(f"negative padding is not supported, but got padding={padding}")
    return tuple((width, width) for width in padding)


def _convolve(dimensions, input, weight, bias, stride, padding, dilation, groups):
    input, weight, bias = lowered(input, weight, bias)
    batch = _batched(f"conv{dimensions}d", dimensions, input)
    stride, dilation = _expanded(dimensions, stride), _expanded(dimensions, dilation)
    if isinstance(padding, str):
        if weight.ndim != dimensions + 2:
            raise RuntimeError(
                f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight "
                f"{list(weight.shape)}, but got {input.ndim}-dimensional input of size "
                f"{list(input.shape)} instead"
            )
        batch, padding = _padded(batch, weight.shape[2:], stride, padding, dilation)
    padding, none = _expanded(dimensions, padding), (0,) * dimensions
    result = ops.convolution(batch, weight, bias, stride, padding, dilation, False, none, groups)
    return result if input.ndim == result.ndim else ops.squeeze(result, 0)


def _transposed(dimensions, input, weight, bias, stride, padding, output_padding, groups, dilation):
    input, weight, bias = lowered(input, weight, bias)
    batch = _batched(f"conv_transpose{dimensions}d", dimensions, input)
    stride, padding, dilation, extra = (
        _expanded(dimensions, value) for value in (stride, padding, dilation, output_padding)
    )
    result = ops.convolution(batch, weight, bias, stride, padding, dilation, True, extra, groups)
    return result if input.ndim == result.ndim else ops.squeeze(result, 0)


def _batched(name, dimensions, input):
    """The input with a batch dimension."""
    if not hasattr(input, "ndim"):
        kind = type_name(input)
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {kind}")
    if input.ndim == dimensions + 2:
        return input
    if input.ndim != dimensions + 1:
        raise RuntimeError(
            f"Expected {dimensions + 1}D (unbatched) or {dimensions + 2}D (batched) input to "
            f"{name}, but got input of size: {list(input.shape)}"
        )
    return ops.unsqueeze(input, 0)


def _expanded(dimensions, value):
    """An int, or a tensor without dimensions, as one int for each dimension; what is neither int
    nor list is refused by the operator.
    """
    if isinstance(value, int) or (isinstance(value, Tensor) and not value.ndim):
        return per_dimension(value, dimensions)
    return value


def _padded(input, kernel, stride, padding, dilation):
    """The input, and the same padding at both ends, for `padding` in words.

    A row of zeros that is needed at the ends alone becomes part of the input.
    """
    widths = edges(padding, kernel, stride, dilation)
    more = [after - before for before, after in widths]
    if any(more):
        warn_once(UNEVEN)
        input = ops.constant_pad_nd(
            input, [width for extra in reversed(more) for width in (0, extra)]
        )
    return input, tuple(before for before, _ in widths)


@api_boundary
def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups: int = 1):
    """Return the one-dimensional cross-correlation of `input` and `weight`, plus `bias`.

    input: (N, C, L) or (C, L). weight: (out, C / groups, k). bias: (out,). The result is
    (N, out, L') or (out, L'). Other arguments, L' and errors are those of `conv2d`.

    >>> jaxgrad.conv1d(jaxgrad.tensor([[1.0, 2.0, 4.0]]), jaxgrad.tensor([[[-1.0, 1.0]]]))
    tensor([[1., 2.]])
    """
    return _convolve(1, input, weight, bias, stride, padding, dilation, groups)


@api_boundary
def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups: int = 1):
    """Return the two-dimensional cross-correlation of `input` and `weight`, plus `bias`.

    `out[n, o, i, j] = bias[o] + sum over c, k, l of
    weight[o, c, k, l] * input[n, c, i * stride + k * dilation - padding, j * stride + ...]`

    input: (N, C, H, W) or (C, H, W), floating-point or complex dtype. weight: (out, C / groups, kH,
    kW), same dtype. bias: (out,). stride, padding, dilation: an integer, or one for each dimension;
    padding also "valid" (none) or "same" (stride 1 only). groups: divides C and out; each group has
    channels of its own. The result is (N, out, H', W') with
    `H' = (H + 2 * padding - dilation * (kH - 1) - 1) // stride + 1`.
    Raises RuntimeError for shapes, dtypes or strides that do not fit.

    >>> image = jaxgrad.ones(1, 3, 3)
    >>> jaxgrad.conv2d(image, jaxgrad.ones(1, 1, 2, 2), padding=1)[0]
    tensor([[1., 2., 2., 1.],
            [2., 4., 4., 2.],
            [2., 4., 4., 2.],
            [1., 2., 2., 1.]])
    """
    return _convolve(2, input, weight, bias, stride, padding, dilation, groups)


@api_boundary
def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups: int = 1):
    """Return the three-dimensional cross-correlation of `input` and `weight`, plus `bias`.

    input: (N, C, D, H, W) or (C, D, H, W). weight: (out, C / groups, kD, kH, kW). bias: (out,).
    Other arguments, the size of the result and errors are those of `conv2d`.

    >>> jaxgrad.conv3d(jaxgrad.ones(1, 2, 2, 2), jaxgrad.ones(1, 1, 2, 2, 2))
    tensor([[[[8.]]]])
    """
    return _convolve(3, input, weight, bias, stride, padding, dilation, groups)


@api_boundary
def conv_transpose1d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1
):
    """Return the transposed convolution of (N, C, L) or (C, L), `weight` (C, out / groups, k).

    Other arguments, the size of the result and errors are those of `conv_transpose2d`.

    >>> jaxgrad.conv_transpose1d(jaxgrad.tensor([[1.0, 2.0]]), jaxgrad.ones(1, 1, 2), stride=2)
    tensor([[1., 1., 2., 2.]])
    """
    return _transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@api_boundary
def conv_transpose2d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1
):
    """Return the transposed convolution: the gradient of `conv2d` with respect to its input.

    input: (N, C, H, W) or (C, H, W), floating-point or complex dtype. weight: (C, out / groups, kH,
    kW), same dtype. bias: (out,). output_padding: rows added at the end of each dimension, less
    than stride or dilation. The result is (N, out, H', W') with `H' = (H - 1) * stride - 2 *
    padding + dilation * (kH - 1) + output_padding + 1`. Raises RuntimeError for shapes, dtypes or
    paddings that do not fit. Source: Dumoulin and Visin, "A Guide to Convolution Arithmetic for
    Deep Learning", 2016.

    >>> jaxgrad.conv_transpose2d(jaxgrad.ones(1, 1, 2), jaxgrad.ones(1, 1, 1, 2), stride=2)
    tensor([[[1., 1., 1., 1.]]])
    """
    return _transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@api_boundary
def conv_transpose3d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1
):
    """Return the transposed convolution of (N, C, D, H, W), `weight` (C, out / groups, kD, kH, kW).

    Other arguments, the size of the result and errors are those of `conv_transpose2d`.

    >>> jaxgrad.conv_transpose3d(jaxgrad.ones(1, 1, 1, 2), jaxgrad.ones(1, 1, 1, 1, 2), stride=2)
    tensor([[[[1., 1., 1., 1.]]]])
    """
    return _transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)


@api_boundary
def _convolution(
    input,
    weight,
    bias,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    benchmark=None,
    deterministic=None,
    cudnn_enabled=None,
    allow_tf32=None,
):
    """Return `convolution` of the arguments; the last four say nothing about the result."""
    return ops.convolution(
        input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
    )


@api_boundary
def _convolution_mode(input, weight, bias, stride, padding, dilation, groups):
    """Return a convolution whose padding is "same" or "valid", for the dimensions of `weight`."""
    function = (conv1d, conv2d, conv3d)[weight.ndim - 3]
    return function(input, weight, bias, stride, padding, dilation, groups)
