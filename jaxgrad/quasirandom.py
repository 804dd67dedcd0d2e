"""Sequences that fill space evenly, as torch.quasirandom."""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.stats import qmc

from .core import dtypes
from .frontend.generator import Generator, default_generator
from .frontend.random import randint
from .frontend.tensor_data import from_numpy
from .names.missing import missing_in
from .ops import cat
from .tape.tensor import Tensor


def _steps(dimension: int, bits: int) -> np.ndarray:
    """In the columns the numbers that a point and the next one differ by, if so many binary digits
    of the number of the point are 1 at its end.
    """
    engine, steps = qmc.Sobol(dimension, scramble=False, bits=bits), []
    before = engine.random(1)  # zeros
    for ones in range(bits):
        engine.num_generated = 1 << ones  # as if the next point were this one
        after = engine.random(1)
        steps.append(np.ldexp(before, bits).astype(np.uint32))
        steps[-1] ^= np.ldexp(after, bits).astype(np.uint32)
        before = after
    return np.concatenate(steps).T.copy()


class SobolEngine:
    """A Sobol sequence in (0, 1), the points of PyTorch.

    dimension: at most 21201. scramble: whether to shuffle it at random, by products of the digits
    with random matrices and a random shift. seed: of these; without one the default generator gives
    them.

    Raises ValueError for another dimension. Source: Matousek, "On the L2-Discrepancy for Anchored
    Boxes", 1998.

    >>> jaxgrad.quasirandom.SobolEngine(2).draw(3)
    tensor([[0.0000, 0.0000],
            [0.5000, 0.5000],
            [0.7500, 0.2500]])
    """

    MAXBIT, MAXDIM = 30, 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(
                "Supported range of dimensionality for SobolEngine is [1, "
                f"{self.MAXDIM}], not {dimension}"
            )
        self.dimension, self.scramble, self.seed = dimension, scramble, seed
        self._steps = _steps(dimension, self.MAXBIT)
        self._shift = np.zeros(dimension, np.uint32)
        if scramble:
            self._scramble()
        # as a quotient in the default dtype, whatever the dtype that is asked for
        self._first_point = self._in_unit(self._shift[None], dtypes.get_default_dtype())
        self.reset()

    def _scramble(self):
        generator = default_generator
        if self.seed is not None:
            generator = Generator(stream=generator.stream).manual_seed(self.seed)

        def digits(*shape):
            drawn = randint(2, (self.dimension, *shape), generator=generator)
            return drawn.numpy().astype(np.uint32)

        places = np.arange(self.MAXBIT, dtype=np.uint32)
        self._shift = (digits(self.MAXBIT) << places).sum(-1, dtype=np.uint32)
        triangles = np.tril(digits(self.MAXBIT, self.MAXBIT), -1)
        rows = (triangles << places[::-1]).sum(-1, dtype=np.uint32)
        rows |= np.uint32(1) << places[::-1]  # the diagonals are 1
        scrambled = np.zeros_like(self._steps)
        for place, row in zip(places[::-1], rows.T, strict=True):
            is_odd = np.bitwise_count(row[:, None] & self._steps) & 1
            scrambled |= is_odd.astype(np.uint32) << place
        self._steps = scrambled

    def _in_unit(self, numbers, dtype) -> Tensor:
        return from_numpy(numbers.astype(np.int64)).to(dtype) / 2**self.MAXBIT

    @property
    def quasi(self) -> Tensor:
        """The last point as integers, in units of `2 ** -MAXBIT`."""
        return from_numpy(self._point.astype(np.int64))

    @property
    def shift(self) -> Tensor:
        """The first point as integers, in units of `2 ** -MAXBIT`."""
        return from_numpy(self._shift.astype(np.int64))

    @property
    def sobolstate(self) -> Tensor:
        """The integers that the next points differ by, of shape (dimension, MAXBIT)."""
        return from_numpy(self._steps.astype(np.int64))

    def _next_points(self, count: int) -> np.ndarray:
        """The points after the last one."""
        numbers = np.arange(self.num_generated - 1, self.num_generated - 1 + count)
        ones = np.bitwise_count(numbers & ~(numbers + 1))  # at the end of each number
        changes = self._steps.T[ones]
        if count:
            changes[0] ^= self._point
        points = np.bitwise_xor.accumulate(changes, 0)
        self._point = points[-1] if count else self._point
        self.num_generated += count
        return points

    def draw(self, n: int = 1, out: Tensor | None = None, dtype=None) -> Tensor:
        """Return the next `n` points, of shape (n, dimension).

        dtype: the default dtype if it is None. out: the tensor to write them to.
        """
        dtype = dtype or dtypes.get_default_dtype()
        first = []
        if n and not self.num_generated:
            first, self.num_generated, n = [self._first_point.to(dtype)], 1, n - 1
        sample = cat([*first, self._in_unit(self._next_points(n), dtype)])
        return sample if out is None else out.resize_(sample.shape).copy_(sample)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype=None) -> Tensor:
        """Return the next 2 ** m points. Raises ValueError where the number of all points would not
        be a power of 2.
        """
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}."
            )
        return self.draw(2**m, out, dtype)

    def reset(self) -> Self:
        """Begin again."""
        self._point, self.num_generated = self._shift, 0
        return self

    def fast_forward(self, n: int) -> Self:
        """Skip `n` points."""
        number = self.num_generated + n - 1
        if n:
            # the point of a number, by its Gray code
            digits = (number ^ (number >> 1)) >> np.arange(self.MAXBIT) & 1
            changes = np.where(digits.astype(bool), self._steps, 0)
            self._point = self._shift ^ np.bitwise_xor.reduce(changes, 1)
        self.num_generated += n
        return self

    def __repr__(self):
        shown = f"dimension={self.dimension}"
        shown += ", scramble=True" if self.scramble else ""
        return f"SobolEngine({shown}{'' if self.seed is None else f', seed={self.seed}'})"


__getattr__ = missing_in(__name__)
