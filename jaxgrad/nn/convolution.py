"""Convolutions, in one to three dimensions, and what turns them around."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from ..ops.autocast import lowered
from .lowering import operator


def _numbers(dimensions: int):
    """How JAX names the axes of input, kernel and output."""
    space = "DHW"[-dimensions:]
    return f"NC{space}", f"OI{space}", f"NC{space}"


@operator
def convolution(input, weight, stride, padding, dilation, groups):
    made = lax.conv_general_dilated(
        input,
        weight,
        stride,
        list(padding),
        rhs_dilation=dilation,
        dimension_numbers=_numbers(len(stride)),
        feature_group_count=groups,
    )
    return made.astype(input.dtype)


@operator
def transposed_convolution(input, weight, stride, padding, dilation, groups):
    """The gradient of a convolution of this weight with respect to its input."""
    inside, outside, *kernel = weight.shape
    weight = weight.reshape(groups, inside // groups, outside, *kernel).swapaxes(1, 2)
    weight = weight.reshape(groups * outside, inside // groups, *kernel)
    made = lax.conv_general_dilated(
        input,
        jnp.flip(weight, range(2, weight.ndim)),
        (1,) * len(stride),
        list(padding),
        lhs_dilation=stride,
        rhs_dilation=dilation,
        dimension_numbers=_numbers(len(stride)),
        feature_group_count=groups,
    )
    return made.astype(input.dtype)


def several(value, count: int, name: str) -> tuple[int, ...]:
    """One number for each dimension, given as one for all or as a list."""
    if isinstance(value, int):
        return (value,) * count
    value = tuple(value)
    if len(value) == 1:
        return value * count
    if len(value) != count:
        raise RuntimeError(f"expected {name} to be a single integer value or a list of {count}")
    return value


def _check(name, dimensions, input, weight, bias, groups, channels, outside):
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
    if given != channels:
        raise RuntimeError(
            f"{name}: Given groups={groups}, weight of size {list(weight.shape)}, expected "
            f"input{list(input.shape)} to have {channels} channels, but got {given} channels "
            "instead"
        )
    if bias is not None and tuple(bias.shape) != (outside,):
        raise RuntimeError(
            f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with "
            f"{outside} elements, but got bias of size {list(bias.shape)} instead"
        )
    dtypes = {each.dtype for each in (input, weight, bias) if each is not None}
    if len(dtypes) > 1:
        raise RuntimeError(
            f"{name}: Input type ({input.dtype}) and weight type ({weight.dtype}) should be the "
            f"same{'' if bias is None else f', and bias type ({bias.dtype}) too'}: convert one "
            "with to()"
        )


def _edges(padding, kernel, stride, dilation):
    """How many zeros go before and after each dimension."""
    if padding == "valid":
        return ((0, 0),) * len(kernel)
    if padding == "same":
        if any(each != 1 for each in stride):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        totals = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        return tuple((total // 2, total - total // 2) for total in totals)
    if isinstance(padding, str):
        raise RuntimeError(f"Invalid padding string: {padding!r}, should be 'valid' or 'same'")
    padding = several(padding, len(kernel), "padding")
    if min(padding) < 0:
        raise RuntimeError(f"negative padding is not supported, but got padding={padding}")
    return tuple((each, each) for each in padding)


def _convolve(dimensions, input, weight, bias, stride, padding, dilation, groups):
    name = f"conv{dimensions}d"
    input, weight, bias = lowered(input, weight, bias)
    stride = several(stride, dimensions, "stride")
    dilation = several(dilation, dimensions, "dilation")
    if min(stride) <= 0:
        raise RuntimeError(f"non-positive stride is not supported, but got stride={stride}")
    channels = weight.shape[1] * groups if weight.ndim > 1 else 0
    _check(name, dimensions, input, weight, bias, groups, channels, weight.shape[0])
    if groups <= 0 or weight.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size {list(weight.shape)} instead"
        )
    kernel = tuple(weight.shape[2:])
    edges = _edges(padding, kernel, stride, dilation)
    sizes = [a + sum(b) for a, b in zip(input.shape[-dimensions:], edges, strict=True)]
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    if any(size < length for size, length in zip(sizes, reach, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, sizes))}). "
            f"Kernel size: ({' x '.join(map(str, reach))}). Kernel size can't be greater than "
            "actual input size"
        )
    batch = input if input.ndim == dimensions + 2 else input.unsqueeze(0)
    made = convolution(batch, weight, stride, edges, dilation, groups)
    return _finished(made, bias, input, dimensions)


def _finished(made, bias, input, dimensions):
    if bias is not None:
        made = made + bias.reshape(-1, *[1] * dimensions)
    return made if input.ndim == made.ndim else made.squeeze(0)


def _turn_around(
    dimensions, input, weight, bias, stride, padding, output_padding, groups, dilation
):
    name = f"conv_transpose{dimensions}d"
    input, weight, bias = lowered(input, weight, bias)
    stride = several(stride, dimensions, "stride")
    dilation = several(dilation, dimensions, "dilation")
    padding = several(padding, dimensions, "padding")
    extra = several(output_padding, dimensions, "output_padding")
    outside = weight.shape[1] * groups if weight.ndim > 1 else 0
    _check(name, dimensions, input, weight, bias, groups, weight.shape[0], outside)
    for more, step, reach in zip(extra, stride, dilation, strict=True):
        if more >= max(step, reach):
            raise RuntimeError(
                "output padding must be smaller than either stride or dilation, but got "
                f"output_padding={extra}, stride={stride}, dilation={dilation}"
            )
    edges = []
    for size, reach, less, more in zip(weight.shape[2:], dilation, padding, extra, strict=True):
        whole = reach * (size - 1)
        edges.append((whole - less, whole - less + more))
    batch = input if input.ndim == dimensions + 2 else input.unsqueeze(0)
    made = transposed_convolution(batch, weight, stride, tuple(edges), dilation, groups)
    return _finished(made, bias, input, dimensions)


def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups: int = 1):
    """`conv2d` in one dimension: input (N, C, L) or (C, L), weight (out, C / groups, k).

    >>> F.conv1d(jaxgrad.tensor([[1.0, 2.0, 4.0]]), jaxgrad.tensor([[[-1.0, 1.0]]]))
    tensor([[1., 2.]])
    """
    return _convolve(1, input, weight, bias, stride, padding, dilation, groups)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups: int = 1):
    """The sums of windows of an image times a kernel, which is not flipped.

    input: (N, C, H, W) or (C, H, W). weight: (out, C / groups, kH, kW). bias: (out,). stride,
    padding, dilation: a number, or one for each dimension; padding also "valid" or "same". Raises
    RuntimeError where shapes or dtypes do not fit.

    >>> image = jaxgrad.ones(1, 3, 3)
    >>> F.conv2d(image, jaxgrad.ones(1, 1, 2, 2), padding=1)[0]
    tensor([[1., 2., 2., 1.],
            [2., 4., 4., 2.],
            [2., 4., 4., 2.],
            [1., 2., 2., 1.]])
    """
    return _convolve(2, input, weight, bias, stride, padding, dilation, groups)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups: int = 1):
    """`conv2d` in three dimensions: input (N, C, D, H, W) or (C, D, H, W)."""
    return _convolve(3, input, weight, bias, stride, padding, dilation, groups)


def conv_transpose1d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1
):
    """`conv_transpose2d` in one dimension."""
    return _turn_around(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose2d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1
):
    """The gradient of `conv2d` with respect to its input, as a layer that enlarges images.

    input: (N, C, H, W) or (C, H, W). weight: (C, out / groups, kH, kW). output_padding: so much
    more at the end of each dimension, less than stride or dilation.

    >>> F.conv_transpose2d(jaxgrad.ones(1, 1, 2), jaxgrad.ones(1, 1, 1, 2), stride=2)
    tensor([[[1., 1., 1., 1.]]])
    """
    return _turn_around(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


def conv_transpose3d(
    input, weight, bias=None, stride=1, padding=0, output_padding=0, groups: int = 1, dilation=1
):
    """`conv_transpose2d` in three dimensions."""
    return _turn_around(3, input, weight, bias, stride, padding, output_padding, groups, dilation)
