"""Mixed precision on CPUs by the names of early PyTorch, as torch.cpu.amp."""

from __future__ import annotations

from ..amp import autocast_mode, grad_scaler
from ..core import dtypes
from ..frontend.deprecated import renamed
from ..names.missing import missing_in


class autocast(autocast_mode.autocast):
    """`jaxgrad.amp.autocast("cpu", ...)`; warns that this name is deprecated.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"), jaxgrad.cpu.amp.autocast():
    ...     jaxgrad.is_autocast_enabled("cpu")
    True
    """

    def __init__(
        self,
        enabled: bool = True,
        dtype: dtypes.dtype = dtypes.bfloat16,
        cache_enabled: bool = True,
    ):
        renamed("cpu.amp.autocast(args...)", "amp.autocast('cpu', args...)")
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """`jaxgrad.amp.GradScaler("cpu", ...)`; warns that this name is deprecated.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     jaxgrad.cpu.amp.GradScaler(enabled=False).is_enabled()
    False
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        renamed("cpu.amp.GradScaler(args...)", "amp.GradScaler('cpu', args...)")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


__getattr__ = missing_in(__name__)
