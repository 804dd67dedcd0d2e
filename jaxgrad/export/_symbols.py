"""Sizes that vary as nodes of a graph: `sym_size_int = aten.sym_size.int(x, 0)`."""

from __future__ import annotations

import ast
import operator

from .. import ops
from ..core.symbolic_extents import is_symbolic

_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: operator.pow,
}
_FUNCTIONS = {"floordiv": operator.floordiv, "mod": operator.mod, "max": max, "min": min}


class Symbols:
    """The nodes of sizes. add: adds the call of a function to the graph."""

    def __init__(self, add):
        self._add = add
        self._sources: dict[str, tuple] = {}  # by a symbol a node of a tensor, and the dimension
        self._nodes: dict[str, object] = {}

    def note(self, node, shape):
        """Note the shape of an argument, of whose sizes others are made."""
        for dim, extent in enumerate(shape):
            if is_symbolic(extent):
                self._sources.setdefault(str(extent), (node, dim))

    def node(self, extent):
        """The node of a size. Raises LookupError for one that no size of an argument gives."""
        node = self._of(ast.parse(str(extent).replace("^", "**"), mode="eval").body)
        node.meta.setdefault("val", extent)
        return node

    def _of(self, expression):
        if isinstance(expression, ast.Constant):
            return expression.value
        text = ast.unparse(expression).replace(" ", "")
        if text not in self._nodes:
            self._nodes[text] = self._computed(text, expression)
        return self._nodes[text]

    def _computed(self, text, expression):
        sources = {key.replace(" ", ""): source for key, source in self._sources.items()}
        if text in sources:
            return self._add(ops.aten.sym_size.int, sources[text])
        if isinstance(expression, ast.BinOp):
            function = _BINARY[type(expression.op)]
            return self._add(function, (self._of(expression.left), self._of(expression.right)))
        if isinstance(expression, ast.UnaryOp):
            return self._add(operator.neg, (self._of(expression.operand),))
        if isinstance(expression, ast.Call) and expression.func.id in _FUNCTIONS:
            function = _FUNCTIONS[expression.func.id]
            return self._add(function, tuple(map(self._of, expression.args)))
        return self._solved(text)

    def _solved(self, symbol):
        """The node of a symbol `n` where the size of an argument is `2*n + 1`, or similar."""
        for text, source in self._sources.items():
            factor, offset = _parts(text, symbol)
            if factor:
                size = self._add(ops.aten.sym_size.int, source)
                rest = self._add(operator.sub, (size, offset)) if offset else size
                return rest if factor == 1 else self._add(operator.floordiv, (rest, factor))
        raise LookupError(symbol)


def _parts(text, symbol) -> tuple[int, int]:
    """The factor and the summand in the text of a size; (0, 0) for another one."""
    product, sign, offset = text, "", "0"
    for mark in (" + ", " - "):
        if mark in text:
            product, offset = text.split(mark, 1)
            sign = mark.strip()
    factor, _, name = product.rpartition("*")
    if name != symbol or not (factor or "1").isdigit() or not offset.isdigit():
        return 0, 0
    return int(factor or 1), int(f"{sign}{offset}")
