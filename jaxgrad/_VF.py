"""The functions of PyTorch by their names in C++, as torch._VF: programs call them past torch.nn.

>>> import jaxgrad._VF
>>> jaxgrad._VF.relu is jaxgrad.relu
True
"""

from __future__ import annotations

import importlib
import sys

from .names.missing import missing_in

_missing = missing_in(__name__)
vf = sys.modules[__name__]


def __getattr__(name: str):
    if name.startswith("__"):
        raise AttributeError(name)
    public = importlib.import_module(__package__)
    if hasattr(public, name):
        return getattr(public, name)
    return getattr(public.ops, name) if name in dir(public.ops) else _missing(name)
