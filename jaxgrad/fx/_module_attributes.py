"""The attributes of modules by their paths, as "layer.weight"."""

from __future__ import annotations

from typing import Any

from ..nn.module import Module
from ..nn.parameter import Parameter
from ..tape.tensor import Tensor


def used_paths(graph) -> list[str]:
    """The paths of what a graph fetches and calls, in order."""
    nodes = (node for node in graph.nodes if node.op in ("get_attr", "call_module"))
    return list(dict.fromkeys(node.target for node in nodes))


def _owner(module: Module, path: str, creates: bool) -> tuple[Any, str]:
    """What has the attribute at a path, and the name there; None where that is missing.

    creates: make empty modules on the way.
    """
    *steps, name = path.split(".")
    for step in steps:
        if creates and getattr(module, step, None) is None:
            setattr(module, step, Module())
        module = getattr(module, step, None)
        if module is None:
            return None, name
    return module, name


def _get_attr(module: Module, path: str):
    """The attribute at a path. Raises AttributeError where there is none."""
    for name in path.split("."):
        module = getattr(module, name)
    return module


def _has_attr(module: Module, path: str) -> bool:
    owner, name = _owner(module, path, creates=False)
    return owner is not None and hasattr(owner, name)


def _del_attr(module: Module, path: str):
    owner, name = _owner(module, path, creates=False)
    delattr(owner, name)


def _assign_attr(value, module: Module, path: str):
    """Set the attribute at a path; a tensor that is no parameter becomes a buffer."""
    owner, name = _owner(module, path, creates=True)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        owner._buffers.pop(name, None)
        owner.register_buffer(name, value)
    else:
        setattr(owner, name, value)


def _copy_attr(from_module: Module, to_module: Module, path: str):
    """Set the attribute at a path to that of another module, with empty modules on the way."""
    *steps, name = path.split(".")
    for step in steps:
        inner, from_module = getattr(to_module, step, None), getattr(from_module, step)
        if inner is from_module:  # what is on the way is here already
            return
        if inner is None:
            inner = Module()
            setattr(to_module, step, inner)
        to_module = inner
    value = getattr(from_module, name)
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        is_kept = name not in getattr(from_module, "_non_persistent_buffers_set", ())
        to_module._buffers.pop(name, None)
        to_module.register_buffer(name, value, is_kept)
    else:
        setattr(to_module, name, value)
