"""Python's contexts of start methods. The processes that they start have jaxgrad as their torch
where this one has.
"""

from __future__ import annotations

import copyreg
import importlib
import multiprocessing
import sys
from multiprocessing import context

from ..compat.import_hook import TorchFinder
from ..tape import settings


class _Name(str):
    """The name of a process. A process that is started anew reads it first, before it imports the
    program, and imports a module that installs jaxgrad as torch.
    """

    __slots__ = ()


def named(name: str) -> str:
    """The name of a process, which has jaxgrad as its torch where this one has."""
    is_torch = any(isinstance(finder, TorchFinder) for finder in sys.meta_path)
    return _Name(name) if is_torch else name


def _reduced(name: _Name):
    return importlib.import_module("jaxgrad.compat.installed").name_of, (str(name),)


copyreg.dispatch_table[_Name] = _reduced


class Named:
    """A process whose name installs jaxgrad as its torch where this process has that."""

    @property
    def _name(self) -> str:
        return named(self.__dict__["_name"])

    @_name.setter
    def _name(self, name: str):
        self.__dict__["_name"] = name


class SpawnProcess(Named, context.SpawnProcess):
    """A process that is started anew."""


class ForkServerProcess(Named, context.ForkServerProcess):
    """A process that is forked from a server."""


class Spawn(context.SpawnContext):
    """The context "spawn"."""

    Process = SpawnProcess


class ForkServer(context.ForkServerContext):
    """The context "forkserver"."""

    Process = ForkServerProcess


_OURS = {"spawn": Spawn(), "forkserver": ForkServer()}


def set_method(method: str | None):
    """Set the start method of the program; None for the one that Python has."""
    settings.put("start_method", method)


def method_of_program() -> str:
    """The start method that the program has named, else "spawn"."""
    # kept, since Python decides for "fork" as soon as it starts a process in any other way
    if settings.get("start_method") is None:
        set_method(multiprocessing.get_start_method(allow_none=True) or "spawn")
    return settings.get("start_method")


def context_of(method: str | None):
    """The context of a start method, by default that of the program."""
    method = method or method_of_program()
    return _OURS.get(method) or multiprocessing.get_context(method)
