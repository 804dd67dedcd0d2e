"""The modules of torch.utils: `hooks`, `checkpoint`."""

from __future__ import annotations

import importlib

from ..core.missing_names import MissingName
from . import hooks as hooks


def __getattr__(name):
    if name != "checkpoint":  # few programs use it, so `import jaxgrad` does not import it
        raise MissingName(__name__, name)
    return importlib.import_module(f"{__name__}.checkpoint")
