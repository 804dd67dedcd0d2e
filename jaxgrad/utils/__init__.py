"""The modules of torch.utils: `hooks`, `checkpoint`, `data`, `tensorboard` and others."""

from __future__ import annotations

import importlib

from ..names.not_provided import names_of
from . import hooks as hooks

# imported late: few programs use one
_MODULES = (
    *("_foreach_utils", "_pytree", "benchmark", "checkpoint", "collect_env", "cpp_extension"),
    *("data", "dlpack", "model_zoo", "serialization", "tensorboard", "weak"),
)

_find, _names = names_of(__name__)


def __getattr__(name):
    if name not in _MODULES:
        return _find(name)
    try:
        return importlib.import_module(f"{__name__}.{name}")
    except ModuleNotFoundError as error:  # of a package that the module needs; for `hasattr`
        raise AttributeError(str(error)) from error


def set_module(obj, mod: str):
    """Set the module that an object says it is of.

    >>> class Layer:
    ...     pass
    >>> jaxgrad.utils.set_module(Layer, "layers")
    >>> Layer.__module__
    'layers'
    """
    if not isinstance(mod, str):
        raise TypeError("The mod argument should be a string")
    obj.__module__ = mod


def __dir__():
    return sorted({*_names(), *_MODULES})
