"""Environment variables that a traced function reads and sets; they are places, like items of a
dict.
"""

from __future__ import annotations

import functools
import os
import sys

from ..state.code import UNSET
from ..state.holder import Holder
from ..state.walk import ALL
from ..tape import mode
from .outside import is_of_function


class EnvironmentHolder(Holder):
    """The environment variables."""

    suffix = "[{!r}]"

    @staticmethod
    def mapping(target):
        # past the methods that note what is read
        data, decode = target._data, target.decodevalue
        return {target.decodekey(key): decode(value) for key, value in data.items()}

    contents = mapping

    def difference(self, old, new):
        # each look decodes the texts anew
        bound = {name: value for name, value in new.items() if old.get(name, UNSET) != value}
        return bound, [name for name in old if name not in new]

    def bind(self, target, name, value):
        target[name] = value

    def unbind(self, target, name):
        del target[name]


def _noted(plain, reads_all=False):
    """A method of `os.environ` that notes the variable which it reads or sets."""

    @functools.wraps(plain)
    def method(self, *args):
        observation = mode.open_observation()
        is_environment = observation is not None and self is os.environ
        if is_environment and is_of_function(sys._getframe(1)):
            holder = observation.snapshots.take(self, "os.environ", EnvironmentHolder)
            if reads_all:
                holder.read.add(ALL)
            elif len(args) == 1:
                holder.read.add(args[0])
        return plain(self, *args)

    return method


def replaced_methods():
    """Yield what is replaced while a function is traced (draws/python_reads.py)."""
    kind = type(os.environ)
    for name in ("__getitem__", "__setitem__", "__delitem__"):
        yield kind, name, _noted(getattr(kind, name))
    for name in ("__iter__", "__len__", "copy"):
        yield kind, name, _noted(getattr(kind, name), reads_all=True)
