"""NNPACK, which jaxgrad does not use, as torch.backends.nnpack."""

from __future__ import annotations

import contextlib

from ..names.missing import missing_in
from ..tape import settings


def is_available() -> bool:
    """Return False.

    >>> jaxgrad.backends.nnpack.is_available()
    False
    """
    return False


def set_flags(_enabled: bool) -> tuple[bool]:
    """Set whether NNPACK may compute, which has no effect, and return what was set before.

    >>> jaxgrad.backends.nnpack.set_flags(True)
    (True,)
    """
    before = _settings.enabled
    _settings.enabled = _enabled
    return (before,)


@contextlib.contextmanager
def flags(enabled: bool = False):
    """A block in which NNPACK may compute or not, which has no effect.

    >>> with jaxgrad.backends.nnpack.flags(enabled=False):
    ...     y = jaxgrad.ones(2) * 2
    """
    (before,) = set_flags(enabled)
    try:
        yield
    finally:
        set_flags(before)


_settings = settings.flags("torch.backends.nnpack", enabled=True)

__getattr__ = missing_in(__name__)
