"""Mixed precision on CPUs by the names of early PyTorch, as torch.cpu.amp."""

from __future__ import annotations

from ..amp import early_names
from ..core import dtypes
from ..names.missing import missing_in


class autocast(early_names.EarlyAutocast):
    """`jaxgrad.amp.autocast("cpu", ...)`; warns that this name is deprecated.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"), jaxgrad.cpu.amp.autocast():
    ...     jaxgrad.is_autocast_enabled("cpu")
    True
    """

    _early_device = "cpu"
    _early_dtype = dtypes.bfloat16


class GradScaler(early_names.EarlyGradScaler):
    """`jaxgrad.amp.GradScaler("cpu", ...)`; warns that this name is deprecated.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     jaxgrad.cpu.amp.GradScaler(enabled=False).is_enabled()
    False
    """

    _early_device = "cpu"


__getattr__ = missing_in(__name__)
