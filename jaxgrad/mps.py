"""Apple GPUs, which jaxgrad does not use, as torch.mps.

>>> jaxgrad.mps.device_count()
0
"""

from __future__ import annotations

from .core.missing_names import missing_in


def is_available() -> bool:
    """Return False."""
    return False


def device_count() -> int:
    """Return 0."""
    return 0


__getattr__ = missing_in(__name__)
