"""Products of weights and the elements of a source, added where their windows are."""

from __future__ import annotations

import itertools
from math import prod

import numpy

from .contractions import multiply_of
from .patches import CACHED

# The batch becomes the last axis of images of fewer elements, which have short rows.
SMALL = 256
# products of an image for which windows are copied instead
MANY = 1 << 22


class Scattered:
    """Writes sums over channels and offsets for each point of a grid with steps of 1.

    It multiplies each element of the source by the weights of all offsets, so that no windows are
    copied. That is the faster way for fewer features than channels. Called as `Direct` is.
    """

    def __init__(self, axes, sizes, features, dtype):
        self.outer, self.groups, self.channels = sizes
        self.features, self.dtype = features, dtype
        self.extents = [axis.extent for axis in axes]
        self.points = [axis.grid for axis in axes]
        self.rows = prod([axis.offsets for axis in axes]) * features
        elements = prod(self.extents)
        self.is_last = elements < SMALL
        size = self.groups * self.rows * elements
        self.count = max(1, min(self.outer, (8 if self.is_last else 1) * CACHED // size))
        self.multiply = multiply_of(dtype, self.channels)
        self.moves = [
            tuple(zip(*move, strict=True)) for move in itertools.product(*map(_moves, axes))
        ]

    @staticmethod
    def serves(axes, groups, features) -> bool:
        """Whether the steps are 1 and the products of an image are not too many."""
        products = groups * features * prod([axis.extent * axis.offsets for axis in axes])
        return bool(axes) and all(axis.grid_step == 1 for axis in axes) and products <= MANY

    def __call__(self, source, weight, result):
        axes = range(3, weight.ndim)
        weight = weight.transpose(0, *axes, 1, 2).reshape(self.groups, self.rows, self.channels)
        weight = numpy.ascontiguousarray(weight)  # BLAS takes no steps below 0
        add = self.with_last_batch if self.is_last else self.with_first_batch
        for first in range(0, self.outer, self.count):
            part = slice(first, first + self.count)
            result[part] = add(source[part], weight)

    def with_first_batch(self, source, weight):
        count, groups, features = len(source), self.groups, self.features
        source = source.reshape(count, groups, self.channels, -1)
        products = self.multiply(weight, source)
        products = products.reshape(count, groups, -1, features, *self.extents)
        total = numpy.zeros((count, groups, features, *self.points), self.dtype)
        for offset, (points, elements) in enumerate(self.moves):
            total[..., *points] += products[:, :, offset][..., *elements]
        return total

    def with_last_batch(self, source, weight):
        count, groups, features = len(source), self.groups, self.features
        source = source.transpose(*range(1, source.ndim), 0).reshape(groups, self.channels, -1)
        products = self.multiply(weight, source)
        products = products.reshape(groups, -1, features, *self.extents, count)
        total = numpy.zeros((groups, features, *self.points, count), self.dtype)
        for offset, (points, elements) in enumerate(self.moves):
            total[:, :, *points] += products[:, offset][:, :, *elements]
        return total.transpose(total.ndim - 1, *range(total.ndim - 1))


def _moves(axis):
    """For each offset in a window, the points that it reads for, and the elements it reads."""
    for offset in range(axis.offsets):
        low = axis.low + offset * axis.offset_step
        first, last = max(0, -low), min(axis.grid, axis.extent - low)
        last = max(first, last)
        yield slice(first, last), slice(max(0, low), max(0, low) + last - first)
