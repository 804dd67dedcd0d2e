"""Mixed precision on GPUs by the names of early PyTorch, as torch.cuda.amp."""

from __future__ import annotations

from ..amp import autocast_mode, grad_scaler
from ..core import dtypes
from ..frontend.deprecated import renamed
from ..names.missing import missing_in


class autocast(autocast_mode.autocast):
    """`jaxgrad.amp.autocast("cuda", ...)`; warns that this name is deprecated.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     with jaxgrad.cuda.amp.autocast(enabled=False):
    ...         jaxgrad.is_autocast_enabled()
    False
    """

    def __init__(
        self,
        enabled: bool = True,
        dtype: dtypes.dtype = dtypes.float16,
        cache_enabled: bool = True,
    ):
        renamed("cuda.amp.autocast(args...)", "amp.autocast('cuda', args...)")
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """`jaxgrad.amp.GradScaler("cuda", ...)`; warns that this name is deprecated.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     jaxgrad.cuda.amp.GradScaler(enabled=False).is_enabled()
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
        renamed("cuda.amp.GradScaler(args...)", "amp.GradScaler('cuda', args...)")
        super().__init__(
            "cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled
        )


def custom_fwd(fwd=None, *, cast_inputs: dtypes.dtype | None = None):
    """`jaxgrad.amp.custom_fwd(..., device_type="cuda")`; warns that this name is deprecated."""
    renamed("cuda.amp.custom_fwd(args...)", "amp.custom_fwd(args..., device_type='cuda')")
    return autocast_mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd=None):
    """`jaxgrad.amp.custom_bwd(..., device_type="cuda")`; warns that this name is deprecated."""
    renamed("cuda.amp.custom_bwd(args...)", "amp.custom_bwd(args..., device_type='cuda')")
    return autocast_mode.custom_bwd(bwd, device_type="cuda")


__getattr__ = missing_in(__name__)
