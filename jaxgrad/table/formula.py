"""Formulas of the table: the names they read, the functions they call, and their compilation."""

import ast
import re
from dataclasses import dataclass
from functools import reduce
from types import CodeType, FunctionType

from . import grammar
from .mistakes import shown


class FormulaError(ValueError):
    """Holds all `problems` of one formula."""

    def __init__(self, problems):
        super().__init__("; ".join(f"{p.cause}; {p.cure}" for p in problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True, eq=False)
class Formula:
    """A valid formula.

    `names`: the names it reads; `values`: those whose elements it needs, not only `.shape`,
    `.ndim` or `.dtype`; `calls`: the functions it calls, 'lax.sin' for a function of a library;
    `indexed`: the pair ('grads', 1) for each `grads[1]`; `places`: the offset of the first read of
    each name; `label`: its name in tracebacks, 'addmm.mat1'. A formula for several outputs becomes
    one Formula for each; `element` is the index of the output in the tuple.
    """

    text: str
    path: str
    line: int
    column: int
    label: str
    names: frozenset[str]
    values: frozenset[str]
    calls: frozenset[str]
    indexed: frozenset[tuple[str, int]]
    places: dict[str, int]
    element: int | None = None

    def compile(self, parameters, scope):
        """Compile the formula to a function with the positional parameters `parameters`.

        `scope` maps function names to callables, and `lax` and `jnp` to modules. `x.f(y)` means
        `f(x, y)`, `a ** b` means `pow(a, b)`, and `0.7 * x` means `mul(x, 0.7)`, for which a number
        keeps its digits beside half precision. A call of `f` loads the global named `f()`, which
        no argument called `f` can hide. Raises NameError for an unknown name.
        """
        missing = self.names.difference(parameters)
        if missing:
            raise NameError(f"{self.label} ({self.path}:{self.line}) reads {sorted(missing)}")
        module = ast.Expression(ast.Lambda(_parameters(parameters), self._body()))
        ast.fix_missing_locations(self._relocated(module))
        code = compile(module, self.path, "eval", dont_inherit=True)
        (code,) = (part for part in code.co_consts if isinstance(part, CodeType))
        code = code.replace(co_name=self.label, co_qualname=self.label)
        return FunctionType(code, self._globals(scope), self.label)

    @property
    def tree(self):
        """The syntax tree, parsed anew: the checks of an entry alone look at it."""
        return grammar.parse(self.text)

    def place(self, name):
        """Line and column of the first read of `name`, or of the formula if there is none."""
        return self.line, self.column + self.places.get(name, 0)

    def _body(self):
        body = Rewriter(self.names).visit(grammar.parse(self.text))
        if self.element is None:
            return body
        return ast.Subscript(body, ast.Constant(self.element), ast.Load())

    def _relocated(self, tree):
        """Set the lines and columns of `tree` to those of the file."""
        for node in ast.walk(tree):
            if hasattr(node, "col_offset"):
                node.lineno = node.end_lineno = self.line
                node.col_offset += self.column - 1
                node.end_col_offset += self.column - 1
        tree.body.lineno = tree.body.end_lineno = self.line
        tree.body.col_offset = tree.body.end_col_offset = self.column - 1
        return tree

    def _globals(self, scope):
        namespace = {"__builtins__": {}}
        for call in self.calls:
            first, *attributes = call.split(".")
            try:
                namespace[f"{call}()"] = reduce(getattr, attributes, scope[first])
            except KeyError:
                where = f"{self.label} ({self.path}:{self.line})"
                raise NameError(f"{where} calls {call!r}, and there is no such function") from None
        return namespace


def _parameters(names):
    arguments = [ast.arg(name) for name in names]
    return ast.arguments([], arguments, None, [], [], None, [])


class Rewriter(ast.NodeTransformer):
    """Rewrites the formula language to Python, as `Formula.compile` describes."""

    def __init__(self, names):
        self.names = names

    def visit_Call(self, node):
        self_argument = []
        library = grammar.dotted(node.func)
        if library:
            name = library
        elif isinstance(node.func, ast.Attribute):
            name, self_argument = node.func.attr, [self.visit(node.func.value)]
        else:
            name = node.func.id
        arguments = self_argument + [self.visit(argument) for argument in node.args]
        keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in node.keywords]
        return _call(node, name, arguments, keywords)

    def visit_BinOp(self, node):
        fraction = grammar.fraction_in(node)
        self.generic_visit(node)
        if isinstance(node.op, ast.Pow):
            return _call(node, "pow", [node.left, node.right])
        if fraction is None:
            return node
        tensor = node.right if fraction is node.left else node.left
        return _call(node, "mul", [tensor, fraction])

    def visit_Attribute(self, node):
        """`x.mH` becomes `x.mT.conj()`, since JAX arrays have no `.mH`."""
        self.generic_visit(node)
        if node.attr != "mH":
            return node
        transposed = ast.copy_location(ast.Attribute(node.value, "mT", ast.Load()), node)
        method = ast.copy_location(ast.Attribute(transposed, "conj", ast.Load()), node)
        return ast.copy_location(ast.Call(method, [], []), node)

    def visit_Name(self, node):
        if node.id in self.names:
            return node
        return ast.copy_location(ast.Constant(grammar.CONSTANTS[node.id]), node)


def _call(node, name, arguments, keywords=()):
    function = ast.copy_location(ast.Name(f"{name}()", ast.Load()), node)
    return ast.copy_location(ast.Call(function, arguments, list(keywords)), node)


@dataclass(frozen=True, slots=True)
class Word:
    """A word in place of a formula, such as `zeros`; `message`: the text of `not_implemented`."""

    kind: str
    message: str = ""


INPUT_WORDS = frozenset(["auto", "zeros", "non_differentiable"])
OUTPUT_WORDS = frozenset(["auto", "auto_linear", "auto_element_wise"])
NOT_IMPLEMENTED = re.compile(r"not_implemented\((['\"])([ -!#-&(-\[\]-~]{1,200})\1\)")


def parse_word(text, words):
    """The Word for `text`, or None if it is a formula.

    Raises FormulaError for a word of outputs at an input, and the reverse.
    """
    text = text.strip()
    if text in words:
        return Word(text)
    match = NOT_IMPLEMENTED.fullmatch(text)
    if match:
        return Word("not_implemented", match[2])
    if text in INPUT_WORDS | OUTPUT_WORDS:
        side = "an input" if words is INPUT_WORDS else "an output"
        cure = f"{side} takes a formula, {', '.join(sorted(words))} or not_implemented('why')"
        cause = f"{shown(text)} cannot stand for the formula of {side}"
        raise FormulaError([grammar.Problem(0, cause, cure)])
    return None


def parse_formula(
    text, scope, *, path="<formula>", line=1, column=1, label="formula", element=None
):
    """Parse a formula whose names and functions are those of the grammar.Scope `scope`.

    Raises FormulaError with all problems.

    >>> from jaxgrad.table import Scope, parse_formula
    >>> scope = Scope(values=frozenset(["grad", "self"]), functions=frozenset(["cos"]))
    >>> sorted(parse_formula("grad * self.cos()", scope).values)
    ['grad', 'self']
    """
    reading = grammar.read(text, scope)
    if reading.problems:
        raise FormulaError(reading.problems)
    names, values, calls = map(frozenset, (reading.names, reading.values, reading.calls))
    places = {name: node.col_offset for name, node in reading.names.items()}
    indexed = frozenset(reading.indexed)
    return Formula(text, path, line, column, label, names, values, calls, indexed, places, element)
