"""Convolutions and transposed convolutions in one to three dimensions.

They compute the cross-correlation, as PyTorch does: the kernel is not flipped.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from ..core.tracebacks import api_boundary
from ..ops.autocast import lowered
from .lowering import operator


def _dimension_numbers(dimensions: int):
    """Return JAX's layout names of input, kernel and output."""
    space = "DHW"[-dimensions:]
    return f"NC{space}", f"OI{space}", f"NC{space}"


@operator
def convolution(input, weight, stride, padding, dilation, groups):
    """Return the cross-correlation of (N, C, ...) and (out, C / groups, *kernel)."""
    result = lax.conv_general_dilated(
        input,
        weight,
        stride,
        list(padding),
        rhs_dilation=dilation,
        dimension_numbers=_dimension_numbers(len(stride)),
        feature_group_count=groups,
    )
    return result.astype(input.dtype)


@operator
def transposed_convolution(input, weight, stride, padding, dilation, groups):
    """Return the gradient of a convolution of `weight` with respect to its input."""
    in_channels, out_channels, *kernel = weight.shape
    weight = weight.reshape(groups, in_channels // groups, out_channels, *kernel).swapaxes(1, 2)
    weight = weight.reshape(groups * out_channels, in_channels // groups, *kernel)
    result = lax.conv_general_dilated(
        input,
        jnp.flip(weight, range(2, weight.ndim)),
        (1,) * len(stride),
        list(padding),
        lhs_dilation=stride,
        rhs_dilation=dilation,
        dimension_numbers=_dimension_numbers(len(stride)),
        feature_group_count=groups,
    )
    return result.astype(input.dtype)


def per_dimension(value, count: int, name: str) -> tuple[int, ...]:
    """Expand one number, or a sequence of one, to `count` numbers.

    Raises RuntimeError for a sequence of another length.
    """
    if isinstance(value, int):
        return (value,) * count
    value = tuple(value)
    if len(value) == 1:
        return value * count
    if len(value) != count:
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {count}")
    return value


def _check(name, dimensions, input, weight, bias, groups, in_channels, out_channels):
    if input.ndim not in (dimensions + 1, dimensions + 2):
        raise RuntimeError(
            f"Expected {dimensions + 1}D (unbatched) or {dimensions + 2}D (batched) input to "
            f"{name}, but got input of size: {list(input.shape)}"
        )
    if weight.ndim != dimensions + 2:
        raise RuntimeError(
            f"{name}: expected a weight of {dimensions + 2} dimensions, (out, in / groups, "
            f"*kernel), but got weight of size {list(weight.shape)}"
        )
    given = input.shape[-dimensions - 1]
    if given != in_channels:
        raise RuntimeError(
            f"{name}: Given groups={groups}, weight of size {list(weight.shape)}, expected "
            f"input{list(input.shape)} to have {in_channels} channels, but got {given} channels "
            "instead"
        )
    if bias is not None and tuple(bias.shape) != (out_channels,):
        raise RuntimeError(
            f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with "
            f"{out_channels} elements, but got bias of size {list(bias.shape)} instead"
        )
    dtypes = {each.dtype for each in (input, weight, bias) if each is not None}
    if len(dtypes) > 1:
        raise RuntimeError(
            f"{name}: Input type ({input.dtype}) and weight type ({weight.dtype}) should be the "
            f"same{'' if bias is None else f', and bias type ({bias.dtype}) too'}: convert one "
            "with to()"
        )


def edges(padding, kernel, stride, dilation):
    """Return the number of zeros before and after each dimension."""
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding == "same":
        if any(each != 1 for each in stride):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        totals = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        return tuple((total // 2, total - total // 2) for total in totals)
    if isinstance(padding, str):
        raise RuntimeError(f"Invalid padding string: {padding!r}, should be 'valid' or 'same'")
    padding = per_dimension(padding, len(kernel), "padding")
    if min(padding) < 0:
        raise RuntimeError(f"negative padding is not supported, but got padding={padding}")
    return tuple((each, each) for each in padding)


def _convolve(dimensions, input, weight, bias, stride, padding, dilation, groups):
    name = f"conv{dimensions}d"
    input, weight, bias = lowered(input, weight, bias)
    stride = per_dimension(stride, dimensions, "stride")
    dilation = per_dimension(dilation, dimensions, "dilation")
    if min(stride) <= 0:
        raise RuntimeError(f"non-positive stride is not supported, but got stride={stride}")
    in_channels = weight.shape[1] * groups if weight.ndim > 1 else 0
    _check(name, dimensions, input, weight, bias, groups, in_channels, weight.shape[0])
    if groups <= 0 or weight.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size {list(weight.shape)} instead"
        )
    kernel = tuple(weight.shape[2:])
    widths = edges(padding, kernel, stride, dilation)
    sizes = [a + sum(b) for a, b in zip(input.shape[-dimensions:], widths, strict=True)]
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    if any(size < length for size, length in zip(sizes, reach, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, sizes))}). "
            f"Kernel size: ({' x '.join(map(str, reach))}). Kernel size can't be greater than "
            "actual input size"
        )
    batch = input if input.ndim == dimensions + 2 else input.unsqueeze(0)
    result = convolution(batch, weight, stride, widths, dilation, groups)
    return _add_bias(result, bias, input, dimensions)


def _add_bias(result, bias, input, dimensions):
    if bias is not None:
        result = result + bias.reshape(-1, *[1] * dimensions)
    return result if input.ndim == result.ndim else result.squeeze(0)


def _transposed(dimensions, input, weight, bias, stride, padding, output_padding, groups, dilation):
    name = f"conv_transpose{dimensions}d"
    input, weight, bias = lowered(input, weight, bias)
    stride = per_dimension(stride, dimensions, "stride")
    dilation = per_dimension(dilation, dimensions, "dilation")
    padding = per_dimension(padding, dimensions, "padding")
    extra = per_dimension(output_padding, dimensions, "output_padding")
    out_channels = weight.shape[1] * groups if weight.ndim > 1 else 0
    _check(name, dimensions, input, weight, bias, groups, weight.shape[0], out_channels)
    for more, step, rate in zip(extra, stride, dilation, strict=True):
        if more >= max(step, rate):
            raise RuntimeError(
                "output padding must be smaller than either stride or dilation, but got "
                f"output_padding={extra}, stride={stride}, dilation={dilation}"
            )
    widths = []
    for size, rate, less, more in zip(weight.shape[2:], dilation, padding, extra, strict=True):
        whole = rate * (size - 1)
        widths.append((whole - less, whole - less + more))
    batch = input if input.ndim == dimensions + 2 else input.unsqueeze(0)
    result = transposed_convolution(batch, weight, stride, tuple(widths), dilation, groups)
    return _add_bias(result, bias, input, dimensions)


@api_boundary
def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups: int = 1):
    """Return the one-dimensional cross-correlation of `input` and `weight`, plus `bias`.

    input: (N, C, L) or (C, L). weight: (out, C / groups, k). bias: (out,). The result is
    (N, out, L') or (out, L'). Other arguments, L' and errors are those of `conv2d`.

    >>> F.conv1d(jaxgrad.tensor([[1.0, 2.0, 4.0]]), jaxgrad.tensor([[[-1.0, 1.0]]]))
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
    >>> F.conv2d(image, jaxgrad.ones(1, 1, 2, 2), padding=1)[0]
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

    >>> F.conv3d(jaxgrad.ones(1, 2, 2, 2), jaxgrad.ones(1, 1, 2, 2, 2))
    tensor([[[[8.]]]])
    """
    return _convolve(3, input, weight, bias, stride, padding, dilation, groups)


@api_boundary
def conv_transpose1d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1
):
    """Return the transposed convolution of (N, C, L) or (C, L), `weight` (C, out / groups, k).

    Other arguments, the size of the result and errors are those of `conv_transpose2d`.

    >>> F.conv_transpose1d(jaxgrad.tensor([[1.0, 2.0]]), jaxgrad.ones(1, 1, 2), stride=2)
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

    >>> F.conv_transpose2d(jaxgrad.ones(1, 1, 2), jaxgrad.ones(1, 1, 1, 2), stride=2)
    tensor([[[1., 1., 1., 1.]]])
    """
    return _transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@api_boundary
def conv_transpose3d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1
):
    """Return the transposed convolution of (N, C, D, H, W), `weight` (C, out / groups, kD, kH, kW).

    Other arguments, the size of the result and errors are those of `conv_transpose2d`.

    >>> F.conv_transpose3d(jaxgrad.ones(1, 1, 1, 2), jaxgrad.ones(1, 1, 1, 1, 2), stride=2)
    tensor([[[[1., 1., 1., 1.]]]])
    """
    return _transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation)
