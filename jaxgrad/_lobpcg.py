"""PyTorch's module of `lobpcg`."""

from __future__ import annotations

from .functions.linalg_spectral import lobpcg as lobpcg
from .names.missing import missing_in

__all__ = ["lobpcg"]
__getattr__ = missing_in(__name__)
