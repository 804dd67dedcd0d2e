"""Steps of a block, by a loop and then by compiled code: both compute what NumPy does."""

import gc
import weakref

import numpy as np
import pytest

from jaxgrad.core.host import steps
from jaxgrad.core.host.equation import Form
from jaxgrad.core.host.steps import Step, function_of_steps

FORM = Form((2, 3), np.dtype(np.float64))


def parts(array):
    """A function of two results."""
    return [array[:1], array[1:]]


def alone(array):
    """A function that gives its only result in a list."""
    return [array * 2]


def block():
    """`x + y`, its square, the parts of that, and twice the second part with a known number."""
    row = Form((1, 3), FORM.dtype)
    known = {2: np.float64(0.5)}
    lines = [
        Step(np.add, [0, 1], range(3, 4), (FORM,)),
        Step(np.multiply, [3, 3], range(4, 5), (FORM,)),
        Step(parts, [4], range(5, 7), (row, row)),
        Step(alone, [6], range(7, 8), (row,)),
        Step(np.add, [7, 2], range(8, 9), (row,)),
    ]
    return known, lines, [3, 8]


def expected(x, y):
    total = x + y
    return [total, (total * total)[1:] * 2 + 0.5]


def assert_equal(results, x, y):
    for result, wanted in zip(results, expected(x, y), strict=True):
        np.testing.assert_array_equal(result, wanted)


def test_the_loop_and_the_code_compute_the_same(monkeypatch):
    compiled, function = [], function_of_steps(2, *block())
    make = steps._compiled
    monkeypatch.setattr(steps, "_compiled", lambda *parts: compiled.append(1) or make(*parts))
    draw = np.random.default_rng(0)
    for call in range(1, steps.LOOPS + 4):
        x, y = draw.standard_normal((2, 2, 3))
        assert_equal(function(x, y), x, y)
        assert len(compiled) == (call >= steps.LOOPS)


@pytest.mark.parametrize("calls", [1, steps.LOOPS])
def test_operands_and_known_values_stay_as_they_are(calls):
    known, lines, results = block()
    function, x, y = function_of_steps(2, known, lines, results), np.ones((2, 3)), np.ones((2, 3))
    for _ in range(calls):
        assert_equal(function(x, y), np.ones((2, 3)), np.ones((2, 3)))
    assert known == {2: 0.5} and (x == 1).all() and (y == 1).all()


def test_the_loop_frees_a_value_after_its_last_use():
    class Values(np.ndarray):
        """An array that can be referred to weakly."""

    arrays = []

    def note(array):
        arrays.append(weakref.ref(array))
        return array

    def first(array):
        return note((array + 1).view(Values))

    def last(array):
        gc.collect()
        return np.float64(sum(reference() is not None for reference in arrays))

    lines = [
        Step(first, [0], range(1, 2), (FORM,)),
        Step(first, [1], range(2, 3), (FORM,)),
        Step(np.sum, [2], range(3, 4), (Form((), FORM.dtype),)),
        Step(last, [3], range(4, 5), (Form((), FORM.dtype),)),
    ]
    (left,) = function_of_steps(1, {}, lines, [4])(np.ones(2))
    assert len(arrays) == 2 and left == 0


def test_a_result_may_be_an_operand_or_a_known_value():
    x, known = np.ones(3), {1: np.float64(2)}
    assert function_of_steps(1, known, [], [0, 1])(x) == [x, known[1]]
