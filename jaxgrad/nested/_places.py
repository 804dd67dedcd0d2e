"""Where the components of a nested tensor lie in memory."""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np


class Places(NamedTuple):
    """Where the components lie in memory."""

    sizes: tuple
    strides: tuple
    offsets: tuple

    @classmethod
    def packed(cls, sizes) -> Places:
        """Of components that lie one behind the other."""
        sizes = tuple(map(tuple, sizes))
        offsets = itertools.accumulate(map(math.prod, sizes), initial=0)
        return cls(sizes, tuple(map(_contiguous, sizes)), tuple(offsets)[:-1])

    @property
    def is_packed(self) -> bool:
        return self == Places.packed(self.sizes)

    @property
    def ndim(self) -> int:
        """Dimensions of the nested tensor."""
        return len(self.sizes[0]) + 1 if self.sizes else 1

    @property
    def largest(self) -> list[int]:
        return [max(extents) for extents in zip(*self.sizes, strict=True)]

    def extent(self, dim: int) -> int:
        """The extent in a dimension of the nested tensor, in which all components agree."""
        if not dim:
            return len(self.sizes)
        extents = {size[dim - 1] for size in self.sizes}
        if len(extents) > 1:
            raise RuntimeError(f"Given dimension {dim} is irregular and does not have a size.")
        return extents.pop()

    def in_padded(self, shape) -> np.ndarray:
        """The place of every element in a contiguous tensor of a shape, one component after the
        other.
        """
        whole = np.arange(math.prod(shape)).reshape(shape)
        parts = [
            whole[number][tuple(map(slice, size))].ravel() for number, size in enumerate(self.sizes)
        ]
        return np.concatenate(parts) if parts else np.arange(0)


def _contiguous(size):
    steps = itertools.accumulate((max(extent, 1) for extent in size[:0:-1]), int.__mul__, initial=1)
    return tuple(steps)[::-1] if size else ()
