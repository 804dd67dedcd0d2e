"""The collectives in compiled steps are the expected ones, and memory falls with more devices."""

import functools
from collections import Counter

import pytest
from distributed.processes import printed

pytestmark = pytest.mark.slow

# of four layers from 256 to 256 numbers, as programs.py makes them
LAYERS, WEIGHT, BIAS = 4, 256 * 256, 256
PARAMETERS = LAYERS * (WEIGHT + BIAS)
BATCH_BYTES = 2 * 16 * 256 * 4


@functools.cache
def in_processes():
    return printed("programs.py", "ddp,buckets,fsdp,kept,odd", 2, processes=2)


@functools.cache
def on_devices(count):
    names = "ddp,fsdp,kept,ddp by hand,fsdp by hand"
    return printed("programs.py", names, count, devices=count)


def counted(program) -> Counter:
    """How often there is each kind with each size."""
    return Counter(map(tuple, program["collectives"]))


def test_ddp_sums_all_gradients_at_once_after_the_backward_pass():
    program = in_processes()["ddp"]
    assert program["collectives"] == [["all-reduce", PARAMETERS]]
    assert program["products after"] == 0


def test_ddp_has_a_sum_for_each_bucket():
    """XLA for CPUs joins them, and may: all gradients are there before a small network's first sum
    begins.
    """
    program = in_processes()["buckets"]
    assert program["lowered"] == {"all_reduce": LAYERS}
    assert {kind for kind, _ in program["collectives"]} == {"all-reduce"}
    assert sum(size for _, size in program["collectives"]) == PARAMETERS


@pytest.mark.parametrize("name", ["fsdp", "kept"])
def test_fsdp_gathers_and_scatters_each_parameter(name):
    """XLA for CPUs makes one of the gatherings for the two passes."""
    program = in_processes()[name]
    assert counted(program) == {
        ("all-gather", WEIGHT): LAYERS,
        ("all-gather", BIAS): LAYERS,
        ("reduce-scatter", WEIGHT // 2): LAYERS,
        ("reduce-scatter", BIAS // 2): LAYERS,
    }
    # the first layer's weight and the biases are of no use in the backward pass
    again = LAYERS - 1 if name == "fsdp" else 0
    assert program["lowered"] == {"all_gather": 2 * LAYERS + again, "reduce_scatter": 2 * LAYERS}


def test_fsdp_sums_only_what_is_not_sharded():
    """The bias of the last layer has 5 numbers."""
    kinds = Counter(kind for kind, _ in in_processes()["odd"]["collectives"])
    assert kinds["reduce-scatter"] == kinds["all-gather"] == 2 * LAYERS - 1
    assert [pair for pair in in_processes()["odd"]["collectives"] if pair[0] == "all-reduce"] == [
        ["all-reduce", 5]
    ]


def test_ddp_on_devices_has_the_collectives_of_jax_by_hand():
    programs = on_devices(4)
    assert counted(programs["ddp"]) == counted(programs["ddp by hand"])
    # the gradients and the loss, in one
    assert programs["ddp"]["collectives"] == [["all-reduce", PARAMETERS + 1]]


def test_fsdp_on_devices_has_the_collectives_of_jax_by_hand():
    """One that keeps what it has gathered; else three weights are gathered again."""
    programs = on_devices(4)
    by_hand = counted(programs["fsdp by hand"])
    assert counted(programs["kept"]) == by_hand
    assert counted(programs["fsdp"]) == by_hand + Counter({("all-gather", WEIGHT): LAYERS - 1})


@pytest.mark.parametrize("name", ["fsdp", "kept"])
def test_memory_of_fsdp_falls_with_the_number_of_devices(name):
    """Parameters and the state of Adam; a step count, learning rates and the batch besides."""
    for count in (1, 2, 4):
        size = on_devices(count)[name]["argument bytes"]
        expected = 3 * 4 * PARAMETERS / count
        assert expected <= size <= expected + BATCH_BYTES / count + 256
    whole = on_devices(4)["ddp"]["argument bytes"]
    assert whole >= 3 * 4 * PARAMETERS


def test_memory_of_fsdp_in_two_processes_is_half():
    size = in_processes()["fsdp"]["argument bytes"]
    expected = 3 * 4 * PARAMETERS / 2
    assert expected <= size <= expected + BATCH_BYTES + 256
