"""The program that tests/core/test_backend_branches.py runs in two processes: compiled steps with
the platform that JAX names, and with that of a GPU forced.
"""

import json
import sys
from unittest import mock

import jax

import jaxgrad as torch
import jaxgrad.distributed as dist

nn, F = torch.nn, torch.nn.functional


def losses():
    """Of compiled steps of a wrapped network, in all processes."""
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 2))
    model = nn.parallel.DistributedDataParallel(layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    @torch.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    batch = torch.arange(12.0).reshape(4, 3).sin() + dist.get_rank(), torch.ones(4, 2)
    values = [step(*batch) for _ in range(5)]
    dist.barrier()
    return [value.item() for value in values]


def on(platform):
    """The losses, and the functions that asked for the platform."""
    callers = set()

    def default_backend():
        callers.add(sys._getframe(1).f_code.co_name)
        return platform

    torch.compiler.reset()
    with mock.patch.object(jax, "default_backend", default_backend):
        return {"losses": losses(), "callers": sorted(callers)}


def main():
    dist.init_process_group()
    results = {platform: on(platform) for platform in ("cpu", "gpu")}
    if dist.get_rank() == 0:
        print("FOUND", json.dumps(results))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
