"""Reads tables of derivatives: schemas, formulas and rules. Needs neither JAX nor other packages of
jaxgrad.
"""

import importlib

from .loader import Table as Table
from .loader import circular as circular
from .loader import load as load
from .loader import loads as loads
from .mistakes import Mistake as Mistake
from .mistakes import TableError as TableError

# a program that uses no operator reads no formula
_LATER = dict.fromkeys(("Formula", "FormulaError", "Word", "parse_formula"), "formula")
_LATER |= dict.fromkeys(("NON_DIFFERENTIABLE", "Rule", "camel_case", "copying"), "rule")
_LATER |= dict.fromkeys(
    ("REQUIRED", "Argument", "Return", "Schema", "SchemaError", "Type", "parse_schema"), "schema"
)
_LATER |= {"Scope": "grammar"}


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_LATER[name]}"), name)
    globals()[name] = value
    return value
