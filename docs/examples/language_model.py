"""Trains a small language model on characters, its parameters sharded over four devices.

    python docs/examples/language_model.py
    python -m jaxgrad launch --nproc 4 docs/examples/language_model.py

The devices form a 2 x 2 mesh. Along "tp" each matrix is split (tensor parallelism); along "dp" the
batch, and the parameters, gradients and optimizer state with it (`fully_shard`). The first command
uses four devices of one process, which XLA makes of a CPU; the second starts a process for each.

With --checkpoint DIR the script saves its whole state every 20 steps, and goes on from there when
it is started again: with the same losses, to the bit.
"""

import argparse
import os
import pathlib
import time
from typing import Any

os.environ.setdefault("XLA_FLAGS", "")
if "RANK" not in os.environ and "device_count" not in os.environ["XLA_FLAGS"]:
    os.environ["XLA_FLAGS"] += " --xla_force_host_platform_device_count=4"

import numpy as np

import jaxgrad as torch
import jaxgrad.distributed as dist
import jaxgrad.distributed.checkpoint as dcp
import jaxgrad.nn.functional as F
from jaxgrad.distributed.fsdp import fully_shard
from jaxgrad.distributed.tensor import Replicate, Shard, distribute_tensor
from jaxgrad.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)

WIDTH, HEADS, LAYERS, LENGTH, BATCH = 64, 4, 2, 32, 16


class Block(torch.nn.Module):
    """A layer of a transformer; its projections are modules, so that each can be split."""

    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = torch.nn.RMSNorm(WIDTH), torch.nn.RMSNorm(WIDTH)
        self.q, self.k, self.v = (torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(3))
        self.out = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = torch.nn.Linear(WIDTH, 4 * WIDTH)
        self.down = torch.nn.Linear(4 * WIDTH, WIDTH)
        self.drop = torch.nn.Dropout(0.1)

    def heads(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.shape[:2], -1, WIDTH // HEADS).transpose(1, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = self.norm1(x)
        q, k, v = self.heads(self.q(h)), self.heads(self.k(h)), self.heads(self.v(h))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.out(mixed.transpose(1, 2).flatten(2)))
        output: torch.Tensor = x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))
        return output


class LanguageModel(torch.nn.Module):
    def __init__(self, characters: int) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(characters, WIDTH)
        self.blocks = torch.nn.ModuleList([Block() for _ in range(LAYERS)])
        self.norm, self.head = torch.nn.RMSNorm(WIDTH), torch.nn.Linear(WIDTH, characters)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        logits: torch.Tensor = self.head(self.norm(x))
        return logits


PLAN = {
    "blocks.*.q": ColwiseParallel(),
    "blocks.*.k": ColwiseParallel(),
    "blocks.*.v": ColwiseParallel(),
    "blocks.*.out": RowwiseParallel(),
    "blocks.*.up": ColwiseParallel(),
    "blocks.*.down": RowwiseParallel(),
}


def characters() -> tuple[np.ndarray, int]:
    """A text as numbers, and how many different characters it has: NumPy's documentation."""
    text = "".join(str(getattr(np, name).__doc__) for name in ("dot", "sum", "sort", "einsum"))
    known = sorted(set(text))
    return np.array([known.index(character) for character in text]), len(known)


def batch(text: np.ndarray, number: int, mesh: dist.DeviceMesh) -> tuple[torch.Tensor, ...]:
    """The inputs and targets of a step, the same in all processes, sharded along "dp"."""
    starts = np.random.default_rng(number).integers(0, len(text) - LENGTH - 1, BATCH)
    rows = np.stack([text[start : start + LENGTH + 1] for start in starts])
    pair = torch.tensor(rows[:, :-1]), torch.tensor(rows[:, 1:])
    return tuple([distribute_tensor(tensor, mesh, [Shard(0), Replicate()]) for tensor in pair])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--checkpoint", type=pathlib.Path)
    options = parser.parse_args()

    mesh = dist.init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    is_first = not dist.is_initialized() or dist.get_rank() == 0
    text, count = characters()
    torch.manual_seed(0)
    model = LanguageModel(count)
    parallelize_module(model, mesh["tp"], PLAN)
    for block in model.blocks:
        fully_shard(block, mesh=mesh["dp"])
    fully_shard(model, mesh=mesh["dp"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.steps)
    begin = 0

    def state() -> dict[str, Any]:
        parts = dcp.state_dict.get_state_dict(model, optimizer)
        return {
            "model": parts[0],
            "optimizer": parts[1],
            "scheduler": scheduler.state_dict(),
            "random": torch.get_rng_state(),
            "step": begin,
        }

    if options.checkpoint is not None and options.checkpoint.exists():
        loaded = state()
        dcp.load(loaded, checkpoint_id=options.checkpoint)
        dcp.state_dict.set_state_dict(
            model,
            optimizer,
            model_state_dict=loaded["model"],
            optim_state_dict=loaded["optimizer"],
        )
        scheduler.load_state_dict(loaded["scheduler"])
        torch.set_rng_state(loaded["random"])
        begin = loaded["step"]

    @torch.jit
    def step(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    started, first = time.perf_counter(), begin
    for number in range(begin, options.steps):
        loss = step(*batch(text, number, mesh))
        scheduler.step()
        value = loss.item()  # on devices of one CPU, steps must not wait for one another
        if is_first and (number % 10 == 9 or number == first):
            print(f"step {number + 1:3}: loss {value:.9f}", flush=True)
        if options.checkpoint is not None and number % 20 == 19:
            begin = number + 1
            dcp.save(state(), checkpoint_id=options.checkpoint)
    if is_first:
        weight = model.blocks[0].up.weight
        print(f"{time.perf_counter() - started:.1f} s; a weight: {weight.placements}")
    if dist.is_initialized():
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
