"""The program that test_collectives.py runs in two or more processes: each rank checks what it gets
against closed forms.
"""

import datetime
import functools
import json
import warnings

import numpy as np

import jaxgrad as torch
import jaxgrad.distributed as dist
import jaxgrad.distributed.nn.functional as F

DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int32", "uint8", "bool"]
DTYPES += ["complex64"]


def mine(rank, dtype=torch.float32):
    return (torch.arange(6).reshape(2, 3) + 10 * rank).to(dtype)


def numpy(rank):
    return np.arange(6.0).reshape(2, 3) + 10 * rank


def same(tensor, wanted):
    return np.array_equal(tensor.detach().to(torch.float64).numpy(), np.asarray(wanted, float))


def in_place(rank, size):
    every = [numpy(peer) for peer in range(size)]
    tensors = [mine(rank) for _ in range(9)]
    yield "all_reduce", dist.all_reduce(tensors[0]) is None and same(tensors[0], sum(every))
    work = dist.all_reduce(tensors[1], dist.ReduceOp.AVG, async_op=True)
    yield "average, async", work.wait() and same(tensors[1], sum(every) / size)
    for op, combine in (("MAX", np.maximum), ("MIN", np.minimum), ("PRODUCT", np.multiply)):
        tensor = mine(rank)
        dist.all_reduce(tensor, getattr(dist.ReduceOp, op))
        yield op, same(tensor, functools.reduce(combine, every))
    bits = torch.tensor([rank + 1, 6])
    dist.all_reduce(bits, dist.ReduceOp.BXOR)
    wanted = [np.bitwise_xor.reduce(np.arange(1, size + 1)), 6 * (size % 2)]
    yield "BXOR", same(bits, wanted)
    dist.broadcast(tensors[2], src=1)
    yield "broadcast", same(tensors[2], every[1])
    dist.reduce(tensors[3], dst=1)
    yield "reduce", same(tensors[3], sum(every) if rank == 1 else every[rank])
    pieces = [torch.zeros(2, 3) for _ in range(size)]
    dist.all_gather(pieces, mine(rank))
    yield "all_gather", all(map(same, pieces, every))
    whole, stacked = torch.zeros(2 * size, 3), torch.zeros(size, 2, 3)
    dist.all_gather_into_tensor(whole, mine(rank))
    dist.all_gather_into_tensor(stacked, mine(rank))
    yield "into tensor", same(whole, np.concatenate(every)) and same(stacked, np.stack(every))
    part = torch.zeros(2, 3)
    dist.reduce_scatter(part, [mine(rank) + peer for peer in range(size)])
    yield "reduce_scatter", same(part, sum(array + rank for array in every))
    dist.reduce_scatter_tensor(part, torch.cat([mine(rank)] * size), dist.ReduceOp.MAX)
    yield "reduce_scatter_tensor, MAX", same(part, every[-1])
    dist.scatter(part, [mine(peer) for peer in range(size)] if rank == 1 else None, src=1)
    yield "scatter", same(part, every[rank])
    gathered = [torch.zeros(2, 3) for _ in range(size)] if rank == 0 else None
    dist.gather(mine(rank), gathered)
    yield "gather", rank > 0 or all(map(same, gathered, every))


def exchanged(rank, size):
    pieces = [torch.zeros(2) for _ in range(size)]
    payload = [torch.tensor([float(rank), float(peer)]) for peer in range(size)]
    dist.all_to_all(pieces, payload)
    yield (
        "all_to_all",
        [piece.tolist() for piece in pieces] == [[peer, rank] for peer in range(size)],
    )
    uneven = [torch.zeros(peer + 1) for peer in range(size)]
    dist.all_to_all(uneven, [torch.full((rank + 1,), float(rank))] * size)
    yield "all_to_all, uneven", all(same(u, np.full(n + 1, n)) for n, u in enumerate(uneven))
    single = torch.zeros(size)
    dist.all_to_all_single(single, torch.arange(float(size)) + 10 * rank)
    yield "all_to_all_single", same(single, 10 * np.arange(size) + rank)
    lengths = [peer + 1 for peer in range(size)]
    flat = torch.zeros(sum(lengths))
    payload = torch.full(((rank + 1) * size,), float(rank))
    dist.all_to_all_single(flat, payload, lengths, [rank + 1] * size)
    yield "split sizes", same(flat, np.repeat(np.arange(size), lengths))
    got, partner = torch.zeros(2, 3), (rank + 1) % size
    before = (rank - 1) % size
    ops = [
        dist.P2POp(dist.isend, mine(rank), partner),
        dist.P2POp(dist.irecv, got, before),
    ]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    yield "batch_isend_irecv", same(got, numpy(before))
    if rank == 0:
        dist.send(mine(7), dst=1)
    if rank == 1:
        yield "recv", dist.recv(got, src=0) == 0 and same(got, numpy(7))
    values = [None] * size
    dist.all_gather_object(values, {"rank": rank, "x": mine(rank)})
    yield (
        "objects",
        [value["rank"] for value in values] == [*range(size)] and same(values[1]["x"], numpy(1)),
    )
    shared = [rank, "text" * (rank + 1)]
    dist.broadcast_object_list(shared, src=1)
    yield "broadcast_object_list", shared == [1, "texttext"]
    one = [None]
    dist.scatter_object_list(one, [(peer, "a") for peer in range(size)] if rank == 0 else None)
    yield "scatter_object_list", one == [(rank, "a")]


def dtypes(rank, size):
    for name in DTYPES:
        dtype = getattr(torch, name)
        tensor = torch.ones(3, dtype=dtype)
        dist.broadcast(tensor, src=0)
        dist.all_reduce(tensor)
        wanted = 1 if dtype is torch.bool else size
        yield name, tensor.dtype is dtype and tensor.to(torch.float32).tolist() == [wanted] * 3


def groups(rank, size):
    pair = dist.new_group([0, 1])
    tensor = torch.tensor([float(rank)])
    if rank < 2:
        dist.all_reduce(tensor, group=pair)
    else:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            dist.all_reduce(tensor, group=pair)
        yield "not in the group", len(seen) == 1 and pair is dist.GroupMember.NON_GROUP_MEMBER
    yield "new_group", tensor.item() == (1 if rank < 2 else rank)
    if size < 4:
        return
    mine, every = dist.new_subgroups(2)
    tensor = torch.tensor([float(rank)])
    step = torch.jit(lambda x: F.all_reduce(x, group=mine))
    first = rank // 2 * 2
    yield "subgroups, compiled", step(tensor).item() == 2 * first + 1 and len(every) == 2
    dist.broadcast(tensor, src=first + 1, group=mine)
    yield "src in the world", tensor.item() == first + 1
    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "b"))
    group = mesh.get_group("a")
    step = torch.jit(lambda x: F.all_gather(x, group=group)[0])
    yield "mesh group, compiled", step(torch.tensor([float(rank)])).item() == rank % 2


# functions of this rank's x and, in NumPy, of all x, with a weight for each rank: the gradient is
# that of the weighted sum over the ranks
def pairs(size):
    weights = np.arange(1.0, size + 1)
    column = weights.reshape(-1, 1, 1)
    yield "all_reduce", lambda x: F.all_reduce(x), lambda g: np.broadcast_to(g.sum(0), g.shape)
    yield (
        "average",
        lambda x: F.all_reduce(x, dist.ReduceOp.AVG),
        lambda g: np.broadcast_to(g.mean(0), g.shape),
    )
    yield "broadcast", lambda x: F.broadcast(x, 1), lambda g: _at(g, 1, g.sum(0))
    yield "reduce", lambda x: F.reduce(x, 0), lambda g: np.broadcast_to(g[0], g.shape)
    yield (
        "all_gather",
        lambda x: sum((n + 1) * part for n, part in enumerate(F.all_gather(x))),
        lambda g: column * g.sum(0),
    )
    yield (
        "reduce_scatter",
        lambda x: F.reduce_scatter(x, [x * (n + 1) for n in range(size)]),
        lambda g: np.broadcast_to((column * g).sum(0), g.shape),
    )
    yield "gather", lambda x: sum(F.gather(x)), lambda g: np.broadcast_to(g[0], g.shape)
    yield (
        "scatter",
        lambda x: F.scatter([x * (n + 1) for n in range(size)], 1),
        lambda g: _at(g, 1, (column * g).sum(0)),
    )
    yield (
        "all_to_all",
        lambda x: sum(F.all_to_all([], [x * (n + 1) for n in range(size)])),
        lambda g: np.broadcast_to((column * g).sum(0), g.shape),
    )


def _at(like, rank, value):
    array = np.zeros_like(like)
    array[rank] = value
    return array


def gradients(rank, size):
    for name, function, wanted in pairs(size):
        cotangents = np.stack([numpy(peer) * (peer + 1) + 1 for peer in range(size)])
        for compiled in (False, True):
            x = mine(rank).requires_grad_()

            weights = torch.tensor(cotangents[rank], dtype=torch.float32)

            def loss(x, function=function, weights=weights):
                return (function(x) * weights).sum()

            def step(x, loss=loss):
                loss(x).backward()

            (torch.jit(step) if compiled else step)(x)
            yield (
                f"gradient of {name}{', compiled' * compiled}",
                np.allclose(x.grad.numpy(), wanted(cotangents)[rank], rtol=1e-6),
            )
    x = mine(rank).requires_grad_()
    total = F.all_reduce(x * x)
    (first,) = torch.autograd.grad((total * total).sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    every = np.stack([numpy(peer) for peer in range(size)])
    # the sum over ranks of total^2 is size * S^2 with S = sum x^2; first = 4 size x S
    yield "first", np.allclose(first.detach().numpy(), 4 * size * every[rank] * (every**2).sum(0))
    # all ranks differentiate the sum of their firsts
    wanted = 4 * size * ((every**2).sum(0) + 2 * every[rank] * every.sum(0))
    yield "second", np.allclose(second.numpy(), wanted)
    ones = torch.ones(2, 3)
    _, tangent = torch.func.jvp(lambda x: F.all_reduce(x * x), (mine(rank),), (ones,))
    yield "forward mode", np.allclose(tangent.numpy(), 2 * every.sum(0))
    batched = torch.vmap(lambda row: F.all_reduce(row))(mine(rank))
    yield "vmap", same(batched, every.sum(0))


def errors(rank, size):
    def raises(kind, text, function, *arguments, **named):
        try:
            function(*arguments, **named)
        except kind as error:
            return text in str(error)
        return False

    twice = (ValueError, "twice", dist.init_process_group)
    yield "twice", raises(*twice)
    yield "no tensor", raises(TypeError, "expected a torch.Tensor", dist.all_reduce, [1.0])
    yield "op", raises(RuntimeError, "ReduceOp.BAND", dist.all_reduce, mine(0), dist.ReduceOp.BAND)
    yield "count", raises(ValueError, "each of the", dist.all_gather, [mine(0)] * 9, mine(0))
    yield (
        "shape",
        raises(ValueError, "must have shape", dist.all_gather_into_tensor, torch.zeros(1), mine(0)),
    )
    yield "rank", raises(ValueError, "99 is not part", dist.broadcast, mine(0), src=99)
    x = mine(0).requires_grad_()
    highest = F.all_reduce(x, dist.ReduceOp.MAX)
    yield "no derivative", raises(NotImplementedError, "no derivative", highest.sum().backward)
    one_way = torch.jit(lambda x: dist.send(x, dst=1 - rank if size == 2 else (rank + 1) % size))
    yield "send in a program", raises(RuntimeError, "one program", one_way, mine(0))


def main():
    dist.init_process_group("gloo", timeout=datetime.timedelta(minutes=15))
    rank, size = dist.get_rank(), dist.get_world_size()
    results = {}
    for part in (in_place, exchanged, dtypes, groups, gradients, errors):
        results |= dict(part(rank, size))
    values = [None] * size
    dist.all_gather_object(values, {name: bool(flag) for name, flag in results.items()})
    dist.barrier()
    if rank == 0:
        print("FOUND", json.dumps(values))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
