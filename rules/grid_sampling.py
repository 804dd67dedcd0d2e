"""Operators that sample images at the places of a grid, and the grids of affine maps.

A place is (x, y) or (x, y, z), each from -1 to 1 over the image, the last dimension of the image
first. Along each dimension a few neighbours of a place are read, and the value is the sum of what
is read times the products of their weights.
"""

import functools
import itertools
import math
import operator

import jax.numpy as jnp
import numpy
from jax import lax
from jaxgrad.rules import resampling

from jaxgrad.core import dtypes, promotion, symbolic_extents

# PyTorch's numbers of the modes
_BILINEAR, _NEAREST, _BICUBIC = range(3)
_ZEROS, _BORDER, _REFLECTION = range(3)


def grid_sampled(input, grid, interpolation_mode, padding_mode, align_corners):
    """`input` (n, c, *sizes) at the places `grid` (n, *result sizes, dimensions)."""
    _check(input, grid, interpolation_mode, padding_mode)
    images, places = _in_single(input), _in_single(grid)
    modes = interpolation_mode, padding_mode, align_corners
    total = jnp.zeros(_flat(_result_shape(input, grid)), images.dtype)
    for corner in _corners(places, images.shape[2:], *modes):
        total = total + corner.shown(_times(_read(images, corner), corner.weights))
    return jnp.reshape(total, _result_shape(input, grid)).astype(input.dtype)


def grid_sampled_backward(
    grad_output, input, grid, interpolation_mode, padding_mode, align_corners, output_mask
):
    """The gradients with respect to `input` and `grid`; zeros where `output_mask` is False."""
    _check(input, grid, interpolation_mode, padding_mode)
    if grad_output.shape != _result_shape(input, grid):
        raise RuntimeError(
            f"grid_sampler_backward(): expected a grad_output of shape "
            f"{list(_result_shape(input, grid))}, but got {list(grad_output.shape)}"
        )
    images, places, gradient = map(_in_single, (input, grid, grad_output))
    gradient = jnp.reshape(gradient, _flat(gradient.shape))
    modes = interpolation_mode, padding_mode, align_corners
    corners = list(_corners(places, images.shape[2:], *modes))
    of_input, of_grid = jnp.zeros_like(images), jnp.zeros_like(places)
    if output_mask[0]:
        of_input = _spread(gradient, corners, images.shape)
    if output_mask[1] and interpolation_mode != _NEAREST:
        of_grid = jnp.reshape(_slopes(gradient, images, corners), grid.shape)
    return of_input.astype(input.dtype), of_grid.astype(grid.dtype)


def _result_shape(input, grid):
    return (*input.shape[:2], *grid.shape[1:-1])


def _flat(shape):
    """(n, c, elements), of (n, c, *sizes)."""
    return (*shape[:2], math.prod(shape[2:]))


def _in_single(array):
    """`array`, in float32 if it has half precision."""
    is_half = array.dtype in (jnp.float16, jnp.bfloat16)
    return array.astype(jnp.float32) if is_half else array


class _Tap:
    """The neighbours along one dimension, one of each place: (n, places).

    `index` (floating point); `weight`, and its derivative by the place of the grid, `slope`; both
    None where the weight is 1.
    """

    def __init__(self, index, weight=None, slope=None):
        self.index, self.weight, self.slope = index, weight, slope


class _Corner:
    """One neighbour of each place, of one tap for each dimension."""

    def __init__(self, taps, sizes):
        # PyTorch's loop over voxels leaves out those outside; of pixels it reads zeros there, which
        # make NaN of an infinite weight
        self.leaves_out = len(sizes) == 3
        self.weights = [tap.weight for tap in taps if tap.weight is not None]
        self.slopes = [tap.slope for tap in taps]
        inside = [
            (tap.index >= 0) & (tap.index <= extent - 1)
            for tap, extent in zip(taps, sizes, strict=True)
        ]
        self.is_inside = functools.reduce(operator.and_, inside)
        self.index = 0
        for tap, extent in zip(taps, sizes, strict=True):
            # NaN and what is too large for an integer is outside
            place = jnp.where(self.is_inside, tap.index, 0).astype(jnp.int32)
            self.index = self.index * extent + place

    def shown(self, terms):
        """`terms` (n, c, places), 0 outside in volumes."""
        return jnp.where(self.is_inside[:, None], terms, 0) if self.leaves_out else terms


def _corners(places, sizes, interpolation_mode, padding_mode, align_corners):
    """The neighbours of all places, flat (n, places), in an image of `sizes`."""
    count = len(sizes)
    flat = jnp.reshape(places, (places.shape[0], math.prod(places.shape[1:-1]), count))
    options = interpolation_mode, padding_mode, align_corners, count == 3
    taps = [_taps(flat[..., count - 1 - dim], extent, *options) for dim, extent in enumerate(sizes)]
    return (_Corner(corner_taps, sizes) for corner_taps in itertools.product(*taps))


def _taps(place, extent, interpolation_mode, padding_mode, align_corners, is_volume):
    """The neighbours along a dimension of `extent` elements."""
    scale = (extent - 1) / 2 if align_corners else extent / 2
    place = (place + 1) / 2 * (extent - 1) if align_corners else ((place + 1) * extent - 1) / 2
    inward = functools.partial(_inward, extent, padding_mode, align_corners, is_volume)
    if interpolation_mode == _BICUBIC:
        first = lax.floor(place)
        beyond = place - first
        return [
            _Tap(inward(first + (k - 1))[0], weight, slope * scale)
            for k, (weight, slope) in enumerate(_cubic(beyond))
        ]
    place, turn = inward(place)
    if interpolation_mode == _NEAREST:
        return [_Tap(jnp.round(place))]
    first = lax.floor(place)
    beyond = place - first
    slope = turn * scale
    return [_Tap(first, 1 - beyond, -slope), _Tap(first + 1, beyond, slope)]


def _cubic(beyond):
    """The four weights of a cubic convolution with a = -0.75, each with its derivative."""
    a = -0.75
    before = 1 - beyond
    slopes = [
        _far_slope(1 + beyond, a),
        _near_slope(beyond, a),
        -_near_slope(before, a),
        -_far_slope(1 + before, a),
    ]
    return zip(resampling.cubic_weights(beyond, a), slopes, strict=True)


def _near_slope(distance, a):
    return (3 * (a + 2) * distance - 2 * (a + 3)) * distance


def _far_slope(distance, a):
    return (3 * a * distance - 10 * a) * distance + 8 * a


def _inward(extent, padding_mode, align_corners, is_volume, place):
    """The place moved into the image, as `padding_mode` says, and its derivative."""
    if padding_mode == _ZEROS:
        return place, jnp.ones_like(place)
    turn = jnp.ones_like(place)
    if padding_mode == _REFLECTION:
        place, turn = _reflected(extent, align_corners, place)
    last = extent - 1
    # PyTorch moves NaN to the start of an image and to the end of a volume
    is_before = place <= 0 if is_volume else ~(place > 0)
    clipped = jnp.where(is_before, 0, jnp.where(place < last, place, last))
    # at a border the derivative is 0
    return clipped, jnp.where((place > 0) & (place < last), turn, 0)


def _reflected(extent, align_corners, place):
    """The place reflected at both ends of the image as often as needed, and its derivative."""
    if align_corners and extent == 1:
        return jnp.zeros_like(place), jnp.zeros_like(place)
    low, span = (0, extent - 1) if align_corners else (-0.5, extent)
    offset = place - low
    turn = jnp.where(offset < 0, -1.0, 1.0).astype(place.dtype)
    offset = jnp.where(offset < 0, -offset, offset)
    is_even = lax.rem(lax.floor(offset / span), lax.full_like(place, 2)) == 0
    rest = lax.rem(offset, lax.full_like(place, span))
    return (
        jnp.where(is_even, rest + low, span - rest + low),
        jnp.where(is_even, turn, -turn),
    )


def _times(array, weights):
    for weight in weights:
        array = array * weight[:, None]
    return array


def _read(images, corner):
    """The elements of the images at a corner of each place, 0 outside: (n, c, places)."""
    rows = jnp.reshape(images, _flat(images.shape))
    index = corner.index[:, None]
    elements = jnp.take_along_axis(rows, index, axis=2, mode="promise_in_bounds")
    return jnp.where(corner.is_inside[:, None], elements, 0)


def _spread(gradient, corners, shape):
    """The gradient of the images: that of each place added to its neighbours."""
    count, channels = shape[:2]
    total = jnp.zeros((count, math.prod(shape[2:]), channels), gradient.dtype)
    image = jnp.arange(count)[:, None]
    for corner in corners:
        part = jnp.where(corner.is_inside[:, None], _times(gradient, corner.weights), 0)
        # rows of channels: one index for all of them
        part = jnp.swapaxes(part, 1, 2)
        total = total.at[image, corner.index].add(part, mode="promise_in_bounds")
    return jnp.reshape(jnp.swapaxes(total, 1, 2), shape)


def _slopes(gradient, images, corners):
    """The gradient of the places: (n, places, dimensions)."""
    totals = [0] * len(images.shape[2:])
    for corner in corners:
        read = jnp.sum(gradient * _read(images, corner), 1)
        for dim, slope in enumerate(corner.slopes):
            others = [weight for place, weight in enumerate(corner.weights) if place != dim]
            term = functools.reduce(operator.mul, others, read * slope)
            totals[dim] = totals[dim] + corner.shown(term[:, None])[:, 0]
    return jnp.stack(totals[::-1], -1)


def _check(input, grid, interpolation_mode, padding_mode):
    if input.dtype != grid.dtype:
        kinds = [dtypes.from_numpy(tensor.dtype).scalar_type for tensor in (input, grid)]
        raise RuntimeError(
            "grid_sampler(): expected input and grid to have same dtype, but input has "
            f"{kinds[0]} and grid has {kinds[1]}"
        )
    _check_shapes(input.shape, grid.shape)
    promotion.refuse("grid_sampler", input, dtypes.BOOLEAN, dtypes.INTEGRAL, dtypes.COMPLEX)
    for name, mode in ("interpolation", interpolation_mode), ("padding", padding_mode):
        if mode not in range(3):
            raise RuntimeError(f"grid_sampler(): {name}_mode must be 0, 1 or 2, but got {mode}")
    if interpolation_mode == _BICUBIC and input.ndim == 5:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")


def _check_shapes(shape, places):
    if shape[:1] != places[:1]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with "
            f"sizes {list(shape)} and grid with sizes {list(places)}"
        )
    if len(shape) not in (4, 5) or len(shape) != len(places):
        raise RuntimeError(
            "grid_sampler(): expected 4D or 5D input and grid with same number of dimensions, but "
            f"got input with sizes {list(shape)} and grid with sizes {list(places)}"
        )
    if places[-1] != len(shape) - 2:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {len(shape) - 2} in last dimension, but "
            f"got grid with sizes {list(places)}"
        )
    if 0 in shape[2:]:
        raise RuntimeError(
            "grid_sampler(): expected input to have non-empty spatial dimensions, but got input "
            f"with sizes {list(shape)}"
        )


# grids of affine maps


def affine_grid_generator(theta, size, align_corners=True):
    count = len(size) - 2
    if count not in (2, 3):
        raise RuntimeError("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.")
    if theta.shape != (size[0], count, count + 1):
        raise RuntimeError(
            f"Expected size for theta to be: {[size[0], count, count + 1]} but got: "
            f"{list(theta.shape)}"
        )
    promotion.refuse("affine_grid_generator", theta, dtypes.BOOLEAN, dtypes.INTEGRAL)
    places = _places(theta, size, align_corners)
    return jnp.einsum("...k,nik->n...i", places, theta, precision="highest")


def affine_grid_generator_backward(grad, size, align_corners):
    places = _places(grad, size, align_corners)
    return jnp.einsum("...k,n...i->nik", places, grad, precision="highest")


def _places(array, size, align_corners):
    """The places (*sizes, dimensions + 1) of all pixels, each followed by 1, of `array`'s dtype."""
    lines = [_line(extent, align_corners) for extent in size[2:]]
    arrays = symbolic_extents.namespace(*size[2:])
    grids = arrays.meshgrid(*lines, indexing="ij")
    places = arrays.stack([*reversed(grids), arrays.ones_like(grids[0])], -1)
    return jnp.asarray(places, array.dtype)


def _line(extent, align_corners):
    """The places of the pixels along a dimension; that of a single one is 0."""
    if extent == 1:
        return numpy.zeros(1)
    arrays = symbolic_extents.namespace(extent)
    if arrays is numpy:
        line = numpy.linspace(-1, 1, extent)
    else:
        line = (2 * arrays.arange(extent) - (extent - 1)) / (extent - 1)
    return line if align_corners else line * (extent - 1) / extent
