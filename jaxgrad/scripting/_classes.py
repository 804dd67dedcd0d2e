"""The classes of `torch.jit`."""

from __future__ import annotations

from ..nn.module import Module


class ScriptModule(Module):
    """The base of modules that PyTorch scripts: an ordinary `Module`, whose code runs as Python.

    >>> class Double(jaxgrad.jit.ScriptModule):
    ...     @jaxgrad.jit.script_method
    ...     def forward(self, x):
    ...         return x * 2
    >>> Double()(jaxgrad.ones(1))
    tensor([2.])
    """


class RecursiveScriptModule(ScriptModule):
    """The class of modules that `script` and `load` return, and `trace` too."""


class TopLevelTracedModule(RecursiveScriptModule):
    """The class of modules that `trace` returns."""


class ScriptFunction:
    """The class of functions that `trace` returns: they run as Python, and can be saved."""
