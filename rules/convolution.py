"""Convolutions in one to three dimensions, their gradients, and the unfolding of windows.

PyTorch's convolution is the cross-correlation: the kernel is not flipped. `correlate` is linear in
both factors, and `input_gradient` and `weight_gradient` are its transposes. So these three are the
convolution, the transposed convolution, and all derivatives of both. They conjugate nothing.
"""

import math

import jax
import jax.numpy as jnp
from jax import lax
from jaxgrad.rules import convolution_lowering as lowerings
from jaxgrad.rules import volume_convolution as volumes

from jaxgrad.core import device_axes, dtypes, program, promotion
from jaxgrad.core import symbolic_extents as symbolic
from jaxgrad.core.primitive import op

# the three products; nothing else calls lax's convolution


def correlate(x, w, stride, padding, dilation, groups):
    """The cross-correlation of x (n, c, *size) and w (out, c / groups, *kernel): (n, out, *result).

    stride, padding, dilation: an integer for each dimension of `size`.
    """
    lengths = result_lengths(x.shape[2:], w.shape[2:], stride, padding, dilation)
    if 0 in (*x.shape, *w.shape):
        return jnp.zeros((x.shape[0], w.shape[0], *lengths), x.dtype)
    numbers = stride, padding, dilation, groups
    if program.is_for_host():
        return _correlate(x, w, *numbers)
    return _for_platform(
        lowerings.correlation_on_cpu(x, w, lengths, *numbers),
        lambda x, w: volumes.volume_correlation(correlate, x, w, *numbers),
        lambda x, w: _correlate(x, w, *numbers),
        x,
        w,
    )


def _for_platform(on_cpu, of_volumes, elsewhere, *arrays):
    """The result on CPUs of `on_cpu`, or where it is None of `of_volumes` if these are volumes; of
    `elsewhere`, XLA's convolution, in all other cases.
    """
    x = arrays[0]
    if on_cpu is None and x.ndim == 5 and x.dtype.itemsize > 2:  # XLA adds 16-bit floats in 32
        on_cpu = of_volumes
    if on_cpu is None:
        return elsewhere(*arrays)
    return lax.platform_dependent(*arrays, cpu=on_cpu, default=elsewhere)


def _correlate(x, w, stride, padding, dilation, groups):
    space = "DHW"[2 - x.ndim :]
    return lax.conv_general_dilated(
        x,
        w,
        stride,
        [(width, width) for width in padding],
        rhs_dilation=dilation,
        dimension_numbers=(f"NC{space}", f"OI{space}", f"NC{space}"),
        feature_group_count=groups,
        precision=promotion.product_precision(x),
    )


def input_gradient(grad, w, input_shape, stride, padding, dilation, groups):
    """The transpose of `correlate` in x, of shape `input_shape`: grad is (n, out, *result)."""
    if 0 in (*grad.shape, *w.shape, *input_shape):
        return jnp.zeros(input_shape, grad.dtype)
    edges = _transposed_padding(grad.shape, w.shape, input_shape, stride, padding, dilation)
    numbers = stride, edges, dilation, groups
    if program.is_for_host():
        return _input_gradient(grad, w, *numbers)
    return _for_platform(
        lowerings.input_gradient_on_cpu(grad, w, input_shape, *numbers),
        lambda grad, w: volumes.volume_input_gradient(
            input_gradient, grad, w, input_shape, stride, padding, dilation, groups
        ),
        lambda grad, w: _input_gradient(grad, w, *numbers),
        grad,
        w,
    )


def _input_gradient(grad, w, stride, edges, dilation, groups):
    # as JAX transposes a convolution, but for integers too
    space, axes = "DHW"[2 - grad.ndim :], tuple(range(2, grad.ndim))
    if groups > 1:
        out, channels, *sizes = w.shape
        w = w.reshape(groups, out // groups, channels, *sizes).swapaxes(0, 1)
        w = w.reshape(out // groups, groups * channels, *sizes)
    return lax.conv_general_dilated(
        grad,
        lax.rev(w, axes),
        (1,) * len(axes),
        edges,
        lhs_dilation=stride,
        rhs_dilation=dilation,
        dimension_numbers=(f"NC{space}", f"IO{space}", f"NC{space}"),
        feature_group_count=groups,
        precision=promotion.product_precision(grad),
    )


def _transposed_padding(grad_shape, weight_shape, input_shape, stride, padding, dilation):
    """The zeros before and after each dimension of a gradient, so that the result has the length
    of the input; a negative number cuts off.
    """
    lengths = zip(grad_shape[2:], weight_shape[2:], input_shape[2:], strict=True)
    parts = zip(lengths, stride, padding, dilation, strict=True)
    return [(d * (k - 1) - p, wanted - 1 - (n - 1) * s + p) for (n, k, wanted), s, p, d in parts]


def weight_gradient(x, grad, weight_shape, stride, padding, dilation, groups):
    """The transpose of `correlate` in w, of shape `weight_shape`: grad is (n, out, *result)."""
    if 0 in (*x.shape, *grad.shape, *weight_shape):
        return jnp.zeros(weight_shape, grad.dtype)
    numbers = stride, padding, dilation, groups
    if program.is_for_host():
        return _weight_gradient(x, grad, weight_shape, numbers)
    return _for_platform(
        lowerings.weight_gradient_on_cpu(x, grad, weight_shape, *numbers),
        lambda x, grad: volumes.volume_weight_gradient(
            weight_gradient, x, grad, weight_shape, *numbers
        ),
        lambda x, grad: _weight_gradient(x, grad, weight_shape, numbers),
        x,
        grad,
    )


def _weight_gradient(x, grad, weight_shape, numbers):
    if not jnp.issubdtype(grad.dtype, jnp.inexact):  # JAX transposes no integers
        return lowerings.weight_products(x, grad, weight_shape, *numbers)
    w = device_axes.operand(weight_shape, grad)
    return jax.linear_transpose(lambda w: _correlate(x, w, *numbers), w)(grad)[0]


def result_lengths(size, kernel, stride, padding, dilation):
    """The length of a correlation in each dimension."""
    parts = zip(size, kernel, stride, padding, dilation, strict=True)
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in parts)


def transposed_lengths(size, kernel, stride, padding, dilation, output_padding):
    """The length of a transposed convolution in each dimension."""
    parts = zip(size, kernel, stride, padding, dilation, output_padding, strict=True)
    return tuple((n - 1) * s - 2 * p + d * (k - 1) + 1 + extra for n, k, s, p, d, extra in parts)


# ---- convolution


def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    _check_ranks(input, weight, groups)
    stride, padding, dilation, extra = _expanded(
        weight.ndim - 2,
        stride=stride,
        padding=padding,
        dilation=dilation,
        output_padding=output_padding,
    )
    _check_numbers(stride, padding, dilation, extra)
    _check_channels(input, weight, bias, transposed, groups)
    _check_dtypes(input, weight, bias)
    if transposed:
        _check_output_padding(extra, stride, dilation)
        lengths = _transposed_lengths(input, weight, stride, padding, dilation, extra)
        shape = (input.shape[0], weight.shape[1] * groups, *lengths)
        inner = result_lengths(lengths, weight.shape[2:], stride, padding, dilation)
        # an output padding of a stride or more, which a dilation allows, is a row of windows more
        full = _resized(input, inner)
        result = input_gradient(full, weight, shape, stride, padding, dilation, groups)
    else:
        _check_lengths(input, weight, padding, dilation)
        result = correlate(input, weight, stride, padding, dilation, groups)
    return result if bias is None else result + bias.reshape(-1, *[1] * (weight.ndim - 2))


def convolution_backward(
    grad_output,
    input,
    weight,
    bias_sizes,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    output_mask,
):
    stride, padding, dilation, extra = _expanded(
        weight.ndim - 2,
        stride=stride,
        padding=padding,
        dilation=dilation,
        output_padding=output_padding,
    )
    geometry = stride, padding, dilation, groups
    _check_grad(grad_output, input, weight, geometry, transposed, extra)
    find = _transposed_gradients if transposed else _gradients
    of_input, of_weight = find(grad_output, input, weight, geometry, output_mask)
    of_bias = None
    if output_mask[2]:
        of_bias = grad_output.sum((0, *range(2, grad_output.ndim)), dtype=grad_output.dtype)
    return of_input, of_weight, of_bias


convolution_backward.tells_missing = True


def _gradients(grad, input, weight, geometry, mask):
    """The gradients of a convolution's input and weight, None where `mask` has False."""
    of_input = of_weight = None
    grad = _computed_once(grad)
    if mask[0]:
        of_input = input_gradient(grad, weight.conj(), input.shape, *geometry)
    if mask[1]:
        of_weight = weight_gradient(input.conj(), grad, weight.shape, *geometry)
    return of_input, of_weight


def _computed_once(grad):
    """grad, which XLA's CPU backend would else compute anew, from all that it is a sum of, in each
    of the transposes that bring it into the layouts of the two convolutions.
    """
    return lax.platform_dependent(grad, cpu=lax.optimization_barrier, default=lambda grad: grad)


def _transposed_gradients(grad, input, weight, geometry, mask):
    """`_gradients` of a transposed convolution."""
    of_input = of_weight = None
    grad = _computed_once(grad)
    if mask[0]:
        gradient = correlate(grad, weight.conj(), *geometry)
        of_input = _resized(gradient, input.shape[2:])
    if mask[1]:
        inner = result_lengths(grad.shape[2:], weight.shape[2:], *geometry[:3])
        full = _resized(input.conj(), inner)
        of_weight = weight_gradient(grad, full, weight.shape, *geometry)
    return of_input, of_weight


def _resized(x, lengths):
    """x (n, c, *size) with its size made `lengths`: with zeros at the ends, or without the ends."""
    size = x.shape[2:]
    if size == tuple(lengths):
        return x
    ends = [(0, 0, 0)] * 2 + [(0, b - a, 0) for a, b in zip(size, lengths, strict=True)]
    return lax.pad(x, jnp.zeros((), x.dtype), ends)


def convolution_double_backward(
    grad_input,
    grad_weight,
    grad_bias,
    grad_output,
    input,
    weight,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    mask,
):
    """The gradients of `grad_output`, `input` and `weight` in `convolution_backward`.

    grad_input, grad_weight, grad_bias: gradients of its outputs, or None.
    """
    numbers = stride, padding, dilation, transposed, output_padding, groups
    # what no given gradient reaches has the gradient zero
    of_grad = None
    of_input, of_weight = jnp.zeros_like(input), jnp.zeros_like(weight)
    if mask[0]:
        of_grad = _sum_of(
            grad_input is not None and op.convolution(grad_input, weight, None, *numbers),
            grad_weight is not None and op.convolution(input, grad_weight, None, *numbers),
            grad_bias is not None and _spread(grad_bias, grad_output),
        )
    if mask[1] and grad_weight is not None:
        of_input, _, _ = op.convolution_backward(
            grad_output, input, grad_weight, None, *numbers, (True, False, False)
        )
    if mask[2] and grad_input is not None:
        _, of_weight, _ = op.convolution_backward(
            grad_output, grad_input, weight, None, *numbers, (False, True, False)
        )
    return of_grad, of_input, of_weight


def _spread(bias, like):
    """The bias (c,) in the shape of `like` (n, c, ...)."""
    return op.expand(op.reshape(bias, (-1, *[1] * (like.ndim - 2))), like.shape)


def _sum_of(*terms):
    """The sum of the terms that are there, or None."""
    present = [term for term in terms if term is not False]
    return sum(present[1:], present[0]) if present else None


# the checks of a convolution, in PyTorch's order


def _check_ranks(input, weight, groups):
    if weight.ndim < 3:
        raise RuntimeError(
            f"weight should have at least three dimensions, but got weight of size "
            f"{list(weight.shape)}: (out, in / groups, *kernel)"
        )
    if weight.ndim > 5:
        raise RuntimeError(
            f"unsupported ConvNd parameters: a kernel of {weight.ndim - 2} dimensions, more than 3"
        )
    if groups <= 0:
        raise RuntimeError(f"non-positive groups is not supported, but got groups={groups}")


def _expanded(count, **lists):
    """Each list with `count` integers: one integer stands for all dimensions."""
    return [_expanded_list(name, tuple(values), count) for name, values in lists.items()]


def _expanded_list(name, values, count):
    if len(values) not in (1, count):
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {count} values to match "
            f"the convolution dimensions, but got {name}={list(values)} for a weight of "
            f"{count + 2} dimensions"
        )
    return values if len(values) == count else values * count


def _check_numbers(stride, padding, dilation, output_padding):
    for name, values in (("padding", padding), ("output_padding", output_padding)):
        if min(values) < 0:
            raise RuntimeError(f"negative {name} is not supported, but got {name}={list(values)}")
    if min(stride) <= 0:
        raise RuntimeError(f"non-positive stride is not supported, but got stride={list(stride)}")
    if min(dilation) <= 0:
        raise RuntimeError(f"dilation should be greater than zero, but got {list(dilation)}")


def _channels_last(rank):
    return f": channels come before the other extents, as by movedim(-1, {1 - rank})"


def _check_channels(input, weight, bias, transposed, groups):
    shape, rank = list(weight.shape), weight.ndim
    if input.ndim != rank:
        raise RuntimeError(
            f"Expected {rank}-dimensional input for {rank}-dimensional weight {shape}, but got "
            f"{input.ndim}-dimensional input of size {list(input.shape)} instead"
        )
    if shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but "
            f"got weight of size {shape} instead"
        )
    if shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, "
            f"but got weight of size {shape} instead"
        )
    if 0 in shape[2:]:
        raise RuntimeError(f"kernel size should be greater than zero, but got {shape[2:]}")
    setting = "transposed=1" if transposed else f"groups={groups}"
    wanted, result = (shape[0], shape[1] * groups) if transposed else (shape[1] * groups, shape[0])
    if input.shape[1] != wanted:
        raise RuntimeError(
            f"Given {setting}, weight of size {shape}, expected input{list(input.shape)} to have "
            f"{wanted} channels, but got {input.shape[1]} channels instead"
            f"{_channels_last(len(shape)) if input.shape[-1] == wanted else ''}"
        )
    if bias is not None and bias.shape != (result,):
        start = "Given transposed=1" if transposed else "Given"
        comma = ", " if transposed else " "
        raise RuntimeError(
            f"{start}{comma}weight of size {shape}, expected bias to be 1-dimensional with "
            f"{result} elements, but got bias of size {list(bias.shape)} instead"
        )


def _check_dtypes(input, weight, bias):
    dtype, *others = [dtypes.from_numpy(x.dtype) for x in (input, weight, bias) if x is not None]
    for name, other in zip(("weight", "bias"), others, strict=False):
        if other is not dtype:
            raise RuntimeError(
                f"Input type ({dtype!r}) and {name} type ({other!r}) should be the same: expected "
                f"scalar type {dtype.scalar_type} but found {other.scalar_type}; convert one with "
                ".to(dtype)"
            )
    promotion.refuse("convolution", input, dtypes.BOOLEAN)


def _check_lengths(input, weight, padding, dilation):
    sizes = [n + 2 * p for n, p in zip(input.shape[2:], padding, strict=True)]
    reach = [d * (k - 1) + 1 for k, d in zip(weight.shape[2:], dilation, strict=True)]
    if any(size < length for size, length in zip(sizes, reach, strict=True)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({' x '.join(map(str, sizes))}). Kernel "
            f"size: ({' x '.join(map(str, reach))}). Kernel size can't be greater than actual "
            "input size"
        )


def _check_output_padding(output_padding, stride, dilation):
    for extra, step, rate in zip(output_padding, stride, dilation, strict=True):
        if extra >= max(step, rate):
            raise RuntimeError(
                "output padding must be smaller than either stride or dilation, but got "
                f"output_padding={output_padding}, stride={stride}, dilation={dilation}"
            )


def _transposed_lengths(input, weight, stride, padding, dilation, output_padding):
    size = input.shape[2:]
    lengths = transposed_lengths(size, weight.shape[2:], stride, padding, dilation, output_padding)
    if any(length <= 0 for length in lengths):
        raise RuntimeError(
            f"Given input size per channel: ({' x '.join(map(str, size))}). Calculated output size "
            f"per channel: ({' x '.join(map(str, lengths))}). Output size is too small"
        )
    return lengths


def _check_grad(grad, input, weight, geometry, transposed, output_padding):
    """Check that the gradient of a convolution's output has the shape and dtype of the output."""
    *numbers, groups = geometry
    sizes = input.shape[2:], weight.shape[2:], *numbers
    if transposed:
        channels, lengths = weight.shape[1] * groups, transposed_lengths(*sizes, output_padding)
    else:
        channels, lengths = weight.shape[0], result_lengths(*sizes)
    expected = (input.shape[0], channels, *lengths)
    if grad.shape != expected:
        raise RuntimeError(
            f"convolution_backward: expected grad_output of size {list(expected)}, the size of the "
            f"result, but got {list(grad.shape)}"
        )
    _check_dtypes(grad, input, weight)


# ---- convolution of sequences, (time, batch, channels)


def conv_tbc(self, weight, bias, pad=0):
    _check_tbc(self, weight, bias)
    _check_dtypes(self, weight, bias)
    (length,) = result_lengths(self.shape[:1], weight.shape[:1], (1,), (pad,), (1,))
    if length < 0:
        shape = [length, self.shape[1], weight.shape[2]]
        raise RuntimeError(
            f"Trying to create tensor with negative dimension {length}: {shape}: conv_tbc got a "
            f"sequence of length {self.shape[0]}, shorter than its kernel of {weight.shape[0]}"
        )
    result = correlate(_channels_first(self), weight.transpose(2, 1, 0), (1,), (pad,), (1,), 1)
    return result.transpose(2, 0, 1) + bias


def conv_tbc_backward(grad_output, input, weight, bias, pad):
    grad, input = _channels_first(grad_output), _channels_first(input)
    kernel, numbers = weight.transpose(2, 1, 0), ((1,), (pad,), (1,), 1)
    of_input = input_gradient(grad, kernel.conj(), input.shape, *numbers)
    of_weight = weight_gradient(input.conj(), grad, kernel.shape, *numbers)
    of_bias = grad_output.sum((0, 1), dtype=grad_output.dtype)
    return of_input.transpose(2, 0, 1), of_weight.transpose(2, 1, 0), of_bias


conv_tbc_backward.tells_missing = True


def conv_tbc_double_backward(
    grad_input, grad_weight, grad_bias, grad_output, input, weight, pad, mask
):
    """`convolution_double_backward` of `conv_tbc_backward`."""
    bias = jnp.zeros(weight.shape[2:], weight.dtype)
    of_grad, of_input, of_weight = None, jnp.zeros_like(input), jnp.zeros_like(weight)
    if mask[0]:
        of_grad = _sum_of(
            grad_input is not None and op.conv_tbc(grad_input, weight, bias, pad),
            grad_weight is not None and op.conv_tbc(input, grad_weight, bias, pad),
            grad_bias is not None and op.expand(grad_bias, grad_output.shape),
        )
    if mask[1] and grad_weight is not None:
        of_input, _, _ = op.conv_tbc_backward(grad_output, input, grad_weight, bias, pad)
    if mask[2] and grad_input is not None:
        _, of_weight, _ = op.conv_tbc_backward(grad_output, grad_input, weight, bias, pad)
    return of_grad, of_input, of_weight


def _channels_first(x):
    """(time, batch, channels) as (batch, channels, time)."""
    return x.transpose(1, 2, 0)


def _check_tbc(self, weight, bias):
    if self.ndim != 3:
        raise RuntimeError(
            "Input must have 3 dims: time, batch, in_channel: conv_tbc got one of shape "
            f"{list(self.shape)}"
        )
    if weight.ndim != 3:
        raise RuntimeError(
            "Weight tensor must have 3 dims: kernel_width, in_channels, out_channels. conv_tbc got "
            f"one of shape {list(weight.shape)}"
        )
    if bias.ndim != 1:
        raise RuntimeError(f"Bias must be 1-D: conv_tbc got one of shape {list(bias.shape)}")
    if self.shape[2] != weight.shape[1]:
        raise RuntimeError(
            "Input dim 2 (input channels) is not == dim 1 in the weight tensor: conv_tbc got "
            f"{self.shape[2]} and {weight.shape[1]}"
        )
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError(
            "Bias size must equal dim 2 in the weight tensor (output channels). conv_tbc got "
            f"{bias.shape[0]} and {weight.shape[2]}"
        )


# ---- windows as columns


def im2col(self, kernel_size, dilation, padding, stride):
    _check_windows(kernel_size, dilation, padding, stride)
    _check_image(self)
    counts = _counts("im2col", self.shape[-2:], kernel_size, dilation, padding, stride)
    ends = [(0, 0, 0)] * (self.ndim - 2) + [(width, width, 0) for width in padding]
    unfolded = lax.pad(self, jnp.zeros((), self.dtype), ends)
    # dimension by dimension, so that the number of slices is the sum of the kernel's sizes
    for i, axis in ((0, -2), (1, -1)):
        reach, step = (counts[i] - 1) * stride[i] + 1, stride[i]
        starts = [j * dilation[i] for j in range(kernel_size[i])]
        axis += unfolded.ndim
        slices = [lax.slice_in_dim(unfolded, j, j + reach, step, axis) for j in starts]
        unfolded = jnp.stack(slices, axis=-3)
    rows = self.shape[-3] * math.prod(kernel_size)
    return unfolded.reshape(*self.shape[:-3], rows, math.prod(counts))


def col2im(self, output_size, kernel_size, dilation, padding, stride):
    _check_pairs(output_size=output_size)
    _check_windows(kernel_size, dilation, padding, stride)
    _check_columns(self, kernel_size)
    counts = _counts("col2im", output_size, kernel_size, dilation, padding, stride)
    if self.shape[-1] != math.prod(counts):
        raise RuntimeError(
            f"Given output_size={tuple(output_size)}, kernel_size={tuple(kernel_size)}, "
            f"dilation={tuple(dilation)}, padding={tuple(padding)}, stride={tuple(stride)}, "
            f"expected size of input's dimension {self.ndim - 1} to match the calculated number of "
            f"sliding blocks {counts[0]} * {counts[1]} = {math.prod(counts)}, but got "
            f"input.size({self.ndim - 1})={self.shape[-1]}."
        )
    channels = self.shape[-2] // math.prod(kernel_size)
    folded = self.reshape(*self.shape[:-2], channels, *kernel_size, *counts)
    for i, axis in ((1, -1), (0, -2)):
        length = output_size[i] + 2 * padding[i]
        placed = [
            _placed(folded[..., j, :, :], axis, j * dilation[i], stride[i], length)
            for j in range(kernel_size[i])
        ]
        folded = sum(placed[1:], placed[0])
    (top, left), (height, width) = padding, output_size
    return folded[..., top : top + height, left : left + width]


def _placed(x, axis, start, step, length):
    """The slices of x along `axis` at start, start + step, ... of a dimension of `length` zeros."""
    reach = (x.shape[axis] - 1) * step + 1
    ends = [(0, 0, 0)] * x.ndim
    ends[axis] = (start, length - start - reach, step - 1)
    return lax.pad(x, jnp.zeros((), x.dtype), ends)


def _check_pairs(**lists):
    for name, values in lists.items():
        if len(values) != 2:
            raise RuntimeError(f"It is expected {name} equals to 2, but got size {len(values)}")


def _check_windows(kernel_size, dilation, padding, stride):
    _check_pairs(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)
    for name, values in (("kernel size", kernel_size), ("dilation", dilation), ("stride", stride)):
        if min(values) <= 0:
            raise RuntimeError(f"{name} should be greater than zero, but got {list(values)}")
    if min(padding) < 0:
        raise RuntimeError(f"padding should be non-negative, but got {list(padding)}")


def _check_image(image):
    if image.ndim not in (3, 4) or 0 in image.shape[-3:]:
        raise RuntimeError(
            "Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {list(image.shape)}"
        )


def _check_columns(columns, kernel_size):
    if columns.ndim not in (2, 3) or 0 in columns.shape[-2:]:
        raise RuntimeError(
            "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and "
            f"non-zero dimensions for input, but got: {list(columns.shape)}"
        )
    if columns.shape[-2] % math.prod(kernel_size):
        dim = columns.ndim - 2
        raise RuntimeError(
            f"Expected size of input's dimension {dim} to be divisible by the product of "
            f"kernel_size, but got input.size({dim})={columns.shape[-2]} and "
            f"kernel_size={tuple(kernel_size)}."
        )


def _counts(name, size, kernel_size, dilation, padding, stride):
    """The number of windows in each dimension."""
    counts = result_lengths(size, kernel_size, stride, padding, dilation)
    if any(symbolic.chosen(lambda n=count: n < 1) for count in counts):
        raise RuntimeError(
            f"Given input with spatial size {tuple(size)}, kernel_size={tuple(kernel_size)}, "
            f"dilation={tuple(dilation)}, padding={tuple(padding)}, calculated shape of the array "
            f"of sliding blocks as {counts}, but its components must be at least one: {name}"
        )
    return counts
