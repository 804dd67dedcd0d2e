"""Tables of derivatives: schemas, formulas, rules. Imports nothing else of jaxgrad, and no JAX."""

from jaxgrad.table.formula import Formula as Formula
from jaxgrad.table.formula import FormulaError as FormulaError
from jaxgrad.table.formula import Word as Word
from jaxgrad.table.formula import parse_formula as parse_formula
from jaxgrad.table.grammar import Scope as Scope
from jaxgrad.table.loader import Table as Table
from jaxgrad.table.loader import load as load
from jaxgrad.table.loader import loads as loads
from jaxgrad.table.mistakes import Mistake as Mistake
from jaxgrad.table.mistakes import TableError as TableError
from jaxgrad.table.rule import NON_DIFFERENTIABLE as NON_DIFFERENTIABLE
from jaxgrad.table.rule import Rule as Rule
from jaxgrad.table.rule import camel_case as camel_case
from jaxgrad.table.schema import REQUIRED as REQUIRED
from jaxgrad.table.schema import Argument as Argument
from jaxgrad.table.schema import Return as Return
from jaxgrad.table.schema import Schema as Schema
from jaxgrad.table.schema import SchemaError as SchemaError
from jaxgrad.table.schema import Type as Type
from jaxgrad.table.schema import parse_schema as parse_schema
