"""Mixed precision on GPUs by the names of early PyTorch, as torch.cuda.amp."""

from __future__ import annotations

from ..amp import autocast_mode, early_names
from ..core import dtypes
from ..frontend.deprecated import renamed
from ..names.missing import missing_in


class autocast(early_names.EarlyAutocast):
    """`jaxgrad.amp.autocast("cuda", ...)`; warns that this name is deprecated.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     with jaxgrad.cuda.amp.autocast(enabled=False):
    ...         jaxgrad.is_autocast_enabled()
    False
    """

    _early_device = "cuda"
    _early_dtype = dtypes.float16


class GradScaler(early_names.EarlyGradScaler):
    """`jaxgrad.amp.GradScaler("cuda", ...)`; warns that this name is deprecated.

    >>> import warnings
    >>> with warnings.catch_warnings(action="ignore"):
    ...     jaxgrad.cuda.amp.GradScaler(enabled=False).is_enabled()
    False
    """

    _early_device = "cuda"


def custom_fwd(fwd=None, *, cast_inputs: dtypes.dtype | None = None):
    """`jaxgrad.amp.custom_fwd(..., device_type="cuda")`; warns that this name is deprecated."""
    renamed("cuda.amp.custom_fwd(args...)", "amp.custom_fwd(args..., device_type='cuda')")
    return autocast_mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd=None):
    """`jaxgrad.amp.custom_bwd(..., device_type="cuda")`; warns that this name is deprecated."""
    renamed("cuda.amp.custom_bwd(args...)", "amp.custom_bwd(args..., device_type='cuda')")
    return autocast_mode.custom_bwd(bwd, device_type="cuda")


__getattr__ = missing_in(__name__)
