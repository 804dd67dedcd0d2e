"""Modules of `torch.jit`: traced, scripted, and read from files.

`trace` and `script` of a module give a module of the same class, whose code runs as Python, and
which can be written to a file as an exported program; `load` gives a module that runs one.
"""

from __future__ import annotations

from ..compiled.jit import jit
from ..names.placeholders import not_provided_class, not_provided_function
from ._classes import RecursiveScriptModule, ScriptFunction, TopLevelTracedModule
from ._classes import ScriptModule as ScriptModule
from ._functions import freeze, load, optimize_for_inference, save, script, trace, trace_module

_FUNCTIONS = (
    *("save_jit_module_to_flatbuffer", "jit_module_from_flatbuffer"),
    "last_executed_optimized_graph",
)
_CLASSES = {
    **dict.fromkeys(("CompilationUnit", "RecursiveScriptClass"), "class"),
    "ONNXTracedModule": "layer",
}


vars(jit).update(
    {
        **{function.__name__: function for function in (script, trace, trace_module, freeze)},
        **{function.__name__: function for function in (optimize_for_inference, save, load)},
        **{kind.__name__: kind for kind in (ScriptModule, RecursiveScriptModule, ScriptFunction)},
        **dict.fromkeys(("TopLevelTracedModule", "TracedModule"), TopLevelTracedModule),
    }
)
vars(jit).update((name, not_provided_function(f"torch.jit.{name}")) for name in _FUNCTIONS)
vars(jit).update(
    (name, not_provided_class(f"torch.jit.{name}", kind)) for name, kind in _CLASSES.items()
)
