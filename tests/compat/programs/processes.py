"""Processes of torch.multiprocessing: tensors are sent to them, and their errors come back."""

import json
import os
import signal
import sys
import time

import torch
import torch.multiprocessing as mp


def double(number, queue, weight):
    queue.put((number, (weight * number).sum().item()))


def fail(number):
    if number == 1:
        raise ValueError(f"no {number}")
    time.sleep(3600)  # until spawn() ends it


def wait(number, queue):
    queue.get()


def leave(number):
    sys.exit(3)


def kill(number):
    os.kill(os.getpid(), signal.SIGKILL)


class Worker(mp.Process):
    def __init__(self, queue, x):
        super().__init__(name="worker")
        self.queue, self.x = queue, x

    def run(self):
        self.queue.put((self.x + 1).tolist())


def failure(function):
    try:
        mp.spawn(function, nprocs=2)
    except (mp.ProcessRaisedException, mp.ProcessExitedException) as error:
        last = str(error).strip().splitlines()[-1]
        known = [type(error).__name__, last, getattr(error, "exit_code", None)]
        return [*known, getattr(error, "signal_name", None)]


def main():
    told = {"methods": [mp.get_start_method(allow_none=True), mp.get_start_method()]}
    torch.ones(2).sin()  # so that a forked process could not compute
    queue = mp.get_context("spawn").SimpleQueue()
    mp.spawn(double, (queue, torch.tensor([1.0, 2.0])), nprocs=2)
    told["spawn"] = sorted(queue.get() for _ in range(2))
    told["failures"] = [failure(fail), failure(leave), failure(kill)]
    context = mp.spawn(wait, (queue,), nprocs=1, join=False)
    told["later"] = [context.join(timeout=0.0), len(context.pids())]
    queue.put("go on")
    while not context.join():
        pass
    told["later"] += [context.join(), context.processes[0].exitcode]
    queue = mp.Queue()
    worker = Worker(queue, torch.zeros(2))
    worker.start()
    told["process"] = [queue.get(), worker.name]
    worker.join()
    with mp.Pool(1) as pool:
        told["pool"] = [tensor.tolist() for tensor in pool.map(torch.exp, [torch.zeros(1)])]
    server = mp.get_context("forkserver")
    queue = server.SimpleQueue()
    process = server.Process(target=double, args=(3, queue, torch.ones(2)))
    process.start()
    told["forkserver"] = queue.get()
    process.join()
    print(json.dumps(told))


if __name__ == "__main__":
    main()
