"""The program that test_schemes.py runs on several devices, in one process or in several: it trains
models in parallel and on one device, and prints how much they differ.

Arguments: the schemes and models, as "ddp:mlp fsdp:cnn", and whether the step is compiled.
"""

import copy
import json
import os
import sys

import numpy as np

import jaxgrad as torch
import jaxgrad.distributed as dist
from jaxgrad.distributed.device_mesh import init_device_mesh
from jaxgrad.distributed.fsdp import fully_shard
from jaxgrad.distributed.tensor import DTensor, Replicate, Shard
from jaxgrad.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

F = torch.nn.functional
STEPS, BATCH = 10, 16


class Block(torch.nn.Module):
    """A layer of a transformer, whose projections are Linears by themselves."""

    def __init__(self, width, heads):
        super().__init__()
        self.extent = width // heads
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.q, self.k, self.v = (torch.nn.Linear(width, width) for _ in range(3))
        self.out = torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def heads(self, x):
        return x.view(x.shape[0], x.shape[1], -1, self.extent).transpose(1, 2)

    def forward(self, x):
        h = self.norm1(x)
        q, k, v = self.heads(self.q(h)), self.heads(self.k(h)), self.heads(self.v(h))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(a.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(24, 32)
        self.blocks = torch.nn.ModuleList([Block(32, 4) for _ in range(2)])
        self.head = torch.nn.Linear(32, 24)

    def forward(self, tokens):
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


def mlp():
    nn = torch.nn
    first = nn.Linear(8, 16), nn.ReLU()
    return nn.Sequential(*first, nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 5))


def cnn():
    nn = torch.nn
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU()),
        *(nn.Conv2d(8, 8, 3, padding=1, stride=2), nn.BatchNorm2d(8), nn.ReLU()),
        *(nn.Flatten(), nn.Linear(8 * 16, 5)),
    )


def sgd(parameters):
    return torch.optim.SGD(parameters, 0.05, momentum=0.9, weight_decay=1e-3)


def adam(parameters):
    # with a large eps rounding in tiny gradients stays rounding
    return torch.optim.Adam(parameters, 0.01, eps=1e-3)


MODELS = {
    "mlp": (mlp, sgd, (8,)),
    "mlp-adam": (mlp, adam, (8,)),
    "cnn": (cnn, sgd, (3, 8, 8)),
    "transformer": (Transformer, adam, None),
}


def data(shape):
    """Batches of inputs and labels; of tokens without a shape."""
    numbers = np.random.default_rng(0)
    if shape is None:
        tokens = numbers.integers(0, 24, size=(STEPS, BATCH, 9))
        return [(torch.tensor(batch[:, :-1]), torch.tensor(batch[:, 1:])) for batch in tokens]
    x = numbers.normal(size=(STEPS, BATCH, *shape)).astype(np.float32)
    y = numbers.integers(0, 5, size=(STEPS, BATCH))
    return [(torch.tensor(a), torch.tensor(b)) for a, b in zip(x, y, strict=True)]


PLANS = {
    "mlp": {"0": ColwiseParallel(), "2": RowwiseParallel()},
    "transformer": {
        "blocks.*.q": ColwiseParallel(),
        "blocks.*.k": ColwiseParallel(),
        "blocks.*.v": ColwiseParallel(),
        "blocks.*.out": RowwiseParallel(),
        "blocks.*.up": ColwiseParallel(),
        "blocks.*.down": RowwiseParallel(),
    },
}


def sharded_by_blocks(model, mesh):
    for block in [*getattr(model, "blocks", ())] or [m for m in model if [*m.parameters()]][:2]:
        fully_shard(block, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def parallel(scheme, name, model, count):
    """The model in parallel, what makes a batch its part, and whether losses are of parts."""
    alone, kind = dist.get_world_size() == 1, name.partition("-")[0]
    rank, share = dist.get_rank(), BATCH // max(dist.get_world_size(), 1)

    def mine(tensor):
        return tensor if alone else tensor[rank * share : (rank + 1) * share]

    if scheme == "ddp":
        mesh = init_device_mesh("cpu", (count,)) if alone else None
        return torch.nn.parallel.DistributedDataParallel(model, device_mesh=mesh), mine, not alone
    if scheme == "fsdp":
        return sharded_by_blocks(model, init_device_mesh("cpu", (count,))), mine, not alone
    if scheme == "tp":
        mesh = init_device_mesh("cpu", (count,))
        return parallelize_module(model, mesh, PLANS[kind]), lambda tensor: tensor, False
    mesh = init_device_mesh("cpu", (2, count // 2), mesh_dim_names=("dp", "tp"))
    parallelize_module(model, mesh["tp"], PLANS[kind])

    def on_mesh(tensor):
        if alone:
            return torch.distributed.tensor.distribute_tensor(tensor, mesh, [Shard(0), Replicate()])
        row = mesh.get_local_rank("dp") * (BATCH // 2)
        part = tensor[row : row + BATCH // 2]
        return DTensor.from_local(part, mesh, [Shard(0), Replicate()])

    return sharded_by_blocks(model, mesh["dp"]), on_mesh, False


def train(model, optimizer, batches, compiled):
    """The losses, the gradients of the last step, and the parameters and buffers after it."""

    def step(x, y):
        optimizer.zero_grad()
        output = model(x)
        loss = F.cross_entropy(output.flatten(0, -2), y.flatten())
        loss.backward()
        optimizer.step()
        return loss.detach()

    run = torch.jit(step) if compiled else step
    losses = [run(x, y) for x, y in batches]
    assert not compiled or len(run.traces) == 1, run.explain()
    return losses


def numbers(tensor):
    tensor = tensor.detach()
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).numpy()


def difference(result, wanted) -> float:
    """The largest difference, relative to the largest number."""
    return float(np.abs(result - wanted).max() / max(np.abs(wanted).max(), 1e-2))


def compare(scheme, name, compiled, count):
    make, choose, shape = MODELS[name]
    torch.manual_seed(0)
    plain = make()
    model = torch.nn.SyncBatchNorm.convert_sync_batchnorm(copy.deepcopy(plain))
    batches = data(shape)
    wanted = train(plain, choose(plain.parameters()), batches, False)
    wrapped, part, is_part = parallel(scheme, name, model, count)
    optimizer = choose(wrapped.parameters())
    parts = [(part(x), part(y)) for x, y in batches]
    losses = train(wrapped, optimizer, parts, compiled)
    if is_part:
        for loss in losses:
            dist.all_reduce(loss, dist.ReduceOp.AVG)
    pairs = [(numbers(a), numbers(b)) for a, b in zip(losses, wanted, strict=True)]
    worst = {"losses": max(difference(*pair) for pair in pairs)}
    pairs = [*zip(model.parameters(), plain.parameters(), strict=True)]
    worst["gradients"] = max(difference(numbers(a.grad), numbers(b.grad)) for a, b in pairs)
    worst["parameters"] = max(difference(numbers(a), numbers(b)) for a, b in pairs)
    buffers = [*zip(model.buffers(), plain.buffers(), strict=True)]
    worst["buffers"] = max([difference(numbers(a), numbers(b)) for a, b in buffers], default=0.0)
    state = [v for s in optimizer.state.values() for v in s.values() if getattr(v, "ndim", 0)]
    sharded = [p for p in model.parameters() if isinstance(p, DTensor)]
    worst["sharded state"] = sum(
        isinstance(v, DTensor) and any(placement.is_shard() for placement in v.placements)
        for v in state
    )
    worst["sharded"] = sum(any(placement.is_shard() for placement in p.placements) for p in sharded)
    return worst


def main():
    cases, compiled, count = sys.argv[1].split(), sys.argv[2] == "compiled", int(sys.argv[3])
    if "RANK" in os.environ:
        dist.init_process_group()
    else:
        dist.init_process_group(rank=0, world_size=1)
    results = {case: compare(*case.split(":"), compiled, count) for case in cases}
    if dist.get_rank() == 0:
        print("FOUND", json.dumps(results))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
