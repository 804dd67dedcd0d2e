"""NNPACK, which jaxgrad does not use, as torch.backends.nnpack."""

from __future__ import annotations

from ..names.missing import missing_in


def is_available() -> bool:
    """Return False.

    >>> jaxgrad.backends.nnpack.is_available()
    False
    """
    return False


__getattr__ = missing_in(__name__)
