"""The program that test_dtensors.py runs on four devices of one process, and in two processes: it
compares DTensors with plain tensors and with what must hold.
"""

import json
import os

import numpy as np

import jaxgrad as torch
import jaxgrad.distributed as dist
from jaxgrad.distributed.data_parallel import DistributedDataParallel
from jaxgrad.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from jaxgrad.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    zeros,
)
from jaxgrad.distributed.tensor.parallel import ColwiseParallel, parallelize_module

F = torch.nn.functional
NUMBERS = np.random.default_rng(0).normal(size=(8, 8)).astype(np.float32)

OPERATORS = {
    "sum": lambda x: x.sum(),
    "mean of columns": lambda x: x.mean(0),
    "matmul": lambda x: x @ x.T,
    "softmax": lambda x: x.softmax(-1),
    "sort": lambda x: x.sort(0).values,
    "cumsum": lambda x: x.cumsum(0),
    "view": lambda x: x.view(4, 16).t(),
    "slice": lambda x: x[1:5, ::2],
    "index": lambda x: x[torch.tensor(2)],
    "cat": lambda x: torch.cat([x, 2 * x]),
    "where": lambda x: torch.where(x > 0, x, -x),
    "einsum": lambda x: torch.einsum("ij,kj->ik", x, x),
    "layer_norm": lambda x: F.layer_norm(x, (8,)),
    "svdvals": lambda x: torch.linalg.svdvals(x),
    "logsumexp": lambda x: x.logsumexp(1),
    "roll": lambda x: x.roll(3, 0),
    "pad": lambda x: F.pad(x, (1, 2)),
    "conv1d": lambda x: F.conv1d(x[None], torch.ones_like(x)[:2, :, None]),
}


def full(tensor):
    tensor = tensor.detach()
    return tensor.full_tensor().numpy() if isinstance(tensor, DTensor) else tensor.numpy()


def operators(mesh):
    """Values and gradients of operators, eager and compiled, equal those of a plain tensor."""
    for name, function in OPERATORS.items():
        plain = torch.tensor(NUMBERS, requires_grad=True)
        wanted = function(plain)
        (wanted * wanted).sum().backward()
        for compiled in (False, True):
            x = distribute_tensor(torch.tensor(NUMBERS), mesh, [Shard(0)]).requires_grad_()

            def run(x, function=function):
                result = function(x)
                assert hasattr(result, "redistribute")
                (result * result).sum().backward()
                return result.detach()

            result = (torch.jit(run) if compiled else run)(x)
            same = np.allclose(full(result), full(wanted), rtol=1e-5, atol=1e-5)
            same &= np.allclose(full(x.grad), plain.grad.numpy(), rtol=1e-4, atol=1e-4)
            yield f"{name}{', compiled' * compiled}", same and isinstance(result, DTensor)


def writes(mesh):
    x = distribute_tensor(torch.tensor(NUMBERS), mesh, [Shard(0)])
    plain = torch.tensor(NUMBERS)
    for tensor in (x, plain):
        tensor.mul_(2)
        tensor[1] = 0.5
        tensor.t()[2].add_(1)
        tensor.add_(tensor.sum(0))
    yield "writes", np.allclose(full(x), plain.numpy()) and x.placements == (Shard(0),)
    x.copy_(distribute_tensor(torch.zeros(8, 8), mesh, [Replicate()]))
    yield "copy_", x.placements == (Shard(0),) and not full(x).any()
    step = torch.jit(lambda: x.add_(1.0))
    step()
    step()
    yield "write in a program", x.placements == (Shard(0),) and (full(x) == 2).all()
    result = torch.zeros_like(x)
    yield "zeros_like", isinstance(result, DTensor) and result.placements == x.placements
    layer = distribute_module(torch.nn.Linear(8, 8), mesh)
    saved = {name: torch.full(value.shape, 3.0) for name, value in layer.state_dict().items()}
    if not dist.is_initialized():
        layer.load_state_dict(saved)
        is_kept = isinstance(layer.weight, DTensor)
        yield "load_state_dict", is_kept and (full(layer.weight) == 3).all()


def read_by_programs(mesh, sharded):
    """A compiled function that reads how an argument lies holds for such arguments alone."""
    kinds = {
        "plain": torch.tensor(NUMBERS),
        "sharded": sharded,
        "replicated": distribute_tensor(torch.tensor(NUMBERS), mesh, [Replicate()]),
    }
    is_dtensor = torch.jit(lambda x: x.detach() * (2 if isinstance(x, DTensor) else 3))
    is_sharded = torch.jit(lambda x: x.detach() * (2 if x.placements == (Shard(0),) else 3))
    for name in ("plain", "sharded", "replicated", "plain", "sharded"):
        result, factor = is_dtensor(kinds[name]), 3 if name == "plain" else 2
        yield f"isinstance, {name}", np.array_equal(full(result), factor * NUMBERS)
        if name != "plain":
            result, factor = is_sharded(kinds[name]), 2 if name == "sharded" else 3
            yield f"placements, {name}", np.array_equal(full(result), factor * NUMBERS)


def numbers_of_programs(mesh):
    """Numbers lie where the other arguments of a call do."""
    scaled = torch.jit(lambda x, factor: x * factor)
    plain = torch.tensor(NUMBERS)
    sharded = distribute_tensor(plain, mesh, [Shard(0)])
    for factor in (1.5, 2.5, 3.5):
        yield f"times {factor}", np.array_equal(full(scaled(sharded, factor)), factor * NUMBERS)
    result = scaled(plain, 4.5)
    is_right = np.array_equal(result.numpy(), 4.5 * NUMBERS) and not isinstance(result, DTensor)
    yield "a plain tensor by the same program", is_right
    result = scaled(sharded, 4.5)
    yield "and a sharded one again", isinstance(result, DTensor)


def placed(mesh):
    x = distribute_tensor(torch.tensor(NUMBERS), mesh, [Shard(0)]).requires_grad_()
    moved = x.redistribute(mesh, [Shard(1)])
    yield "redistribute", moved.placements == (Shard(1),) and np.array_equal(full(moved), NUMBERS)
    (moved * moved).sum().backward()
    yield "its gradient", x.grad.placements == (Shard(0),)
    yield "its value", np.allclose(full(x.grad), 2 * NUMBERS)
    wide = torch.tensor([2**40 + n for n in range(8)])
    kept = distribute_tensor(wide, mesh, [Shard(0)])
    yield "64 bits", kept.dtype is torch.int64 and full(kept).tolist() == wide.tolist()
    yield "repr", "placements=(Shard(dim=0),)" in repr(x)
    yield "factory", zeros(8, 4, device_mesh=mesh, placements=[Shard(1)]).placements == (Shard(1),)
    yield "no DTensor", not isinstance(torch.ones(2), DTensor)
    yield "no placements", not hasattr(torch.ones(2), "placements")
    known = torch.jit(lambda x: x.redistribute(mesh, [Shard(1)]).placements)
    yield "known in a program", known(x.detach()) == (Shard(1),)
    yield from read_by_programs(mesh, x.detach())
    yield from numbers_of_programs(mesh)
    unknown = torch.jit(lambda x: (x * 2).placements)
    yield "unknown in a program", raises(RuntimeError, "redistribute", unknown, x.detach())
    torch.manual_seed(3)
    plain = F.dropout(torch.ones(8, 8))
    for compiled in (False, True):
        torch.manual_seed(3)
        drop = torch.jit(F.dropout) if compiled else F.dropout
        result = drop(distribute_tensor(torch.ones(8, 8), mesh, [Shard(0)]))
        yield f"dropout{', compiled' * compiled}", np.array_equal(full(result), plain.numpy())


def raises(kind, text, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except kind as error:
        return text in str(error)
    return False


def refused(mesh):
    size = mesh.size()
    ones = torch.ones(8, 8)
    yield (
        "uneven",
        raises(
            ValueError, "equal parts", distribute_tensor, torch.ones(size + 1), mesh, [Shard(0)]
        ),
    )
    yield "dimension", raises(ValueError, "2 dimensions", distribute_tensor, ones, mesh, [Shard(2)])
    yield "count", raises(ValueError, "Placement for each", distribute_tensor, ones, mesh, [])
    yield (
        "partial",
        raises(NotImplementedError, "never Partial", distribute_tensor, ones, mesh, [Partial()]),
    )
    yield (
        "computed",
        raises(
            RuntimeError, "non-leaf", distribute_tensor, ones.requires_grad_() * 2, mesh, [Shard(0)]
        ),
    )
    yield "mesh", raises(ValueError, "numbered from 0", dist.init_device_mesh, "cpu", (64,))
    layer = torch.nn.Linear(8, size + 1)
    before = layer.weight.detach().clone()
    style = ColwiseParallel()
    yield "columns", raises(ValueError, "equal parts", parallelize_module, layer, mesh, style)
    same = torch.equal(layer.weight.detach(), before)
    yield "nothing changed", same and not isinstance(layer.weight, DTensor)
    yield (
        "no module",
        raises(ValueError, "no submodule is 'x'", parallelize_module, layer, mesh, {"x": style}),
    )
    model = fully_shard(torch.nn.Linear(8, 8), mesh=mesh)
    yield "twice", raises(ValueError, "sharded already", fully_shard, model, mesh=mesh)
    if not dist.is_initialized():
        model = DistributedDataParallel(torch.nn.Linear(8, 8), device_mesh=mesh)
        yield "batch", raises(ValueError, "multiple of 4", model, torch.ones(5, 8))
        yield "group", raises(ValueError, "Default process group", dist.get_rank)


def precision(mesh):
    model = fully_shard(
        torch.nn.Linear(8, 8), mesh=mesh, mp_policy=MixedPrecisionPolicy(torch.bfloat16)
    )
    x = torch.tensor(NUMBERS)
    output = model(x)
    output.float().sum().backward()
    yield "bfloat16", output.dtype is torch.bfloat16 and model.weight.dtype is torch.float32
    yield "float32 gradient", model.weight.grad.dtype is torch.float32


class OneOfTwo(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = torch.nn.ModuleDict({name: torch.nn.Linear(8, 2) for name in "ab"})

    def forward(self, x, name):
        return self.pair[name](x)


def summed(mesh):
    """With reduce_dtype gradients of processes are added in float32: 256 + 1 is 256 in bfloat16."""
    if not dist.is_initialized():
        return
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype, wanted in ((None, 256 / size), (torch.float32, (256 + size - 1) / size)):
        policy = MixedPrecisionPolicy(torch.bfloat16, dtype)
        model = fully_shard(torch.nn.Linear(8, 1, bias=False), mesh=mesh, mp_policy=policy)
        model(torch.full((1, 8), 256.0 if rank == 0 else 1.0)).sum().backward()
        gradient = full(model.weight.grad)
        yield f"sum in {dtype}", (gradient == wanted).all() and gradient.dtype == np.float32


def accumulated(mesh):
    """Two halves of a batch with no_sync, and the whole batch, have the same gradient."""
    if not dist.is_initialized():
        return
    rank, size = dist.get_rank(), dist.get_world_size()
    gradients = []
    for parts in (1, 2):
        torch.manual_seed(1)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 2))
        mine = torch.tensor(NUMBERS[rank::size])
        chunks = mine.chunk(parts)
        for n, chunk in enumerate(chunks):
            run = model.no_sync() if n + 1 < parts else torch.enable_grad()
            with run:
                (model(chunk).square().sum() / len(mine)).backward()
                if n + 1 < parts:
                    local = model.module.weight.grad.clone()
                    every = [torch.zeros_like(local) for _ in range(size)]
                    dist.all_gather(every, local)
                    yield "not averaged", not torch.equal(every[0], every[1])
        gradients.append(model.module.weight.grad.numpy())
    yield "accumulated", np.allclose(*gradients, rtol=1e-5)
    strict = torch.nn.parallel.DistributedDataParallel(OneOfTwo())
    x = torch.tensor(NUMBERS)
    yield "unused", raises(RuntimeError, "pair.b.weight", strict(x, "a").sum().backward)
    lenient = torch.nn.parallel.DistributedDataParallel(OneOfTwo(), find_unused_parameters=True)
    lenient(x, "a" if rank == 0 else "b").sum().backward()
    gradient = lenient.module.pair["b"].weight.grad
    yield (
        "found unused",
        gradient is not None
        and np.allclose(
            gradient.numpy(), np.broadcast_to(NUMBERS.sum(0) * (size - 1) / size, (2, 8)), rtol=1e-4
        ),
    )


def main():
    if "RANK" in os.environ:
        dist.init_process_group()
    count = dist.get_world_size() if dist.is_initialized() else 4
    mesh = dist.init_device_mesh("cpu", (count,), mesh_dim_names=("d",))
    results = {}
    for part in (operators, writes, placed, refused, precision, summed, accumulated):
        results |= dict(part(mesh))
    if not dist.is_initialized() or dist.get_rank() == 0:
        print("FOUND", json.dumps({name: bool(flag) for name, flag in results.items()}))
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
