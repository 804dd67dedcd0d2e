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
        return memory, self._view(memory, (count, *self.shape), 0, (self.image, *self.steps))

    def fill(self, padded, source):
        for place, part in self.fills:
            padded[place] = source[part]

    def view(self, memory, piece, count, start, rows):
        """The windows of a piece: (count, groups, channels, *offsets, *grid)."""
        places, begin, steps = piece
        offsets = [
            len(range(*place.indices(extent)))
            for place, extent in zip(places, self.offsets, strict=True)
        ]
        grid, grid_steps = self.grid, self.grid_steps
        if grid:
            begin += start * grid_steps[0]
            grid = (rows, *grid[1:])
        if self.is_wide:
            grid, grid_steps = (prod(grid),), grid_steps[-1:]
        shape = (count, self.groups, self.channels, *offsets, *grid)
        return self._view(memory, shape, begin, (self.image, *self.steps[:2], *steps, *grid_steps))

    def _view(self, memory, shape, start, steps):
        size = self.dtype.itemsize
        strides = [step * size for step in steps]
        return numpy.ndarray(shape, self.dtype, memory, start * size, strides)

    def matrices(self, memory, patches, count, start, rows):
        """The windows copied to the memory `patches`: (groups, depth, columns), where the first
        of depth and the last of columns are those of the channels and of the grid.
        """
        rank = len(self.offsets)
        grid = (rows, *self.grid[1:]) if self.grid else ()
        if self.is_wide:
            grid = (prod(grid),)
        if self.is_last:
            shape = (self.groups, count, *grid, *self.offsets, self.channels)
            order = [1, 0, len(shape) - 1, *range(-1 - rank, -1), *range(2, 2 + len(grid))]
        else:
            shape = (self.groups, self.channels, *self.offsets, count, *grid)
            order = [2 + rank, *range(2 + rank), *range(3 + rank, len(shape))]
        patches = patches[: prod(shape)].reshape(shape)
        copied = patches.transpose(order)
        for piece in self.pieces:
            copied[:, :, :, *piece[0]] = self.view(memory, piece, count, start, rows)
        depth, columns = self.channels * prod(self.offsets), count * prod(grid)
        if self.is_last:
            return patches.reshape(self.groups, columns, depth).swapaxes(1, 2)
        return patches.reshape(self.groups, depth, columns)


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
