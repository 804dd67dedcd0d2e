"""DTensors compute what plain tensors do, and say what cannot be."""

import functools

import pytest
from distributed.processes import printed

import jaxgrad as torch
import jaxgrad.distributed as dist
from jaxgrad.distributed.tensor import Shard, distribute_tensor


@functools.cache
def results(where):
    return printed("dtensors.py", **{where: 4 if where == "devices" else 2})


@pytest.mark.slow
@pytest.mark.parametrize("where", ["devices", "processes"])
def test_values_gradients_writes_placements_and_errors(where):
    """On four devices of one process, and in two processes."""
    answers = results(where)
    assert len(answers) > 60
    assert not [name for name, is_right in answers.items() if not is_right]


def test_a_dtensor_on_one_device_computes_as_its_tensor():
    mesh = dist.init_device_mesh("cpu", (1,))
    plain = torch.arange(4.0, requires_grad=True)
    sharded = distribute_tensor(plain.detach(), mesh, [Shard(0)]).requires_grad_()
    for x in (plain, sharded):
        (x * x).sum().backward()
    assert sharded.placements == (Shard(0),)
    assert sharded.grad.full_tensor().tolist() == plain.grad.tolist() == [0, 2, 4, 6]
