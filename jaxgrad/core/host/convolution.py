"""The rule of convolutions.

A convolution adds up products over the channels and the offsets in its window, for each point of
a grid of windows. Seen from the grid, the offsets are a grid of windows too, so that the gradient
of the weight, whose window is as large as an image, is computed as the transposed case: the roles
of offsets and grid, and of batch and channels, are exchanged (`is_swapped`).

The views of the operands have the axes (batch, groups, channels, *space) for the source, (groups,
features, channels, *space) for the weight, and (batch, groups, features, *space) for the result.
"""

from __future__ import annotations

import itertools
from math import gcd, prod
from typing import NamedTuple

import numpy

from .accumulators import accumulator_of, in_dtype
from .contractions import multiply_of
from .equation import NotOnHostError, rule
from .patches import CACHED, MOST, Axis, Windows
from .scattered_products import Scattered
from .window_products import Direct, Swapped

# channels that make a run, if they are the last axis
RUN = 4
# how many times fewer features than channels there are where products are scattered
FEWER = 2
# points of a grid that one product of matrices has at least
POINTS = 64


@rule("conv_general_dilated")
def _conv_general_dilated(equation):
    lhs, rhs = equation.inputs
    shape, dtype = equation.outputs[0]
    accumulator = accumulator_of(equation)
    if 0 in lhs.shape or 0 in rhs.shape or 0 in shape:
        return lambda lhs, rhs: numpy.zeros(shape, dtype)
    views = _views(equation)
    source, weight, result = [
        view(numpy.broadcast_to(numpy.int8(0), form.shape)).shape
        for view, form in zip(views, (lhs, rhs, equation.outputs[0]), strict=True)
    ]
    parts = [
        _Part(places, points, _staged(axes, source, weight, result, accumulator, equation))
        for places, points, axes in _parts(equation, source, weight, result)
    ]
    allocate = numpy.empty if _covers(parts, result[3:]) else numpy.zeros
    source_of, weight_of, result_of = views

    def run(lhs, rhs):
        output = allocate(shape, dtype)
        source, weight = in_dtype(source_of(lhs), accumulator), weight_of(rhs)
        weight, result = in_dtype(weight, accumulator), result_of(output)
        for places, points, convolve in parts:
            convolve(source, weight[places], result[points])
        return output

    return run


class _Part(NamedTuple):
    """The convolution of some offsets, by which some points of the result are computed."""

    offsets: tuple
    points: tuple
    convolve: object


def _views(equation):
    """Functions that view the operands and the result with the axes of this module."""
    params = equation.params
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    features, batches = params["feature_group_count"], params["batch_group_count"]
    groups = features * batches

    def split(array, axis):
        shape = array.shape
        return array.reshape(*shape[:axis], groups, shape[axis] // groups, *shape[axis + 1 :])

    def source(array):
        array = array.transpose(lhs_spec)
        return split(array, 1) if batches == 1 else split(array, 0).swapaxes(0, 1)

    return (
        source,
        lambda array: split(array.transpose(rhs_spec), 0),
        lambda array: split(array.transpose(out_spec), 1),
    )


def _parts(equation, source, weight, result):
    """The offsets, the points of the result and the axes of convolutions without dilated sources.

    The dilated source has elements only in some places, so that the windows of some points of the
    result meet them with some offsets.
    """
    params = equation.params
    rank = len(source) - 3
    steps = params["window_strides"], params["lhs_dilation"], params["rhs_dilation"]
    steps = [one or (1,) * rank for one in steps]
    by_axis = [
        [*_axis_parts(*sizes)]
        for sizes in zip(source[3:], weight[3:], result[3:], params["padding"], *steps, strict=True)
    ]
    for part in itertools.product(*by_axis):
        places, points, axes = zip(*part, strict=True) if part else ((), (), ())
        yield (..., *places), (..., *points), axes


def _axis_parts(extent, offsets, points, padding, step, lhs_dilation, rhs_dilation):
    common = gcd(step, lhs_dilation)
    every, every_offset = lhs_dilation // common, lhs_dilation // gcd(rhs_dilation, lhs_dilation)
    for point in range(min(every, points)):
        for offset in range(min(every_offset, offsets)):
            low = point * step + offset * rhs_dilation - padding[0]
            if low % lhs_dilation == 0:
                place, target = slice(offset, None, every_offset), slice(point, None, every)
                yield (
                    place,
                    target,
                    Axis(
                        extent,
                        low // lhs_dilation,
                        len(range(points)[target]),
                        step // common,
                        len(range(offsets)[place]),
                        rhs_dilation * every_offset // lhs_dilation,
                    ),
                )


def _covers(parts, points) -> bool:
    """Whether parts compute all points of a result."""
    counts = [
        prod(
            [
                len(range(extent)[place])
                for extent, place in zip(points, part.points[1:], strict=True)
            ]
        )
        for part in parts
    ]
    return sum(counts) == prod(points)


def _staged(axes, source, weight, result, dtype, equation):
    """The function that writes the convolution of a source and a weight to a view."""
    lhs_spec, *_ = equation.params["dimension_numbers"]
    batch, groups, channels = source[:3]
    features = weight[1]
    is_swapped = prod([axis.grid for axis in axes]) < prod([axis.offsets for axis in axes])
    if is_swapped:
        axes = [
            Axis(axis.extent, axis.low, axis.offsets, axis.offset_step, axis.grid, axis.grid_step)
            for axis in axes
        ]
        batch, channels = channels, batch
    inner = lhs_spec[0 if is_swapped else 1]
    is_last = channels >= RUN and inner > max(lhs_spec[2:], default=-1)
    sizes = batch, groups, channels
    if all(axis.offsets == 1 and axis.is_inside for axis in axes):
        convolve = _pointwise(axes, sizes, features, dtype, is_last, is_swapped)
        if convolve is not None:
            return convolve
    has_few = not is_swapped and features * FEWER <= channels
    if has_few and Scattered.serves(axes, groups, features):
        return Scattered(axes, sizes, features, dtype)
    is_exact = _is_exact(axes, features)
    chunk = _chunk(axes, sizes)
    sizes = batch, chunk, channels
    windows = Windows(axes, sizes, dtype, is_last, is_exact)
    if not is_swapped:
        products = Direct(windows, features)
    elif windows.is_wide:
        exact = Windows(axes, sizes, dtype, is_last, is_exact=True)
        products = Swapped(windows, features, Swapped(exact, features))
    else:
        products = Swapped(windows, features)
    if products.matrix_size > MOST:
        raise NotOnHostError(f"{equation.name} of windows as large as these")
    return _by_chunks(products, groups, chunk, is_swapped)


def _chunk(axes, sizes) -> int:
    """How many groups are computed at once: a divisor of their number, so that the windows of an
    image stay in the cache.
    """
    _, groups, channels = sizes
    size = channels * prod([axis.offsets * -(-axis.span // axis.grid_step) for axis in axes])
    fitting = range(1, max(1, min(groups, CACHED // 2 // size)) + 1)
    return max(count for count in fitting if groups % count == 0)


def _by_chunks(products, groups, chunk, is_swapped):
    """The function that computes some groups after the others."""

    def run(source, weight, result):
        if is_swapped:
            source = source.swapaxes(0, 2)
        for first in range(0, groups, chunk):
            part = slice(first, first + chunk)
            products(source[:, part], weight[part], result[:, part])

    return run


def _is_exact(axes, features) -> bool:
    """Whether runs of the points of windows are faster than wide rows with others."""
    if not axes:
        return True
    points = prod([axis.grid for axis in axes])
    wide = axes[0].grid * prod([-(-axis.span // axis.grid_step) for axis in axes[1:]])
    # nanoseconds: a run takes 10, a copy 0.1 and a product 0.02
    return points / axes[-1].grid * 10 < (wide - points) * (0.1 + 0.02 * features)


def _pointwise(axes, sizes, features, dtype, is_last, is_swapped):
    """The convolution whose windows have one element, which needs no copies of them; None where
    copies make larger matrices.
    """
    batch, groups, channels = sizes
    points = prod([axis.grid for axis in axes])
    part = ..., *[slice(axis.low, axis.low + axis.span, axis.grid_step) for axis in axes]
    is_flat = is_last and groups == 1
    if points < POINTS and not is_flat:
        return None
    multiply = multiply_of(dtype, points if is_swapped else channels)

    def direct(source, weight, result):
        source = source[part].reshape(batch, groups, channels, points)
        weight = numpy.ascontiguousarray(weight.reshape(groups, features, channels))
        flat = result.reshape(batch, groups, features, points)
        if flat.dtype == dtype and numpy.may_share_memory(flat, result):
            multiply(weight, source, out=flat)
        else:
            result[...] = multiply(weight, source).reshape(result.shape)

    def direct_flat(source, weight, result):
        source = source[part].reshape(batch, channels, points).swapaxes(1, 2)
        product = multiply(
            source.reshape(batch * points, channels), weight.reshape(features, channels).T
        )
        product = product.reshape(batch, points, features).swapaxes(1, 2)
        result[...] = product.reshape(result.shape)

    def swapped(source, weight, result):
        source = source[part].swapaxes(0, 2).reshape(batch, groups, channels, points)
        weight = weight.reshape(groups, features, batch, points).transpose(2, 0, 1, 3)
        product = multiply(weight, source.swapaxes(2, 3)).sum(0)
        result[...] = product.transpose(2, 0, 1).reshape(result.shape)

    if is_swapped:
        return None if is_last else swapped
    return direct_flat if is_flat else direct
