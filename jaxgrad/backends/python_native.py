"""Languages for kernels that operators of PyTorch use, as torch.backends.python_native: none."""

from __future__ import annotations

from .._native.dsl_registry import dsl_registry as _registry
from ..names.missing import missing_in

all_dsls, available_dsls = [*_registry.list_all_dsls()], [*_registry.list_available_dsls()]

__getattr__ = missing_in(__name__)
