"""The classes of results of several tensors, as torch.return_types.

>>> isinstance(jaxgrad.ones(2).max(0), jaxgrad.return_types.max)
True
"""

from __future__ import annotations

from . import ops
from .names.missing import MissingName

__path__ = []  # as of a package: names that are absent can be imported


def __getattr__(name):
    if name.startswith("_") or not ops.library.has(name):
        raise MissingName(__name__, name)
    for overload in ops.library.find(name).primitives:
        if overload.pack is not tuple:
            return overload.pack.__self__
    raise MissingName(__name__, name)
