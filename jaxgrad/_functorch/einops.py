"""The module functorch.einops."""

from __future__ import annotations

from ..func import rearrange as rearrange
