"""Reads a file as Python's pickle does, which calls functions that the file names; only for
`load(weights_only=False)`.
"""

from __future__ import annotations

import functools
import importlib
import io
import pickle

from ..frontend.storages import StorageType, TypedStorage, UntypedStorage
from ..names.not_provided import is_placeholder, own_name
from ._instructions import Machine
from ._objects import (
    BUILDERS,
    NAMES,
    JaggedTensorName,
    MaskedTensorName,
    of_class,
    of_named_class,
    plain_name,
    torch_constant,
)

UNTYPED = UntypedStorage, TypedStorage


class _Trusting(Machine):
    """The machine that makes tensors here: the memory of objects is not limited."""

    is_trusting = True

    def spend(self, cost: int):
        pass


class Reading:
    """The methods by which a class `Unpickler` makes the objects of a file.

    machine: reads the instructions; it makes the tensors, and this all other objects.
    """

    def __init__(self, machine: Machine):
        count = machine.last - machine.first
        self.code = io.BytesIO(machine.source.read(machine.first, count, machine.file_name))
        super().__init__(self.code, encoding=machine.encoding)
        self.machine = machine

    def persistent_load(self, identity):
        return self.machine.objects.persistent(self.machine, identity)

    def find_class(self, module, name):
        module, name = plain_name(module, name)
        path = f"{module}.{name}"
        if module.partition(".")[0] != "torch":
            return super().find_class(module, name)
        if path == "torch._tensor._rebuild_from_type_v2":
            return functools.partial(_of_type, self.machine)
        known = NAMES.get(path)
        if id(known) in BUILDERS and not isinstance(known, type):
            return functools.partial(known, self.machine)
        if known is None:
            known = torch_constant(name) if module == "torch" else None
        return self._named_in_jaxgrad(path, module, name) if known is None else known

    def _named_in_jaxgrad(self, path, module, name):
        """The object of jaxgrad under a name of PyTorch."""
        value = getattr(importlib.import_module(own_name(module)), name, None)
        if value is None or is_placeholder(value):
            raise self.machine.refuse(f"it names {path}, which jaxgrad does not provide")
        return value


def _of_type(machine, function, kind, arguments, state):
    """A tensor of a class of the user, with its attributes, or of one that PyTorch has."""
    if kind is JaggedTensorName or kind is MaskedTensorName:
        return of_named_class(machine, getattr(function, "func", function), kind, arguments, state)
    return of_class(machine, function(*arguments), kind, state)


class Unpickler(Reading, pickle.Unpickler):
    """Makes the object of a file by Python's module pickle."""


class _Any(type):
    """The metaclass of `_Anything`."""

    def __call__(cls, *arguments, **options):
        return cls

    def __setitem__(cls, key, value):
        pass

    def __getattr__(cls, name):
        return cls


class _Anything(metaclass=_Any):
    """What stands for every object in a first run that looks for storages: calls of it, and its
    instances, are the class itself.
    """

    def __new__(cls, *arguments, **options):
        return cls

    @staticmethod
    def __setstate__(state):
        pass


class _Rehearsal(Unpickler):
    """Tells a function of the descriptions of storages, and makes no object."""

    def __init__(self, machine, note):
        super().__init__(machine)
        self.note = note

    def persistent_load(self, identity):
        if identity[0] != "module":
            self.note(self.machine, identity)
        return _Anything

    def find_class(self, module, name):
        kind = NAMES.get(f"{module}.{name}")
        return kind if isinstance(kind, StorageType) or kind in UNTYPED else _Anything


def _machine(files, record, what: str):
    end = record.offset + record.size
    return _Trusting(files.source, record.offset, end, what, files.objects, files.encoding)


def unpickle(files, record, what: str, pickle_module=None):
    """The object that the instructions at a place of a file make, by their names."""
    return unpickled(files, record, what, pickle_module)[0]


def unpickled(files, record, what: str, pickle_module=None):
    """The object of `unpickle`, and where its instructions end."""
    base = getattr(pickle_module, "Unpickler", Unpickler)
    kind = Unpickler if issubclass(Unpickler, base) else type("Unpickler", (Reading, base), {})
    unpickler = kind(_machine(files, record, what))
    return unpickler.load(), record.offset + unpickler.code.tell()


def rehearse(files, record, what: str, note) -> int:
    """Tell `note` of the descriptions of storages, and return where the instructions end."""
    unpickler = _Rehearsal(_machine(files, record, what), note)
    unpickler.load()
    return record.offset + unpickler.code.tell()
