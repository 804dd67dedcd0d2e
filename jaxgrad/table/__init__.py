"""Reads tables of derivatives: schemas, formulas and rules. Needs neither JAX nor other packages of
jaxgrad.
"""

from .formula import Formula as Formula
from .formula import FormulaError as FormulaError
from .formula import Word as Word
from .formula import parse_formula as parse_formula
from .grammar import Scope as Scope
from .loader import Table as Table
from .loader import circular as circular
from .loader import load as load
from .loader import loads as loads
from .mistakes import Mistake as Mistake
from .mistakes import TableError as TableError
from .rule import NON_DIFFERENTIABLE as NON_DIFFERENTIABLE
from .rule import Rule as Rule
from .rule import camel_case as camel_case
from .schema import REQUIRED as REQUIRED
from .schema import Argument as Argument
from .schema import Return as Return
from .schema import Schema as Schema
from .schema import SchemaError as SchemaError
from .schema import Type as Type
from .schema import parse_schema as parse_schema
