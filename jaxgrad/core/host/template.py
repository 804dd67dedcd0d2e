"""Blocks for all shapes of one pattern: traced once with symbolic extents.

To trace an operator takes JAX 1 to 2 ms, and a program that meets new shapes all the time waits for
that at each of its operators. A template is the block of a program whose extents are symbols of
`jax.export`; to put numbers in their places takes microseconds. JAX refuses to trace where a
comparison of symbols would decide what is computed, so a template holds for all its extents.
"""

from __future__ import annotations

import functools

from ...late import LateModule
from .block import Block
from .equation import Equation, Form

export = LateModule("jax.export")

# A pattern has at most so many different extents of two or more.
SYMBOLS = 16


@functools.cache
def symbols() -> tuple:
    """The symbols that stand for extents. None is 0 or 1, which have rules of their own."""
    names = [f"d{i}" for i in range(SYMBOLS)]
    scope = export.SymbolicScope([f"{name} >= 2" for name in names])
    return export.symbolic_shape(",".join(names), scope=scope)


def pattern_of(shapes) -> tuple[tuple, tuple[int, ...]] | None:
    """Shapes with the number of a symbol, less than 0, in place of each extent of two or more, and
    these extents in order; None if there are too many. Equal extents have one symbol.
    """
    places: dict[int, int] = {}
    pattern = tuple(
        [
            tuple([n if n < 2 else places.setdefault(n, -1 - len(places)) for n in shape])
            for shape in shapes
        ]
    )
    return None if len(places) > SYMBOLS else (pattern, tuple(places))


def symbolic(shape) -> tuple:
    """A shape of a pattern, with symbols."""
    known = symbols()
    return tuple([extent if extent >= 0 else known[-1 - extent] for extent in shape])


class Template:
    """A block with symbols, and the function that makes one of extents: `template(extents)`."""

    def __init__(self, block: Block):
        self.block = block
        writer = _Writer()
        parts = [
            f"({writer.params(equation.params)}, {writer.forms(equation.inputs)}, "
            f"{writer.forms(equation.outputs)})"
            for equation, _, _ in block.equations
        ]
        forms = f"{writer.forms(block.inputs)}, {writer.forms(block.outputs)}"
        names = ", ".join(f"d{i}" for i in range(SYMBOLS))
        source = f"lambda {names}: ({forms}, [{', '.join(parts)}])"
        self.numbers = eval(source, {**_FUNCTIONS, "constants": writer.constants})

    def __call__(self, extents) -> Block:
        block = self.block
        padded = (*extents, *(2,) * (SYMBOLS - len(extents)))
        inputs, outputs, parts = self.numbers(*padded)
        equations = [
            (Equation(equation.name, *part), operands, results)
            for (equation, operands, results), part in zip(block.equations, parts, strict=True)
        ]
        return block.with_equations(inputs, outputs, equations)


class _Writer:
    """Writes values as Python expressions of the symbols; what has none is one of `constants`."""

    def __init__(self):
        self.constants: list = []

    def constant(self, value) -> str:
        self.constants.append(value)
        return f"constants[{len(self.constants) - 1}]"

    def params(self, params: dict) -> str:
        if not any(map(_has_symbols, params.values())):
            return self.constant(params)
        return "{" + ", ".join(f"{name!r}: {self.value(v)}" for name, v in params.items()) + "}"

    def forms(self, forms) -> str:
        if not any(_has_symbols(form.shape) for form in forms):
            return self.constant(forms)
        items = (f"Form({self.value(shape)}, {self.constant(dtype)})" for shape, dtype in forms)
        return f"({', '.join(items)},)"

    def value(self, value) -> str:
        if not _has_symbols(value):
            return self.constant(value)
        if isinstance(value, Block):
            names = ", ".join(f"d{i}" for i in range(SYMBOLS))
            return f"{self.constant(Template(value))}(({names}))"
        if isinstance(value, tuple):
            items = f"({''.join(self.value(item) + ', ' for item in value)})"
            is_named = hasattr(value, "_fields")
            return f"{self.constant(type(value))}(*{items})" if is_named else items
        if isinstance(value, list):
            return f"[{', '.join(map(self.value, value))}]"
        # JAX writes symbols as Python does, but for powers
        return f"({str(value).replace('^', '**')})"


def _has_symbols(value) -> bool:
    if isinstance(value, tuple | list):
        return any(map(_has_symbols, value))
    if isinstance(value, Block):
        forms = [form.shape for form in (*value.inputs, *value.outputs)]
        return any(map(_has_symbols, forms)) or any(
            _has_symbols(tuple(equation.params.values()))
            or any(_has_symbols(form.shape) for form in (*equation.inputs, *equation.outputs))
            for equation, _, _ in value.equations
        )
    return not isinstance(value, int | float | str | None) and export.is_symbolic_dim(value)


_FUNCTIONS = {
    "Form": Form,
    "floordiv": lambda first, second: first // second,
    "mod": lambda first, second: first % second,
    "max": max,
    "min": min,
    "__builtins__": {},
}
