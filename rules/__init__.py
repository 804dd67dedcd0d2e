"""Value functions and formula helpers, one module a family: their functions are in scope of the
table's formulas.

A family imports modules, never functions, so that what it defines is what it offers.
"""

import importlib
import pkgutil

FAMILIES = tuple(
    importlib.import_module(f"{__name__}.{module.name}")
    for module in pkgutil.iter_modules(__path__)
)
