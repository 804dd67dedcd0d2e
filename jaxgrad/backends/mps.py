"""Apple GPUs, which jaxgrad does not use, as torch.backends.mps."""

from __future__ import annotations

from ..names.missing import missing_in


def is_available() -> bool:
    """Return False.

    >>> jaxgrad.backends.mps.is_available()
    False
    """
    return False


def is_built() -> bool:
    """Return False.

    >>> jaxgrad.backends.mps.is_built()
    False
    """
    return False


def is_macos13_or_newer(minor: int = 0) -> bool:
    """Raise RuntimeError, as `is_macos_or_newer` does."""
    return is_macos_or_newer(13, minor)


def is_macos_or_newer(major: int, minor: int) -> bool:
    """Raise RuntimeError: there is no Apple GPU whose system could have a version."""
    raise RuntimeError(
        "Cannot execute isOnMacOSorNewer() without MPS backend. Ask is_available() before"
    )


__getattr__ = missing_in(__name__)
