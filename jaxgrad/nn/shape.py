"""Layers that merge and split dimensions."""

from __future__ import annotations

from collections.abc import Sequence

from ..tape.tensor import Tensor
from .module import Module


class Flatten(Module):
    """Merge the dimensions `start_dim` to `end_dim`, by default all but the first.

    >>> jaxgrad.nn.Flatten()(jaxgrad.ones(2, 3, 4)).shape
    torch.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1):
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split the dimension `dim` into the sizes `unflattened_size`. Raises TypeError for sizes that
    are no tuple or list of ints.

    >>> jaxgrad.nn.Unflatten(1, (2, 3))(jaxgrad.ones(4, 6)).shape
    torch.Size([4, 2, 3])
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]):
        super().__init__()
        is_sequence = isinstance(unflattened_size, tuple | list)
        if not is_sequence or not all(isinstance(extent, int) for extent in unflattened_size):
            raise TypeError(
                "unflattened_size must be tuple of ints, but found type "
                f"{type(unflattened_size).__name__}: {unflattened_size!r}"
            )
        self.dim, self.unflattened_size = dim, unflattened_size

    def forward(self, input: Tensor) -> Tensor:
        return input.unflatten(self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
