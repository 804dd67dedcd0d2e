"""Names that PyTorch deprecates in favour of others."""

from __future__ import annotations

import importlib
import warnings

from ..core.tracebacks import users_stacklevel


def renamed(old: str, new: str) -> None:
    """Warn that a form of a call is deprecated, and which replaces it, both without `torch.`."""
    warnings.warn(
        f"`torch.{old}` is deprecated. Please use `torch.{new}` instead.",
        FutureWarning,
        stacklevel=users_stacklevel(),
    )


# the questions about libraries that replace names of torch
BACKENDS = {
    "has_mps": ("mps", "is_built"),
    "has_cuda": ("cuda", "is_built"),
    "has_cudnn": ("cudnn", "is_available"),
    "has_mkldnn": ("mkldnn", "is_available"),
}


def has_backend(name: str) -> bool:
    """The value of a name in `BACKENDS`; warns that it is deprecated."""
    module, question = BACKENDS[name]
    warnings.warn(
        f"'{name}' is deprecated, please use 'torch.backends.{module}.{question}()'",
        stacklevel=users_stacklevel(),
    )
    return getattr(importlib.import_module(f"jaxgrad.backends.{module}"), question)()
