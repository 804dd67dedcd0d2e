"""Value functions of operators and helpers of formulas, one module for each family.

The formulas of the table may call every public function of these modules. A family imports
modules, never functions: an imported function would become callable too.
"""

import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from jaxgrad.cached import cached_property

FAMILIES = tuple(module.name for module in pkgutil.iter_modules(__path__))

_DEFINED = re.compile(r"^(?:def (?=[A-Za-z])|(?=[a-z]))(\w+)(?:\(| = )", re.MULTILINE)


class Functions(Mapping[str, Callable]):
    """The public functions of all families, by name. A family is imported when the first of its
    functions is used: what it defines is read from its text, which takes a tenth of the time.
    """

    @cached_property
    def families(self) -> dict[str, str]:
        """The family of each function."""
        return {n: family for family, text in self._texts.items() for n in _DEFINED.findall(text)}

    @cached_property
    def pointwise(self) -> frozenset[str]:
        """The functions that compute each element by itself."""
        marked = [family for family, text in self._texts.items() if "\nPOINTWISE = True" in text]
        return frozenset(name for name, family in self.families.items() if family in marked)

    @cached_property
    def _texts(self):
        return {name: Path(__path__[0], f"{name}.py").read_text("utf-8") for name in FAMILIES}

    def __getitem__(self, name: str) -> Callable:
        return getattr(importlib.import_module(f"{__name__}.{self.families[name]}"), name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.families)

    def __len__(self) -> int:
        return len(self.families)
