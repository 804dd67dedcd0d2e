"""`torch.jit.ScriptModule`, which is a module like any other here."""

from __future__ import annotations

from ..capture.jit import jit
from .module import Module


class ScriptModule(Module):
    """The base of modules that PyTorch scripts: an ordinary `Module`, whose code runs as Python.

    >>> class Double(jaxgrad.jit.ScriptModule):
    ...     @jaxgrad.jit.script_method
    ...     def forward(self, x):
    ...         return x * 2
    >>> Double()(jaxgrad.ones(1))
    tensor([2.])
    """


vars(jit)["ScriptModule"] = ScriptModule
