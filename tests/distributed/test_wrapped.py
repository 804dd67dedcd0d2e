"""FullyShardedDataParallel against PyTorch's in two processes, whose answers are recorded, and
against the model that is not wrapped.
"""

import functools
import itertools

import numpy as np
import pytest
from distributed.processes import printed
from helpers.answers import beside, load

import jaxgrad as torch
import jaxgrad.distributed as dist
from jaxgrad.distributed.fsdp import fully_shard

ANSWERS = load(beside("distributed/test_wrapped.py"))
WAYS = [name for name in ANSWERS if name == "by hand" or name.startswith("way")]
PRECISIONS = [name for name in ANSWERS if name.startswith("precision")]
OTHERS = [name for name in ANSWERS if name not in (*WAYS, *PRECISIONS, "plain")]


@functools.cache
def in_two_processes():
    return printed("wrapped.py", "jaxgrad", processes=2)


@functools.cache
def in_one_process():
    return printed("wrapped.py", "jaxgrad", "plain;way module;way default;saved;names")


def check_equal(actual, expected, tolerance=2e-6, path=""):
    """Numbers are equal to a tolerance, all else is equal."""
    if isinstance(expected, dict):
        assert sorted(actual) == sorted(expected), path
        for key, value in expected.items():
            check_equal(actual[key], value, tolerance, f"{path}/{key}")
    elif isinstance(expected, list):
        assert len(actual) == len(expected), path
        for number, value in enumerate(expected):
            check_equal(actual[number], value, tolerance, f"{path}/{number}")
    elif isinstance(expected, float):
        assert actual == pytest.approx(expected, rel=tolerance, abs=tolerance), path
    else:
        assert actual == expected, path


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_wrapped_model_learns_what_the_model_does(way):
    """Losses, norms of clipped gradients, parameters and the state of Adam after three steps, and
    the units that a policy makes.
    """
    check_equal(in_two_processes()[way], ANSWERS["plain"] | ANSWERS[way])


@pytest.mark.slow
def test_replicas_of_shards_learn_what_the_model_does():
    results = in_two_processes()["hybrid"]
    expected = ANSWERS["plain"] | {key: ANSWERS["way module"][key] for key in ("units", "roots")}
    check_equal(results, expected)


@pytest.mark.slow
@pytest.mark.parametrize("case", OTHERS)
def test_what_pytorch_does_in_two_processes(case):
    check_equal(in_two_processes()[case], ANSWERS[case])


@pytest.mark.slow
@pytest.mark.parametrize("case", PRECISIONS)
def test_dtypes_of_mixed_precision(case):
    """Outputs have 8 bits, and batch normalization magnifies their rounding."""
    results, expected = dict(in_two_processes()[case]), dict(ANSWERS[case])
    tolerance = 2e-2 if case != "precision no inputs" else 2e-5
    check_equal(results.pop("values"), expected.pop("values"), tolerance)
    check_equal(results, expected)


@pytest.mark.slow
def test_a_model_on_the_device_meta_gets_the_numbers_of_rank_0():
    results = in_two_processes()["empty"]
    assert results["seen"] == ["Sequential", "Linear", "BatchNorm1d"]
    for value in (*results["state"].values(), *itertools.chain(*results["buffers"])):
        np.testing.assert_array_equal(value, 1)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["way module", "way default"])
def test_one_process_learns_the_same(way):
    check_equal(in_one_process()["plain"], ANSWERS["plain"])
    check_equal(in_one_process()[way], ANSWERS["plain"] | ANSWERS[way])


@pytest.mark.slow
def test_one_process_saves_the_same():
    counts = {"counts": [[len(ANSWERS["plain"]["state"]), 2]]}
    check_equal(in_one_process()["saved"], ANSWERS["saved"] | counts)
    check_equal(in_one_process()["names"], ANSWERS["names"])


def test_fully_shard_on_one_device_has_the_gradients_of_the_module():
    plain, sharded = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3)
    sharded.load_state_dict(plain.state_dict())
    fully_shard(sharded, mesh=dist.init_device_mesh("cpu", (1,)))
    for module in (plain, sharded):
        module(torch.tensor([[1.0, 2.0]])).square().sum().backward()
    assert sharded.weight.grad.full_tensor().tolist() == plain.weight.grad.tolist()


def test_ddp_needs_a_process_group():
    with pytest.raises(ValueError, match="Default process group has not been initialized"):
        torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
