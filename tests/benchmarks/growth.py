"""Prints the memory of the process while shapes, numbers and arguments never repeat.

    python tests/benchmarks/growth.py shapes 2000
    python tests/benchmarks/growth.py operator 10000
    python tests/benchmarks/growth.py compiled 5000
    python tests/benchmarks/growth.py numbers 20000
    python tests/benchmarks/growth.py structures 2000

Each line: iterations, resident memory in MB after a collection, executables that JAX keeps. It is
flat once the caches are full; `--kernels`, `--programs` and `--megabytes` set their limits.
"""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import argparse
import ctypes
import gc
import random
from pathlib import Path

import figures
import numpy as np
from jax.extend.backend import get_backend

import jaxgrad as torch


def resident() -> float:
    """The resident memory of this process in MB, without what is free."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def shapes():
    """Eager operators with backward, each time of another shape."""
    for number in range(10**9):
        w = torch.zeros(2 + number // 50, 3 + number % 50, requires_grad=True)
        y = torch.softmax((w * 2.5).sin(), 1)
        (y * w).sum().backward()
        yield


def operator():
    """One operator, each time of another shape: one kernel an iteration."""
    for number in range(10**9):
        torch.from_numpy(np.zeros((2 + number // 100, 3 + number % 100), np.float32)).sin()
        yield


def numbers():
    """Eager operators with backward, each time with other numbers."""
    w, draw = torch.zeros(4, 5, requires_grad=True), random.Random(0)
    while True:
        w.grad = None
        y = (w * draw.random() + draw.randrange(10**6)).clamp(-draw.random(), draw.random())
        (y ** draw.uniform(2, 3)).sum().backward()
        yield


def compiled():
    """A compiled function, in turns with another string, another shape and another rate."""
    w, draw = torch.zeros(4, 5, requires_grad=True), random.Random(0)

    @torch.jit
    def step(x, mode, rate):
        return (x * rate).sin() if mode > "m" else x.cos() * rate

    for number in range(10**9):
        step(w, f"s{number}", draw.random())
        yield
        step(torch.zeros(2 + number % 2, 3 + number // 2), "fixed", draw.random())
        yield
        step(w, "fixed", draw.random())
        yield


def structures():
    """A hundred eager operators with backward, in another order and of another length each time."""
    draw, xs = random.Random(0), [torch.rand(n, n, requires_grad=True) for n in range(4, 12)]
    unary = [torch.sin, torch.cos, torch.tanh, torch.sigmoid, torch.neg, torch.square]
    while True:
        x = y = draw.choice(xs)
        for _ in range(draw.randrange(10, 40)):
            y = torch.tanh(draw.choice(unary)(y) * draw.choice((x, y)))
        y.sum().backward()
        x.grad = None
        yield


STEPS = {step.__name__: step for step in (shapes, operator, numbers, compiled, structures)}

HALFWAY = "jaxgrad, halfway"


def note(options, subject, sizes):
    limit = f", {options.megabytes} MB" if options.megabytes else ""
    row = f"{options.what}, {options.iterations:,} iterations{limit}"
    kinds = ("Resident memory", "MB"), ("Executables that JAX keeps", "executables")
    for (title, unit), size in zip(kinds, sizes, strict=True):
        figures.note("j", title, unit, HALFWAY, {row: {subject: size}})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=list(STEPS))
    parser.add_argument("iterations", type=int)
    parser.add_argument("--kernels", type=int)
    parser.add_argument("--programs", type=int)
    parser.add_argument("--megabytes", type=int)
    options = parser.parse_args()
    size = options.megabytes and options.megabytes * 10**6
    torch.compiler.set_cache_limits(kernels=options.kernels, programs=options.programs, bytes=size)
    steps = STEPS[options.what]()
    for iteration in range(options.iterations + 1):
        if iteration % max(1, options.iterations // 20) == 0:
            sizes = resident(), len(get_backend().live_executables())
            print("{:8} {:8.0f} MB {:6}".format(iteration, *sizes), flush=True)
        if iteration in (options.iterations // 2, options.iterations):
            note(options, "jaxgrad" if iteration == options.iterations else HALFWAY, sizes)
        next(steps)
