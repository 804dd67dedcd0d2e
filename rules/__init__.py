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

    kept: gives what `read` gives, or None where that is not kept.
    """

    def __init__(self, kept=lambda: None):
        self._kept = kept

    @cached_property
    def families(self) -> dict[str, str]:
        """The family of each function."""
        return {name: family for family, names in self._known[0].items() for name in names}

    @cached_property
    def pointwise(self) -> frozenset[str]:
        """The functions that compute each element by itself."""
        functions, marked = self._known
        return frozenset(name for family in marked for name in functions[family])

    @cached_property
    def _known(self):
        return self._kept() or self.read()

    def read(self) -> list:
        """The names of the functions of each family, and the families that compute each element by
        itself, from the texts of the families.
        """
        texts = {name: Path(__path__[0], f"{name}.py").read_text("utf-8") for name in FAMILIES}
        functions = {family: _DEFINED.findall(text) for family, text in texts.items()}
        return [functions, [name for name, text in texts.items() if "\nPOINTWISE = True" in text]]

    def __getitem__(self, name: str) -> Callable:
        return getattr(importlib.import_module(f"{__name__}.{self.families[name]}"), name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.families)

    def __len__(self) -> int:
        return len(self.families)
