"""Packages that PyTorch brings along, as torch._vendor."""

from __future__ import annotations

from ..names.missing import missing_in

__getattr__ = missing_in(__name__)
