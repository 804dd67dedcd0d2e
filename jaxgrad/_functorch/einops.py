"""The module functorch.einops."""

from __future__ import annotations

from ..func import rearrange as rearrange
from ..names.missing import missing_in

__getattr__ = missing_in(__name__)
