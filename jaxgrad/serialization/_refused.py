"""The error of a file that is not read."""

from __future__ import annotations

# of that module the errors alone, which programs catch: nothing here loads what it would load
from pickle import PicklingError, UnpicklingError

from ..core.pytorch_tensors import type_name


class RefusedObject(PicklingError, TypeError):
    """An object that no file holds. Nothing has been written."""


class RefusedFile(UnpicklingError, RuntimeError):
    """A file is damaged, or holds something that `jaxgrad.load` does not read. Nothing of it has
    been executed.
    """


class UndecodedText(UnicodeDecodeError, RefusedFile):
    """A string of Python 2 is none in the encoding."""

    def __str__(self):
        return self.reason


class EndedFile(RefusedFile, EOFError):
    """A file ends before what it holds does, or has no bytes."""


class UnknownByteOrder(RefusedFile, ValueError):
    """A file names an order of bytes that is neither little nor big."""


class MissingFolder(RuntimeError, FileNotFoundError):
    """The folder of the path to which a file should be written does not exist."""


def printable(text: str) -> str:
    """Text with a question mark in place of each control character."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def shown(value, most: int = 60) -> str:
    """The content of a file for a message: short, and without control characters."""
    text = value if isinstance(value, str) else _repr(value)
    return printable(text if len(text) <= most else f"{text[:most]}...")


def _repr(value) -> str:
    try:
        return repr(value)
    except (RecursionError, ValueError):  # deep containers, long numbers
        return f"a {type(value).__name__}"


def refusal(value, path, why: str) -> RefusedObject:
    """The error for an object that no file holds. path: the keys that lead to it."""
    where = "".join(f"[{key!r}]" for key in path)
    return RefusedObject(f"save(): obj{where} is of type {type_name(value)}: {why}")
