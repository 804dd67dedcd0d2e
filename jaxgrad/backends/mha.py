"""The fast path of multi-head attention, as torch.backends.mha.

XLA compiles layers as they are written, so what is set here has no effect.
"""

from __future__ import annotations

from ..names.missing import missing_in
from ..tape.settings import flags

_flags = flags("torch.backends.mha", fastpath=True)


def get_fastpath_enabled() -> bool:
    """Return what `set_fastpath_enabled` has set.

    >>> jaxgrad.backends.mha.get_fastpath_enabled()
    True
    """
    return _flags.fastpath


def set_fastpath_enabled(value: bool) -> None:
    """Set whether transformers may take a fast path. It has no effect.

    >>> jaxgrad.backends.mha.set_fastpath_enabled(True)
    """
    _flags.fastpath = value


__getattr__ = missing_in(__name__)
