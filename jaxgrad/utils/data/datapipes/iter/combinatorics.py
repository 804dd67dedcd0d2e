"""Pipes that change the order of elements."""

from __future__ import annotations

import random

from .....names.missing import missing_in
from ...sampler import SequentialSampler, new_seed
from ..datapipe import IterDataPipe, RandomOrder, functional_datapipe, length_of


class SamplerIterDataPipe(IterDataPipe):
    """The indices of a sampler of another pipe.

    sampler: its class; sampler_args, sampler_kwargs: further arguments of it. Raises TypeError for
    arguments that the class does not take.
    """

    def __init__(self, datapipe, sampler=SequentialSampler, sampler_args=None, sampler_kwargs=None):
        self.datapipe = datapipe
        self.sampler_args = () if sampler_args is None else sampler_args
        self.sampler_kwargs = {**(sampler_kwargs or {}), "data_source": datapipe}
        self.sampler = sampler(*self.sampler_args, **self.sampler_kwargs)

    def __iter__(self):
        return iter(self.sampler)

    def __len__(self):
        return length_of(self, self.sampler)


@functional_datapipe("shuffle")
class ShufflerIterDataPipe(RandomOrder, IterDataPipe):
    """The elements in a random order: `pipe.shuffle()`.

    buffer_size: how many elements wait; each next element is one of them. unbatch_level: how many
    levels of batches are opened first. The order follows from `set_seed`, or else from the default
    generator.

    >>> pipes = jaxgrad.utils.data.datapipes.iter
    >>> sorted(pipes.IterableWrapper(range(4)).shuffle())
    [0, 1, 2, 3]
    """

    def __init__(self, datapipe, *, buffer_size: int = 10000, unbatch_level: int = 0):
        if buffer_size <= 0:
            raise AssertionError("buffer_size should be larger than 0")
        self.datapipe = datapipe if unbatch_level == 0 else datapipe.unbatch(unbatch_level)
        self.buffer_size, self._enabled, self._seed = buffer_size, True, None
        self._rng = random.Random()

    def reset(self):
        """Begin an order: that of the seed, or a new one."""
        if self._enabled:
            self._rng.seed(new_seed(None) if self._seed is None else self._seed)
            self._seed = None

    def __iter__(self):
        if not self._enabled:
            yield from self.datapipe
            return
        waiting: list = []
        for element in self.datapipe:
            if len(waiting) < self.buffer_size:
                waiting.append(element)
                continue
            place = self._rng.randint(0, len(waiting) - 1)
            chosen, waiting[place] = waiting[place], element
            yield chosen
        while waiting:
            yield waiting.pop(self._rng.randint(0, len(waiting) - 1))

    def __len__(self):
        return length_of(self, self.datapipe)


__getattr__ = missing_in(__name__)
