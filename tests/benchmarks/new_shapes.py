"""Vectors of lengths that a program has not seen: four operators and `item()`, alone and with a
backward pass, by jaxgrad and by torch where it is installed, in processes of their own.

    python tests/benchmarks/new_shapes.py

What the first call takes at a new length, and a call of the next hundred; what ever new lengths in
turn take in all, and by how much the process grows.
"""

import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import figures
import growth
import numpy as np

WAYS = ("forward", "forward and backward")
MEASURED, REPEATED = 15, 100
LENGTHS = figures.rounds(1500, 200)  # in turn


def call(torch, array, way):
    """Four operators, whose numbers the program waits for."""
    x = torch.from_numpy(array).requires_grad_(way != WAYS[0])
    total = (x.sin() * 2 + 1).sum()
    if way != WAYS[0]:
        total.backward()
        x.grad.numpy()
    return total.item()


def milliseconds(torch, array, way, repetitions=1):
    """Of one call, the mean of some."""
    begun = time.perf_counter()
    for _ in range(repetitions):
        call(torch, array, way)
    return (time.perf_counter() - begun) / repetitions * 1e3


def run(library, way):
    """The figures of one library in this process, by what is measured."""
    torch = importlib.import_module(library)
    torch.set_num_threads(1)
    arrays = iter(np.ones(length, np.float32) for length in range(1000, 10**6))
    for _ in range(3):  # what the library imports at its first calls
        call(torch, next(arrays), way)
    calls = []
    for _ in range(MEASURED):
        array = next(arrays)
        calls.append([milliseconds(torch, array, way, count) for count in (1, REPEATED)])
    first, later = (statistics.median(column) for column in zip(*calls, strict=True))
    before, begun = growth.resident(), time.perf_counter()
    for _ in range(LENGTHS):
        call(torch, next(arrays), way)
    seconds = time.perf_counter() - begun
    grown = growth.resident() - before
    return {"first": first, "later": later, "seconds": seconds, "grown": grown}


TITLES = {
    "first": ("The first call at a new length", "ms"),
    "later": (f"A call of the next {REPEATED}", "ms"),
    "seconds": (f"{LENGTHS:,} new lengths", "s"),
    "grown": (f"Growth of memory by {LENGTHS:,} new lengths", "MB"),
}


def new_shapes():
    """Print and note the figures of each library."""
    print("(x) four operators and item() on vectors of lengths not seen before")
    libraries = ["jaxgrad", *["torch"] * (importlib.util.find_spec("torch") is not None)]
    for way in WAYS:
        for library in libraries:
            command = [sys.executable, __file__, library, way]
            output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            for what, value in json.loads(output.splitlines()[-1]).items():
                title, unit = TITLES[what]
                print(f"    {title:<44}{way:<22}{library:<8}{value:10.4g} {unit}", flush=True)
                if value > 0:  # torch may not grow
                    figures.note("x", title, unit, "torch", {way: {library: value}})


if __name__ == "__main__":
    if sys.argv[1:]:
        print(json.dumps(run(*sys.argv[1:])))
    else:
        new_shapes()
