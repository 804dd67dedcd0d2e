"""Mixed precision on GPUs by the names of early PyTorch, as torch.cuda.amp."""

from __future__ import annotations

from ..amp import autocast_mode, grad_scaler
from ..amp.autocast_mode import custom_bwd as custom_bwd
from ..amp.autocast_mode import custom_fwd as custom_fwd
from ..core import dtypes
from ..names.missing import missing_in


class autocast(autocast_mode.autocast):
    """`jaxgrad.amp.autocast("cuda", ...)`.

    >>> with jaxgrad.cuda.amp.autocast(enabled=False):
    ...     jaxgrad.is_autocast_enabled()
    False
    """

    def __init__(
        self,
        enabled: bool = True,
        dtype: dtypes.dtype = dtypes.float16,
        cache_enabled: bool = True,
    ):
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """`jaxgrad.amp.GradScaler("cuda", ...)`.

    >>> jaxgrad.cuda.amp.GradScaler(enabled=False).is_enabled()
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
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


__getattr__ = missing_in(__name__)
