"""The program that test_checkpoint.py runs in two processes: it trains, saves every ten steps, and
goes on from the last checkpoint when it is started again.

Arguments: the folder of the checkpoint, and the step at which rank 1 is killed, or "no"; with
"save" in place of a step it is killed while it saves for the second time.
"""

import json
import os
import pathlib
import signal
import sys
import threading

import numpy as np

import jaxgrad as torch
import jaxgrad.distributed as dist
import jaxgrad.distributed.checkpoint as dcp
from jaxgrad.distributed.fsdp import fully_shard

STEPS, EVERY = 40, 10
folder, killed_at = pathlib.Path(sys.argv[1]), sys.argv[2]

dist.init_process_group()
rank, size = dist.get_rank(), dist.get_world_size()
mesh = dist.init_device_mesh("cpu", (size,))
torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Linear(8, 64), torch.nn.Dropout(0.2), torch.nn.Tanh(), torch.nn.Linear(64, 4)
)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.Adam(model.parameters(), 0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 7, 0.9)
torch.manual_seed(100 + rank)  # each process drops other elements
NUMBERS = np.random.default_rng(0).normal(size=(STEPS, size, 6, 8)).astype(np.float32)


@torch.jit
def step(x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


def state(number, losses):
    parts = dcp.state_dict.get_state_dict(model, optimizer)
    return {
        "model": parts[0],
        "optimizer": parts[1],
        "scheduler": scheduler.state_dict(),
        f"random {rank}": torch.get_rng_state(),
        "step": number,
        "losses": losses,
    }


def kill_myself():
    os.kill(os.getpid(), signal.SIGKILL)


begin, losses = 0, []
if folder.exists():
    loaded_state = state(0, [])
    dcp.load(loaded_state, checkpoint_id=folder)
    dcp.state_dict.set_state_dict(
        model,
        optimizer,
        model_state_dict=loaded_state["model"],
        optim_state_dict=loaded_state["optimizer"],
    )
    scheduler.load_state_dict(loaded_state["scheduler"])
    torch.set_rng_state(loaded_state[f"random {rank}"])
    begin, losses = loaded_state["step"], loaded_state["losses"]

for number in range(begin, STEPS):
    if rank == 1 and killed_at == str(number):
        threading.Timer(0.002, kill_myself).start()
    loss = step(torch.tensor(NUMBERS[number, rank]))
    scheduler.step()
    dist.all_reduce(loss, dist.ReduceOp.AVG)
    losses = [*losses, loss.item()]
    if (number + 1) % EVERY == 0:
        if rank == 1 and killed_at == "save" and number + 1 == 2 * EVERY:
            threading.Timer(0.01, kill_myself).start()
        dcp.save(state(number + 1, losses), checkpoint_id=folder)
if rank == 0:
    print("FOUND", json.dumps({"losses": losses, "begin": begin}))
dist.destroy_process_group()
