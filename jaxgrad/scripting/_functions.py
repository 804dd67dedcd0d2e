"""The functions of `torch.jit` that trace, script, save and load."""

from __future__ import annotations

from ..late import LateModule
from ..nn.module import Module

files = LateModule("jaxgrad.scripting._files")
traced = LateModule("jaxgrad.scripting._traced")


def script(obj, optimize=None, _frames_up=0, _rcb=None, example_inputs=None):
    """Return a function or class as it is, and a module as a `ScriptModule` of the same class that
    shares all of its attributes. The code runs as Python.

    example_inputs: a list of tuples of arguments; `save` uses the first. The other
    arguments have no effect. Raises TypeError for a number or a text.

    >>> layer = jaxgrad.nn.Linear(2, 1)
    >>> scripted = jaxgrad.jit.script(layer)
    >>> isinstance(scripted, jaxgrad.jit.ScriptModule), scripted.weight is layer.weight
    (True, True)
    """
    if isinstance(obj, Module):
        return traced.scripted(obj, example_inputs)
    if obj is None or isinstance(obj, bool | int | float | complex | str | bytes):
        raise TypeError(f"{type(obj)} is a built-in class: script() takes modules and functions")
    return obj


def trace(
    func,
    example_inputs=None,
    optimize=None,
    check_trace=True,
    check_inputs=None,
    check_tolerance=1e-5,
    strict=True,
    _force_outplace=False,
    _module_class=None,
    _compilation_unit=None,
    example_kwarg_inputs=None,
    _store_inputs=True,
):
    """Call a module for example inputs, and return it as a `ScriptModule` that can be saved.

    func: a module, whose attributes the result shares, or a function. example_inputs: a tensor, or
    a tuple of arguments; example_kwarg_inputs: a dict of arguments. The other arguments have no
    effect.

    The code goes on to run as Python, so gradients of any order are those of `func`. `save` writes
    the program for the example, in which all sizes vary that can.

    >>> traced = jaxgrad.jit.trace(jaxgrad.nn.Linear(2, 1), jaxgrad.ones(3, 2))
    >>> traced(jaxgrad.ones(5, 2)).shape, isinstance(traced, jaxgrad.jit.ScriptModule)
    (torch.Size([5, 1]), True)
    """
    return traced.traced(func, example_inputs, example_kwarg_inputs)


def trace_module(mod, inputs, *args, **options):
    """Return a module as `trace` does, for the example inputs of its method `forward`.

    inputs: a dict of the arguments of methods. A file holds `forward` alone. The other arguments
    have no effect.

    >>> traced = jaxgrad.jit.trace_module(jaxgrad.nn.ReLU(), {"forward": jaxgrad.ones(2)})
    >>> traced(-jaxgrad.ones(1))
    tensor([0.])
    """
    return traced.traced_module(mod, inputs)


def freeze(mod, preserved_attrs=None, optimize_numerics: bool = True):
    """Return a module in evaluation mode as a `ScriptModule`: XLA needs no constants in its code.

    Raises RuntimeError for a module in training mode. The other arguments have no effect.

    >>> jaxgrad.jit.freeze(jaxgrad.jit.script(jaxgrad.nn.ReLU()).eval())(-jaxgrad.ones(1))
    tensor([0.])
    """
    if getattr(mod, "training", False):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() "
            "on your module before freezing."
        )
    return mod


def optimize_for_inference(mod, other_methods=None):
    """Return a module as it is: XLA optimizes what it compiles.

    >>> layer = jaxgrad.jit.script(jaxgrad.nn.ReLU())
    >>> jaxgrad.jit.optimize_for_inference(layer) is layer
    True
    """
    return mod


def save(m, f, _extra_files=None):
    """Write a traced or scripted module to a file that `load` and `export.load` read.

    m: a `ScriptModule`, of `trace`, `script` (with example inputs) or `load`, or a traced function.
    f: a path, or a binary file. _extra_files: texts or bytes by name.

    Raises RuntimeError for a module without example inputs.

    >>> import io
    >>> file = io.BytesIO()
    >>> traced = jaxgrad.jit.trace(jaxgrad.nn.Linear(2, 1), jaxgrad.ones(3, 2))
    >>> jaxgrad.jit.save(traced, file)
    >>> _ = file.seek(0)
    >>> jaxgrad.jit.load(file)(jaxgrad.ones(5, 2)).shape
    torch.Size([5, 1])
    """
    if not hasattr(m, "save"):
        raise AttributeError(
            f"{type(m).__name__!r} object has no attribute 'save': save() takes what jit.trace, "
            "jit.script or jit.load returns"
        )
    m.save(f, _extra_files=_extra_files)


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Read a module from a file of `save` or of `export.save`. Nothing of the file is executed.

    f: a path, or a binary file. map_location: a device for the parameters and buffers, as for
    `jaxgrad.load`. _extra_files: a dict that gets the files of its keys, as bytes.

    The module runs the program of the file; the gradients of its parameters are in the program.
    Raises ValueError where there is no file, RuntimeError for a damaged file and for the files of
    PyTorch.

    >>> import io
    >>> file = io.BytesIO()
    >>> jaxgrad.jit.trace(jaxgrad.nn.Linear(2, 1), jaxgrad.ones(3, 2)).save(file)
    >>> _ = file.seek(0)
    >>> [*jaxgrad.jit.load(file, map_location="cpu").state_dict()]
    ['weight', 'bias']
    """
    return files.loaded(f, map_location, _extra_files)
