"""Samples per second of a DataLoader, how long a step waits for its batch, and the memory of the
process over 100 epochs; with PyTorch's figures where it is installed.

    python tests/benchmarks/loading.py
"""

import importlib.util
import os
import time

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import figures
import growth
import numpy as np

import jaxgrad

EARLY = "jaxgrad, after 20 epochs"


class Rows:
    """Arrays of ten float32 with an int."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return np.full(10, index, np.float32), index


class Images(Rows):
    """Arrays of 3 x 224 x 224 float32."""

    def __getitem__(self, index):
        return np.full((3, 224, 224), index, np.float32)


class Memory(Rows):
    """A gigabyte of small samples."""

    def __init__(self):
        super().__init__(256)
        self.rows = np.ones((256, 1 << 20), np.float32)

    def __getitem__(self, index):
        return self.rows[index, :10]


def epoch(loader, step=0.0) -> float:
    """The seconds that an epoch waits for its batches, between steps of so many seconds."""
    waited, batches = 0.0, iter(loader)
    while True:
        begun = time.perf_counter()
        batch = next(batches, None)
        waited += time.perf_counter() - begun
        if batch is None:
            return waited
        time.sleep(step)


def note(subject, title, unit, row, value, **options):
    figures.note("o", title, unit, "torch", {row: {subject: value}}, **options)


def measure(loader_of, subject):
    """Print what the DataLoader of one library takes."""
    times = []
    for _ in range(3):
        begun = time.perf_counter()
        next(iter(loader_of(Rows(64), num_workers=2)))
        times.append(time.perf_counter() - begun)
    print(f"first batch of two workers {times[0]:.2f} s, later {min(times):.3f} s")
    note(subject, "A first batch", "s", "of two workers, in the program", times[0])
    note(subject, "A first batch", "s", "of two workers, later", min(times))
    for workers in (0, 1, 2):
        for size in (1, 64):
            options = {"num_workers": workers, "persistent_workers": workers > 0}
            loader = loader_of(Rows(2_000 if size == 1 else 20_000), size, **options)
            epoch(loader)
            rate = len(loader.dataset) / min(epoch(loader) for _ in range(3))
            row = f"{workers} workers, batches of {size}"
            print(f"{row}: {rate:,.0f} samples per second")
            note(subject, "Samples in a second", "samples/s", row, rate, more_is_better=True)
    loader = loader_of(Images(640), 64, num_workers=1, persistent_workers=True)
    epoch(loader)
    waits = [epoch(loader, step) / 10 * 1e3 for step in (0, 0.3)]
    print("batches of 38 MB: {:.1f} ms each, {:.1f} ms between steps of 300 ms".format(*waits))
    note(subject, "Batches of 38 MB", "ms", "each", waits[0])
    note(subject, "Batches of 38 MB", "ms", "wait for each between steps of 300 ms", waits[1])
    loader = loader_of(Memory(), 4, num_workers=2)
    begun = time.perf_counter()
    next(iter(loader))
    duration = time.perf_counter() - begun
    print(f"first batch of a dataset of 1 GB {duration:.2f} s")
    note(subject, "A first batch", "s", "of a dataset of 1 GB", duration)


def memory(loader_of):
    for options in ({"persistent_workers": True}, {}):
        loader = loader_of(Rows(200), 20, num_workers=1, **options)
        for number in range(1, 101):
            epoch(loader)
            if number in (20, 100):
                files = len(os.listdir("/proc/self/fd"))
                size = growth.resident()
                print(f"{options}, {number} epochs: {size:.1f} MB, {files} files")
                row = "workers that persist" if options else "new workers for each epoch"
                chart = {row: {"jaxgrad" if number == 100 else EARLY: size}}
                figures.note("o", "Memory after 100 epochs", "MB", EARLY, chart)


def loading():
    """Print all of it."""
    measure(jaxgrad.utils.data.DataLoader, "jaxgrad")
    memory(jaxgrad.utils.data.DataLoader)
    if importlib.util.find_spec("torch"):
        print("PyTorch:")
        measure(importlib.import_module("torch.utils.data").DataLoader, "torch")


if __name__ == "__main__":
    loading()
