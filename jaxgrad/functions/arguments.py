"""Checks of arguments that composed functions share."""

from __future__ import annotations

from ..core.pytorch_tensors import type_name
from ..tape.tensor import Tensor


def check_tensor(name, value, what="argument 'input'"):
    """Raise TypeError for what is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(f"{name}(): {what} must be Tensor, not {type_name(value)}")
