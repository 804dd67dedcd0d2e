"""A sampler for training with several processes."""

from __future__ import annotations

import math

from ...core import world
from ...frontend.generator import Generator
from ...frontend.random import randperm
from ...names.missing import missing_in
from .dataset import Dataset
from .sampler import Sampler


class DistributedSampler(Sampler[int]):
    """The part of the indices that one of several processes takes; all parts have one length.

    num_replicas, rank: how many processes there are, and the number of this one; by default those
    of the process group. shuffle: whether
    the order is random, by `seed` and the epoch of `set_epoch`, which is the same in all processes.
    drop_last: whether samples that are left over are dropped; else the first ones come again.

    Raises ValueError for a rank that is not below `num_replicas`, and where one of them is left out
    before `init_process_group`.

    >>> list(jaxgrad.utils.data.DistributedSampler(range(7), 3, 1, shuffle=False))
    [1, 4, 0]
    """

    def __init__(
        self,
        dataset: Dataset,
        num_replicas: int | None = None,
        rank: int | None = None,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ):
        if world.group is not None:
            num_replicas = world.group.size() if num_replicas is None else num_replicas
            rank = world.group.rank() if rank is None else rank
        if num_replicas is None or rank is None:
            raise ValueError(
                "Default process group has not been initialized, please make sure to call "
                "init_process_group. Or pass DistributedSampler() both num_replicas= and rank="
            )
        if not 0 <= rank < num_replicas:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval [0, {num_replicas - 1}]"
            )
        self.dataset, self.num_replicas, self.rank = dataset, num_replicas, rank
        self.epoch, self.shuffle, self.seed, self.drop_last = 0, shuffle, seed, drop_last
        share = len(dataset) / num_replicas
        self.num_samples = math.floor(share) if drop_last else math.ceil(share)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        size = len(self.dataset)
        order = list(range(size))
        if self.shuffle:
            generator = Generator().manual_seed(self.seed + self.epoch)
            order = randperm(size, generator=generator).tolist()
        repeated = order * math.ceil(self.total_size / max(size, 1))
        return iter(repeated[self.rank : self.total_size : self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch: int) -> None:
        """Set the number of the epoch, on which the random order depends."""
        self.epoch = epoch


__getattr__ = missing_in(__name__)
