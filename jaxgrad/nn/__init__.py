"""Networks, with torch.nn's names: `Module`, `Parameter`, layers, losses, `functional`, `init`, `utils`.

What a script does not use is not imported.
"""

from __future__ import annotations

import importlib

from . import functional as functional

_MODULES = ("init", "module", "parameter", "utils")

# where the names are
_LATER = {
    "Module": "module",
    **dict.fromkeys(["Buffer", "Parameter"], "parameter"),
}


def __getattr__(name):
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name in _LATER:
        found = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_MODULES, *_LATER})
