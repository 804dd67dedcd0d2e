"""Python's operators between a tensor and an object that is no operand."""

import operator

import numpy
import pytest
from helpers.as_torch import as_torch

import jaxgrad

NAMES = (
    *("eq", "ne", "lt", "gt", "le", "ge", "add", "sub", "mul", "truediv", "floordiv", "mod"),
    *("pow", "matmul", "and_", "or_", "xor", "lshift", "rshift", "iadd", "isub", "imul", "iand"),
)


class Other:
    """Answers all reflected operators."""

    def answer(self, other):
        return "answer"

    __eq__ = __lt__ = __gt__ = __radd__ = __rsub__ = __rmul__ = __rpow__ = __rmatmul__ = answer
    __rtruediv__ = __rfloordiv__ = __rmod__ = __rand__ = __ror__ = __rxor__ = answer
    __hash__ = None


def told(function, *args):
    """What an operator returns, or the error that it raises."""
    try:
        return function(*args)
    except TypeError as error:
        return str(error)


@as_torch
def test_operators_with_objects_that_are_no_operands(torch):
    answers = {}
    for value in (None, "a", [1, 2], (1, 2), {}, object):
        for name in NAMES:
            function, x = getattr(operator, name), torch.ones(2)
            both = told(function, x, value), told(function, value, x)
            answers[f"{name} {value!r}"] = both
    return answers


@as_torch
def test_objects_that_know_tensors(torch):
    names = [name for name in NAMES if name not in ("lshift", "rshift", "iand", "iadd")]
    return {name: told(getattr(operator, name), torch.ones(2), Other()) for name in names}


@as_torch("""
    True
    False
    1
    False
    True
""")
def test_tensors_in_lists(torch):
    x = torch.ones(2)
    return x in [None, x], None in [x], [x, None].index(None), x == None, x != "a"  # noqa: E711


def test_functions_still_name_the_argument():
    with pytest.raises(TypeError, match=r"add\(\) received an invalid combination of arguments"):
        jaxgrad.add(jaxgrad.ones(2), None)
    with pytest.raises(TypeError, match=r"add\(\) received an invalid combination of arguments"):
        jaxgrad.ones(2).add("a")


def test_other_errors_of_special_methods_stay():
    with pytest.raises(RuntimeError):
        jaxgrad.ones(2) + jaxgrad.ones(3)
    with pytest.raises(RuntimeError):
        jaxgrad.ones(2) @ jaxgrad.ones(3)


def test_numbers_and_arrays_are_operands():
    x = jaxgrad.tensor([1.0, 2.0])
    for two in (2, 2.0, True + 1, numpy.float32(2), numpy.int64(2)):
        assert (x * two).tolist() == (two * x).tolist() == [2.0, 4.0]
        assert (two - x).tolist() == [1.0, 0.0] and (two**x).tolist() == [2.0, 4.0]
        assert (two / x).tolist() == [2.0, 1.0] and (two // x).tolist() == [2.0, 1.0]
        assert (two % x).tolist() == [0.0, 0.0]


def test_operators_in_a_compiled_function():
    @jaxgrad.jit
    def f(x, mask):
        return x * 2 if mask == None else x * mask  # noqa: E711

    x = jaxgrad.ones(2)
    assert f(x, None).tolist() == [2.0, 2.0] and f(x, x * 3).tolist() == [3.0, 3.0]
