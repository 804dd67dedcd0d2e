"""The modules of torch.utils: `hooks`, `checkpoint`, `data`, `tensorboard` and others."""

from __future__ import annotations

import copyreg
import importlib

from ..names.not_provided import names_of
from ..tape.tensor import known_leaf_state, swap_state
from . import hooks as hooks

# imported late: few programs use one
_MODULES = (
    *("_foreach_utils", "_mode_utils", "_pytree", "benchmark", "checkpoint", "collect_env"),
    "cpp_extension",
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


def swap_tensors(t1, t2) -> None:
    """Exchange two tensors, whatever they are, with their classes and attributes: names, modules
    and weak references that have the one have the other then.

    A backward pass of an earlier graph to one of them, where it is a leaf, raises RuntimeError.
    Raises RuntimeError for tensors with different `__slots__`.

    >>> x, y = jaxgrad.ones(2), jaxgrad.nn.Parameter(jaxgrad.zeros(3))
    >>> jaxgrad.utils.swap_tensors(x, y)
    >>> x, y
    (Parameter containing:
    tensor([0., 0., 0.], requires_grad=True), tensor([1., 1.]))
    """
    slots = copyreg._slotnames(type(t1))
    if set(slots) != set(copyreg._slotnames(type(t2))):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for tensor in (t1, t2):
        _leave_graphs(tensor)
    values = [{name: getattr(t, name) for name in slots if hasattr(t, name)} for t in (t1, t2)]
    swap_state(t1, t2)
    for tensor, known in zip((t2, t1), values, strict=True):
        for name in slots:
            if name in known:
                setattr(tensor, name, known[name])
            elif hasattr(tensor, name):
                delattr(tensor, name)


def _leave_graphs(tensor):
    """Let the earlier graphs of a leaf raise where their gradients would go to it."""
    leaf = known_leaf_state(tensor)
    node = None if leaf is None else leaf.node()
    if node is not None:
        node.register_prehook(_refuse_gradient)
        leaf.node = lambda: None


def _refuse_gradient(gradients):
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors: the leaf of this "
        "graph was exchanged after the forward pass. Exchange tensors, and move or convert "
        "modules, before it or after the backward pass"
    )


def __dir__():
    return sorted({*_names(), *_MODULES})
