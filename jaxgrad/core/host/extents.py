"""Extents that depend on others, as trees of plain data.

A tree is an int, a symbol, which is "d0" to "d15", or a list of an operation and its operands. JAX
writes its symbolic extents as text. Python's parser reads this text, and only the operations named
below are accepted. No part of a tree runs as code.
"""

from __future__ import annotations

import ast
import operator

# The symbols that a tree may have, and how far it may go: a damaged file must not take up memory.
SYMBOLS = 16
MOST_NODES, MOST_POWER, MOST_INTEGER = 256, 8, 2**63

OPERATIONS = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "max": max,
    "min": min,
}

_BINARY = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Pow: "**"}
_CALLS = {"floordiv": "//", "mod": "%", "max": "max", "min": "min"}


def tree_of(extent) -> int | str | list:
    """The tree of an int or of a symbolic extent of JAX. Raises ValueError."""
    if isinstance(extent, int):
        return extent
    return tree_of_text(str(extent))


def tree_of_text(text: str) -> int | str | list:
    """The tree of an extent as JAX writes it. Raises ValueError."""
    # JAX writes what Python does, but for powers
    return checked(_tree(ast.parse(text.replace("^", "**"), mode="eval").body))


def _tree(node):
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return ["*", -1, _tree(node.operand)]
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return [_BINARY[type(node.op)], _tree(node.left), _tree(node.right)]
    is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords
    if is_call and node.func.id in _CALLS and len(node.args) == 2:
        return [_CALLS[node.func.id], *map(_tree, node.args)]
    raise ValueError(f"no extent: {ast.unparse(node)}")


def checked(tree):
    """A tree, after a look at all of it. Raises ValueError if it is none."""
    if type(tree) is str and tree in NUMBERS:  # as almost all are
        return tree
    left = MOST_NODES
    waiting = [tree]
    while waiting:
        node, left = waiting.pop(), left - 1
        if left < 0 or not _is_node(node):
            raise ValueError(f"no extent: {str(tree)[:80]}")
        if type(node) is list:
            waiting += node[1:]
    return tree


def _is_node(node) -> bool:
    if type(node) is int:
        return abs(node) < MOST_INTEGER
    if type(node) is str:
        return node in NUMBERS
    if type(node) is not list or len(node) != 3 or type(node[0]) is not str:
        return False
    is_power = node[0] == "**"
    may_be = not is_power or (type(node[2]) is int and 0 <= node[2] <= MOST_POWER)
    return node[0] in OPERATIONS and may_be


NUMBERS = {f"d{i}": i for i in range(SYMBOLS)}


def value(tree, extents) -> int:
    """The number that a checked tree is for the extents of the symbols. Raises ValueError where
    there is none.
    """
    kind = type(tree)
    if kind is str:
        return extents[NUMBERS[tree]]
    if kind is int:
        return tree
    operation, first, second = tree
    first, second = value(first, extents), value(second, extents)
    if operation in ("//", "%") and second == 0:
        raise ValueError("division by an extent of 0")
    number = OPERATIONS[operation](first, second)
    if abs(number) >= MOST_INTEGER:
        raise ValueError(f"no extent: {str(number)[:80]}")
    return number


# ---- conditions: lists of a comparison and the trees of two extents

COMPARISONS = {"!=": operator.ne, ">=": operator.ge, "==": operator.eq}


def checked_condition(condition):
    """A condition, after a look at all of it. Raises ValueError if it is none."""
    is_one = type(condition) is list and len(condition) == 3 and type(condition[0]) is str
    if not is_one or condition[0] not in COMPARISONS:
        raise ValueError(f"no condition: {str(condition)[:80]}")
    checked(condition[1])
    checked(condition[2])
    return condition


def holds(condition, extents) -> bool:
    """Whether a checked condition holds of the extents of the symbols. Raises ValueError."""
    comparison, first, second = condition
    return COMPARISONS[comparison](value(first, extents), value(second, extents))
