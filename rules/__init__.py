"""Value functions of operators and helpers of formulas, one module for each family.

The formulas of the table may call every public function of these modules. A family imports
modules, never functions: an imported function would become callable too.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

FAMILIES = tuple(module.name for module in pkgutil.iter_modules(__path__))

_DEFINED = re.compile(r"^(?:def (?=[A-Za-z])|(?=[a-z]))(\w+)(?:\(| = )", re.MULTILINE)


class Functions(Mapping[str, Callable]):
    """The public functions of all families, by name. A family is imported when the first of its
    functions is used: what it defines is read from its text, which takes a tenth of the time.
    """

    def __init__(self):
        texts = {name: Path(__path__[0], f"{name}.py").read_text("utf-8") for name in FAMILIES}
        self.families = {
            name: family for family, text in texts.items() for name in _DEFINED.findall(text)
        }
        pointwise = [family for family, text in texts.items() if "\nPOINTWISE = True" in text]
        self.pointwise = frozenset(n for n, family in self.families.items() if family in pointwise)

    def __getitem__(self, name: str) -> Callable:
        return getattr(importlib.import_module(f"{__name__}.{self.families[name]}"), name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.families)

    def __len__(self) -> int:
        return len(self.families)
