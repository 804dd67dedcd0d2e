"""Pooling: max, average, adaptive, fractional and power means, and max unpooling; functions and
layers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .. import ops
from ..frontend import random
from ..functions import pooling
from ..functions.arguments import per_dimension
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary, names_defaults
from .common_types import Extents, Ratios
from .function_layer import REQUIRED, FunctionLayer

# max pooling


@names_defaults
@api_boundary
def max_pool1d(
    input: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Return the maximum of each window of a line, with `return_indices` also its index.

    input: (n, c, l) or (c, l), not bool or complex. Other arguments, the size of the
    result and errors are those of `max_pool2d`.

    >>> F.max_pool1d(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]), 2)
    tensor([[5., 3.]])
    """
    options = kernel_size, stride, padding, dilation, ceil_mode
    if return_indices:
        return max_pool1d_with_indices(input, *options)
    return pooling.max_pool1d(input, *options)


@names_defaults
@api_boundary
def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each window of a line and its index.

    Arguments and errors are those of `max_pool1d`; `return_indices` has no effect.

    >>> F.max_pool1d_with_indices(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]), 2)[1]
    tensor([[1, 2]])
    """
    return pooling.max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


@names_defaults
@api_boundary
def max_pool2d(
    input: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Return the maximum of each window of an image, with `return_indices` also its index.

    input: (n, c, h, w) or (c, h, w), not bool or complex. kernel_size, stride, padding, dilation:
    an integer, or one for each dimension; stride defaults to kernel_size; padding is of -inf.
    ceil_mode: whether a window may end beyond the padding. Returns (n, c, h', w') or (c, h', w')
    with `h' = (h + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1`, rounded down, or
    up with `ceil_mode`, and int64 indices in the plane h * w. The first of equal elements gets the
    gradient; NaN is the greatest number. Raises RuntimeError for shapes and numbers that do not
    fit.

    >>> F.max_pool2d(jaxgrad.tensor([[[1.0, 5.0], [3.0, 3.0]]]), 2)
    tensor([[[5.]]])
    """
    options = kernel_size, stride, padding, dilation, ceil_mode
    if return_indices:
        return max_pool2d_with_indices(input, *options)
    return pooling.max_pool2d(input, *options)


@names_defaults
@api_boundary
def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each window of an image and its index.

    Arguments and errors are those of `max_pool2d`; `return_indices` has no effect.

    >>> F.max_pool2d_with_indices(jaxgrad.tensor([[[1.0, 5.0], [3.0, 3.0]]]), 2)[1]
    tensor([[[1]]])
    """
    stride = pooling.steps(stride)
    return ops.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


@names_defaults
@api_boundary
def max_pool3d(
    input: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor:
    """Return the maximum of each window of a volume, with `return_indices` also its index.

    input: (n, c, d, h, w) or (c, d, h, w), not bool or complex. Other arguments, the size of the
    result and errors are those of `max_pool2d`.

    >>> F.max_pool3d(jaxgrad.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    options = kernel_size, stride, padding, dilation, ceil_mode
    if return_indices:
        return max_pool3d_with_indices(input, *options)
    return pooling.max_pool3d(input, *options)


@names_defaults
@api_boundary
def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    dilation: Extents = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each window of a volume and its index.

    Arguments and errors are those of `max_pool3d`; `return_indices` has no effect.

    >>> F.max_pool3d_with_indices(jaxgrad.arange(8.0).reshape(1, 2, 2, 2), 2)[1]
    tensor([[[[7]]]])
    """
    stride = pooling.steps(stride)
    return ops.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)


# average pooling


@api_boundary
def avg_pool1d(
    input: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of a line.

    input: (n, c, l) or (c, l). Other arguments, the size of the result and errors are those of
    `avg_pool2d`.

    >>> F.avg_pool1d(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]), 2)
    tensor([[3.0000, 2.5000]])
    """
    return pooling.avg_pool1d(input, kernel_size, stride, padding, ceil_mode, count_include_pad)


@api_boundary
def avg_pool2d(
    input: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the mean of each window of an image; means of integers are truncated.

    input: (n, c, h, w) or (c, h, w), floating point, complex or int64. kernel_size, stride,
    padding, ceil_mode: as of `max_pool2d`, with padding of zeros. count_include_pad: whether the
    padding counts in the divisor. divisor_override: the divisor of all windows. out: the tensor
    that receives the result. Returns (n, c, h', w') or (c, h', w'). Raises RuntimeError for shapes
    and numbers that do not fit, and for a divisor 0.

    >>> F.avg_pool2d(jaxgrad.tensor([[[1.0, 5.0], [3.0, 3.0]]]), 2)
    tensor([[[3.]]])
    """
    options = padding, ceil_mode, count_include_pad, divisor_override
    return ops.avg_pool2d(input, kernel_size, pooling.steps(stride), *options, out=out)


@api_boundary
def avg_pool3d(
    input: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Return the mean of each window of a volume.

    input: (n, c, d, h, w) or (c, d, h, w). Other arguments, the size of the result and errors are
    those of `avg_pool2d`.

    >>> F.avg_pool3d(jaxgrad.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[3.5000]]]])
    """
    options = padding, ceil_mode, count_include_pad, divisor_override
    return ops.avg_pool3d(input, kernel_size, pooling.steps(stride), *options, out=out)


# adaptive pooling


def _sizes(input, output_size):
    """The wanted sizes; None keeps that of the input."""
    if not isinstance(output_size, list | tuple):
        return output_size
    count = len(output_size)
    if input.ndim <= count:
        raise ValueError(f"Input dimension should be at least {count + 1}")
    kept = input.shape[input.ndim - count :]
    return [old if new is None else new for new, old in zip(output_size, kept, strict=True)]


@api_boundary
def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """Return the means of `output_size` bins of a line.

    input: (n, c, l) or (c, l). Arguments and errors are those of `adaptive_avg_pool2d`.

    >>> F.adaptive_avg_pool1d(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]), 2)
    tensor([[3.0000, 2.5000]])
    """
    return pooling.adaptive_avg_pool1d(input, output_size)


@api_boundary
def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """Return the means of `output_size` bins of an image.

    input: (n, c, h, w) or (c, h, w), floating point or complex. output_size: an integer, or one for
    each dimension; None keeps the size. Bin i of m along n elements is from floor(i * n /
    m) to ceil((i + 1) * n / m). Returns (n, c, *output_size) or (c, *output_size). Raises
    RuntimeError for other shapes and sizes, ValueError for an input of too few dimensions.

    >>> F.adaptive_avg_pool2d(jaxgrad.tensor([[[1.0, 5.0], [3.0, 3.0]]]), 1)
    tensor([[[3.]]])
    """
    return pooling.adaptive_avg_pool2d(input, _sizes(input, output_size))


@api_boundary
def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """Return the means of `output_size` bins of a volume.

    input: (n, c, d, h, w) or (c, d, h, w). Arguments and errors are those of `adaptive_avg_pool2d`.

    >>> F.adaptive_avg_pool3d(jaxgrad.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[3.5000]]]])
    """
    return pooling.adaptive_avg_pool3d(input, _sizes(input, output_size))


@names_defaults
@api_boundary
def adaptive_max_pool1d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor:
    """Return the maxima of `output_size` bins of a line, and with `return_indices` where.

    input: (n, c, l) or (c, l), floating point. output_size: as of `adaptive_avg_pool2d`, whose
    errors are raised. The first of equal elements gets the gradient; NaN is the greatest number.

    >>> F.adaptive_max_pool1d(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]), 2)
    tensor([[5., 3.]])
    """
    outputs = adaptive_max_pool1d_with_indices(input, output_size)
    return outputs if return_indices else outputs[0]


@names_defaults
@api_boundary
def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the maxima of `output_size` bins of a line and their indices.

    Arguments and errors are those of `adaptive_max_pool1d`; `return_indices` has no effect.

    >>> F.adaptive_max_pool1d_with_indices(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]), 2)[1]
    tensor([[1, 2]])
    """
    return pooling.adaptive_max_pool1d(input, output_size)


@names_defaults
@api_boundary
def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor:
    """Return the maxima of `output_size` bins of an image, and with `return_indices` where.

    input: (n, c, h, w) or (c, h, w), floating point. output_size: as of `adaptive_avg_pool2d`,
    whose errors are raised. The first of equal elements gets the gradient; NaN is the greatest
    number.

    >>> F.adaptive_max_pool2d(jaxgrad.tensor([[[1.0, 5.0], [3.0, 3.0]]]), 1)
    tensor([[[5.]]])
    """
    outputs = adaptive_max_pool2d_with_indices(input, output_size)
    return outputs if return_indices else outputs[0]


@names_defaults
@api_boundary
def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the maxima of `output_size` bins of an image and their indices.

    Arguments and errors are those of `adaptive_max_pool2d`; `return_indices` has no effect.

    >>> F.adaptive_max_pool2d_with_indices(jaxgrad.tensor([[[1.0, 5.0], [3.0, 3.0]]]), 1)[1]
    tensor([[[1]]])
    """
    return ops.adaptive_max_pool2d(input, _sizes(input, output_size))


@names_defaults
@api_boundary
def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor:
    """Return the maxima of `output_size` bins of a volume, and with `return_indices` where.

    input: (n, c, d, h, w) or (c, d, h, w), floating point. output_size: as of
    `adaptive_avg_pool2d`, whose errors are raised. The first of equal elements gets the gradient;
    NaN is the greatest number.

    >>> F.adaptive_max_pool3d(jaxgrad.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[7.]]]])
    """
    outputs = adaptive_max_pool3d_with_indices(input, output_size)
    return outputs if return_indices else outputs[0]


@names_defaults
@api_boundary
def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the maxima of `output_size` bins of a volume and their indices.

    Arguments and errors are those of `adaptive_max_pool3d`; `return_indices` has no effect.

    >>> F.adaptive_max_pool3d_with_indices(jaxgrad.arange(8.0).reshape(1, 2, 2, 2), 1)[1]
    tensor([[[[7]]]])
    """
    return ops.adaptive_max_pool3d(input, _sizes(input, output_size))


# fractional max pooling


def _fractional(dimensions, input, kernel_size, output_size, output_ratio, samples):
    name = f"fractional_max_pool{dimensions}d"
    if output_size is None and output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        if isinstance(output_ratio, list | tuple) and len(output_ratio) != dimensions:
            raise ValueError(
                f"{name} requires output_ratio to either be a single Int or tuple of Ints."
            )
        ratios, lengths = per_dimension(output_ratio, dimensions), input.shape[-dimensions:]
        output_size = [int(n * ratio) for n, ratio in zip(lengths, ratios, strict=True)]
    if samples is None:
        planes = (1, *input.shape)[-dimensions - 2 : -dimensions]
        samples = random.rand(*planes, dimensions, dtype=input.dtype, device=input.device)
    return getattr(ops, name)(input, kernel_size, output_size, samples)


@names_defaults
@api_boundary
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Extents,
    output_size: Extents | None = None,
    output_ratio: Ratios | None = None,
    return_indices: bool = False,
    _random_samples=None,
) -> Tensor:
    """Return the maximum of each of `output_size` windows that are placed at random in an image.

    input: (n, c, h, w) or (c, h, w), floating point. kernel_size: the size of a window, an integer
    or one for each dimension. output_size: the number of windows, an integer or one for each
    dimension; without it `output_ratio`, from 0 to 1, times the size of the input. return_indices:
    whether to return also int64 indices in the plane. _random_samples: numbers from 0 to 1, (n, c,
    2), that place the windows; drawn if it is None. Returns (n, c, *output_size) or (c,
    *output_size). Raises ValueError if both sizes are missing, RuntimeError for shapes and sizes
    that do not fit. Source: Graham, "Fractional Max-Pooling", 2014.

    >>> F.fractional_max_pool2d(jaxgrad.ones(1, 4, 4), 2, output_size=2).shape
    torch.Size([1, 2, 2])
    """
    sizes = output_size, output_ratio
    outputs = fractional_max_pool2d_with_indices(
        input, kernel_size, *sizes, _random_samples=_random_samples
    )
    return outputs if return_indices else outputs[0]


@names_defaults
@api_boundary
def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Extents,
    output_size: Extents | None = None,
    output_ratio: Ratios | None = None,
    return_indices: bool = False,
    _random_samples=None,
) -> tuple[Tensor, Tensor]:
    """Return the maxima of windows that are placed at random in an image, and their indices.

    Arguments and errors are those of `fractional_max_pool2d`; `return_indices` has no effect.

    >>> F.fractional_max_pool2d_with_indices(jaxgrad.ones(1, 4, 4), 2, 2)[1].shape
    torch.Size([1, 2, 2])
    """
    sizes = output_size, output_ratio
    return _fractional(2, input, kernel_size, *sizes, _random_samples)


@names_defaults
@api_boundary
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Extents,
    output_size: Extents | None = None,
    output_ratio: Ratios | None = None,
    return_indices: bool = False,
    _random_samples=None,
) -> Tensor:
    """Return the maximum of each of `output_size` windows that are placed at random in a volume.

    input: (n, c, d, h, w) or (c, d, h, w), floating point. Other arguments and errors are those of
    `fractional_max_pool2d`.

    >>> F.fractional_max_pool3d(jaxgrad.ones(1, 4, 4, 4), 2, output_size=2).shape
    torch.Size([1, 2, 2, 2])
    """
    sizes = output_size, output_ratio
    outputs = fractional_max_pool3d_with_indices(
        input, kernel_size, *sizes, _random_samples=_random_samples
    )
    return outputs if return_indices else outputs[0]


@names_defaults
@api_boundary
def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Extents,
    output_size: Extents | None = None,
    output_ratio: Ratios | None = None,
    return_indices: bool = False,
    _random_samples=None,
) -> tuple[Tensor, Tensor]:
    """Return the maxima of windows that are placed at random in a volume, and their indices.

    Arguments and errors are those of `fractional_max_pool3d`; `return_indices` has no effect.

    >>> F.fractional_max_pool3d_with_indices(jaxgrad.ones(1, 4, 4, 4), 2, 2)[1].shape
    torch.Size([1, 2, 2, 2])
    """
    sizes = output_size, output_ratio
    return _fractional(3, input, kernel_size, *sizes, _random_samples)


# the inverse of max pooling


def _unpooled(input, kernel_size, stride, padding, output_size):
    """The sizes of the planes, by default the least that pooling with these windows maps to the
    input's.
    """
    count = len(kernel_size)
    usual = [
        (input.shape[i - count] - 1) * stride[i] + kernel_size[i] - 2 * padding[i]
        for i in range(count)
    ]
    if output_size is None:
        output_size = usual
    output_size = list(output_size)
    if len(output_size) == count + 2:
        output_size = output_size[2:]
    if len(output_size) != count:
        raise ValueError(
            f"output_size should be a sequence containing {count} or {count + 2} elements, but it "
            f"has a length of '{len(output_size)}'"
        )
    for dim, (size, default, step) in enumerate(zip(output_size, usual, stride, strict=True)):
        if not default - step < size < default + step:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {dim} must be between '
                f"{default - step} and {default + step})"
            )
        if size < 0:
            raise ValueError(
                "max_unpooling: output_size must contain non-negative spatial dimensions, but got "
                f"output_size[{dim}]={size}"
            )
    return output_size


def _windows(dimensions, kernel_size, stride, padding):
    stride = kernel_size if stride is None else stride
    return tuple(per_dimension(value, dimensions) for value in (kernel_size, stride, padding))


@names_defaults
@api_boundary
def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    output_size: Extents | None = None,
) -> Tensor:
    """Return zeros with the elements of `input` at their indices in each line.

    Arguments and errors are those of `max_unpool2d`, with (n, c, l) or (c, l).

    >>> F.max_unpool1d(jaxgrad.tensor([[5.0, 3.0]]), jaxgrad.tensor([[1, 2]]), 2)
    tensor([[0., 5., 3., 0.]])
    """
    windows = _windows(1, kernel_size, stride, padding)
    sizes = _unpooled(input, *windows, output_size)
    return ops.max_unpool2d(input.unsqueeze(-1), indices.unsqueeze(-1), [*sizes, 1]).squeeze(-1)


@names_defaults
@api_boundary
def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    output_size: Extents | None = None,
) -> Tensor:
    """Return zeros with the elements of `input` at their indices in each plane.

    input: maxima, (n, c, h, w) or (c, h, w), floating point. indices: int64, of the shape of input,
    as `max_pool2d` returns them with these windows. kernel_size, stride, padding: as of
    `max_pool2d`. output_size: the size of the planes, or of the result; by default (h - 1) * stride
    - 2 * padding + kernel_size. Of equal indices the last is written, and each gets the gradient.
    Raises ValueError for another `output_size`, RuntimeError for shapes, dtypes and indices that do
    not fit.

    >>> F.max_unpool2d(jaxgrad.tensor([[[5.0]]]), jaxgrad.tensor([[[1]]]), 2)
    tensor([[[0., 5.],
             [0., 0.]]])
    """
    windows = _windows(2, kernel_size, stride, padding)
    return ops.max_unpool2d(input, indices, _unpooled(input, *windows, output_size))


@names_defaults
@api_boundary
def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Extents,
    stride: Extents | None = None,
    padding: Extents = 0,
    output_size: Extents | None = None,
) -> Tensor:
    """Return zeros with the elements of `input` at their indices in each volume.

    Arguments and errors are those of `max_unpool2d`, with (n, c, d, h, w) or (c, d, h, w).

    >>> F.max_unpool3d(jaxgrad.tensor([[[[5.0]]]]), jaxgrad.tensor([[[[1]]]]), (1, 1, 2))
    tensor([[[[0., 5.]]]])
    """
    _, stride, padding = windows = _windows(3, kernel_size, stride, padding)
    return ops.max_unpool3d(
        input, indices, _unpooled(input, *windows, output_size), stride, padding
    )


# power means


def _lp_pool(dimensions, input, norm_type, kernel_size, stride, ceil_mode):
    windows = kernel_size, stride, 0
    greatest = getattr(pooling, f"max_pool{dimensions}d")
    if norm_type == math.inf:
        return greatest(input.abs(), *windows, 1, ceil_mode)
    if norm_type == -math.inf:
        return -greatest(-input.abs(), *windows, 1, ceil_mode)
    mean = (avg_pool1d, avg_pool2d, avg_pool3d)[dimensions - 1]
    # of integers too, whose means have fractions
    means = mean(input.pow(float(norm_type)), *windows, ceil_mode)
    # a mean of zeros gets the gradient 0, as in PyTorch
    sums = (means.sign() * means.abs().relu()).mul(
        math.prod(per_dimension(kernel_size, dimensions))
    )
    return sums.pow(1.0 / norm_type)


@names_defaults
@api_boundary
def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Extents,
    stride: Extents | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the p-th root of the sum of the p-th powers of each window of a line.

    input: (n, c, l) or (c, l). Other arguments and errors are those of `lp_pool2d`.

    >>> F.lp_pool1d(jaxgrad.tensor([[3.0, 4.0]]), 2, 2)
    tensor([[5.]])
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


@names_defaults
@api_boundary
def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Extents,
    stride: Extents | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the p-th root of the sum of the p-th powers of each window of an image.

    input: (n, c, h, w) or (c, h, w), floating point. norm_type: the power p; infinity gives the
    greatest absolute value. kernel_size, stride, ceil_mode: as of `max_pool2d`. Returns (n, c, h',
    w') or (c, h', w'); where the sum of powers is 0 the gradient is 0. Raises
    RuntimeError for shapes and numbers that do not fit, ZeroDivisionError for p = 0.

    >>> F.lp_pool2d(jaxgrad.tensor([[[3.0, 4.0]]]), 2, (1, 2))
    tensor([[[5.]]])
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


@names_defaults
@api_boundary
def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Extents,
    stride: Extents | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """Return the p-th root of the sum of the p-th powers of each window of a volume.

    input: (n, c, d, h, w) or (c, d, h, w). Other arguments and errors are those of `lp_pool2d`.

    >>> F.lp_pool3d(jaxgrad.tensor([[[[3.0, 4.0]]]]), 2, (1, 1, 2))
    tensor([[[[5.]]]])
    """
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


# layers


class _Pool(FunctionLayer):
    """A pooling layer, whose windows by default do not overlap."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        if self.stride is None:
            self.stride = self.kernel_size


_WINDOW = {"kernel_size": REQUIRED, "stride": None, "padding": 0}


class _MaxPool(_Pool):
    shown = (*_WINDOW, "dilation", "ceil_mode")


_MAX_POOL = _WINDOW | {"dilation": 1, "return_indices": False, "ceil_mode": False}


class MaxPool1d(_MaxPool, function=max_pool1d, **_MAX_POOL):
    """Max pooling of (N, C, L) or (C, L); see `functional.max_pool1d`.

    >>> jaxgrad.nn.MaxPool1d(2)(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]))
    tensor([[5., 3.]])
    """


class MaxPool2d(_MaxPool, function=max_pool2d, **_MAX_POOL):
    """Max pooling of (N, C, H, W) or (C, H, W); see `functional.max_pool2d`.

    >>> jaxgrad.nn.MaxPool2d(2)(jaxgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 2, 2])
    """


class MaxPool3d(_MaxPool, function=max_pool3d, **_MAX_POOL):
    """Max pooling of (N, C, D, H, W) or (C, D, H, W); see `functional.max_pool3d`.

    >>> jaxgrad.nn.MaxPool3d(2)(jaxgrad.ones(1, 3, 4, 4, 4)).shape
    torch.Size([1, 3, 2, 2, 2])
    """


class _AvgPool(_Pool):
    shown = tuple(_WINDOW)


_AVG_POOL = _WINDOW | {"ceil_mode": False, "count_include_pad": True}


class AvgPool1d(_AvgPool, function=avg_pool1d, **_AVG_POOL):
    """Average pooling of (N, C, L) or (C, L); see `functional.avg_pool1d`.

    >>> jaxgrad.nn.AvgPool1d(2)(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]))
    tensor([[3.0000, 2.5000]])
    """

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        for name in _WINDOW:
            setattr(self, name, per_dimension(getattr(self, name), 1))


class AvgPool2d(_AvgPool, function=avg_pool2d, **_AVG_POOL, divisor_override=None):
    """Average pooling of (N, C, H, W) or (C, H, W); see `functional.avg_pool2d`.

    >>> jaxgrad.nn.AvgPool2d(2)(jaxgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 2, 2])
    """


class AvgPool3d(_AvgPool, function=avg_pool3d, **_AVG_POOL, divisor_override=None):
    """Average pooling of (N, C, D, H, W) or (C, D, H, W); see `functional.avg_pool3d`.

    >>> jaxgrad.nn.AvgPool3d(2)(jaxgrad.ones(1, 3, 4, 4, 4)).shape
    torch.Size([1, 3, 2, 2, 2])
    """


class _LPPool(FunctionLayer):
    shown = ("norm_type", "kernel_size", "stride", "ceil_mode")


_LP_POOL = {"norm_type": REQUIRED, "kernel_size": REQUIRED, "stride": None, "ceil_mode": False}


class LPPool1d(_LPPool, function=lp_pool1d, **_LP_POOL):
    """Roots of sums of powers in windows of (n, c, l) or (c, l); see `functional.lp_pool1d`.

    >>> jaxgrad.nn.LPPool1d(2, 2)(jaxgrad.tensor([[3.0, 4.0]]))
    tensor([[5.]])
    """


class LPPool2d(_LPPool, function=lp_pool2d, **_LP_POOL):
    """Roots of sums of powers in windows of (n, c, h, w) or (c, h, w); see `functional.lp_pool2d`.

    >>> jaxgrad.nn.LPPool2d(2, (1, 2))(jaxgrad.tensor([[[3.0, 4.0]]]))
    tensor([[[5.]]])
    """


class LPPool3d(_LPPool, function=lp_pool3d, **_LP_POOL):
    """Roots of sums of powers in windows of (n, c, d, h, w) or (c, d, h, w); see
    `functional.lp_pool3d`.

    >>> jaxgrad.nn.LPPool3d(2, (1, 1, 2))(jaxgrad.tensor([[[[3.0, 4.0]]]]))
    tensor([[[[5.]]]])
    """


class _MaxUnpool(_Pool):
    shown = tuple(_WINDOW)
    dimensions = 0

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        for name in _WINDOW:
            setattr(self, name, per_dimension(getattr(self, name), self.dimensions))

    def forward(self, input: Tensor, indices: Tensor, output_size: Extents | None = None) -> Tensor:
        """Return zeros with the elements of `input` at `indices`."""
        return super().forward(input, indices, output_size=output_size)


class MaxUnpool1d(_MaxUnpool, function=max_unpool1d, **_WINDOW):
    """Inverse of max pooling of (n, c, l) or (c, l); see `functional.max_unpool1d`.

    >>> jaxgrad.nn.MaxUnpool1d(2)(jaxgrad.tensor([[5.0]]), jaxgrad.tensor([[1]]))
    tensor([[0., 5.]])
    """

    dimensions = 1


class MaxUnpool2d(_MaxUnpool, function=max_unpool2d, **_WINDOW):
    """Inverse of max pooling of (n, c, h, w) or (c, h, w); see `functional.max_unpool2d`.

    >>> jaxgrad.nn.MaxUnpool2d((1, 2))(jaxgrad.tensor([[[5.0]]]), jaxgrad.tensor([[[1]]]))
    tensor([[[0., 5.]]])
    """

    dimensions = 2


class MaxUnpool3d(_MaxUnpool, function=max_unpool3d, **_WINDOW):
    """Inverse of max pooling of (n, c, d, h, w) or (c, d, h, w); see `functional.max_unpool3d`.

    >>> jaxgrad.nn.MaxUnpool3d((1, 1, 2))(jaxgrad.tensor([[[[5.0]]]]), jaxgrad.tensor([[[[1]]]]))
    tensor([[[[0., 5.]]]])
    """

    dimensions = 3


class _AdaptiveAvg(FunctionLayer):
    shown = ("output_size",)


class _AdaptiveMax(FunctionLayer):
    shown = ("output_size",)


_ADAPTIVE_MAX = {"output_size": REQUIRED, "return_indices": False}


class AdaptiveAvgPool1d(_AdaptiveAvg, function=adaptive_avg_pool1d, output_size=REQUIRED):
    """Means of `output_size` bins of (n, c, l) or (c, l); see
    `functional.adaptive_avg_pool1d`.

    >>> jaxgrad.nn.AdaptiveAvgPool1d(2)(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]])).shape
    torch.Size([1, 2])
    """


class AdaptiveAvgPool2d(_AdaptiveAvg, function=adaptive_avg_pool2d, output_size=REQUIRED):
    """Means of `output_size` bins of (n, c, h, w) or (c, h, w); see
    `functional.adaptive_avg_pool2d`.

    >>> jaxgrad.nn.AdaptiveAvgPool2d(2)(jaxgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 2, 2])
    """


class AdaptiveAvgPool3d(_AdaptiveAvg, function=adaptive_avg_pool3d, output_size=REQUIRED):
    """Means of `output_size` bins of (n, c, d, h, w) or (c, d, h, w); see
    `functional.adaptive_avg_pool3d`.

    >>> jaxgrad.nn.AdaptiveAvgPool3d(2)(jaxgrad.ones(1, 3, 4, 4, 4)).shape
    torch.Size([1, 3, 2, 2, 2])
    """


class AdaptiveMaxPool1d(_AdaptiveMax, function=adaptive_max_pool1d, **_ADAPTIVE_MAX):
    """Maxima of `output_size` bins of (n, c, l) or (c, l); see
    `functional.adaptive_max_pool1d`.

    >>> jaxgrad.nn.AdaptiveMaxPool1d(2)(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]])).shape
    torch.Size([1, 2])
    """


class AdaptiveMaxPool2d(_AdaptiveMax, function=adaptive_max_pool2d, **_ADAPTIVE_MAX):
    """Maxima of `output_size` bins of (n, c, h, w) or (c, h, w); see
    `functional.adaptive_max_pool2d`.

    >>> jaxgrad.nn.AdaptiveMaxPool2d(2)(jaxgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 2, 2])
    """


class AdaptiveMaxPool3d(_AdaptiveMax, function=adaptive_max_pool3d, **_ADAPTIVE_MAX):
    """Maxima of `output_size` bins of (n, c, d, h, w) or (c, d, h, w); see
    `functional.adaptive_max_pool3d`.

    >>> jaxgrad.nn.AdaptiveMaxPool3d(2)(jaxgrad.ones(1, 3, 4, 4, 4)).shape
    torch.Size([1, 3, 2, 2, 2])
    """


class _FractionalMaxPool(FunctionLayer):
    """A layer whose windows are placed at random, unless `_random_samples` are given."""

    dimensions = 0

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        samples = vars(self).pop("_random_samples", None)
        if "_random_samples" not in self._buffers:
            self.register_buffer("_random_samples", samples)
        ratio = self.output_ratio
        self._check(type(self).__name__)
        self.kernel_size = per_dimension(self.kernel_size, self.dimensions)
        for name in ("output_size", "output_ratio"):
            value = getattr(self, name)
            setattr(self, name, None if value is None else per_dimension(value, self.dimensions))
        if ratio is not None and not all(0 < fraction < 1 for fraction in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {ratio})")

    def _check(self, name):
        if self.output_size is None and self.output_ratio is None:
            raise ValueError(
                f"{name} requires specifying either an output size, or a pooling ratio"
            )
        if self.output_size is not None and self.output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")


_FRACTIONAL = {"kernel_size": REQUIRED, "output_size": None, "output_ratio": None}
_FRACTIONAL |= {"return_indices": False, "_random_samples": None}


class FractionalMaxPool2d(_FractionalMaxPool, function=fractional_max_pool2d, **_FRACTIONAL):
    """Maxima of windows that are placed at random in (n, c, h, w) or (c, h, w); see
    `functional.fractional_max_pool2d`.

    >>> jaxgrad.nn.FractionalMaxPool2d(2, output_ratio=0.5)(jaxgrad.ones(1, 3, 4, 4)).shape
    torch.Size([1, 3, 2, 2])
    """

    dimensions = 2


class FractionalMaxPool3d(_FractionalMaxPool, function=fractional_max_pool3d, **_FRACTIONAL):
    """Maxima of windows that are placed at random in (n, c, d, h, w) or (c, d, h, w); see
    `functional.fractional_max_pool3d`.

    >>> jaxgrad.nn.FractionalMaxPool3d(2, output_ratio=0.5)(jaxgrad.ones(1, 3, 4, 4, 4)).shape
    torch.Size([1, 3, 2, 2, 2])
    """

    dimensions = 3
