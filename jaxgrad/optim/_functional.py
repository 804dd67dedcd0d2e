"""The functional forms of all optimizers.

>>> from jaxgrad.optim._functional import adam
>>> adam is jaxgrad.optim.adam.adam
True
"""

from __future__ import annotations

import importlib

from ..names.missing import missing_in
from .functional import FORMS

_missing = missing_in(__name__)


def __getattr__(name):
    if name not in FORMS:
        return _missing(name)
    return getattr(importlib.import_module(f"{__package__}.{name}"), name)
