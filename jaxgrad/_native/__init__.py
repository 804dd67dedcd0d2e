"""Operators that languages for kernels add to PyTorch, as torch._native: there are none."""

from __future__ import annotations

from ..names.missing import missing_in

__getattr__ = missing_in(__name__)
