"""The error of a file that is not read."""

from __future__ import annotations

# of that module the error alone, which programs catch: nothing here loads what it would load
from pickle import UnpicklingError


class RefusedFile(UnpicklingError, RuntimeError):
    """A file is damaged, or holds something that `jaxgrad.load` does not read. Nothing of it has
    been executed.
    """


def shown(text, most: int = 60) -> str:
    """Text out of a file for a message: short, and without control characters."""
    text = text if isinstance(text, str) else repr(text)
    cut = text if len(text) <= most else f"{text[:most]}..."
    return "".join(each if each.isprintable() else "?" for each in cut)
