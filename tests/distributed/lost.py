"""The program that test_lost_processes.py runs in two processes: it trains, and one of them is lost
in the middle of a step.

Arguments: how rank 1 is lost, whether the step is compiled, and how long communication may wait.
"""

import datetime
import os
import signal
import sys
import threading

import jaxgrad as torch
import jaxgrad.distributed as dist

how, mode, limit = sys.argv[1], sys.argv[2], int(sys.argv[3])
dist.init_process_group(timeout=datetime.timedelta(seconds=limit))
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(
    torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Tanh(), torch.nn.Linear(256, 1))
)
optimizer = torch.optim.SGD(model.parameters(), 0.01)


def step(x):
    optimizer.zero_grad()
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    return loss.detach()


run = torch.jit(step) if mode == "compiled" else step
x = torch.randn(64, 256)
run(x).item()
dist.barrier()
if dist.get_rank() == 1 and how != "raise":
    number = signal.SIGSTOP if how == "stop" else signal.SIGKILL
    # at some moment of one of the steps that follow
    threading.Timer(0.3, os.kill, (os.getpid(), number)).start()
for number in range(100_000):
    if how == "raise" and dist.get_rank() == 1 and number == 20:
        raise LookupError("what went wrong on rank 1")
    run(x).item()
