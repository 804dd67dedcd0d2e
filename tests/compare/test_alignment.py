"""Which record of a run is which of the other."""

import numpy as np
from helpers.compared_runs import Script

from jaxgrad.compare.alignment import align

X, Y = np.arange(3.0), np.ones((2, 2))


def run(*calls):
    script = Script()
    for name, line in calls:
        script.call(name, line, [], [X])
    return script.run()


def names(pairs):
    return [(p.first and p.first.name, p.second and p.second.name) for p in pairs]


def test_equal_runs_are_paired_in_order():
    calls = [("mul", 1), ("add", 1), ("mul", 1)]
    assert names(align(run(*calls), run(*calls))) == [(name, name) for name, _ in calls]


def test_a_call_of_one_run_has_no_partner():
    pairs = align(run(("mul", 1), ("add", 2), ("relu", 3)), run(("mul", 1), ("relu", 3)))
    assert names(pairs) == [("mul", "mul"), ("add", None), ("relu", "relu")]


def test_calls_of_other_names_at_one_line_are_paired():
    pairs = align(run(("mul", 1), ("gelu", 2)), run(("mul", 1), ("silu", 2)))
    assert names(pairs) == [("mul", "mul"), ("gelu", "silu")]


def test_a_call_whose_result_has_another_shape_is_paired():
    first, second = Script(), Script()
    first.call("view", 1, [], [X])
    second.call("view", 1, [], [Y])
    assert names(align(first.run(), second.run())) == [("view", "view")]


def test_steps_begin_together():
    runs = []
    for repetitions in (3, 1):
        script = Script()
        for script.step in range(2):
            for _ in range(repetitions):
                script.call("mul", 1, [], [X])
        runs.append(script.run())
    pairs = [(p.first.step, p.second.step) for p in align(*runs) if p.first and p.second]
    assert pairs == [(0, 0), (1, 1)]


def test_gradients_belong_to_results():
    first, second = Script(), Script()
    for script, has_more in ((first, False), (second, True)):
        if has_more:
            script.call("abs", 1, [], [Y])
        result = script.call("mul", 2, [], [X])
        script.gradient(result, X)
    (pair,) = [p for p in align(first.run(), second.run()) if p.either.kind == "gradient"]
    assert (pair.first.fields["of"], pair.second.fields["of"]) == (1, 2)
