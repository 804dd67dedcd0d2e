"""The program that test_programs.py runs on several devices, in one process or in several: it
compiles training steps, and prints which collectives their HLO has and how much memory they need.

Arguments: what to compile, as "ddp buckets fsdp", and the number of devices.
"""

import functools
import itertools
import json
import os
import re
import sys
from collections import Counter

import jax
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import jaxgrad as torch
import jaxgrad.distributed as dist
from jaxgrad.distributed.device_mesh import init_device_mesh
from jaxgrad.distributed.fsdp import fully_shard

nn, F = torch.nn, torch.nn.functional
# four layers that 1, 2 and 4 devices divide
WIDTH, LAYERS, BATCH = 256, 4, 16
KINDS = "all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast"
# the same in StableHLO, before XLA joins collectives
LOWERED = "all_reduce|all_gather|reduce_scatter|all_to_all|collective_permute|collective_broadcast"


def network(last=WIDTH):
    """last: the number of outputs."""
    torch.manual_seed(0)
    sizes = [WIDTH] * LAYERS + [last]
    layers = [nn.Linear(*pair) for pair in itertools.pairwise(sizes)]
    return nn.Sequential(*[module for layer in layers for module in (layer, nn.ReLU())][:-1])


def compiled_step(model, last=WIDTH):
    """The lowered step of a script, after a call that makes the state of Adam."""
    optimizer = torch.optim.Adam(model.parameters())

    @torch.jit
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    x, y = torch.ones(BATCH, WIDTH), torch.zeros(BATCH, last)
    step(x, y)
    return step.lower(x, y)


def collectives(text) -> list:
    """Kind and number of elements of each collective of a compiled program, in its order."""
    pairs = []
    for result, kind in re.findall(rf" = (.*?) ({KINDS})(?:-start)?\(", text):
        shapes = re.findall(r"\w+\[([\d,]*)\]", result)
        sizes = [np.prod([int(n) for n in shape.split(",") if n], dtype=int) for shape in shapes]
        pairs.append([kind, int(sum(sizes))])
    return pairs


def products_after(entry) -> int:
    """How many products of matrices come after the first collective, in the schedule's order."""
    is_collective = [bool(re.search(rf" ({KINDS})(-start)?\(", line)) for line in entry]
    after = entry[is_collective.index(True) :] if any(is_collective) else []
    names = [re.findall(r'op_name="([^"]*)"', line) for line in after if " fusion(" in line]
    return sum(" dot(" in line for line in after) + str(names).count("dot_general")


def described(lowered) -> dict:
    """What a test asks of a program."""
    compiled = lowered.compile()
    text = compiled.as_text()
    return {
        "collectives": collectives(text),
        "lowered": dict(Counter(re.findall(rf"stablehlo\.({LOWERED})", lowered.as_text()))),
        "products after": products_after(text[text.index("\nENTRY") :].splitlines()),
        "argument bytes": compiled.memory_analysis().argument_size_in_bytes,
    }


def ddp(count, **options):
    alone = dist.get_world_size() == 1
    mesh = init_device_mesh("cpu", (count,)) if alone else None
    return nn.parallel.DistributedDataParallel(network(), device_mesh=mesh, **options)


def fsdp(count, last=WIDTH, reshard=True):
    model, mesh = network(last), init_device_mesh("cpu", (count,))
    for layer in model:
        if [*layer.parameters()]:
            fully_shard(layer, mesh=mesh, reshard_after_forward=reshard)
    return fully_shard(model, mesh=mesh)


def by_hand(scheme, count):
    """The lowered step of a pure function on the devices of one process; "ddp" or "fsdp"."""
    mesh, optimizer = Mesh(np.array(jax.devices()), ("dp",)), optax.adam(1e-3)
    whole, part = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in ((), ("dp",)))
    place = part if scheme == "fsdp" else whole
    weights = [jax.device_put(param.detach().numpy(), place) for param in network().parameters()]

    def loss(weights, x, y):
        for number in range(0, len(weights), 2):
            pair = weights[number : number + 2]
            w, b = [jax.lax.with_sharding_constraint(array, whole) for array in pair]
            x = (jax.nn.relu(x) if number else x) @ w.T + b
        return ((x - y) ** 2).mean()

    @functools.partial(jax.jit, donate_argnums=(0, 1))
    def step(weights, state, x, y):
        value, gradients = jax.value_and_grad(loss)(weights, x, y)
        updates, state = optimizer.update(gradients, state)
        after = optax.apply_updates(weights, updates)
        return jax.lax.with_sharding_constraint((after, gradients), place), state, value

    state = optimizer.init(weights)
    state = jax.tree.map(lambda x: jax.device_put(x, place if x.ndim else whole), state)
    x, y = [jax.device_put(np.ones((BATCH, WIDTH), np.float32), part) for _ in range(2)]
    return step.lower(weights, state, x, y)


PROGRAMS = {
    "ddp": lambda count: compiled_step(ddp(count)),
    # a layer has 0.25 MB
    "buckets": lambda count: compiled_step(ddp(count, bucket_cap_mb=0.2)),
    "fsdp": lambda count: compiled_step(fsdp(count)),
    "kept": lambda count: compiled_step(fsdp(count, reshard=False)),
    # 5 numbers of a bias that no two devices divide
    "odd": lambda count: compiled_step(fsdp(count, last=5), last=5),
    "ddp by hand": functools.partial(by_hand, "ddp"),
    "fsdp by hand": functools.partial(by_hand, "fsdp"),
}


def main():
    names, count = sys.argv[1].split(","), int(sys.argv[2])
    if "RANK" in os.environ:
        dist.init_process_group()
    else:
        dist.init_process_group(rank=0, world_size=1)
    results = {name: described(PROGRAMS[name](count)) for name in names}
    if dist.get_rank() == 0:
        print("FOUND", json.dumps(results))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
