"""Convolutions for CPUs, where XLA's own are slow: depthwise, grouped, with kernels of one element
and with kernels larger than the image, which XLA computes by loops.

Each function returns the lowering that is to be preferred on a CPU, a function of two arrays, or
None where XLA's convolution is best or more exact. tests/benchmarks/README.md has the figures of
the rule. Arguments as in `rules/convolution.py`; no array is empty.

A group with few channels is a sum of shifted multiply-adds: one term for each channel and element
of the kernel, all in one loop that XLA vectorizes, without windows in memory. Other groups are
products with the windows of the image, of so few samples and groups at once that the windows stay
in the cache.
"""

import itertools
import math

import jax.numpy as jnp
from jax import lax

from jaxgrad.core import symbolic_extents

MOST_TERMS = 160  # of a sum: more take long to compile
SUMS_AT_ONCE = 32
WINDOWS = 2**18  # elements at once, where one sample of a group has no more


def correlation_on_cpu(x, w, lengths, stride, padding, dilation, groups):
    """lengths: of the result."""
    edges, kernel = [(p, p) for p in padding], w.shape[2:]
    if not _is_possible(x, kernel):
        return None
    if math.prod(kernel) == 1:
        find = _pointwise
    elif groups > 1:
        find = _shifted if _is_short(kernel, w.shape[1]) else _with_windows
    elif symbolic_extents.chosen(
        lambda: _is_larger(kernel, x) or _is_small(x.shape[0], lengths, len(w))
    ):
        find = _with_windows
    else:
        return None
    if find is _with_windows and symbolic_extents.is_open(x.shape):
        return None
    return lambda x, w: find(_padded(x, edges), w, stride, dilation, groups)


def input_gradient_on_cpu(grad, w, input_shape, stride, edges, dilation, groups):
    """edges: the zeros at the ends of each dimension of the gradient, which the stride spreads."""
    kernel, ones = w.shape[2:], (1,) * len(stride)
    if not _is_possible(grad, kernel):
        return None
    if math.prod(kernel) == 1:
        return lambda grad, w: _padded(_product(grad, _turned(w, groups), groups), edges, stride)
    if groups > 1:
        find = _shifted if _is_short(kernel, len(w) // groups) else _with_windows
        if find is _with_windows and symbolic_extents.is_open(grad.shape):
            return None
        return lambda grad, w: find(
            _padded(grad, edges, stride), _turned(w, groups), ones, dilation, groups
        )
    if symbolic_extents.chosen(
        lambda: _is_larger(kernel, grad) or _is_small(grad.shape[0], grad.shape[2:], len(w))
    ):
        return lambda grad, w: _spread(grad, w, input_shape, stride, edges, dilation)
    return None


def weight_gradient_on_cpu(x, grad, weight_shape, stride, padding, dilation, groups):
    out, channels, *kernel = weight_shape
    if not _is_possible(x, kernel):
        return None
    if math.prod(kernel) == 1:
        find = _pointwise_weight
    elif groups > 1:
        find = _sums if channels == 1 else weight_products
    elif symbolic_extents.chosen(lambda: _is_small(grad.shape[0], grad.shape[2:], out)):
        find = weight_products
    else:
        return None
    if find is weight_products and symbolic_extents.is_open(x.shape):
        return None
    return lambda x, grad: find(x, grad, weight_shape, stride, padding, dilation, groups)


def _is_possible(x, kernel):
    """Whether sums in the dtype of x are as exact as XLA's, which adds 16-bit floats in 32, and
    the kernel has few elements.
    """
    return x.dtype.itemsize > 2 and math.prod(kernel) <= MOST_TERMS


def _is_short(kernel, channels):
    """Whether the shifted sum over the channels of a group is of few terms."""
    return math.prod(kernel) * channels <= MOST_TERMS


def _is_larger(kernel, x):
    """Whether XLA convolves by loops, since the kernel is larger than the image."""
    return all(size < k for size, k in zip(x.shape[2:], kernel, strict=True))


def _is_small(n, lengths, out):
    """Whether all windows are hardly more than the weight, which XLA transposes."""
    return n * math.prod(lengths) <= 2 * out


# the parts


def _shifted(x, w, stride, dilation, groups):
    """The correlation of x, already padded, as a sum over channels and elements of the kernel."""
    n, out, channels, kernel = x.shape[0], w.shape[0], w.shape[1], w.shape[2:]
    # fused with its consumers, padding is a branch at each element
    x = lax.optimization_barrier(x.reshape(n, groups, channels, *x.shape[2:]))
    w = w.reshape(groups, out // groups, channels, *kernel, *[1] * len(kernel))
    total = 0
    for channel in range(channels):
        for offset in _offsets(kernel):
            window = _window(x[:, :, channel], offset, kernel, stride, dilation)
            total += window[:, :, None] * w[(slice(None), slice(None), channel, *offset)]
    return total.reshape(n, out, *total.shape[3:])


def _pointwise(x, w, stride, dilation, groups):
    """The correlation with a kernel of one element."""
    return _product(_first_window(x, w.shape[2:], stride, dilation), w, groups)


def _product(x, w, groups):
    """The product of a kernel of one element with the channels of x."""
    n, size, (out, channels) = x.shape[0], x.shape[2:], w.shape[:2]
    is_joined = _is_joined(size, channels, out // groups)
    x, w = _by_groups(x, groups, is_joined), w.reshape(groups, out // groups, channels)
    # a weight for each sample: the product has the layout of the result, without transposes
    w = jnp.broadcast_to(w, (x.shape[0] // groups, *w.shape)).reshape(-1, *w.shape[1:])
    product = _matmul(w, x)
    if is_joined:
        product = jnp.moveaxis(product.reshape(groups, out // groups, n, -1), 2, 0)
    return product.reshape(n, out, *size)


def _sums(x, grad, weight_shape, stride, padding, dilation, groups):
    """The gradient of a depthwise weight: a sum over samples and space for each element."""
    kernel = weight_shape[2:]
    grad = grad.reshape(grad.shape[0], groups, -1, *grad.shape[2:])
    x = _padded(x, [(p, p) for p in padding])[:, :, None]
    terms = [_window(x, offset, kernel, stride, dilation) * grad for offset in _offsets(kernel)]
    sums = []
    for start in range(0, len(terms), SUMS_AT_ONCE):
        sums += _sums_at_once(terms[start : start + SUMS_AT_ONCE], (0, *range(3, x.ndim)))
    return jnp.stack(sums, -1).reshape(weight_shape)


def _sums_at_once(terms, axes):
    """The sum of each term, in one loop: an addition need not wait for the one before it."""
    zero = jnp.zeros((), terms[0].dtype)
    return lax.reduce(
        terms, [zero] * len(terms), lambda a, b: [x + y for x, y in zip(a, b, strict=True)], axes
    )


def _pointwise_weight(x, grad, weight_shape, stride, padding, dilation, groups):
    """The gradient of a weight whose kernel is one element: one product."""
    x = _padded(x, [(p, p) for p in padding])
    window = _first_window(x, weight_shape[2:], stride, dilation)
    is_joined = _is_joined(grad.shape[2:], weight_shape[1], weight_shape[0] // groups)
    x, grad = (_by_groups(array, groups, is_joined) for array in (window, grad))
    products = _matmul(grad, x.swapaxes(1, 2)).reshape(-1, groups, grad.shape[1], x.shape[1])
    return products.sum(0, dtype=grad.dtype).reshape(weight_shape)


def _with_windows(x, w, stride, dilation, groups):
    """The correlation of x, already padded, as products of w with the windows."""
    n, kernel = x.shape[0], w.shape[2:]
    lengths = _first_window(x, kernel, stride, dilation).shape[2:]
    parts, few = _parts(x, w.shape, lengths, groups)
    w = w.reshape(-1, few, w.shape[0] // groups, math.prod(w.shape[1:]))

    def product(arrays):
        number, x = arrays
        output = _matmul(w[number % len(w)], _windows(x, kernel, stride, dilation))
        return jnp.moveaxis(output.reshape(*output.shape[:2], x.shape[0], -1), 2, 0)

    outputs = lax.map(product, (jnp.arange(len(parts)), parts))
    return outputs.reshape(n, -1, *lengths)


def _spread(grad, w, input_shape, stride, edges, dilation):
    """The gradient of the input without groups: products for each element of the kernel, added
    where their windows were.
    """
    out, channels, *kernel = w.shape
    products = lax.dot_general(
        w.reshape(out, -1),
        grad.reshape(*grad.shape[:2], -1),
        (((0,), (1,)), ((), ())),
        precision=lax.Precision.HIGHEST,
    )
    products = products.reshape(channels, -1, grad.shape[0], *grad.shape[2:])
    total = 0
    for number, offset in enumerate(_offsets(kernel)):
        ends = [(0, 0, 0), (0, 0, 0)]
        for size, n, (before, _), j, k, s, d in zip(
            input_shape[2:], grad.shape[2:], edges, offset, kernel, stride, dilation, strict=True
        ):
            start = before - d * (k - 1 - j)
            ends.append((start, size - start - (n - 1) * s - 1, s - 1))
        total += lax.pad(products[:, number], jnp.zeros((), products.dtype), ends)
    return jnp.moveaxis(total, 0, 1)


def weight_products(x, grad, weight_shape, stride, padding, dilation, groups):
    """The gradient of a weight as products of the windows with `grad`."""
    out, kernel = weight_shape[0], weight_shape[2:]
    x = _padded(x, [(p, p) for p in padding])
    parts, few = _parts(x, weight_shape, grad.shape[2:], groups)
    grad = grad.reshape(len(parts), -1, few, out // groups, math.prod(grad.shape[2:]))

    def product(arrays):
        x, grad = arrays
        grad = jnp.moveaxis(grad, 0, 2).reshape(few, out // groups, -1)
        return _matmul(grad, _windows(x, kernel, stride, dilation).swapaxes(1, 2))

    products = lax.map(product, (parts, grad))
    products = products.reshape(-1, groups, *products.shape[2:]).sum(0, dtype=grad.dtype)
    return products.reshape(weight_shape)


def _parts(x, w_shape, lengths, groups):
    """x as (parts, samples, groups at once, channels of a group, *size), and the groups at once: as
    many as WINDOWS allows, or twice the weight. lengths: of the result.
    """
    size, n = math.prod(w_shape[1:]) * math.prod(lengths), x.shape[0]
    few = _greatest_divisor(groups, WINDOWS // size)
    most = max(WINDOWS, 2 * math.prod(w_shape))
    samples = _greatest_divisor(n, most // (size * few)) if few == groups else 1
    return x.reshape(-1, samples, few, x.shape[1] // groups, *x.shape[2:]), few


def _greatest_divisor(number, most):
    return max(
        divisor
        for divisor in range(1, number + 1)
        if number % divisor == 0 and divisor <= max(most, 1)
    )


def _windows(x, kernel, stride, dilation):
    """The factor of the kernel: x (samples, groups, channels, *size) as (groups, channels *
    elements of the kernel, samples * places).
    """
    windows = [_window(x, offset, kernel, stride, dilation) for offset in _offsets(kernel)]
    samples, groups, channels = x.shape[:3]
    windows = jnp.stack(windows, 3).reshape(samples, groups, channels * len(windows), -1)
    return jnp.moveaxis(windows, 0, 2).reshape(*windows.shape[1:3], -1)


def _matmul(a, b):
    return jnp.matmul(a, b, precision=lax.Precision.HIGHEST)


def _by_groups(x, groups, is_joined):
    """x (n, c, *size) as (n * groups, c / groups, elements), or with the samples side by side as
    (groups, c / groups, n * elements). With one axis for both, XLA multiplies by the transpose of
    such an array as it is; with two it copies that first.
    """
    if not is_joined:
        return x.reshape(x.shape[0] * groups, x.shape[1] // groups, -1)
    x = x.reshape(x.shape[0], groups, x.shape[1] // groups, -1)
    return jnp.moveaxis(x, 0, 2).reshape(*x.shape[1:3], -1)


def _is_joined(size, channels, out):
    """Whether one product for all samples is best, with transposes of the images, instead of one
    for each sample, with as many copies of the weight.
    """
    count = math.prod(size)
    return symbolic_extents.chosen(lambda: 2 * channels * out >= (channels + out) * count)


def _turned(w, groups):
    """The kernel that correlates gradients: (in, out / groups, *kernel), its elements reversed."""
    out, channels, *kernel = w.shape
    w = lax.rev(w, tuple(range(2, w.ndim)))
    w = w.reshape(groups, out // groups, channels, *kernel).swapaxes(1, 2)
    return w.reshape(groups * channels, out // groups, *kernel)


def _offsets(kernel):
    return itertools.product(*map(range, kernel))


def _window(x, offset, kernel, stride, dilation):
    """The part of x (..., *size) that one element of the kernel multiplies."""
    lead = x.ndim - len(kernel)
    starts, ends = [0] * lead, list(x.shape[:lead])
    for size, j, k, s, d in zip(x.shape[lead:], offset, kernel, stride, dilation, strict=True):
        length = (size - d * (k - 1) - 1) // s
        starts.append(j * d)
        ends.append(j * d + length * s + 1)
    return lax.slice(x, starts, ends, [1] * lead + list(stride))


def _first_window(x, kernel, stride, dilation):
    return _window(x, (0,) * len(kernel), kernel, stride, dilation)


def _padded(x, edges, stride=None):
    """x with zeros at the ends, or without the ends, and with its elements `stride` apart."""
    stride = stride or (1,) * len(edges)
    ends = [(0, 0, 0)] * 2 + [(a, b, s - 1) for (a, b), s in zip(edges, stride, strict=True)]
    return lax.pad(x, jnp.zeros((), x.dtype), ends)
