"""Models that are trained on several devices equal those that are trained on one."""

import numpy as np
import pytest
from distributed.processes import printed

pytestmark = pytest.mark.slow

SMALL = "ddp:mlp fsdp:mlp tp:mlp"
LARGE = (
    "ddp:mlp-adam ddp:cnn ddp:transformer fsdp:mlp-adam fsdp:cnn fsdp:transformer tp:transformer"
)
ONE_AXIS = f"{SMALL} {LARGE}"
TWO_AXES = "2d:mlp-adam 2d:transformer"
# what a program runs: the cases, how the step runs, and where
RUNS = {
    "4 devices, compiled": (SMALL, "compiled", 4, {"devices": 4}),
    "4 devices, compiled, others": (f"{LARGE} {TWO_AXES}", "compiled", 4, {"devices": 4}),
    "4 devices, eager": (f"ddp:cnn fsdp:transformer tp:mlp {TWO_AXES}", "eager", 4, {"devices": 4}),
    "8 devices, compiled": (f"ddp:mlp fsdp:cnn {TWO_AXES}", "compiled", 8, {"devices": 8}),
    "2 processes, compiled": (ONE_AXIS, "compiled", 2, {"processes": 2}),
    "2 processes, eager": (ONE_AXIS, "eager", 2, {"processes": 2}),
    "4 processes, compiled": (f"ddp:mlp fsdp:cnn {TWO_AXES}", "compiled", 4, {"processes": 4}),
}


@pytest.mark.parametrize("name", RUNS)
def test_ten_steps_equal_those_on_one_device(name):
    """Losses, gradients, parameters and buffers to rounding in float32; one trace each."""
    cases, mode, count, where = RUNS[name]
    results = printed("schemes.py", cases, mode, count, **where)
    assert [*results] == cases.split()
    assert {case: worst for case, worst in results.items() if not is_right(case, worst)} == {}


def is_right(case, worst) -> bool:
    is_rounding = worst["losses"] < 1e-6 and worst["buffers"] < 2e-6 and worst["parameters"] < 3e-6
    # the sums of gradients have other orders: of 10,000 summands in the convolutions
    is_rounding &= worst["gradients"] < (2e-5 if "cnn" in case else 3e-6)
    # some parameters are sharded, with their state, unless all are replicated
    is_sharded = worst["sharded"] > 2 and worst["sharded state"] > 2
    return is_rounding and is_sharded == (not case.startswith("ddp"))


def test_uses_of_parameters_between_steps():
    """A process uses its copy of a parameter that all processes hold. The next step takes the
    memory of the parameter, unless somebody still needs it.
    """
    differences = printed("copies.py", processes=2)
    assert "returned nan values" in differences.pop("anomaly")
    assert len(differences) == 34
    assert {
        use: difference for use, difference in differences.items() if not difference < 2e-6
    } == {}


def test_workers_of_two_processes():
    """Processes that train together load their data by workers of their own."""
    first, second = printed("loaders.py", processes=2)
    assert first["compilations"] == second["compilations"] == 0
    weight = np.zeros(2)
    for numbers in ([0, 2, 1, 3], [4, 6, 5, 7]):  # of both processes at one step
        x = np.repeat(np.float64(numbers), 2).reshape(4, 2)
        weight -= 1e-2 * 2 / 4 * (x @ weight - 1) @ x
    for method in ("fork", "spawn"):
        assert first[method][0] == [[0, 2], [4, 6]]
        assert second[method][0] == [[1, 3], [5, 7]]
        assert first[method][1] == second[method][1]
        np.testing.assert_allclose(first[method][1], [weight], rtol=1e-5)
