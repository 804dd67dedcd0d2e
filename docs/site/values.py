"""Whether an expression in the summary of an operator is its value: both are computed."""

import ast
import inspect

import numpy as np

import jaxgrad
from jaxgrad import special
from jaxgrad.nn import functional

COUNT = 24
# functions of expressions that are no operators of the same name
FUNCTIONS = {
    **{"max": jaxgrad.maximum, "min": jaxgrad.minimum, "Phi": special.ndtr},
    **{"softplus": functional.softplus, "hardsigmoid": functional.hardsigmoid},
}
NUMBERS = {"pi": np.pi, "inf": np.inf}


def is_value(function, expression: str) -> bool:
    """Whether the expression has the value of the operator, at random positive and negative numbers
    and 0, with any numbers as its options.
    """
    try:
        arguments = _arguments(function)
        expected = function(**arguments)
        code = compile(ast.parse(expression, mode="eval"), expression, "eval")
        value = eval(code, {"__builtins__": {}}, _Names(arguments))
        both = [
            np.asarray(jaxgrad.as_tensor(x).detach().tolist(), float) for x in (value, expected)
        ]
    except Exception:  # the expression has words, or the operator other arguments
        return False
    if both[0].shape != both[1].shape or np.isfinite(both[1]).sum() < COUNT // 8:
        return False
    return np.allclose(*both, rtol=1e-9, atol=1e-12, equal_nan=True)


def _arguments(function) -> dict[str, object]:
    """A tensor for each parameter that takes one, and a number for each that takes a number."""
    draw, arguments = np.random.default_rng(0), {}
    for name, parameter in inspect.signature(function).parameters.items():
        kind = str(parameter.annotation)
        if "Tensor" in kind and parameter.default is parameter.empty:
            numbers = draw.normal(size=COUNT) * 2
            numbers[: 1 if arguments else 2] = 0  # all are 0 once, and the first one alone
            arguments[name] = jaxgrad.tensor(numbers)
        elif kind in ("Number", "float"):
            arguments[name] = float(draw.uniform(0.3, 0.9))
    return arguments


class _Names(dict):
    """The arguments, and functions of numbers and of tensors by their names."""

    def __missing__(self, name):
        if name in NUMBERS:
            return NUMBERS[name]
        function = FUNCTIONS.get(name) or getattr(jaxgrad, name)
        return lambda *values: function(*(_as_tensor(value) for value in values))


def _as_tensor(value):
    is_number = isinstance(value, int | float)
    return jaxgrad.tensor(value, dtype=jaxgrad.float64) if is_number else value
