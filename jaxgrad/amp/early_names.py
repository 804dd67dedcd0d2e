"""Mixed precision by the names of early PyTorch: the bodies of torch.cpu.amp and torch.cuda.amp."""

from __future__ import annotations

from ..core import dtypes
from ..frontend.deprecated import renamed
from . import autocast_mode, grad_scaler


class EarlyAutocast(autocast_mode.autocast):
    """`autocast` of the device of its class, under a name that is deprecated."""

    _early_device: str
    _early_dtype: dtypes.dtype

    def __init__(
        self, enabled: bool = True, dtype: dtypes.dtype | None = None, cache_enabled: bool = True
    ):
        device = self._early_device
        renamed(f"{device}.amp.autocast(args...)", f"amp.autocast('{device}', args...)")
        super().__init__(device, dtype or self._early_dtype, enabled, cache_enabled)


class EarlyGradScaler(grad_scaler.GradScaler):
    """`GradScaler` of the device of its class, under a name that is deprecated."""

    _early_device: str

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        device = self._early_device
        renamed(f"{device}.amp.GradScaler(args...)", f"amp.GradScaler('{device}', args...)")
        super().__init__(
            device, init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )
