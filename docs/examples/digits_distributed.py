"""Trains on scikit-learn's handwritten digits in several processes, each on its own batches:

    python -m jaxgrad launch --nproc 2 docs/examples/digits_distributed.py

The script is what PyTorch users write for DistributedDataParallel. `@torch.jit` compiles each step,
the averaging of the gradients included, to one program for all processes.
"""

import argparse
import time
from typing import Any

from sklearn.datasets import load_digits  # type: ignore[import-untyped]

import jaxgrad as torch
import jaxgrad.distributed as dist
import jaxgrad.nn.functional as F
from jaxgrad.nn.parallel import DistributedDataParallel
from jaxgrad.utils.data import DataLoader, TensorDataset
from jaxgrad.utils.data.distributed import DistributedSampler

HELD_OUT = 360


def datasets() -> tuple[TensorDataset, TensorDataset]:
    """The training set and the held-out set, the same in all processes."""
    images, labels = load_digits(return_X_y=True)
    x, y = torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
    order = torch.randperm(len(x), generator=torch.Generator().manual_seed(0))
    x, y = x[order], y[order]
    return TensorDataset(x[HELD_OUT:], y[HELD_OUT:]), TensorDataset(x[:HELD_OUT], y[:HELD_OUT])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch", type=int, default=64, help="of all processes together")
    options = parser.parse_args()

    dist.init_process_group()
    rank, size = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10))
    network = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)

    @torch.jit
    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(network(x), y)
        loss.backward()
        optimizer.step()
        return loss.detach()

    training, held_out = datasets()
    sampler = DistributedSampler(training, seed=1)
    share = options.batch // size
    loader: DataLoader[Any] = DataLoader(training, share, sampler=sampler, drop_last=True)
    begun = time.perf_counter()
    for epoch in range(options.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(())
        for x, y in loader:
            total += step(x, y)
        # the mean over the batches of all processes
        dist.all_reduce(total, dist.ReduceOp.AVG)
        if rank == 0 and epoch % 5 == 4:
            print(f"epoch {epoch + 1:3}: loss {total.item() / len(loader):.4f}")
    x, y = held_out.tensors
    with torch.no_grad():
        accuracy = (model(x).argmax(1) == y).float().mean().item()
    if rank == 0:
        duration = time.perf_counter() - begun
        print(f"{size} processes: accuracy {accuracy:.3f} after {duration:.1f} s")
        assert accuracy > 0.94
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
