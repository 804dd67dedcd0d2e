"""The options of optimizers: their types and checks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

from ..tape.tensor import Tensor

Loss = TypeVar("Loss", bound=float | Tensor)
Options = dict[str, Any]
Rate = float | Tensor
Params = Iterable[Tensor] | Iterable[tuple[str, Tensor]] | Iterable[Options]


def check_rate(lr: Rate) -> None:
    """Raise ValueError for a negative learning rate, or a tensor of several elements."""
    check_size(lr)
    check("learning rate", lr)


def check_size(lr: Rate) -> None:
    """Raise ValueError for a learning rate that is a tensor of several elements."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError(f"Tensor lr must be 1-element, not of shape {list(lr.shape)}")


def check_at_least_zero(what: str, value: Rate) -> None:
    """Raise ValueError for a negative option, in the words of the newer optimizers."""
    if not value >= 0.0:
        raise ValueError(f"{what} should be >= 0 but is: {value}")


def check_betas(betas: tuple[Rate, Rate]) -> None:
    """Raise ValueError unless both are in [0, 1), TypeError unless they are two."""
    check_pair("betas", betas)
    for index in (0, 1):
        check(f"beta parameter at index {index}", betas[index], below=1)


def check_pair(name: str, values: tuple[Rate, Rate]) -> None:
    """Raise TypeError unless an option has two values."""
    if not isinstance(values, tuple | list):
        raise TypeError(f"{name} must be a pair of numbers, not {values!r}")
    if len(values) < 2:
        raise IndexError(f"{name} must be a pair of numbers, not {values!r}")


def check(what: str, value: Rate, below: float = float("inf")) -> None:
    """Raise ValueError unless `0 <= value < below`, TypeError for what is no number."""
    if isinstance(value, str) or value is None:
        raise TypeError(f"Invalid {what}: {value!r}: it must be a number or a tensor")
    if not value >= 0.0 or not value < below:
        raise ValueError(f"Invalid {what}: {value}")


def check_fused(fused: bool | None, foreach: bool | None, differentiable: bool) -> None:
    """Raise RuntimeError for options that exclude each other."""
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")


def is_used(value: Rate) -> bool:
    """Return whether a hyperparameter has an effect: it is a tensor, or not 0."""
    return isinstance(value, Tensor) or value != 0
