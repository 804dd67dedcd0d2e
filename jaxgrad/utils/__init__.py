"""The modules of torch.utils: `hooks`, `checkpoint`, `data`."""

from __future__ import annotations

import importlib

from ..core.missing_names import MissingName
from . import hooks as hooks


def __getattr__(name):
    if name not in ("checkpoint", "data"):  # few programs use one, so they are imported late
        raise MissingName(__name__, name)
    return importlib.import_module(f"{__name__}.{name}")
