"""`torch.jit.ScriptModule`, which is a module like any other here."""

from __future__ import annotations

from ..compiled.jit import jit
from ..names.placeholders import not_provided_class, not_provided_function
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


_FUNCTIONS = (
    *("save", "load", "save_jit_module_to_flatbuffer", "jit_module_from_flatbuffer"),
    "last_executed_optimized_graph",
)
_CLASSES = {
    **dict.fromkeys(("CompilationUnit", "ScriptFunction", "RecursiveScriptClass"), "class"),
    **dict.fromkeys(("RecursiveScriptModule", "TracedModule", "TopLevelTracedModule"), "layer"),
    "ONNXTracedModule": "layer",
}

vars(jit)["ScriptModule"] = ScriptModule
vars(jit).update((name, not_provided_function(f"torch.jit.{name}")) for name in _FUNCTIONS)
vars(jit).update(
    (name, not_provided_class(f"torch.jit.{name}", kind)) for name, kind in _CLASSES.items()
)
