"""Reads a file as Python's pickle does, which calls functions that the file names; only for
`load(weights_only=False)`.
"""

from __future__ import annotations

import functools
import importlib
import io
import pickle

from ..names.not_provided import is_placeholder, own_name
from ..nn.module import Module
from ._instructions import Machine
from ._objects import BUILDERS, NAMES, _torch_dtype


class _Trusting(Machine):
    """The machine that makes tensors here: the memory of objects is not limited."""

    def spend(self, cost: int):
        pass


class Unpickler(pickle.Unpickler):
    """Makes the object of an archive.

    machine: reads the instructions; it makes the tensors, and this all other objects.
    """

    def __init__(self, machine: Machine):
        count = machine.last - machine.first
        code = machine.source.read(machine.first, count, machine.file_name)
        super().__init__(io.BytesIO(code), encoding=machine.encoding)
        self.machine = machine

    def persistent_load(self, identity):
        return self.machine.objects.persistent(self.machine, identity)

    def find_class(self, module, name):
        path = f"{module}.{name}"
        if module.partition(".")[0] != "torch":
            return super().find_class(module, name)
        if path == "torch._tensor._rebuild_from_type_v2":
            return _of_type
        known = NAMES.get(path)
        if id(known) in BUILDERS and not isinstance(known, type):
            return functools.partial(known, self.machine)
        if known is None:
            known = _torch_dtype(name) if module == "torch" else None
        return self._named_in_jaxgrad(path, module, name) if known is None else known

    def _named_in_jaxgrad(self, path, module, name):
        """The object of jaxgrad under a name of PyTorch."""
        value = getattr(importlib.import_module(own_name(module)), name, None)
        if value is None or is_placeholder(value):
            raise self.machine.refuse(f"it names {path}, which jaxgrad does not provide")
        if isinstance(value, type) and issubclass(value, Module):
            raise self.machine.refuse(
                f"it holds a whole module of PyTorch, a {name}, whose attributes are others than "
                "those of jaxgrad's: save its state_dict()"
            )
        return value


def _of_type(function, kind, arguments, state):
    """A tensor of a class of the user, with its attributes."""
    tensor = function(*arguments)
    if type(tensor) is not kind and issubclass(kind, type(tensor)):
        tensor = tensor.as_subclass(kind)
    if isinstance(state, tuple):
        state = {name: value for part in state for name, value in (part or {}).items()}
    for name, value in (state or {}).items():
        setattr(tensor, name, value)
    return tensor


def unpickle(files, record, what: str):
    """The object that the instructions at a place of a file make, by their names."""
    end = record.offset + record.size
    return Unpickler(
        _Trusting(files.source, record.offset, end, what, files.objects, files.encoding)
    ).load()
