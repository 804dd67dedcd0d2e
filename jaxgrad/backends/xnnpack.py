"""XNNPACK, which is not used, as torch.backends.xnnpack."""

from __future__ import annotations

from ..names.missing import missing_in

enabled = False

__getattr__ = missing_in(__name__)
