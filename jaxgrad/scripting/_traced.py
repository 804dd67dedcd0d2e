"""Traced and scripted modules and functions."""

from __future__ import annotations

import contextlib
import functools

from ..export._exporting import program_for
from ..export._files import write_program
from ..export._sizes import open_shapes
from ..nn.module import Module
from ..tape.mode import is_grad_enabled
from ._classes import RecursiveScriptModule, ScriptFunction, TopLevelTracedModule

NO_EXAMPLE = (
    "save: a scripted module keeps no example of its inputs, for which the program is made: trace "
    "it by torch.jit.trace(module, example), or call "
    "save(path, example_inputs=(x,)) or torch.jit.script(module, example_inputs=[(x,)])"
)


class Saving:
    """What traced modules and functions have besides their code. example: a pair of arguments by
    position and by name; None if there is none.
    """

    _script_example: tuple | None = None
    _script_target = None
    _script_others: tuple = ()

    def _script_program(self, example_inputs=None):
        example = self._script_example
        if example_inputs is not None:
            example = _tuple_of(example_inputs), {}
        if example is None:
            raise RuntimeError(NO_EXAMPLE)
        if self._script_others:
            raise RuntimeError(
                "save: a file holds the method forward alone, and trace_module got inputs of "
                f"{', '.join(self._script_others)} too: save a module for each method"
            )
        target = self if self._script_target is None else self._script_target
        shapes = open_shapes(target, *example)
        if is_grad_enabled():
            # where the derivative cannot be a part of the program, that says so when it is needed
            with contextlib.suppress(RuntimeError, TypeError, ValueError, NotImplementedError):
                return program_for(target, *example, shapes, with_vjp=True)
        return program_for(target, *example, shapes)

    def save(self, f, _extra_files=None, *, example_inputs=None, **kwargs):
        """Write the program to a file that `torch.jit.load` reads.

        f: a path, or a binary file. example_inputs: a tensor or a tuple of arguments, where neither
        `trace` nor `script` got any. _extra_files: texts or bytes by name.
        """
        files = _extra_files or kwargs.get("extra_files")
        write_program(
            self._script_program(example_inputs), f, files, name=self.original_name, kind="jit"
        )

    @property
    def original_name(self) -> str:
        """The name of the class or function."""
        return getattr(self._script_target, "__name__", type(self).__name__)

    @property
    def graph(self) -> str:
        """The program as text, in StableHLO."""
        return self._script_program().stablehlo()

    inlined_graph = graph

    @property
    def code(self) -> str:
        """The calls of the module as code of Python; "" where there is none."""
        return self._script_program().graph_text()


def scripted(module: Module, example_inputs):
    """A module as a scripted one."""
    example = None
    if isinstance(example_inputs, dict):
        example_inputs = example_inputs.get(module)
    if example_inputs:
        example = _tuple_of(example_inputs[0]), {}
    return _wrapped(module, RecursiveScriptModule, example)


def traced(function, example_inputs, example_kwargs):
    """A module or function as a traced one, after a call for the example."""
    if example_inputs is None and example_kwargs is None:
        raise RuntimeError("example_kwarg_inputs should be a dict, or example_inputs a tuple")
    example = _tuple_of(() if example_inputs is None else example_inputs), example_kwargs or {}
    function(*example[0], **example[1])  # what it raises, it raises here
    if isinstance(function, Module):
        return _wrapped(function, TopLevelTracedModule, example)
    return TracedFunction(function, example)


def traced_module(module, inputs):
    """A module as a traced one, for the example of its method `forward`."""
    if not isinstance(module, Module):
        raise AttributeError("expected torch.nn.Module as the first argument")
    if not isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    for name, example in inputs.items():
        getattr(module, name)(*_tuple_of(example))
    example = (_tuple_of(inputs["forward"]), {}) if "forward" in inputs else None
    wrapped = _wrapped(module, TopLevelTracedModule, example)
    type(wrapped)._script_others = tuple(name for name in inputs if name != "forward")
    return wrapped


def _tuple_of(example) -> tuple:
    return tuple(example) if isinstance(example, tuple | list) else (example,)


def _wrapped(module, kind, example):
    """A module of a class of its own, that shares all attributes of a module."""
    if isinstance(module, Saving):
        module_class = next(base for base in type(module).__mro__[1:] if base is not Saving)
    else:
        module_class = type(module)
    bases = (module_class,) if issubclass(module_class, kind) else (module_class, kind)
    space = {
        "__module__": module_class.__module__,
        "__doc__": module_class.__doc__,
        "_script_example": example,
        "_get_name": lambda self: module_class.__name__,
        "original_name": module_class.__name__,
    }
    members = {n: v for n, v in vars(Saving).items() if not n.startswith("__")}
    new = type(module_class)(module_class.__name__, bases, {**members, **space})
    wrapped = new.__new__(new)
    object.__setattr__(wrapped, "__dict__", module.__dict__)
    return wrapped


class TracedFunction(Saving, ScriptFunction):
    """A traced function."""

    def __init__(self, function, example):
        functools.update_wrapper(self, function)
        self._script_target, self._script_example = function, example

    def __call__(self, *args, **kwargs):
        return self._script_target(*args, **kwargs)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.original_name
