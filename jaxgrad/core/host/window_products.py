"""Products of weights and windows, block by block."""

from __future__ import annotations

from math import prod

import numpy

from .contractions import multiply_of


class _Products:
    """The common part of both kinds of products: the blocks of windows.

    windows: a `Windows`; features: how many results a window has.
    """

    def __init__(self, windows, features):
        self.windows, self.features = windows, features
        self.count, self.rows = windows.blocks()
        self.gather = windows.gatherer(self.count, self.rows)
        self.offset_axes = range(3, 3 + len(windows.axes))
        columns = self.count * self.rows * prod(windows.grid[1:])
        self.matrix_size = windows.groups * windows.channels * prod(windows.offsets) * columns

    def blocks(self, source):
        """The matrices of windows of all blocks, and which of outer and of the rows these have."""
        windows, whole = self.windows, (self.count, self.rows)
        height = windows.grid[0] if windows.grid else 1
        memory, padded = windows.buffer(self.count)
        patches = numpy.empty(self.matrix_size, windows.dtype)
        for first in range(0, windows.outer, self.count):
            count = min(self.count, windows.outer - first)
            windows.fill(padded[:count], source[first : first + count])
            for start in range(0, height, self.rows):
                rows = min(self.rows, height - start)
                gather = self.gather
                if (count, rows) != whole:
                    gather = windows.gatherer(count, rows)
                matrices = gather(memory, patches, start)
                yield slice(first, first + count), slice(start, start + rows), matrices

    def part(self, array, outer, rows, axis):
        """The part of an array that belongs to a block; `axis` is that of outer."""
        part = [slice(None)] * array.ndim
        part[axis] = outer
        if self.windows.grid:
            part[3] = rows
        return array[tuple(part)]


class Direct(_Products):
    """Writes sums over channels and offsets for each point of the grid.

    Called with a source (outer, groups, channels, *space), a weight (groups, features, channels,
    *offsets) and the result (outer, groups, features, *grid).
    """

    def __call__(self, source, weight, result):
        windows = self.windows
        multiply = self.product(weight)
        crop = ..., *windows.points[1:]
        for outer, rows, matrices in self.blocks(source):
            grid = (rows.stop - rows.start, *windows.grid[1:]) if windows.grid else ()
            product = multiply(matrices, outer.stop - outer.start, grid)
            self.part(result, outer, rows, 0)[...] = product[crop]

    def product(self, weight):
        """The function that multiplies windows by a weight: (count, groups, features, *grid)."""
        windows, features, groups = self.windows, self.features, self.windows.groups
        depth = windows.channels * prod(windows.offsets)
        multiply = multiply_of(windows.dtype, depth)
        if windows.is_last:
            weight = weight.transpose(0, *self.offset_axes, 2, 1).reshape(groups, depth, features)
        else:
            weight = weight.reshape(groups, features, depth)
        weight = numpy.ascontiguousarray(weight)  # BLAS takes no steps below 0

        def by_first(matrices, count, grid):
            product = multiply(weight, matrices).reshape(groups, features, count, *grid)
            return product.transpose(2, 0, 1, *range(3, product.ndim))

        def by_last(matrices, count, grid):
            product = multiply(matrices.swapaxes(1, 2), weight)
            product = product.reshape(groups, count, *grid, features)
            return product.transpose(1, 0, product.ndim - 1, *range(2, product.ndim - 1))

        return by_last if windows.is_last else by_first


class Swapped(_Products):
    """Writes sums over outer and the grid for each offset and channel.

    Called with a source (outer, groups, channels, *space), a weight (groups, features, outer,
    *grid) and the result (channels, groups, features, *offsets). exact: does so with windows that
    are not wide, None if these are not.
    """

    def __init__(self, windows, features, exact=None):
        super().__init__(windows, features)
        self.exact = exact

    def __call__(self, source, weight, result):
        total = self.total(source, weight)
        # points of the wide grid that are no window's weigh 0, but infinity times 0 is NaN
        if self.exact is not None and not numpy.isfinite(total).all():
            self.exact(source, weight, result)
        else:
            result[...] = total

    def weights(self, weight):
        """The function that gives the weight of a block, with zeros for the rest of a wide grid:
        (groups, features, outer, *grid).
        """
        windows = self.windows
        if not windows.is_wide:
            return lambda outer, rows: self.part(weight, outer, rows, 2)
        shape = self.windows.groups, self.features, self.count, self.rows, *windows.grid[1:]
        wide = numpy.zeros(shape, windows.dtype)
        crop = ..., *windows.points[1:]

        def of_block(outer, rows):
            part = self.part(weight, outer, rows, 2)
            block = wide[:, :, : part.shape[2], : part.shape[3]]
            block[crop] = part
            return block

        return of_block

    def total(self, source, weight):
        windows, features, groups = self.windows, self.features, self.windows.groups
        weight_of, offsets = self.weights(weight), windows.offsets
        total = 0
        for outer, rows, matrices in self.blocks(source):
            part = weight_of(outer, rows)
            columns = matrices.shape[2]
            multiply = multiply_of(windows.dtype, columns)
            if windows.is_last:
                part = part.transpose(0, *range(2, part.ndim), 1)
                part = part.reshape(groups, columns, features)
            else:
                part = part.reshape(groups, features, columns).swapaxes(1, 2)
            total += multiply(matrices, part)
        if windows.is_last:
            total = total.reshape(groups, *offsets, windows.channels, features)
            return total.transpose(total.ndim - 2, 0, total.ndim - 1, *range(1, total.ndim - 2))
        total = total.reshape(groups, windows.channels, *offsets, features)
        return total.transpose(1, 0, total.ndim - 1, *range(2, total.ndim - 1))
