"""Pooling, composed of the operators of images and volumes, as PyTorch composes it."""

from __future__ import annotations

from .. import ops
from ..core.strides import channels_last, suggests_channels_last
from ..core.symbolic_extents import chosen
from ..ops.autocast import widened
from ..tape import dual
from ..tape.tensor import Tensor
from ..tape.torch_function import api_boundary
from .arguments import per_dimension


def _check_line(name, input):
    if input.ndim not in (2, 3) or 0 in input.shape[-2:]:
        raise RuntimeError(
            f"{name}: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for "
            f"input, but got:{list(input.shape)}"
        )


def _single_number(name, what, value) -> int:
    """The number that is given as it is or in a list."""
    numbers = per_dimension(value, 1)
    if len(numbers) != 1:
        raise RuntimeError(
            f"{name}() {what} must be an int, list of ints or tuple of ints of size 1 but got "
            f"size {len(numbers)}: '{what}' should contain one int"
        )
    return numbers[0]


def _is_left_out(stride) -> bool:
    return stride is None or (isinstance(stride, list | tuple) and not stride)


def steps(stride):
    """The stride as operators take it: empty if it is left out."""
    return () if _is_left_out(stride) else stride


def _row(name, kernel_size, stride, **numbers):
    """The arguments of a window on a line as those of one on an image of one row."""
    arguments = {"kernel_size": kernel_size} | numbers
    values = {what: _single_number(name, what, value) for what, value in arguments.items()}
    step = values["kernel_size"] if _is_left_out(stride) else _single_number(name, "stride", stride)
    usual = {"kernel_size": 1, "padding": 0, "dilation": 1}
    return {what: (usual[what], value) for what, value in values.items()} | {"stride": (1, step)}


def _check_window(length, kernel_size, stride, padding, dilation):
    """Raise RuntimeError for a window that `max_pool1d` cannot have."""
    numbers = {"kernel_size": kernel_size, "stride": stride, "dilation": dilation}
    for name, number in numbers.items():
        if number <= 0:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {number}")
    if padding > kernel_size // 2:
        raise RuntimeError(
            f"max_pool1d() padding should be at most half of kernel size, but got {padding=} and "
            f"{kernel_size=}: pad should be at most half of effective kernel size"
        )
    count = (length + 2 * padding - dilation * (kernel_size - 1) - 1) // stride + 1
    if count < 0:
        raise RuntimeError(f"max_pool1d() Invalid computed output size: {count}")


@api_boundary
def max_pool1d_with_indices(
    input: Tensor, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False
) -> tuple[Tensor, Tensor]:
    """Return the maximum of each window of a line, and its index.

    input: (n, c, l) or (c, l), not bool or complex. kernel_size, stride, padding, dilation:
    integers or lists of one; stride defaults to kernel_size; padding is of -inf. ceil_mode: whether
    a window may end beyond the padding. Returns (n, c, l') or (c, l') and int64 indices; the first
    of equal elements gets the gradient. Raises RuntimeError for shapes and numbers that do not fit.

    >>> jaxgrad.max_pool1d_with_indices(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]), 2)[1]
    tensor([[1, 2]])
    """
    _check_line("max_pool1d", input)
    row = _row("max_pool1d", kernel_size, stride, padding=padding, dilation=dilation)
    _check_window(input.shape[-1], **{name: number for name, (_, number) in row.items()})
    outputs = ops.max_pool2d_with_indices(input.unsqueeze(-2), **row, ceil_mode=ceil_mode)
    return tuple(output.squeeze(-2) for output in outputs)


@api_boundary
def max_pool1d(
    input: Tensor, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False
) -> Tensor:
    """Return the maximum of each window of a line.

    Arguments and errors are those of `max_pool1d_with_indices`.

    >>> jaxgrad.max_pool1d(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]), 2)
    tensor([[5., 3.]])
    """
    return max_pool1d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)[0]


@api_boundary
def max_pool2d(
    input: Tensor, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False
) -> Tensor:
    """Return the maximum of each window of an image.

    input: (n, c, h, w) or (c, h, w), not bool or complex. Other arguments: as of
    `max_pool1d_with_indices`, an integer or one for each dimension. Returns (n, c, h', w') or (c,
    h', w'). Raises RuntimeError for shapes and numbers that do not fit.

    >>> jaxgrad.max_pool2d(jaxgrad.tensor([[[1.0, 5.0], [3.0, 2.0]]]), 2)
    tensor([[[5.]]])
    """
    stride = steps(stride)
    return ops.max_pool2d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)[0]


@api_boundary
def max_pool3d(
    input: Tensor, kernel_size, stride=None, padding=0, dilation=1, ceil_mode: bool = False
) -> Tensor:
    """Return the maximum of each window of a volume.

    input: (n, c, d, h, w) or (c, d, h, w), not bool or complex. Other arguments and errors are
    those of `max_pool2d`. Returns (n, c, d', h', w') or (c, d', h', w').

    >>> jaxgrad.max_pool3d(jaxgrad.arange(8.0).reshape(1, 2, 2, 2), 2)
    tensor([[[[7.]]]])
    """
    (input,), stride = widened(input), steps(stride)
    return ops.max_pool3d_with_indices(input, kernel_size, stride, padding, dilation, ceil_mode)[0]


def _check_dimensions(name, input):
    if input.ndim not in (2, 3):
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {input.ndim}-dimensional tensor for argument #1 "
            f"'self' (while checking arguments for {name})"
        )


def avg_pool1d(
    input: Tensor,
    kernel_size,
    stride=None,
    padding=0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """Return the mean of each window of a line.

    input: (n, c, l) or (c, l), floating point, complex or int64. kernel_size, stride, padding:
    integers or lists of one; stride defaults to kernel_size; padding is of zeros. ceil_mode:
    whether a window may end beyond the padding. count_include_pad: whether the padding counts in
    the divisor. Returns (n, c, l') or (c, l'). Raises RuntimeError for shapes and numbers that do
    not fit.

    >>> jaxgrad.avg_pool1d(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]), 2)
    tensor([[3.0000, 2.5000]])
    """
    _check_dimensions("avg_pool1d", input)
    row = _row("avg_pool1d", kernel_size, stride, padding=padding)
    options = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad}
    return ops.avg_pool2d(input.unsqueeze(-2), **row, **options).squeeze(-2)


def adaptive_avg_pool1d(input: Tensor, output_size) -> Tensor:
    """Return the means of `output_size` bins of a line.

    input: (n, c, l) or (c, l), floating point or complex. output_size: an integer or a list of one;
    bin i of m along l elements is from floor(i * l / m) to ceil((i + 1) * l / m). Returns (n, c,
    output_size) or (c, output_size). Raises RuntimeError for other shapes and sizes.

    >>> jaxgrad.adaptive_avg_pool1d(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]), 2)
    tensor([[3.0000, 2.5000]])
    """
    _check_dimensions("adaptive_avg_pool1d", input)
    size = _single_number("adaptive_avg_pool1d", "output_size", output_size)
    _check_size("adaptive_avg_pool1d", size)
    return adaptive_avg_pool2d(input.unsqueeze(-2), (1, size)).squeeze(-2)


def _check_size(name, size):
    if not isinstance(size, int):
        raise TypeError(
            f"{name}(): argument 'output_size' (position 2) must be tuple of ints, not "
            f"{type(size).__name__}"
        )


def adaptive_avg_pool2d(input: Tensor, output_size) -> Tensor:
    """Return the means of `output_size` bins of an image.

    input: (n, c, h, w) or (c, h, w), floating point or complex. output_size: an integer or two;
    bins are those of `adaptive_avg_pool1d` along each dimension. Returns (n, c, *output_size) or
    (c, *output_size). Raises RuntimeError for other shapes and sizes.

    >>> jaxgrad.ops.adaptive_avg_pool2d(jaxgrad.tensor([[[1.0, 5.0], [3.0, 3.0]]]), 1)
    tensor([[[3.]]])
    """
    if _is_one(output_size, 2) and input.ndim > 2:
        return _mean(input, (-1, -2))
    return ops._adaptive_avg_pool2d(input, output_size)


def _mean(input, dims):
    """The mean over dimensions, in the memory format of the input."""
    means = input.mean(dims, keepdim=True)
    shape, strides = input.shape, input.stride()
    if len(shape) == len(dims) + 2 and chosen(lambda: suggests_channels_last(shape, strides)):
        dual.show(means, channels_last(means.shape))
    return means


def adaptive_avg_pool3d(input: Tensor, output_size) -> Tensor:
    """Return the means of `output_size` bins of a volume.

    input: (n, c, d, h, w) or (c, d, h, w), floating point or complex. output_size: an integer or
    three; bins are those of `adaptive_avg_pool1d` along each dimension. Returns (n, c,
    *output_size) or (c, *output_size). Raises RuntimeError for other shapes and sizes.

    >>> jaxgrad.ops.adaptive_avg_pool3d(jaxgrad.arange(8.0).reshape(1, 2, 2, 2), 1)
    tensor([[[[3.5000]]]])
    """
    (input,) = widened(input)
    if _is_one(output_size, 3) and input.ndim > 3:
        return _mean(input, (-1, -2, -3))
    return ops._adaptive_avg_pool3d(input, output_size)


def _is_one(output_size, dimensions) -> bool:
    return output_size == 1 or (
        isinstance(output_size, list | tuple) and list(output_size) == [1] * dimensions
    )


@api_boundary
def adaptive_max_pool1d(input: Tensor, output_size) -> tuple[Tensor, Tensor]:
    """Return the maxima of `output_size` bins of a line, and their indices.

    input: (n, c, l) or (c, l), floating point. output_size: as of `adaptive_avg_pool1d`. Returns
    (n, c, output_size) or (c, output_size), and int64 indices; the first of equal elements gets the
    gradient. Raises RuntimeError for other shapes and sizes.

    >>> jaxgrad.adaptive_max_pool1d(jaxgrad.tensor([[1.0, 5.0, 3.0, 2.0]]), 2)[0]
    tensor([[5., 3.]])
    """
    _check_dimensions("adaptive_max_pool1d", input)
    size = _single_number("adaptive_max_pool1d", "output_size", output_size)
    _check_size("adaptive_max_pool1d", size)
    outputs = ops.adaptive_max_pool2d(input.unsqueeze(-2), (1, size))
    return tuple(output.squeeze(-2) for output in outputs)
