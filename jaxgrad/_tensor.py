"""The module of PyTorch that defines `Tensor`."""

from __future__ import annotations

from .core.missing_names import missing_in
from .tape.tensor import Tensor as Tensor

__getattr__ = missing_in(__name__)
