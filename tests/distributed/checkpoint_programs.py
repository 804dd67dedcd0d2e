"""The programs that test_checkpoint.py runs in processes of their own: the first argument names
one, the second is a folder.
"""

import itertools
import os
import re
import signal
import sys
import time

import numpy as np

import jaxgrad as torch
import jaxgrad.distributed as dist
from jaxgrad.distributed import checkpoint
from jaxgrad.distributed.checkpoint import state_dict as states
from jaxgrad.distributed.tensor import (
    DTensor,
    Replicate,
    Shard,
    distribute_module,
    distribute_tensor,
    init_device_mesh,
)

DTYPES = ("float32", "bfloat16", "float16", "int32", "bool", "complex64", "uint8", "int8")


def whole_tensors():
    """Tensors of several dtypes, the same in each process."""
    draw = np.random.default_rng(0)
    bits = draw.integers(0, 250, (8, 4))
    tensors = {name: torch.tensor(bits).to(getattr(torch, name)) for name in DTYPES}
    return tensors | {"normal": torch.tensor(draw.normal(size=(8, 4)).astype("f4"))}


def bits_of(tensor):
    whole = tensor.full_tensor() if isinstance(tensor, DTensor) else tensor
    array = np.asarray(whole.detach()._array)
    return array.dtype.name, array.shape, array.tobytes()


def placed(tensors, mesh, placements):
    return {k: distribute_tensor(v, mesh, placements) for k, v in tensors.items()}


def zeros(tensors):
    return {name: torch.zeros_like(tensor) for name, tensor in tensors.items()}


def check(loaded, wanted):
    for name, tensor in wanted.items():
        assert bits_of(loaded[name]) == bits_of(tensor), name


def save_on_four(folder):
    mesh = init_device_mesh("cpu", (4,))
    rows = placed(whole_tensors(), mesh, [Shard(0)])
    columns = placed(whole_tensors(), mesh, [Shard(1)])
    copies = placed(whole_tensors(), mesh, [Replicate()])
    checkpoint.save(
        {"rows": rows, "columns": columns, "copies": copies, "plain": whole_tensors(), "step": 3},
        checkpoint_id=folder,
    )


def load_on(folder, *shape):
    """Load on a mesh of a shape, with several placements; without a shape on one device."""
    wanted, kinds = whole_tensors(), ("rows", "columns", "copies", "plain")
    sizes = tuple(map(int, shape))
    every = itertools.product([Shard(0), Shard(1), Replicate()], repeat=len(sizes))
    for placements in every if sizes else [None]:
        state = {kind: zeros(wanted) for kind in kinds}
        if sizes:
            mesh = init_device_mesh("cpu", sizes)
            state = {kind: placed(state[kind], mesh, placements) for kind in kinds}
        checkpoint.load(state | {"step": 0}, checkpoint_id=folder)
        for kind in kinds:
            check(state[kind], wanted)
            assert not sizes or state[kind]["int32"].placements == placements


def save_by_two(folder):
    dist.init_process_group()
    rank, mesh = dist.get_rank(), init_device_mesh("cpu", (2,))
    state = {
        "rows": placed(whole_tensors(), mesh, [Shard(0)]),
        "columns": placed(whole_tensors(), mesh, [Shard(1)]),
        "copies": placed(whole_tensors(), mesh, [Replicate()]),
        "plain": whole_tensors(),
        "step": 3,
        "written by": torch.tensor(rank),
        f"of {rank}": {"generator": torch.tensor([rank, 2**40 + rank]), "rank": rank},
    }
    checkpoint.save(state, checkpoint_id=folder)
    assert checkpoint.async_save(state, checkpoint_id=folder).result() is None
    dist.destroy_process_group()


def load_by_two(folder):
    dist.init_process_group()
    rank, mesh, wanted = dist.get_rank(), init_device_mesh("cpu", (2,)), whole_tensors()
    for placement in (Shard(0), Shard(1), Replicate()):
        state = {
            kind: placed(zeros(wanted), mesh, [placement]) for kind in ("rows", "columns", "copies")
        }
        state |= {"plain": zeros(wanted), "step": 0}
        checkpoint.load(state, checkpoint_id=folder)
        assert state["step"] == 3
        for kind in ("rows", "columns", "copies", "plain"):
            check(state[kind], wanted)
        assert state["rows"]["bool"].placements == (placement,)
    if "own" in sys.argv:
        state_of_rank = {"generator": torch.zeros(2, dtype=torch.int64), "rank": -1}
        state = {f"of {rank}": state_of_rank, "written by": torch.tensor(5)}
        checkpoint.load(state, checkpoint_id=folder)
        assert state_of_rank["rank"] == rank and state_of_rank["generator"].tolist() == [
            rank,
            2**40 + rank,
        ]
        assert state["written by"].item() == 0
    dist.destroy_process_group()


def fail_by_two(folder):
    """One process gives what cannot be saved or loaded: both raise, and nothing changes."""
    dist.init_process_group()
    rank = dist.get_rank()
    checkpoint.save({"x": torch.ones(2)}, checkpoint_id=folder)
    try:
        checkpoint.save({"x": torch.zeros(2), "y": {1} if rank else 1}, checkpoint_id=folder)
    except TypeError as error:
        assert rank == 1 and "y: a checkpoint takes" in str(error)
    except checkpoint.CheckpointException as error:
        assert rank == 0 and "rank 1: TypeError: y: a checkpoint takes" in str(error)
    state = {"x": torch.full((2,), 5.0)} | ({"z": 1} if rank else {})
    try:
        checkpoint.load(state, checkpoint_id=folder)
    except checkpoint.CheckpointException as error:
        assert "rank 1: RuntimeError: Missing key in checkpoint state_dict: z." in str(error)
        assert list(error.failures) == [1]
    assert state["x"].tolist() == [5, 5]
    checkpoint.load(state if rank == 0 else {"x": state["x"]}, checkpoint_id=folder)
    assert state["x"].tolist() == [1, 1]
    dist.destroy_process_group()


def groups_by_two(folder):
    """Groups in another order and of one process, and DTensors that not all save."""
    dist.init_process_group()
    rank, x = dist.get_rank(), torch.arange(8.0).reshape(4, 2)
    sharded = distribute_tensor(x, init_device_mesh("cpu", (2,)), [Shard(0)])
    turned, first = dist.new_group([1, 0], sort_ranks=False), dist.new_group([0])
    state = {"rank": torch.full((2,), float(rank)), "x": sharded}
    checkpoint.save(state, checkpoint_id=folder, process_group=turned)
    loaded_state = {"rank": torch.full((2,), 5.0), "x": torch.zeros(4, 2)}
    checkpoint.load(loaded_state, checkpoint_id=folder, process_group=turned)
    check(loaded_state, {"rank": torch.zeros(2), "x": x})
    for group in ({"process_group": first}, {"no_dist": True}):
        if rank == 0:
            checkpoint.save({"n": 1}, checkpoint_id=f"{folder}/one", **group)
            refused(
                r"^x has shards in the processes of rank \[0, 1\]", {"x": sharded}, folder, group
            )
    dist.barrier()
    alone = {"n": 0}
    checkpoint.load(alone, checkpoint_id=f"{folder}/one", no_dist=True)
    assert alone == {"n": 1}
    refused(": x is a DTensor of several processes", {} if rank else {"x": sharded}, folder, {})
    if rank == 1:
        refused(
            "by the process of rank 0, and it is not among", {"n": 1}, folder, {"no_dist": True}
        )
    dist.destroy_process_group()


def refused(text, state, folder, options):
    try:
        checkpoint.save(state, checkpoint_id=folder, **options)
    except (RuntimeError, NotImplementedError) as error:
        assert re.search(text, str(error)), error
    else:
        raise AssertionError(text)


def whole_states_by_two(folder):
    """Whole states of sharded models and optimizers, from the process of rank 0 to all."""
    dist.init_process_group()
    mesh = init_device_mesh("cpu", (2,))
    whole = states.StateDictOptions(full_state_dict=True, cpu_offload=True)
    spread = states.StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    (one, adam), (other, fresh) = [sharded_model(mesh, torch.optim.Adam) for _ in range(2)]
    x = distribute_tensor(torch.ones(2, 4), mesh, [Replicate()])
    one.eval()
    one(x).sum().backward()
    adam.step()
    of_model, of_adam = states.get_state_dict(one, adam, options=whole)
    assert bool(of_model) == bool(of_adam) == (dist.get_rank() == 0)
    states.set_state_dict(
        other, fresh, model_state_dict=of_model, optim_state_dict=of_adam, options=spread
    )
    check(other.state_dict(), one.state_dict())
    assert other[0].weight.placements == (Shard(0),)
    for param, same in zip(one.parameters(), other.parameters(), strict=True):
        check(fresh.state[same], adam.state[param])
    dist.destroy_process_group()


def sharded_model(mesh, optimizer):
    model = torch.nn.Sequential(
        torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Dropout(0.5), torch.nn.Linear(8, 4)
    )

    def shard(name, module, mesh):
        for key, param in list(module.named_parameters(recurse=False)):
            setattr(module, key, torch.nn.Parameter(distribute_tensor(param, mesh, [Shard(0)])))

    distribute_module(model, mesh, shard)
    options = {"momentum": 0.9} if optimizer is torch.optim.SGD else {}
    return model, optimizer(model.parameters(), lr=0.1, **options)


def train(folder, kind, first, last, device_mesh):
    """Steps from `first` to `last` of a training that goes on from the checkpoint of `first`, and
    saves one at the end. Prints the bits of the parameters.
    """
    torch.manual_seed(int(first) + 7)  # the state of the generator comes from the checkpoint
    mesh = init_device_mesh("cpu", (4,)) if device_mesh == "mesh" else init_device_mesh("cpu", (1,))
    model, optimizer = sharded_model(mesh, getattr(torch.optim, kind))
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
    position = {"step": 0}

    def state():
        of_model, of_optimizer = states.get_state_dict(model, optimizer)
        further = {"scheduler": scheduler.state_dict(), "rng": torch.get_rng_state()}
        return {"model": of_model, "optimizer": of_optimizer, "position": position} | further

    if int(first):
        loaded_state = state()
        checkpoint.load(loaded_state, checkpoint_id=f"{folder}/{first}")
        states.set_state_dict(
            model,
            optimizer,
            model_state_dict=loaded_state["model"],
            optim_state_dict=loaded_state["optimizer"],
        )
        scheduler.load_state_dict(loaded_state["scheduler"])
        torch.set_rng_state(loaded_state["rng"])
    else:
        torch.manual_seed(0)
    assert position["step"] == int(first)
    while position["step"] < int(last):
        step(model, optimizer, mesh, position["step"])
        scheduler.step()
        position["step"] += 1
    checkpoint.save(state(), checkpoint_id=f"{folder}/{last}")
    print(
        [bits_of(param)[2].hex() for param in model.parameters()], optimizer.param_groups[0]["lr"]
    )


def step(model, optimizer, mesh, number):
    x = torch.tensor(np.random.default_rng(number).normal(size=(8, 4)).astype("f4"))
    optimizer.zero_grad()
    model(distribute_tensor(x, mesh, [Shard(0)])).square().mean().backward()
    optimizer.step()


def save_and_be_killed(folder, first, event):
    """Save larger states, each of one number, until this process ends itself: in the third save or
    later, the n-th time that it opens, makes, moves or removes something in the folder.
    """
    left, number = int(event), int(first)

    def watch(_, arguments):
        nonlocal left
        path = arguments[0] if arguments else None
        is_inside = isinstance(path, str | os.PathLike) and str(path).startswith(folder)
        if number >= int(first) + 2 and is_inside:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    for number in itertools.count(int(first)):
        tensors = [torch.full((512, 1024), float(number)) for _ in range(16)]
        future = checkpoint.async_save({"t": tensors, "number": number}, checkpoint_id=folder)
        future.result()
        print("done", number, flush=True)


def killed_by_two(folder):
    """Rank 1 ends itself while the two save."""
    dist.init_process_group()
    mesh = init_device_mesh("cpu", (2,))
    for number in range(4):
        tensors = [torch.full((512, 1024), float(number)) for _ in range(16)]
        tensors = [distribute_tensor(tensor, mesh, [Shard(0)]) for tensor in tensors]
        future = checkpoint.async_save({"t": tensors, "number": number}, checkpoint_id=folder)
        if number == 3 and dist.get_rank() == 1:
            time.sleep(0.01)
            os.kill(os.getpid(), signal.SIGKILL)
        future.result()


if __name__ == "__main__":
    globals()[sys.argv[1]](*[argument for argument in sys.argv[2:] if argument != "own"])
