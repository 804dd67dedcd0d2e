"""The first difference of two runs that are written here."""

import numpy as np
import pytest
from helpers.compared_runs import Script

from jaxgrad.compare.difference import Comparison

X = np.linspace(1, 2, 5, dtype=np.float32)
Y = np.linspace(3, 4, 5, dtype=np.float32)
ULP = np.float32(1 + 1e-6)


def compare(write, **options):
    scripts = Script(), Script("jaxgrad")
    for script in scripts:
        write(script, script.library == "jaxgrad")
    return Comparison(*(script.run() for script in scripts), **options)


def test_rounding_is_no_difference():
    comparison = compare(lambda script, is_second: script.call("f", 1, [X], [X * ULP**is_second]))
    assert comparison.difference is None
    assert 0 < comparison.largest < 2e-6


@pytest.mark.parametrize(("tolerance", "differs"), [(None, True), (1e-2, False)])
def test_a_tolerance_is_the_limit(tolerance, differs):
    def write(script, is_second):
        script.call("f", 1, [X], [X * np.float32(1 + 1e-3 * is_second)])

    assert (compare(write, tolerance=tolerance).difference is not None) == differs


def test_double_precision_has_a_smaller_limit():
    def write(script, is_second):
        script.call("f", 1, [], [X.astype(np.float64) * (1 + 1e-6 * is_second)])

    assert compare(write).difference is not None


def test_the_first_call_with_equal_inputs_is_reported():
    def write(script, is_second):
        script.call("f", 1, [X], [Y])
        script.call("g", 2, [Y], [Y * (1 + is_second)])
        script.call("h", 3, [Y * (1 + is_second)], [X * (1 + is_second)])

    difference = compare(write).difference
    assert difference.pair.first.name == "g"
    assert difference.inputs == [0] and difference.outputs == [pytest.approx(0.5)]
    assert difference.place == ("script.py", 2, "forward")


def test_a_result_that_cancels_may_differ():
    def write(script, is_second):
        script.call("sub", 1, [X, X], [np.float32([1e-7 * is_second, 0])])

    assert compare(write).difference is None


def test_a_call_that_one_run_lacks_is_the_source():
    def write(script, is_second):
        script.call("f", 1, [X], [Y])
        if not is_second:
            script.call("add", 2, [Y, X], [X + Y])
        script.call("h", 3, [Y if is_second else X + Y], [X * (1 + is_second)])

    difference = compare(write).difference
    assert difference.pair.first.name == "h"
    assert [source.first.name for source in difference.sources] == ["add"]
    assert difference.place == ("script.py", 2, "forward")


def test_infinities_at_other_places_differ():
    def write(script, is_second):
        script.call("f", 1, [X], [np.roll(np.float32([np.inf, 1]), is_second)])

    assert compare(write).difference.outputs == [np.inf]


def test_integers_differ_by_the_least():
    def write(script, is_second):
        script.call("argmax", 1, [X], [np.array([10**6, 10**6 + is_second])])

    assert compare(write).difference is not None


def test_a_gradient_names_the_calls_whose_derivative_it_is():
    def write(script, is_second):
        first = script.call("f", 1, [X], [Y])
        second = script.call("g", 2, [Y], [X + Y])
        script.gradient(second, X)
        script.gradient(first, X * (1 + is_second))

    difference = compare(write).difference
    assert [user.name for user in difference.users] == ["g"]
    assert difference.place == ("script.py", 2, "forward")


def parameters(script, kind, **arrays):
    for name, array in arrays.items():
        script.call(name, 5, [], [array], kind=kind)


def test_gradients_of_rounding_alone_explain_their_updates():
    def write(script, is_second):
        noise = np.float32([1e-8 * (1 + is_second)])
        parameters(script, "parameter gradient", weight=X, bias=noise)
        parameters(script, "updated parameter", weight=X, bias=noise * 1e6)
        script.call("conv", 6, [X, noise * 1e6], [Y + noise * 1e6])
        script.call("norm", 7, [Y + noise * 1e6], [Y])

    comparison = compare(write)
    assert comparison.difference is None and comparison.noise == {"bias"}


@pytest.mark.parametrize(("rate", "differs"), [(1e-3, False), (1e-5, True)])
def test_elements_of_rounding_explain_updates_of_the_size_of_the_rate(rate, differs):
    def write(script, is_second):
        script.call("weight", 5, [], [X], kind="parameter gradient", small=1)
        update = X + np.float32([0, 0, 1e-3 * is_second, 0, 0])
        script.call("weight", 6, [], [update], kind="updated parameter", rate=rate)

    assert (compare(write).difference is not None) == differs


def test_an_update_differs_where_gradients_agree():
    def write(script, is_second):
        parameters(script, "parameter gradient", weight=X)
        parameters(script, "updated parameter", weight=X * (1 + is_second))

    assert compare(write).difference.pair.first.kind == "updated parameter"


@pytest.mark.parametrize(
    ("rate", "differs"), [("0.3", False), ("0.30000000000000004", False), ("0.2", True)]
)
def test_options_of_optimizers_are_compared(rate, differs):
    def write(script, is_second):
        settings = {"lr": rate} if is_second else {"lr": "0.3", "fused": "None"}
        script.call("SGD", 9, [], [], kind="options", settings=settings)

    assert (compare(write).difference is not None) == differs


def test_a_parameter_of_one_run_is_a_difference():
    def write(script, is_second):
        names = {"weight": X} if is_second else {"weight": X, "bias": Y}
        parameters(script, "initial parameter", **names)

    assert compare(write).difference.pair.first.name == "bias"


def half(array):
    return array.astype(np.float16)


@pytest.mark.parametrize(("error", "differs"), [(1e-3, False), (1.0, True)])
def test_what_follows_from_half_precision_has_its_roundings(error, differs):
    def write(script, is_second):
        factor = np.float32(1 + error * is_second)
        script.call("to", 1, [X], [half(X) * half(np.float32(1 + 1e-3 * is_second))])
        script.call("mean", 2, [half(X) * half(factor)], [X * factor])
        script.write("loss", name="loss", value=1.0, outputs=[script.digest(X * factor)])

    assert (compare(write).difference is not None) == differs


def test_equal_inputs_give_results_of_full_precision_beside_half_precision():
    def write(script, is_second):
        script.call("to", 1, [X], [half(X)])
        script.call("mean", 2, [half(X)], [X * np.float32(1 + 1e-3 * is_second)])

    assert compare(write).difference.pair.first.name == "mean"


def test_a_state_that_is_loaded_has_the_rounding_of_the_parameter_that_it_is_from():
    def write(script, is_second):
        value = script.digest(X * np.float32(1 + 0.1 * is_second))
        gradient = script.digest(np.float32([1e-9 * (1 + is_second)] * 5))
        large = script.digest(Y)
        script.write("parameter gradient", name="a", outputs=[gradient], small=5)
        script.write("parameter gradient", name="b", outputs=[large], small=0)
        script.write("updated parameter", name="a", outputs=[value], rate=1.0)
        script.write("initial parameter", name="of another module", outputs=[value])

    comparison = compare(write)
    assert comparison.difference is None and comparison.noise == {"a"}
