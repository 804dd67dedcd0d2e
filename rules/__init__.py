"""Value functions of operators and helpers of formulas, one module for each family.

The formulas of the table may call every public function of these modules. A family imports
modules, never functions: an imported function would become callable too.
"""

import importlib
import pkgutil

FAMILIES = tuple(
    importlib.import_module(f"{__name__}.{module.name}")
    for module in pkgutil.iter_modules(__path__)
)
