"""Sequences that fill space evenly, as torch.quasirandom."""

from __future__ import annotations

import warnings
from typing import Self

import numpy as np
from scipy.stats import qmc

from .core import dtypes
from .frontend.random import default_generator, randint
from .frontend.tensor_data import tensor
from .names.missing import missing_in
from .tape.tensor import Tensor


class SobolEngine:
    """A Sobol sequence in (0, 1).

    dimension: at most 21201. scramble: whether to shuffle it at random: drawn numbers are not
    PyTorch's. seed: of the shuffle; without one the default generator gives it.

    Raises ValueError for another dimension.

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
        if scramble and seed is None:
            seed = randint(0, 2**31 - 1, (), generator=default_generator).item()
        self._rng = seed
        self.reset()

    def draw(self, n: int = 1, out: Tensor | None = None, dtype=None) -> Tensor:
        """Return the next `n` points, of shape (n, dimension).

        dtype: the default dtype if it is None. out: the tensor to write them to.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # PyTorch does not ask for a power of 2 here
            points = self._engine.random(n) if n else np.zeros((0, self.dimension))
        self.num_generated += n
        sample = tensor(points, dtype=dtype or dtypes.get_default_dtype())
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
        generator = np.random.default_rng(self._rng)
        self._engine = qmc.Sobol(
            self.dimension, scramble=self.scramble, bits=self.MAXBIT, seed=generator
        )
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> Self:
        """Skip `n` points."""
        self._engine.fast_forward(n)
        self.num_generated += n
        return self

    def __repr__(self):
        shown = f"dimension={self.dimension}"
        shown += ", scramble=True" if self.scramble else ""
        return f"SobolEngine({shown}{'' if self.seed is None else f', seed={self.seed}'})"


__getattr__ = missing_in(__name__)
