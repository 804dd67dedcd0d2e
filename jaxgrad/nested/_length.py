"""The extent in which the components of a nested tensor differ."""

from __future__ import annotations

import itertools

import numpy as np


class Length:
    """An extent of a nested tensor that differs among its components: `j1` in its shape. Tensors
    with the same offsets share it.
    """

    __slots__ = ("number", "offsets")

    _numbers = itertools.count(1)

    def __init__(self, offsets):
        self.offsets, self.number = tuple(map(int, offsets)), next(self._numbers)

    def __repr__(self):
        return f"j{self.number}"

    def of(self, component: int) -> int:
        """The extent of one component."""
        return self.offsets[component + 1] - self.offsets[component]

    @property
    def lengths(self) -> list[int]:
        return [self.of(component) for component in range(len(self.offsets) - 1)]

    @property
    def largest(self) -> int:
        return max(self.lengths, default=0)

    def component_of(self) -> np.ndarray:
        """The component of each joined element."""
        return np.repeat(np.arange(len(self.lengths)), self.lengths)

    def steps(self) -> np.ndarray:
        """The place of each joined element in its component."""
        places = [np.arange(length) for length in self.lengths]
        return np.concatenate(places) if places else np.arange(0)
