"""The program that test_scaling.py runs on a number of devices of one process: it prints what the
programs of sharded models compute, send and hold. Arguments: the number of devices, and `tp`.
"""

import json
import sys
import tempfile

import scaling

import jaxgrad as torch
import jaxgrad.distributed as dist
from jaxgrad.distributed.device_mesh import init_device_mesh
from jaxgrad.distributed.fsdp import fully_shard
from jaxgrad.utils.checkpoint import checkpoint

F = torch.nn.functional


def cells(devices: int, tp: int, folder: str):
    """What the program of a small decoder says, with activations that are kept and recomputed."""
    results = {}
    for recomputes in (False, True):
        cell = scaling.Cell(scaling.SIZES["tiny"], devices, tp, 2, 32, recomputes)
        results[f"recomputes {recomputes}"] = {
            **scaling.examine(cell, folder),
            "wanted flops": scaling.closed_form(cell),
            "parameters": cell.size.parameters,
        }
    return results


class Inner(torch.nn.Module):
    """A block that is checkpointed inside of itself."""

    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=False)


def trained(devices: int, place: str, compiled: bool):
    """The gradients of sharded blocks. place: of checkpoints, "around" or "inside" them, or ""."""
    torch.manual_seed(0)
    nn = torch.nn
    blocks = [nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 8)) for _ in range(3)]
    model = nn.Sequential(*(Inner(block) if place == "inside" else block for block in blocks))
    mesh = init_device_mesh("cpu", (devices,))
    for block in model:
        fully_shard(block, mesh=mesh, reshard_after_forward=True)
    torch.manual_seed(1)
    x = torch.randn(8, 8)

    def step(x):
        for block in model:
            is_around = place == "around"
            x = checkpoint(block, x, use_reentrant=False) if is_around else block(x)
        x.square().sum().backward()
        return [p.grad for p in model.parameters()]

    gradients = (torch.jit(step) if compiled else step)(x)
    return torch.cat([gradient.full_tensor().flatten() for gradient in gradients])


WAYS = [("", True), *((place, flag) for place in ("around", "inside") for flag in (False, True))]


def main():
    devices, tp = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        scaling.use_devices(devices, folder)
        dist.init_process_group(rank=0, world_size=1)
        results = cells(devices, tp, folder)
    if tp == 1:
        wanted = trained(devices, "", False)
        results["differences"] = [
            (trained(devices, *way) - wanted).abs().max().item() for way in WAYS
        ]
        results["largest"] = wanted.abs().max().item()
    print("FOUND", json.dumps(results))


if __name__ == "__main__":
    main()
