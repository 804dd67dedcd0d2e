"""Datasets that worker processes import."""

import os
import signal
import time

import numpy as np

import jaxgrad as torch
from jaxgrad.utils.data import Dataset, IterableDataset, get_worker_info


class Rows(Dataset):
    """Ten rows: an array, a tensor that is computed, a number, and the worker's draws."""

    def __len__(self):
        return 10

    def __getitem__(self, index):
        info = get_worker_info()
        draws = np.random.rand(), torch.rand(1)
        return {
            "array": np.full(2, index, np.float32),
            "tensor": torch.tensor(float(index)).square(),
            "place": (index, info.id, info.num_workers),
            "draws": draws,
        }


class Faulty(Dataset):
    """Numbers; what is asked for at 3 to 6 goes wrong in a way of its own."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 3:
            raise KeyError("three is missing")
        if index == 4:
            return lambda: index  # cannot be sent
        if index == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        if index == 6:
            time.sleep(60)
        return index


class Count(IterableDataset):
    """Five numbers, and the worker's own with `is_split`."""

    def __init__(self, is_split=False):
        self.is_split = is_split

    def __iter__(self):
        info = get_worker_info()
        if info is None or not self.is_split:
            return iter(range(5))
        return iter(range(info.id, 5, info.num_workers))

    def __len__(self):
        return 5


def refuse(number):
    raise ValueError(f"worker {number} may not begin")
