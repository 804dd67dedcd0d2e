"""The program that test_sharded.py runs on four devices of one process: it lowers steps of sharded
models for GPUs and TPUs, and prints what the StableHLO of each has. Arguments: the platforms.
"""

import json
import re
import sys
from collections import Counter

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec

import jaxgrad as torch
import jaxgrad.distributed as dist
from jaxgrad import nn
from jaxgrad.distributed.device_mesh import init_device_mesh
from jaxgrad.distributed.fsdp import fully_shard
from jaxgrad.distributed.tensor import Replicate, Shard, distribute_tensor
from jaxgrad.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from jaxgrad.tape.tensor import wrap

COLLECTIVES = "all_reduce|all_gather|reduce_scatter|all_to_all|collective_permute"


def described(traced):
    """By platform how often there is each collective, how many arguments and results of the program
    are split over the devices, and how many values within it are.
    """
    programs = {}
    for platform in sys.argv[1:]:
        text = traced.lower(lowering_platforms=(platform,)).as_text()
        programs[platform] = {
            "collectives": dict(Counter(re.findall(rf"stablehlo\.({COLLECTIVES})\"?\(", text))),
            "split": len(re.findall(r"sdy\.sharding<[^>]*\{\"", text)),
            "constrained": len(re.findall(r"sdy\.sharding_constraint [^>]*\{\"", text)),
            "callbacks": text.count("callback"),
        }
    return programs


def network():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))


def step_of(model):
    optimizer = torch.optim.Adam(model.parameters())

    @torch.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    x, y = torch.ones(8, 8), torch.zeros(8, 4)
    step(x, y)
    return step.trace(x, y)


def fsdp():
    model, mesh = network(), init_device_mesh("cpu", (4,))
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    return step_of(fully_shard(model, mesh=mesh))


def data_parallel():
    mesh = init_device_mesh("cpu", (4,))
    return step_of(nn.parallel.DistributedDataParallel(network(), device_mesh=mesh))


def tensor_parallel():
    plan = {"0": ColwiseParallel(), "2": RowwiseParallel()}
    return step_of(parallelize_module(network(), init_device_mesh("cpu", (4,)), plan))


def redistributed():
    mesh = init_device_mesh("cpu", (4,))
    x = distribute_tensor(torch.ones(8, 8), mesh, [Shard(0)])
    step = torch.jit(lambda x: (x * 2).redistribute(mesh, [Replicate()]).sum())
    step(x)
    return step.trace(x)


def on_devices(function, **options):
    """A function of the part of a (8, 8) array that a device has, traced by shard_map."""
    mesh = jax.sharding.Mesh(jax.devices(), ("x",))
    rows = PartitionSpec("x")

    def whole(array):
        return jax.shard_map(function, mesh=mesh, in_specs=rows, out_specs=rows)(array)

    with jax.enable_x64(True):
        return jax.jit(whole).trace(jnp.ones((8, 8), jnp.float32))


def ring_attention():
    """Each device's queries meet the keys of all, which go around; and the gradient."""

    def attention(x):
        around = [(device, (device + 1) % 4) for device in range(4)]
        parts = [x]
        for _ in range(3):
            parts.append(jax.lax.ppermute(parts[-1], "x", around))
        keys = torch.cat([wrap(part) for part in parts])
        return ((wrap(x) @ keys.T).softmax(-1) @ keys)._array.sum()

    return on_devices(jax.grad(attention))


def pipeline():
    """Two stages of a pipeline hand their results to the next device."""

    def stages(x):
        for _ in range(2):
            x = wrap(x).tanh()._array
            x = jax.lax.ppermute(x, "x", [(0, 1), (1, 2), (2, 3)])
        return x

    return on_devices(stages)


PROGRAMS = {
    "fsdp": fsdp,
    "data parallel": data_parallel,
    "tensor parallel": tensor_parallel,
    "redistributed": redistributed,
    "ring attention": ring_attention,
    "pipeline": pipeline,
}


def main():
    dist.init_process_group(rank=0, world_size=1)
    print("FOUND", json.dumps({name: described(make()) for name, make in PROGRAMS.items()}))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
