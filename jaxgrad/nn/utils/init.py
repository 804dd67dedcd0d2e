"""Modules without initialization, as torch.nn.utils.init."""

from __future__ import annotations

import inspect
from typing import Any

from ...core.device import default_device
from ...names.missing import missing_in
from ..module import Module


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """Return a module whose parameters have any values, without drawing random numbers.

    module_cls: a class of modules with an argument `device`; args, kwargs: its arguments. The
    module is made on the device meta and then gets memory. Raises RuntimeError for another class.

    >>> jaxgrad.nn.utils.skip_init(jaxgrad.nn.Linear, 2, 3)
    Linear(in_features=2, out_features=3, bias=True)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", None) or default_device()
    return module_cls(*args, **kwargs, device="meta").to_empty(device=device)


__getattr__ = missing_in(__name__)
