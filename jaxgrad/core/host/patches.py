"""The windows of an array, copied into matrices that BLAS multiplies.

A window reads, along each axis, the elements `low + point * grid_step + offset * offset_step` of
its source, for each point of a grid and each offset in the window; those outside of the source
are 0. What is copied is ordered so that the elements of a run lie side by side:

- If channels come before the axes of space, the source is first split into its residues by the
  step of the grid, so that neighbours in the grid are neighbours in memory. The grid is then as
  wide as the padded rows, unless `is_exact`: all its rows are one run, and some points are not
  those of a window.
- If channels come last, those of neighbouring offsets are one run.
"""

from __future__ import annotations

import itertools
from math import gcd, prod
from typing import NamedTuple

import numpy

# elements that stay in the cache of a core, and columns below which BLAS is slow
CACHED, COLUMNS = 1 << 18, 256
# elements of the largest matrix of windows
MOST = 1 << 24


class Axis(NamedTuple):
    """Which elements of an axis of the source the windows read."""

    extent: int
    low: int
    grid: int
    grid_step: int
    offsets: int
    offset_step: int

    @property
    def span(self) -> int:
        return (self.grid - 1) * self.grid_step + (self.offsets - 1) * self.offset_step + 1

    @property
    def is_inside(self) -> bool:
        return self.low >= 0 and self.low + self.span <= self.extent


class Windows:
    """The windows of sources of shape (outer, groups, channels, *space)."""

    def __init__(self, axes, sizes, dtype, is_last, is_exact):
        self.axes, self.dtype, self.is_last = axes, dtype, is_last
        self.outer, self.groups, self.channels = sizes
        splits = [1 if is_last else axis.grid_step for axis in axes]
        rows = [-(-axis.span // split) for axis, split in zip(axes, splits, strict=True)]
        self.is_wide = bool(axes) and not (is_exact or is_last)
        self.offsets = tuple([axis.offsets for axis in axes])
        points = tuple([axis.grid for axis in axes])
        self.grid = (*points[:1], *rows[1:]) if self.is_wide else points
        self.points = tuple([slice(point) for point in points])
        self._lay_out(splits, rows)
        self.fills = [*map(_joined, itertools.product(*map(_fills, axes, splits, rows)))]
        self.pieces = [
            ([place for place, *_ in piece], *self._steps(piece))
            for piece in itertools.product(*map(_pieces, axes, splits))
        ]

    def _lay_out(self, splits, rows):
        """Set the order of the padded sources in memory."""
        self.shape = (self.groups, self.channels, *splits, *rows)
        order = [*range(len(self.shape))]
        if self.is_last:
            order = [*order[2:], 0, 1]
        steps, step = [0] * len(order), 1
        for dim in reversed(order):
            steps[dim] = step
            step *= self.shape[dim]
        self.image, self.steps = step, steps
        rank = len(splits)
        self.split_steps, self.row_steps = steps[2 : 2 + rank], steps[2 + rank :]
        advances = [axis.grid_step // split for axis, split in zip(self.axes, splits, strict=True)]
        self.grid_steps = [*map(int.__mul__, self.row_steps, advances)]
        # the last wide row of the last image ends after it
        self.slack = self.row_steps[0] if self.is_wide else 0

    def _steps(self, piece):
        """Where the windows of some offsets begin, and the steps between these."""
        start, steps = 0, []
        all_steps = zip(piece, self.split_steps, self.row_steps, strict=True)
        for (_, residue, row, advance), split_step, row_step in all_steps:
            start += residue * split_step + row * row_step
            steps.append(advance * row_step)
        return start, steps

    def blocks(self):
        """How many of outer, and of the rows of the grid, are copied at once."""
        height = self.grid[0] if self.grid else 1
        area = prod(self.grid[1:])
        depth = self.groups * self.channels * prod(self.offsets)
        columns = max(COLUMNS, CACHED // depth)
        rows = max(1, min(height, columns // area))
        rows = -(-height // -(-height // rows))
        count = max(1, min(self.outer, columns // (area * rows))) if rows == height else 1
        return count, rows

    def buffer(self, count):
        """Memory for so many padded sources, and its view of shape (count, *self.shape)."""
        memory = numpy.zeros(count * self.image + self.slack, self.dtype)
        strides = [step * self.dtype.itemsize for step in (self.image, *self.steps)]
        return memory, numpy.ndarray((count, *self.shape), self.dtype, memory, 0, strides)

    def fill(self, padded, source):
        for place, part in self.fills:
            padded[place] = source[part]

    def gatherer(self, count, rows):
        """The function that copies windows of so many sources, from so many rows of the grid.

        It takes the memory of a buffer, memory for the copy and the first row, and gives matrices
        (groups, depth, columns), where depth has the axes (channels, *offsets), or the offsets
        first if channels come last, and columns those of (count, *grid).
        """
        grid, steps = self.grid, self.grid_steps
        if grid:
            grid = (rows, *grid[1:])
        if self.is_wide:
            grid, steps = (prod(grid),), steps[-1:]
        shape, order = self._memory_order(count, grid)
        views = [
            (*self._strided(places, offset_steps, count, grid, steps), begin)
            for places, begin, offset_steps in self.pieces
        ]
        sizes = self.channels * prod(self.offsets), count * prod(grid)
        sizes = (self.groups, *(sizes[::-1] if self.is_last else sizes))
        total, dtype, size, is_last = prod(shape), self.dtype, self.dtype.itemsize, self.is_last
        row = self.grid_steps[0] if self.grid else 0

        def gather(memory, patches, start):
            patches = patches[:total].reshape(shape)
            copied = patches.transpose(order)
            for place, extents, strides, begin in views:
                begin = (begin + start * row) * size
                copied[place] = numpy.ndarray(extents, dtype, memory, begin, strides)
            matrices = patches.reshape(sizes)
            return matrices.swapaxes(1, 2) if is_last else matrices

        return gather

    def _memory_order(self, count, grid):
        """The shape of copied windows in memory, and the order of axes that makes it (count,
        groups, channels, *offsets, *grid).
        """
        rank = len(self.offsets)
        if self.is_last:
            shape = (self.groups, count, *grid, *self.offsets, self.channels)
            return shape, [1, 0, len(shape) - 1, *range(-1 - rank, -1), *range(2, 2 + len(grid))]
        shape = (self.groups, self.channels, *self.offsets, count, *grid)
        return shape, [2 + rank, *range(2 + rank), *range(3 + rank, len(shape))]

    def _strided(self, places, offset_steps, count, grid, steps):
        """The place of a piece in copied windows, and the shape and the strides of its view."""
        offsets = [
            len(range(extent)[place]) for place, extent in zip(places, self.offsets, strict=True)
        ]
        shape = (count, self.groups, self.channels, *offsets, *grid)
        strides = self.image, *self.steps[:2], *offset_steps, *steps
        place = slice(None), slice(None), slice(None), *places
        return place, shape, [step * self.dtype.itemsize for step in strides]


def _fills(axis, split, rows):
    """For each residue of an axis: its place, the places of the rows, those in the source."""
    fills = []
    for residue in range(split):
        begin = residue + axis.low
        first = max(0, -(begin // split))
        last = min(rows, -((begin - axis.extent) // split))
        if first < last:
            source = slice(begin + first * split, begin + (last - 1) * split + 1, split)
            fills.append((residue, slice(first, last), source))
    return fills


def _joined(fills):
    """The places of a fill along all axes."""
    residues, rows, source = zip(*fills, strict=True) if fills else ((), (), ())
    return (..., *residues, *rows), (..., *source)


def _pieces(axis, split):
    """The offsets of an axis by residue: their places, the residue, the first row, the step."""
    common = gcd(split, axis.offset_step)
    every = split // common
    for first in range(min(every, axis.offsets)):
        row, residue = divmod(first * axis.offset_step, split)
        yield slice(first, None, every), residue, row, axis.offset_step // common
