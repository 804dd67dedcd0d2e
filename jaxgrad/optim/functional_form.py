"""The functional form of an optimizer in its module, which few programs use: imported late."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..late import LateModule
from ..names.missing import missing_in

functional = LateModule("jaxgrad.optim.functional")


def with_functional_form(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of the module of an optimizer, as `jaxgrad.optim.sgd`, which has a function
    of its own name.
    """
    missing, form = missing_in(module), module.rpartition(".")[2]

    def __getattr__(name):
        if name != form:
            return missing(name)
        kind, *_ = functional.FORMS[form]
        return functional.form_of(form, getattr(sys.modules[module], kind))

    return __getattr__
