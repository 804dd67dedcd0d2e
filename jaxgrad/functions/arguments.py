"""What composed functions and layers share to read their arguments."""

from __future__ import annotations

from ..core.pytorch_tensors import type_name
from ..tape.tensor import Tensor


def check_tensor(name, value, what="argument 'input'"):
    """Raise TypeError for what is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}(): {what} must be Tensor, not {type_name(value)}")


def check_probability(p):
    """Raise RuntimeError for a probability outside of [0, 1]."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")


def per_dimension(value, count: int) -> tuple:
    """One number for each of `count` dimensions: the numbers of a sequence, or one for all, which
    may be a tensor without dimensions.

    >>> from jaxgrad.functions.arguments import per_dimension
    >>> per_dimension(3, 2), per_dimension([1, 2], 2)
    ((3, 3), (1, 2))
    """
    if isinstance(value, Tensor) and not value.ndim:
        value = value.item()
    return tuple(value) if hasattr(value, "__iter__") else (value,) * count
