"""The fast path of multi-head attention, as torch.backends.mha.

XLA compiles layers as they are written. The setting says whether attention takes nested tensors and
whether `nn.TransformerEncoder` gives 0 at the padding.
"""

from __future__ import annotations

from ..names.missing import missing_in
from ..nn.multi_head_attention import fast_path as _flags


def get_fastpath_enabled() -> bool:
    """Return what `set_fastpath_enabled` has set.

    >>> jaxgrad.backends.mha.get_fastpath_enabled()
    True
    """
    return _flags.fastpath


def set_fastpath_enabled(value: bool) -> None:
    """Set whether transformers may take a fast path in inference.

    >>> jaxgrad.backends.mha.set_fastpath_enabled(True)
    """
    _flags.fastpath = value


__getattr__ = missing_in(__name__)
