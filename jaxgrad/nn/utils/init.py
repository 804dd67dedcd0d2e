"""Modules without initialization, as torch.nn.utils.init."""

from __future__ import annotations

import inspect

from ...frontend.generator import default_generator
from ..module import Module


def skip_init(module_cls: type[Module], *args, **kwargs) -> Module:
    """Return a module whose parameters have any values, and leave the random numbers as they were.

    module_cls: a class of modules with an argument `device`; args, kwargs: its arguments. The
    default generator is put back after the constructor has run. Raises RuntimeError for another
    class.

    >>> jaxgrad.nn.utils.skip_init(jaxgrad.nn.Linear, 2, 3)
    Linear(in_features=2, out_features=3, bias=True)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    state = default_generator.get_state()
    try:
        return module_cls(*args, **kwargs)
    finally:
        default_generator.set_state(state)
