"""Formulas: what they read, what they compile to, how they show in a traceback."""

import linecache
import math
import traceback
from types import SimpleNamespace

import pytest

from jaxgrad.table import FormulaError, Scope, parse_formula
from jaxgrad.table.formula import INPUT_WORDS, OUTPUT_WORDS, Word, parse_word

SCOPE = Scope(
    values=frozenset(["grad", "grads", "self", "other", "dim", "mode", "size", "index"]),
    functions=frozenset(["cos", "mul", "pow", "where", "index", "abs"]),
    integers=frozenset(["dim"]),
    texts=frozenset(["mode"]),
    lists=frozenset(["size"]),
    namespaces=True,
)
FUNCTIONS = {
    "cos": math.cos,
    "mul": lambda a, b: a * b,
    "pow": lambda a, b: ("pow", a, b),
    "where": lambda condition, a, b=0: a if condition else b,
    "index": lambda a, b: ("index", a, b),
    "lax": SimpleNamespace(sin=math.sin),
    "jnp": SimpleNamespace(linalg=SimpleNamespace(norm=lambda x, ord="fro": ("norm", x, ord))),
}


def value(text, **values):
    formula = parse_formula(text, SCOPE)
    return formula.compile(tuple(values), FUNCTIONS)(*values.values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("grad", 2.0),
        ("grad * -self.cos()", -2 * math.cos(3.0)),
        ("grad * cos(self)", 2 * math.cos(3.0)),
        ("mul(grad, self)", 6.0),
        ("grad.mul(self).mul(2)", 12.0),
        ("grad - self / 4 + 7 // 2 % 2", 2 - 0.75 + 1),
        ("self ** 2", ("pow", 3.0, 2)),
        ("pi * grad", 2 * math.pi),
        ("-inf", -math.inf),
        ("grad if dim == 1 else self", 2.0),
        ("grad if not dim > 1 and dim >= 1 or False else self", 2.0),
        ("(grad, self, None)", (2.0, 3.0, None)),
        ("size[0] + size[-1] + size[dim]", 4 + 6 + 5),
        ("where(mode == 'same', grad)", 2.0),
        ("where(mode != 'same', b=self, a=grad)", 3.0),
        ("lax.sin(grad)", math.sin(2.0)),
        ("jnp.linalg.norm(grad, ord='nuc')", ("norm", 2.0, "nuc")),
        ("grad.real - grad.imag", 2.0),
        # `index` is an argument and a function: only a call means the function
        ("grad.index(index)", ("index", 2.0, "an index")),
    ],
)
def test_values(text, expected):
    arguments = {"grad": 2.0, "self": 3.0, "dim": 1, "mode": "same", "size": (4, 5, 6)}
    assert value(text, **arguments, index="an index") == expected


def test_mH_is_the_conjugate_transpose():
    matrix = SimpleNamespace(mT=SimpleNamespace(conj=lambda: "conjugate of the transpose"))
    assert value("self.mH", self=matrix) == "conjugate of the transpose"


@pytest.mark.parametrize(
    ("text", "names", "values", "calls"),
    [
        ("grad * self.cos()", "grad self", "grad self", "cos"),
        ("where(grad, self.shape, other.dtype)", "grad self other", "grad", "where"),
        ("self.shape[0] * self", "self", "self", ""),
        ("self.real.shape", "self", "self", ""),
        ("lax.sin(grad ** 2)", "grad", "grad", "lax.sin pow"),
        ("jnp.linalg.norm(grad)", "grad", "grad", "jnp.linalg.norm"),
        ("pi * inf", "", "", ""),
    ],
)
def test_what_is_read(text, names, values, calls):
    formula = parse_formula(text, SCOPE)
    result = (formula.names, formula.values, formula.calls)
    assert result == tuple(frozenset(words.split()) for words in (names, values, calls))


def test_indexed():
    formula = parse_formula("grads[0] * grads[-1] + self.shape[2]", SCOPE)
    assert formula.indexed == {("grads", 0), ("grads", -1)}


def test_element():
    formula = parse_formula("(grad, self)", SCOPE, element=1)
    assert formula.compile(("grad", "self"), {})(1, 2) == 2


@pytest.mark.parametrize(
    ("text", "offset", "cause", "cure"),
    [
        ("grad * selff", 7, "unknown name 'selff'", "did you mean 'self'?"),
        ("grad * self.coss()", 12, "unknown function 'coss'", "did you mean 'cos'?"),
        ("grad * zzz(self)", 7, "unknown function 'zzz'", "operator"),
        ("grad.shap", 5, "unknown attribute 'shap'", "did you mean 'shape'?"),
        ("grad.cos", 5, "unknown attribute 'cos'", "call it"),
        ("lax.sine(self)", 0, "'lax.sine' is not on the list", "did you mean 'sin'?"),
        ("cos", 0, "'cos' is a function", "call it"),
        ("grad & self", 0, "& is not part", "logical_and"),
        ("~grad", 0, "~ is not part", "logical_not"),
        ("[grad, self]", 0, "a list is not part", "tuple"),
        ("grad[0:1]", 5, "an index that is not an integer", "int argument"),
        ("grad[self]", 5, "an index that is not an integer", "int argument"),
        ("0 < dim < 3", 0, "a chain", "and"),
        ("grad is None", 0, "`is` is not part", "=="),
        ("size * 1000000000", 0, "arithmetic on a tuple", "helper"),
        ("self.shape * 1000000000", 0, "arithmetic on a tuple", "helper"),
        ("((1,) if dim else (2,)) * 9", 1, "arithmetic on a tuple", "helper"),
        ("where(grad, self, b=1, b=2)", 18, "passed twice", "leave one out"),
        ("where(grad, 'same')", 12, "the text 'same'", "by keyword"),
        ("self == 'same'", 8, "the text 'same'", "compared"),
        ("grad * (self", 7, "cannot read '(self'", "arithmetic"),
        ("grad *", 6, "cannot be read", "arithmetic"),
    ],
)
def test_mistakes(text, offset, cause, cure):
    with pytest.raises(FormulaError) as caught:
        parse_formula(text, SCOPE)
    problem = caught.value.problems[0]
    assert problem.offset == offset
    assert cause in problem.cause
    assert cure in problem.cure


def test_all_mistakes_are_found():
    with pytest.raises(FormulaError) as caught:
        parse_formula("selff * coss(grad) + otter ** 99", SCOPE)
    assert [problem.offset for problem in caught.value.problems] == [0, 8, 30, 21]


def test_libraries_only_in_forward():
    with pytest.raises(FormulaError, match="belongs in `forward:` only"):
        parse_formula("lax.sin(grad)", Scope(frozenset(["grad"]), frozenset()))


def test_size_limits():
    parse_formula(" + ".join(["grad"] * 30), SCOPE)
    wide = "where(" + ", ".join(["grad"] * 130) + ")"
    for text in ["grad" + " " * 997, " + ".join(["grad"] * 42), wide * 2, f"({'1,' * 65})"]:
        with pytest.raises(FormulaError):
            parse_formula(text, SCOPE)


def test_missing_names():
    formula = parse_formula("grad * cos(self)", SCOPE, label="sin.self")
    with pytest.raises(NameError, match=r"sin.self .* reads \['self'\]"):
        formula.compile(("grad",), FUNCTIONS)
    with pytest.raises(NameError, match=r"sin.self .* calls 'cos'"):
        formula.compile(("grad", "self"), {})


def test_no_builtins_inside():
    function = parse_formula("cos(self)", SCOPE).compile(("self",), FUNCTIONS)
    assert function.__globals__ == {"__builtins__": {}, "cos()": math.cos}


def test_parameters_may_be_python_words():
    formula = parse_formula("grad", SCOPE)
    assert formula.compile(("from", "grad", "lambda"), {})(1, 2, 3) == 2


def test_traceback():
    lines = ["- name: sin(Tensor self) -> Tensor\n", "  self: grad / self\n"]
    linecache.cache["<a table>"] = (1, None, lines, "<a table>")
    formula = parse_formula(
        "grad / self", SCOPE, path="<a table>", line=2, column=9, label="sin.self"
    )
    with pytest.raises(ZeroDivisionError) as caught:
        formula.compile(("grad", "self"), {})(1, 0)
    frame = traceback.extract_tb(caught.tb)[-1]
    assert (frame.filename, frame.lineno, frame.name) == ("<a table>", 2, "sin.self")
    assert frame.line == "self: grad / self"
    assert lines[1][frame.colno : frame.end_colno] == "grad / self"


@pytest.mark.parametrize(
    ("text", "words", "word"),
    [
        ("auto", INPUT_WORDS, Word("auto")),
        ("zeros", INPUT_WORDS, Word("zeros")),
        ("auto_linear", OUTPUT_WORDS, Word("auto_linear")),
        ('not_implemented("why: so")', INPUT_WORDS, Word("not_implemented", "why: so")),
        ("not_implemented('why')", OUTPUT_WORDS, Word("not_implemented", "why")),
        ("zeros_like(grad)", INPUT_WORDS, None),
        ("not_implemented('%s' % grad)", INPUT_WORDS, None),
    ],
)
def test_words(text, words, word):
    assert parse_word(text, words) == word


@pytest.mark.parametrize(("text", "words"), [("auto_linear", INPUT_WORDS), ("zeros", OUTPUT_WORDS)])
def test_words_of_the_other_side(text, words):
    with pytest.raises(FormulaError, match="cannot stand for"):
        parse_word(text, words)
