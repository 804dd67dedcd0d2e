"""The names of functions and classes in a file, which is read without making its objects."""

from __future__ import annotations

from ._instructions import Machine, Objects


class _Listed(Objects):
    """Notes names, and makes nothing of them."""

    def __init__(self):
        self.names: dict[str, None] = {}

    def named(self, machine, module, name):
        self.names[f"{module}.{name}"] = None

    def persistent(self, machine, identity):
        return None


class _Lister(Machine):
    """Runs the instructions for numbers, text and containers, and drops all else."""

    def called(self, function, arguments):
        return None

    def new(self):
        self.pop(), self.pop()
        self.container(None)

    def build(self):
        self.pop()

    def append(self, items):
        pass

    def add(self, items):
        pass

    def set_items(self, items):
        pass

    def key(self, value):
        return None


def names_in(files, record, what: str) -> list[str]:
    """The names in the instructions at a place of a file. Raises RefusedFile for instructions that
    no file of PyTorch has.
    """
    listed, end = _Listed(), record.offset + record.size
    _Lister(files.source, record.offset, end, what, listed, files.encoding).run()
    return [*listed.names]
