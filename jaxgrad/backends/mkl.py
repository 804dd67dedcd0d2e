"""Intel's MKL, which jaxgrad does not use, as torch.backends.mkl."""

from __future__ import annotations

from ..names.missing import missing_in

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Return False.

    >>> jaxgrad.backends.mkl.is_available()
    False
    """
    return False


__getattr__ = missing_in(__name__)
