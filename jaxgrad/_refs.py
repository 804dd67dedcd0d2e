"""The operators under the names that PyTorch has for forms of them in Python, as torch._refs.

Here a reference is the operator itself.

>>> import jaxgrad._refs
>>> jaxgrad._refs.fft.fft is jaxgrad.fft.fft, jaxgrad._refs.view(jaxgrad.ones(4), (2, 2)).shape
(True, torch.Size([2, 2]))
"""

from __future__ import annotations

import importlib
import types

from . import ops
from .names.missing import missing_in
from .tape.tensor import Tensor


class _Space(types.SimpleNamespace):
    """The names of a public module."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(importlib.import_module(f"jaxgrad.{self.module}"), name)


fft, linalg, special = _Space(module="fft"), _Space(module="linalg"), _Space(module="special")
nn = types.SimpleNamespace(functional=_Space(module="nn.functional"))


class _Conversions:
    """Methods that convert to a dtype, and functions of the same kind."""

    def __getattr__(self, name):
        return getattr(Tensor if hasattr(Tensor, name) else _public(), name)


_conversions = _Conversions()
_missing = missing_in(__name__)


def __getattr__(name):
    if not name.startswith("__"):
        for place in (_public(), ops, Tensor):
            if hasattr(place, name):
                return getattr(place, name)
    return _missing(name)


def _public():
    return importlib.import_module("jaxgrad")
