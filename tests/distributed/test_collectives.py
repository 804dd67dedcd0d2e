"""Communication between processes gives what closed forms say, and so do its gradients."""

import functools

import pytest
from distributed.processes import printed, run

pytestmark = pytest.mark.slow


@functools.cache
def results(count):
    return printed("collectives_of_two.py", processes=count)


@pytest.mark.parametrize("count", [2, 4])
def test_every_collective_in_every_process(count):
    """In place, with gradients eager and compiled, of second order, in forward mode, under vmap;
    all dtypes, groups, objects and errors.
    """
    ranks = results(count)
    assert len(ranks) == count and all(len(flags) > 50 for flags in ranks)
    wrong = [(rank, name) for rank, flags in enumerate(ranks) for name in flags if not flags[name]]
    assert not wrong


MIXED = """
import sys
import jaxgrad as torch, jaxgrad.distributed as dist
from jaxgrad.distributed.tensor import Shard, distribute_tensor
dist.init_process_group()
mesh = dist.init_device_mesh("cpu", (2,))
sharded, own = distribute_tensor(torch.ones(4), mesh, [Shard(0)]), torch.ones(4)
add = lambda: sharded + own
"""


@pytest.mark.parametrize("form", ["add", "torch.jit(add)"])
def test_a_tensor_of_one_process_does_not_meet_a_dtensor(form, tmp_path):
    """JAX alone would take the numbers of each process for those of all."""
    path = tmp_path / "mixed.py"
    path.write_text(f"{MIXED}\n({form})()\n")
    done = run(path, processes=2)
    assert done.returncode != 0 and "got mixed torch.Tensor and DTensor" in done.stderr


ALONE = """
import jaxgrad as torch, jaxgrad.distributed as dist
from jaxgrad.distributed.tensor import Shard, distribute_tensor
dist.init_process_group()
mesh = dist.init_device_mesh("cpu", (2,))
x = distribute_tensor(torch.arange(4.0), mesh, [Shard(0)])
if dist.get_rank() == 0:
    print(x.sum())
x[1].item()
"""


def test_processes_that_run_different_programs_are_noticed(tmp_path, monkeypatch):
    """Without the check rank 1 would take a part of the sum of rank 0 for x[1]."""
    path = tmp_path / "alone.py"
    path.write_text(ALONE)
    monkeypatch.setenv("TORCH_DISTRIBUTED_DEBUG", "DETAIL")
    done = run(path, processes=2)
    assert done.returncode == 1
    assert "rank 0 runs Sum" in done.stderr and "rank 1 runs Select" in done.stderr
