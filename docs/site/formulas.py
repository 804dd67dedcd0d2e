"""Formulas of the table and of docstrings as TeX, and TeX as MathML."""

import ast
import re

from latex2mathml.converter import convert

CONSTANTS = {
    0.6931471805599453: r"\ln 2",
    0.886226925452758: r"\frac{\sqrt{\pi}}{2}",
    1.1283791670955126: r"\frac{2}{\sqrt{\pi}}",
    2.302585092994046: r"\ln 10",
    2.5066282746310002: r"\sqrt{2 \pi}",
}
NAMES = {"pi": r"\pi", "alpha": r"\alpha", "beta": r"\beta", "Phi": r"\Phi", "inf": r"\infty"}
# functions that have a form of their own, by the number of their arguments
FORMS = {
    ("exp", 1): "e^{%s}",
    ("sqrt", 1): r"\sqrt{%s}",
    ("rsqrt", 1): r"\frac{1}{\sqrt{%s}}",
    ("abs", 1): r"\left|%s\right|",
    ("conj", 1): r"\overline{%s}",
    ("floor", 1): r"\lfloor %s \rfloor",
    ("gamma", 1): r"\Gamma\left(%s\right)",
    ("digamma", 1): r"\psi\left(%s\right)",
    ("polygamma", 2): r"\psi^{(%s)}\left(%s\right)",
    ("sigmoid", 1): r"\sigma\left(%s\right)",
    ("special_bessel_j0", 1): r"J_0\left(%s\right)",
    ("special_bessel_j1", 1): r"J_1\left(%s\right)",
    ("special_bessel_y1", 1): r"Y_1\left(%s\right)",
    ("special_modified_bessel_i1", 1): r"I_1\left(%s\right)",
    ("special_modified_bessel_k0", 1): r"K_0\left(%s\right)",
    ("special_modified_bessel_k1", 1): r"K_1\left(%s\right)",
}
# functions that are written as they are called
PLAIN = {
    **{name: rf"\{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "max", "min")},
    **{"log": r"\ln", "log1p": r"\operatorname{log1p}", "log2": r"\log_2"},
    **{name: rf"\operatorname{{{name}}}" for name in ("erf", "erfc", "sgn", "trunc", "softplus")},
    **{name: rf"\operatorname{{{name}}}" for name in ("relu", "hardsigmoid", "igamma", "real")},
}
OPERATORS = {
    ast.Add: (1, "%s + %s"),
    ast.Sub: (1, "%s - %s"),
    ast.Mult: (2, r"%s \, %s"),
    ast.Div: (3, r"\frac{%s}{%s}"),
    ast.Pow: (4, "{%s}^{%s}"),
}
COMPARISONS = {
    **{ast.Eq: "=", ast.Lt: "<", ast.Gt: ">"},
    **{ast.LtE: r"\le", ast.GtE: r"\ge"},
}
ATOM = 5
# what latex2mathml leaves to the reader: the space around names, and how high an accent stands
WORD = re.compile(r"<(m[io])>(\w{2,})</\1>")
PARENTHESIS = re.compile(r'<mrow><mo stretchy="true" fence')
ACCENTED = re.compile(r"<mover>(?=(?:(?!</?mover>).)*<mo>&#x00(?:2D9|0A8);</mo></mover>)")
SIZED = re.compile(r'<mo minsize="[^"]*" maxsize="[^"]*">')


class Unknown(Exception):
    """An expression has a part that TeX has no form for here."""


def tex(text: str) -> str | None:
    r"""An expression of Python as TeX; None where it calls what has no mathematical form.

    >>> tex("1 / (1 + exp(-input))")
    '\\frac{1}{1 + e^{-\\text{input}}}'
    """
    try:
        return _tex(ast.parse(text, mode="eval").body)[0]
    except (SyntaxError, Unknown):
        return None


def mathml(text: str, display: str = "inline") -> str:
    """TeX as MathML, with a space around the names of functions and accents that stand close."""
    shown = convert(text, display=display)

    def word(match):
        before = 0 if shown.endswith("<mrow>", 0, match.start()) else 0.17
        after = 0 if PARENTHESIS.match(shown, match.end()) else 0.17
        return f'<mo lspace="{before}em" rspace="{after}em">{match[2]}</mo>'

    spaced = ACCENTED.sub('<mover accent="true">', WORD.sub(word, shown))
    # text counts as space, which would change that of the signs beside it
    named = re.sub(r"<mtext>(\w{2,})</mtext>", r"<mi>\1</mi>", spaced)
    return SIZED.sub('<mo stretchy="true" fence="true">', named)


def _tex(node) -> tuple[str, int]:
    """The TeX of a part, and how strongly it binds."""
    match node:
        case ast.Constant(value=int() | float()):
            return CONSTANTS.get(node.value, f"{node.value:g}"), ATOM
        case ast.Name():
            word = node.id if len(node.id) == 1 else rf"\text{{{node.id}}}"
            return NAMES.get(node.id, word), ATOM
        case ast.UnaryOp(op=ast.USub()):
            return f"-{_inside(node.operand, 2)}", 2
        case ast.BinOp():
            return _operation(node)
        case ast.Compare(ops=[kind], comparators=[right]) if type(kind) in COMPARISONS:
            return f"{_tex(node.left)[0]} {COMPARISONS[type(kind)]} {_tex(right)[0]}", 0
        case ast.Call(func=ast.Name(id=name), keywords=[]):
            return _call(name, node.args)
        case ast.Call(func=ast.Attribute(value=value, attr=name), keywords=[]):
            return _call(name, [value, *node.args])
    raise Unknown


def _inside(node, strength: int) -> str:
    """A part of something that binds with this strength."""
    text, binding = _tex(node)
    return text if binding >= strength else rf"\left({text}\right)"


def _operation(node) -> tuple[str, int]:
    if type(node.op) not in OPERATORS:
        raise Unknown
    strength, form = OPERATORS[type(node.op)]
    if isinstance(node.op, ast.Div):
        return form % (_tex(node.left)[0], _tex(node.right)[0]), strength
    if isinstance(node.op, ast.Pow):
        return form % (_inside(node.left, ATOM), _tex(node.right)[0]), strength
    right = _inside(node.right, strength + isinstance(node.op, ast.Sub))
    if right.startswith("-"):
        right = rf"\left({right}\right)"
    return form % (_inside(node.left, strength), right), strength


def _call(name: str, arguments) -> tuple[str, int]:
    if name == "maybe_multiply":
        return _operation(ast.BinOp(arguments[0], ast.Mult(), arguments[1]))
    texts = tuple(_tex(argument)[0] for argument in arguments)
    if name == "where" and len(texts) == 3:
        condition, then, otherwise = texts
        cases = rf"{then} & {condition} \\ {otherwise} & \text{{else}}"
        return rf"\begin{{cases}} {cases} \end{{cases}}", ATOM
    if (name, len(texts)) in FORMS:
        return FORMS[name, len(texts)] % texts, ATOM
    if name not in PLAIN:
        raise Unknown
    return rf"{PLAIN[name]}\left({', '.join(texts)}\right)", ATOM
