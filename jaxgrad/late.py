"""Modules that are imported when they are first used."""

import importlib


class LateModule:
    """Stands for the module `path` and imports it when the first of its names is used.

    From then on it has the dict of the module as its own, so that a name costs what it costs in the
    module, and a global that changes there changes here.

    >>> from jaxgrad.late import LateModule
    >>> windows = LateModule("jaxgrad.signal.windows")
    >>> windows.hann(3, sym=True)
    tensor([0., 1., 0.])
    """

    __slots__ = ("__dict__", "_path")

    def __init__(self, path: str):
        self._path = path

    def __getattr__(self, name: str):
        if name == "__wrapped__":  # which `inspect` asks of every object
            raise AttributeError(name)
        module = importlib.import_module(self._path)
        self.__dict__ = module.__dict__
        return getattr(module, name)
