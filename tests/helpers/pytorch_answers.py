"""PyTorch's answers to calls that the samples cannot express, as tables.

    REFUSED = [("torch.add(zeros(2), zeros(3))", RuntimeError, "must match the size of tensor b")]
    ANSWERS = [("tensor([True]) + tensor([True])", "bool", [True])]

A call is a string: `torch` in it is jaxgrad or PyTorch, and `tensor`, `zeros`, `full` and `F` are
functions of that module. The words of a refusal stand in both messages. `make oracle` asks the
installed PyTorch for every line (oracle/live_rules.py).
"""

import numpy
import pytest

from helpers import checks

RELATIVE = {"float32": 1e-6, "complex64": 1e-6, "float64": 1e-14, "complex128": 1e-14}


def evaluated(torch, call):
    names = {"tensor": torch.tensor, "zeros": torch.zeros, "full": torch.full}
    return eval(
        call, names | {"torch": torch, "F": torch.nn.functional, "nan": numpy.nan, "inf": numpy.inf}
    )


def by_call(names, cases):
    """Parametrizes a test with cases that begin with their call; this is the id of each."""
    return pytest.mark.parametrize(names, cases, ids=[case[0] for case in cases])


def refusals(cases):
    return by_call(("call", "error", "words"), cases)


def answers(cases):
    return by_call(("call", "dtype", "values"), cases)


def check_refusal(torch, call, error, words):
    with pytest.raises(error) as caught:
        evaluated(torch, call)
    assert words in str(caught.value)
    checks.count("errors")


def check_answer(torch, call, dtype, values):
    """dtype, shape, values (floats within a relative 1e-6 or 1e-14), and signs of zeros."""
    result = evaluated(torch, call)
    assert str(result.dtype) == f"torch.{dtype}"
    expected = numpy.asarray(values)
    assert tuple(result.shape) == expected.shape
    numbers = numpy.asarray(result.tolist()).reshape(expected.shape)
    if dtype in RELATIVE:
        numpy.testing.assert_allclose(numbers, expected, RELATIVE[dtype])
    else:
        numpy.testing.assert_array_equal(numbers, expected)
    if dtype.startswith("float"):
        zeros = expected == 0
        assert (numpy.signbit(numbers) == numpy.signbit(expected))[zeros].all()
    checks.count("answers")


def primitives(jaxpr):
    """The names of the primitives that a jaxpr runs, inner jaxprs included, in order."""
    for equation in jaxpr.eqns:
        inner = equation.params.get("call_jaxpr") or equation.params.get("jaxpr")
        yield from primitives(inner) if inner is not None else [equation.primitive.name]
