"""Ring attention and the pipeline of docs/examples/ compute on four devices what one computes."""

import functools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import hangs

pytestmark = pytest.mark.checkout

PROGRAM = Path(__file__).parent / "recipes_on_four_devices.py"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


# parts of the program that run together; a test that is not slow reads another one
PARTS = (
    *("attentions", "float64", "bfloat16", "second derivatives", "wrong rings", "layers"),
    *("pipelines", "trained", "sums"),
)


@functools.cache
def results(*parts):
    """The program's output in a process whose one processor stands for four devices."""
    flags = "--xla_force_host_platform_device_count=4"
    child = subprocess.run(
        [sys.executable, "-W", "error", str(PROGRAM), *parts],
        env=os.environ
        | {
            "XLA_FLAGS": flags,
            "JAX_CPU_ENABLE_ASYNC_DISPATCH": "false",
            "PYTHONPATH": str(EXAMPLES),
        },
        capture_output=True,
        text=True,
        timeout=hangs.LIMIT,
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


def result(part):
    return results(*(PARTS if part in PARTS else [part]))[part]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["attentions", "pipelines"])
def test_values_and_gradients_are_those_of_one_device(kind):
    """Of several shapes, causal and not, and on a mesh with a second axis."""
    cases = result(kind)
    assert len(cases) >= 6
    assert {name: values for name, values in cases.items() if max(values) > 1e-5} == {}


@pytest.mark.slow
def test_ring_attention_in_float64_and_for_scores_whose_exp_overflows():
    assert len(result("float64")) == 8 and max(result("float64")) < 1e-10


@pytest.mark.slow
def test_ring_attention_in_bfloat16_rounds_once():
    """The result and the gradients are those of float64 on these inputs, rounded to bfloat16."""
    assert len(result("bfloat16")) == 4 and max(result("bfloat16")) < 1e-5


@pytest.mark.slow
def test_second_derivatives_of_ring_attention():
    assert len(result("second derivatives")) == 3 and max(result("second derivatives")) < 1e-5


@pytest.mark.slow
def test_a_wrong_ring_is_noticed():
    wrong = result("wrong rings")
    assert max(wrong["Ring"]) < 1e-5
    assert min(wrong["Backwards"]) > 0.1  # the blocks go round the other way
    values, of_queries, *others = wrong["Unsent"]  # gradients that stay behind
    assert max(values, of_queries) < 1e-5 and min(others) > 0.1


def test_stages_in_a_wrong_order_are_noticed():
    assert min(result("wrong order")) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("way", ["ring", "rule of JAX", "no ring"])
def test_a_compiled_layer_has_the_gradients_of_one_device(way):
    layer = result("layers")[way]
    assert max(layer["differences"]) < 1e-5 and layer["traces"] == 1


@pytest.mark.slow
def test_no_device_holds_the_keys_of_the_whole_sequence():
    """Nor, for the gradient, all blocks that have passed; the other ways show that these are
    seen.
    """
    ring, rule, plain = (result("layers")[way] for way in ("ring", "rule of JAX", "no ring"))
    assert ring["collective-permute"] > 0 == ring["all-gather"] == ring["all-to-all"]
    assert not ring["whole length"] and not ring["all blocks"]
    assert not rule["whole length"] and rule["all blocks"]
    assert plain["whole length"] and plain["all-gather"] > 0 == plain["collective-permute"]


@pytest.mark.slow
def test_a_pipeline_trains_as_the_stages_on_one_device():
    trained = result("trained")
    assert max(trained["differences"]) < 1e-5
    assert trained["traces"] == 1 and trained["ticks"] == [6 + 4 - 1]
    assert trained["stays"] == [True] * 9  # parameters, gradients, momentum


@pytest.mark.slow
def test_no_device_holds_the_parameters_of_all_stages_or_ticks():
    trained = result("trained")
    assert trained["collective-permute"] > 0 == trained["all-gather"] == trained["all-to-all"]
    assert not trained["parameters of all ticks"]


@pytest.mark.slow
def test_two_pipelines_sum_their_gradients_once():
    """And not in each tick."""
    sums = result("sums")
    assert sums["all"] >= 2 and sums["in loops"] == 0
