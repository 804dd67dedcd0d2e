"""What PyTorch keeps in torch.utils: `hooks`, `checkpoint`."""

from __future__ import annotations

import importlib

from . import hooks as hooks


def __getattr__(name):
    if name != "checkpoint":  # what few programs use, and is no part of `import jaxgrad`
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return importlib.import_module(f"{__name__}.checkpoint")
