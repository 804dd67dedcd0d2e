"""Datasets that worker processes import."""

import os
import signal
import time

import numpy as np

import jaxgrad as torch
from helpers import hangs
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
    """Numbers; what is asked for at 3 to 7 goes wrong in a way of its own."""

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
            time.sleep(hangs.FOREVER)
        if index == 7:
            raise StopIteration
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


class Uneven(IterableDataset):
    """Numbers, of each worker another count of them."""

    def __init__(self, *sizes):
        self.sizes = sizes

    def __iter__(self):
        number = get_worker_info().id
        return iter(range(10 * number, 10 * number + self.sizes[number]))


class Slow(Dataset):
    """Twelve numbers, the first of them once there is a file."""

    def __init__(self, path):
        self.path = path

    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index == 0:
            hangs.eventually(self.path.exists, "the file does not come")
        return index


class Memory(Dataset):
    """The rows of a large array and of a large tensor, and what a worker writes into the array."""

    def __init__(self):
        self.array = np.arange(80_000.0).reshape(4, 20_000)
        self.tensor = torch.tensor(self.array)

    def __len__(self):
        return 4

    def __getitem__(self, index):
        row = self.array[index].copy()
        self.array[:] = -1  # seen by this worker alone
        return row, self.tensor[index], self.array


class Weighted(Dataset):
    """A leaf that requires grad, and what is computed of it."""

    def __len__(self):
        return 2

    def __getitem__(self, index):
        weight = torch.ones(2, requires_grad=True)
        return weight * 2 if index else weight


def first(samples):
    return samples[0]


class Surroundings(Dataset):
    """What a sample depends on besides its code."""

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return torch.tensor(0.5), torch.get_default_dtype(), os.environ.get("LOADED"), os.getcwd()


def as_arrays(samples):
    return [np.stack(arrays) for arrays in zip(*samples, strict=True)]


class Pins:
    """A batch of a class that pins itself."""

    def __init__(self, samples):
        self.samples = samples

    def pin_memory(self):
        return {"pinned": self.samples}


def refuse(number):
    raise ValueError(f"worker {number} may not begin")
