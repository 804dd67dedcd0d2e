"""Intel's oneDNN, which XLA uses by itself, as torch.backends.mkldnn."""

from __future__ import annotations

from ..names.missing import missing_in
from ..tape.settings import make_flags

enabled = False


def is_available() -> bool:
    """Return False.

    >>> jaxgrad.backends.mkldnn.is_available()
    False
    """
    return False


__getattr__ = missing_in(__name__)
make_flags(__name__, "enabled")
