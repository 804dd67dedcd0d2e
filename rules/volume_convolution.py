"""Convolutions of volumes as those of planes, for CPUs: XLA computes those of volumes by loops.

The planes of a volume become samples, and the places of the kernel across them channels. The
argument `of_planes` of each function is the function of rules/convolution.py for planes; its
arguments follow. x has the shape (n, channels, depth, height, width), and no array is empty.
"""

import jax.numpy as jnp
from jax import lax


def volume_correlation(of_planes, x, w, stride, padding, dilation, groups):
    """The correlation of x and w (out, channels / groups, *kernel)."""
    within = stride[1:], padding[1:], dilation[1:], groups
    windows = _windows(x, w.shape[2], stride[0], padding[0], dilation[0])
    return _volumes(of_planes(windows, _flat(w), *within), x.shape[0])


def volume_input_gradient(of_planes, grad, w, input_shape, stride, padding, dilation, groups):
    """The transpose of `volume_correlation` in x."""
    n, channels, depth, *plane = input_shape
    within = stride[1:], padding[1:], dilation[1:], groups
    kernel, places = w.shape[2], grad.shape[2]
    shape = n * places, channels * kernel, *plane
    gradients = of_planes(_planes(grad), _flat(w), shape, *within)
    gradients = _volumes(gradients, n).reshape(n, channels, kernel, places, *plane)
    total = 0
    for number in range(kernel):
        start = number * dilation[0] - padding[0]
        end = depth - start - (places - 1) * stride[0] - 1
        ends = [(0, 0, 0), (0, 0, 0), (start, end, stride[0] - 1), (0, 0, 0), (0, 0, 0)]
        total += lax.pad(gradients[:, :, number], jnp.zeros((), gradients.dtype), ends)
    return total


def volume_weight_gradient(of_planes, x, grad, weight_shape, stride, padding, dilation, groups):
    """The transpose of `volume_correlation` in w."""
    out, channels, kernel, *rest = weight_shape
    within = stride[1:], padding[1:], dilation[1:], groups
    windows = _windows(x, kernel, stride[0], padding[0], dilation[0])
    shape = out, channels * kernel, *rest
    return of_planes(windows, _planes(grad), shape, *within).reshape(weight_shape)


def _windows(x, kernel, stride, padding, dilation):
    """The planes that the kernel meets at each place: (n * places, channels * kernel, *plane)."""
    x = jnp.pad(x, ((0, 0), (0, 0), (padding, padding), (0, 0), (0, 0)))
    reach = x.shape[2] - dilation * (kernel - 1)
    windows = [
        lax.slice_in_dim(x, number * dilation, number * dilation + reach, stride, 2)
        for number in range(kernel)
    ]
    x = jnp.stack(windows, 2)
    return _planes(x.reshape(x.shape[0], -1, *x.shape[3:]))


def _planes(x):
    """(n, channels, depth, *plane) as (n * depth, channels, *plane)."""
    return jnp.moveaxis(x, 2, 1).reshape(-1, x.shape[1], *x.shape[3:])


def _volumes(x, n):
    """(n * depth, channels, *plane) as (n, channels, depth, *plane)."""
    return jnp.moveaxis(x.reshape(n, -1, *x.shape[1:]), 1, 2)


def _flat(w):
    """The kernel with its places across the planes among the channels."""
    return w.reshape(w.shape[0], -1, *w.shape[3:])
