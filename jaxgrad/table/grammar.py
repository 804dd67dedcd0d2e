"""The formula language, a subset of Python's expressions.

`read` parses a text with `ast`, which executes nothing, and walks the tree. Any node, name,
attribute or call that is not on a list is a Problem.
"""

import ast
import math
import re
import threading
from dataclasses import dataclass, field

from .functions import COUNTED, NAMESPACES
from .mistakes import Problem, bare, listed, mean, shown

MAX_CHARACTERS = 1000
MAX_NODES = 400
MAX_DEPTH = 40
MAX_ITEMS = 64
MAX_EXPONENT = 64
MAX_INTEGER = 2**63 - 1

METADATA = frozenset(["shape", "ndim", "dtype"])  # known without the value
ATTRIBUTES = METADATA | {"real", "imag", "mT", "mH"}
CONSTANTS = {"pi": math.pi, "inf": math.inf}

UNWRITABLE = re.compile(r"[^ -~]|[\\#`$?;]")
GLUED = re.compile(r"(?<![\w.])\.?[0-9][\w.]*?(?:and|else|for|if|in|is|not|or)\b")  # 1if x else 2
SIMPLE = re.compile(r"[a-z_]{1,20}")
ARITHMETIC = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE)
KINDS = {
    "Await": "await",
    "BitAnd": "&: write logical_and(a, b)",
    "BitOr": "|: write logical_or(a, b)",
    "BitXor": "^: write logical_xor(a, b), or a ** b for a power",
    "Dict": "a dictionary",
    "DictComp": "a comprehension",
    "GeneratorExp": "a comprehension",
    "In": "`in`",
    "Invert": "~: write logical_not(a)",
    "Is": "`is`: write ==",
    "IsNot": "`is not`: write !=",
    "JoinedStr": "a formatted string",
    "Lambda": "a lambda",
    "List": "a list: write a tuple, (1, 2)",
    "ListComp": "a comprehension",
    "NamedExpr": "an assignment",
    "NotIn": "`not in`",
    "Set": "a set",
    "SetComp": "a comprehension",
    "Slice": "a slice: call narrow, select or slice",
    "Starred": "a starred expression",
    "Yield": "yield",
    "YieldFrom": "yield",
}
LANGUAGE = (
    "formulas are made of names, numbers, arithmetic, comparisons, `a if c else b`, tuples, calls"
)


class Unreadable(Exception):
    """Ends the reading of a formula; holds the Problem."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that a formula may use.

    `values`: names it may read; `functions`: names it may call; `integers`, `texts`, `lists`: the
    names in `values` of int, str and list arguments; `hints`: names it may not read, with cause and
    cure; `namespaces`: whether it may call `lax.` and `jnp.`.
    """

    values: frozenset
    functions: frozenset
    integers: frozenset = frozenset()
    texts: frozenset = frozenset()
    lists: frozenset = frozenset()
    hints: dict = field(default_factory=dict)
    namespaces: bool = False


def read(text, scope):
    """Parse and check a formula; the Reading holds all `problems`."""
    reading = Reading(scope)
    try:
        reading.tree = parse(text)
        reading.visit(reading.tree)
    except Unreadable as unreadable:
        reading.problems.append(unreadable.args[0])
    return reading


def parse(text):
    """The syntax tree of an expression. Raises Unreadable."""
    _check_text(text)
    try:
        return expression(text.strip(" "))
    except SyntaxError as error:
        raise Unreadable(_syntax_problem(text, error.offset or 0, error.msg)) from None
    except ValueError as error:
        raise Unreadable(_syntax_problem(text, 0, str(error))) from None
    except (MemoryError, RecursionError):
        raise Unreadable(Problem(0, "it is nested too deeply", SHORTER)) from None


_parsing = threading.RLock()


def expression(text):
    """The tree of a Python expression, parsed by one thread at a time. Raises as `ast.parse`."""
    # up to Python 3.11.7 and 3.12.1 all threads count the depth of the trees they make in one
    # number (python/cpython#106905), and a collection of garbage lets another thread in
    with _parsing:
        try:
            return ast.parse(text, mode="eval").body
        except SystemError:  # code that is not ours has parsed meanwhile
            return ast.parse(text, mode="eval").body


def _syntax_problem(text, column, message):
    """`column` counts from 1; Python reports 0 for the end of the text."""
    if column == 0:
        return Problem(len(text), f"it cannot be read: {bare(message)}", LANGUAGE)
    offset = min(column - 1, len(text))
    return Problem(offset, f"cannot read {shown(text[offset:])}: {bare(message)}", LANGUAGE)


SHORTER = "move parts of it to a helper function"


def _check_text(text):
    if not text.strip():
        raise Unreadable(Problem(0, "it is empty", "write an expression, or leave the key out"))
    if len(text) > MAX_CHARACTERS:
        cause = f"it has {len(text)} characters; the most is {MAX_CHARACTERS}"
        raise Unreadable(Problem(0, cause, SHORTER))
    strange = UNWRITABLE.search(text)
    if strange:
        cause = f"the character {strange[0]!a} is not allowed in a formula"
        raise Unreadable(Problem(strange.start(), cause, LANGUAGE))
    glued = GLUED.search(text)
    if glued:
        cause = f"a number runs into a word: {shown(glued[0])}"
        raise Unreadable(Problem(glued.start(), cause, "put a blank between them"))
    if text.startswith(" "):
        raise Unreadable(Problem(0, "it begins with a blank", "leave the blank out"))
    if _bracket_depth(text) > MAX_DEPTH:
        raise Unreadable(Problem(0, f"brackets in more than {MAX_DEPTH} levels", SHORTER))


def _bracket_depth(text):
    depth = deepest = 0
    for bracket in re.findall(r"[(\[{)\]}]", text):
        depth += 1 if bracket in "([{" else -1
        deepest = max(deepest, depth)
    return deepest


class Reading:
    """One walk over a tree.

    `names`, `values`, `calls` and `indexed` map what the formula reads, calls and indexes to the
    first node that does so.
    """

    def __init__(self, scope):
        self.scope, self.problems = scope, []
        self.names, self.values, self.calls, self.indexed = {}, {}, {}, {}
        self.count = self.depth = 0

    def problem(self, node, cause, cure=LANGUAGE):
        self.problems.append(Problem(node.col_offset, cause, cure))

    def visit(self, node):
        self.count += 1
        if self.count > MAX_NODES or self.depth > MAX_DEPTH:
            cause = f"it has more than {MAX_NODES} parts, or more than {MAX_DEPTH} levels"
            raise Unreadable(Problem(node.col_offset, cause, SHORTER))
        check = CHECKS.get(type(node))
        if check is None:
            return self.refuse(node, node)
        self.depth += 1
        check(self, node)
        self.depth -= 1

    def refuse(self, node, kind):
        name = type(kind).__name__
        what, _, cure = KINDS.get(name, name).partition(": ")
        self.problem(node, f"{what} is not part of the formula language", cure or LANGUAGE)

    # names and constants

    def visit_name(self, node):
        if self.may_read(node):
            self.values.setdefault(node.id, node)

    def may_read(self, node):
        name, scope = node.id, self.scope
        if name in scope.values:
            self.names.setdefault(name, node)
        elif name in scope.hints:
            self.problem(node, *scope.hints[name])
        elif name in scope.functions:
            self.problem(node, f"{shown(name)} is a function", f"call it: {name}(...)")
        elif name not in CONSTANTS:
            otherwise = f"in scope are {listed(sorted(scope.values))}"
            self.problem(node, f"unknown name {shown(name)}", mean(name, scope.values, otherwise))
        return name in scope.values

    def visit_constant(self, node):
        value = node.value
        if value is None or isinstance(value, bool):
            return
        if isinstance(value, str):
            cure = "a mode flag is compared, `mode == 'same'`, or passed by keyword, `mode='same'`"
            self.problem(node, f"the text {shown(value)} is not allowed here", cure)
        elif isinstance(value, int) and value > MAX_INTEGER:
            self.problem(node, "an integer beyond 64 bits", "write it as a float")
        elif isinstance(value, float) and not math.isfinite(value):
            self.problem(node, "a float that is not finite", "write inf")
        elif not isinstance(value, int | float):
            self.problem(node, f"a constant of type {type(value).__name__}")

    # operators

    def visit_binary(self, node):
        if not isinstance(node.op, ARITHMETIC):
            self.refuse(node, node.op)
        if isinstance(node.op, ast.Pow):
            self.check_power(node)
            self.check_call(node, "pow")
        elif fraction_in(node):
            self.check_call(node, "mul")
        self.visit_operands([node.left, node.right])

    def check_power(self, node):
        if is_constant(node.left) and is_constant(node.right):
            self.problem(node, "a power of two constants", "write its value")
        elif abs(number(node.right)) > MAX_EXPONENT:
            self.problem(node.right, f"an exponent beyond {MAX_EXPONENT}", "write a smaller one")

    def visit_operands(self, operands):
        for operand in operands:
            if self.is_list(operand):
                self.problem(operand, "arithmetic on a tuple", "write a helper function")
            self.visit(operand)

    def is_list(self, node):
        if isinstance(node, ast.IfExp):
            return self.is_list(node.body) or self.is_list(node.orelse)
        if isinstance(node, ast.Attribute):
            return node.attr == "shape"
        return isinstance(node, ast.Tuple) or getattr(node, "id", None) in self.scope.lists

    def visit_unary(self, node):
        if not isinstance(node.op, ast.USub | ast.UAdd | ast.Not):
            self.refuse(node, node.op)
        self.visit_operands([node.operand])

    def visit_boolean(self, node):
        for value in node.values:
            self.visit(value)

    def visit_comparison(self, node):
        if len(node.ops) > 1:
            self.problem(node, "a chain of comparisons", "join two comparisons with `and`")
        for op in node.ops:
            if not isinstance(op, COMPARISONS):
                self.refuse(node, op)
        operands = [node.left, *node.comparators]
        if any(getattr(operand, "id", None) in self.scope.texts for operand in operands):
            operands = [operand for operand in operands if not is_flag(operand)]
        for operand in operands:
            self.visit(operand)

    def visit_condition(self, node):
        for part in (node.test, node.body, node.orelse):
            self.visit(part)

    def visit_tuple(self, node):
        if len(node.elts) > MAX_ITEMS:
            self.problem(node, f"a tuple of more than {MAX_ITEMS} items", SHORTER)
        for item in node.elts:
            self.visit(item)

    # attributes, indices, calls

    def visit_attribute(self, node):
        if node.attr not in ATTRIBUTES:
            cure = mean(node.attr, ATTRIBUTES, f"attributes are {', '.join(sorted(ATTRIBUTES))}")
            if node.attr in self.scope.functions:
                cure = f"{node.attr} is a function: call it"
            at = node.end_col_offset - len(node.attr)
            self.problems.append(Problem(at, f"unknown attribute {shown(node.attr)}", cure))
        if isinstance(node.value, ast.Constant | ast.Tuple):
            self.problem(node, "an attribute of a constant")
        elif node.attr in METADATA and isinstance(node.value, ast.Name):
            self.may_read(node.value)
        else:
            self.visit(node.value)

    def visit_index(self, node):
        index, base = node.slice, node.value
        self.visit(base)
        if isinstance(base, ast.Constant):
            self.problem(node, "an item of a constant")
        elif isinstance(index, ast.Name) and index.id in self.scope.integers:
            self.visit(index)
        elif not is_integer(index):
            cure = "an index is an integer or the name of an int argument"
            self.problem(index, "an index that is not an integer", cure)
        elif isinstance(base, ast.Name):
            self.indexed.setdefault((base.id, int(number(index))), node)

    def visit_call(self, node):
        function = node.func
        if isinstance(function, ast.Name) and function.id == "not_implemented":
            cure = 'write not_implemented("why") and nothing else'
            return self.problem(node, "not_implemented inside a formula", cure)
        if isinstance(function, ast.Name):
            self.check_call(node, function.id)
        elif isinstance(function, ast.Attribute) and dotted(function):
            self.check_library(function)
        elif isinstance(function, ast.Attribute):
            self.check_call(node, function.attr, function.end_col_offset - len(function.attr))
            self.visit(function.value)
        else:
            self.problem(node, "only functions with a name can be called")
        self.check_arguments(node)

    def check_call(self, node, name, offset=None):
        offset = node.col_offset if offset is None else offset
        self.calls.setdefault(name, node)
        if name not in self.scope.functions or "__" in name:
            cure = mean(name, self.scope.functions, "call an operator or a helper function")
            self.problems.append(Problem(offset, f"unknown function {shown(name)}", cure))

    def check_library(self, function):
        library, _, name = dotted(function).partition(".")
        self.calls.setdefault(f"{library}.{name}", function)
        if not self.scope.namespaces:
            cure = "call an operator or a helper"
            self.problem(function, f"{library}. belongs in `forward:` only", cure)
        elif library == "jnp" and name in COUNTED:
            cure = "write a function in rules/"
            cause = f"'jnp.{name}' takes as many steps as an argument says"
            self.problem(function, cause, cure)
        elif name not in NAMESPACES[library]:
            cure = mean(name, NAMESPACES[library], "write a function in rules/")
            self.problem(function, f"{shown(f'{library}.{name}')} is not on the list", cure)

    def check_arguments(self, node):
        for argument in node.args:
            self.visit(argument)
        names = [keyword.arg for keyword in node.keywords]
        for keyword in node.keywords:
            self.check_keyword(keyword, names)
            if not is_flag(keyword.value):
                self.visit(keyword.value)

    def check_keyword(self, keyword, names):
        if keyword.arg is None:
            self.problem(keyword, "** is not part of the formula language", "name each argument")
        elif keyword.arg in ("out", "unroll") or keyword.arg.startswith("_"):
            self.problem(keyword, f"{shown(keyword.arg)} cannot be passed", "leave it out")
        elif names.count(keyword.arg) > 1:
            self.problem(keyword, f"{shown(keyword.arg)} is passed twice", "leave one out")


CHECKS = {
    ast.Attribute: Reading.visit_attribute,
    ast.BinOp: Reading.visit_binary,
    ast.BoolOp: Reading.visit_boolean,
    ast.Call: Reading.visit_call,
    ast.Compare: Reading.visit_comparison,
    ast.Constant: Reading.visit_constant,
    ast.IfExp: Reading.visit_condition,
    ast.Name: Reading.visit_name,
    ast.Subscript: Reading.visit_index,
    ast.Tuple: Reading.visit_tuple,
    ast.UnaryOp: Reading.visit_unary,
}


def dotted(node):
    """The dotted name of a library function, 'lax.sin', or '' for any other tree."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in NAMESPACES:
        return ".".join((node.id, *reversed(names)))
    return ""


def is_flag(node):
    return isinstance(node, ast.Constant) and bool(
        isinstance(node.value, str) and SIMPLE.fullmatch(node.value)
    )


def is_constant(node):
    """Whether a tree contains no name and no call."""
    return not any(isinstance(part, ast.Name | ast.Call) for part in ast.walk(node))


def number(node):
    """The value of a number with optional signs, or 0 for any other tree."""
    sign = 1
    while isinstance(node, ast.UnaryOp):
        sign, node = -sign if isinstance(node.op, ast.USub) else sign, node.operand
    value = getattr(node, "value", 0)
    return sign * value if type(value) in (int, float) else 0


def fraction_in(node):
    """The operand of a product that is a number with a fraction, or None."""
    if not isinstance(node.op, ast.Mult):
        return None
    operands = (operand for operand in (node.left, node.right) if number(operand) % 1)
    return next(operands, None)


def is_integer(node):
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) is int
