"""Samples per second of a DataLoader, and the memory of the process over 100 epochs."""

import time

import growth
import numpy as np

from jaxgrad.utils.data import DataLoader, Dataset


class Rows(Dataset):
    """Arrays of ten float32 with an int."""

    def __init__(self, size):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, index):
        return np.full(10, index, np.float32), index


def epoch(loader) -> float:
    """The seconds that one takes."""
    begun = time.perf_counter()
    for _ in loader:
        pass
    return time.perf_counter() - begun


def loading():
    """Print samples per second by the number of workers, and the memory."""
    first, second = [epoch(DataLoader(Rows(64), num_workers=2)) for _ in range(2)]
    print(f"first iteration of two workers {first:.2f} s, later ones {second:.3f} s")
    for workers in (0, 1, 2):
        loader = DataLoader(Rows(20_000), 64, num_workers=workers, persistent_workers=workers > 0)
        epoch(loader)
        rate = 20_000 / min(epoch(loader) for _ in range(3))
        print(f"{workers} workers: {rate:,.0f} samples per second")
    loader = DataLoader(Rows(200), 20, num_workers=1, persistent_workers=True)
    for number in range(1, 101):
        epoch(loader)
        if number in (20, 100):
            print(f"after {number} epochs {growth.resident():.1f} MB")
