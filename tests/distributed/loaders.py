"""The program that test_loaders.py runs in two processes: each loads its part of a dataset by
workers, and trains on it. It prints the batches of both and the weight, and how often a warm step
is compiled.
"""

import json

import jax
import numpy as np

import jaxgrad as torch
import jaxgrad.distributed as dist
from jaxgrad.core.jax_internals import COMPILE_EVENT
from jaxgrad.utils.data import DataLoader, Dataset, DistributedSampler


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, number):
        return torch.tensor(np.full(2, number, np.float32)), number


def loaded(method):
    """The numbers of the samples of each batch of this process."""
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    optimizer, batches = torch.optim.SGD(wrapped.parameters(), lr=1e-2), []

    @torch.jit
    def step(x):
        optimizer.zero_grad()
        (wrapped(x) - 1).square().mean().backward()
        optimizer.step()

    data = Squares()
    loader = DataLoader(
        data,
        2,
        sampler=DistributedSampler(data, shuffle=False),
        num_workers=1,
        multiprocessing_context=method,
    )
    for x, numbers in loader:
        assert x[:, 0].tolist() == x[:, 1].tolist() == numbers.tolist()
        batches.append(numbers.tolist())
        step(x)
    return batches, model.weight.tolist()


def compilations() -> int:
    """How often warm steps are compiled, of batches that are new and of some that have an array."""
    wrapped = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 1))
    optimizer, events = torch.optim.SGD(wrapped.parameters(), lr=1e-2), []

    @torch.jit
    def step(x):
        optimizer.zero_grad()
        wrapped(x).square().mean().backward()
        optimizer.step()

    def note(event, _seconds, **_more):
        events.append(event) if event == COMPILE_EVENT else None

    jax.monitoring.register_event_duration_secs_listener(note)
    step(torch.tensor([[1.0, 2.0]]))
    assert events
    events.clear()
    batch = torch.tensor([[1.0, 2.0]])
    for x in (torch.tensor([[3.0, 4.0]]), batch, batch, batch, batch.detach()):
        step(x)
    return len(events)


def main():
    dist.init_process_group()
    results = {method: loaded(method) for method in ("fork", "spawn")}
    results["compilations"] = compilations()
    everything = [None, None]
    dist.all_gather_object(everything, results)
    if dist.get_rank() == 0:
        print("FOUND", json.dumps(everything))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
