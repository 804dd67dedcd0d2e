"""Pipes with samples by index."""

from __future__ import annotations

import copy
import random
import warnings

from .....core.tracebacks import users_stacklevel
from .....names.missing import missing_in
from ...sampler import new_seed
from ..datapipe import DataChunk, IterDataPipe, MapDataPipe, RandomOrder, functional_datapipe
from ..functions import checked

__all__ = ["Batcher", "Concater", "Mapper", "SequenceWrapper", "Shuffler", "Zipper"]


class SequenceWrapperMapDataPipe(MapDataPipe):
    """The samples of a sequence or a dict.

    sequence: the object. deepcopy: whether the pipe has a copy of it; where it cannot be copied,
    there is a warning.

    >>> pipes = jaxgrad.utils.data.datapipes.map
    >>> list(pipes.SequenceWrapper([1, 2]).map(str))
    ['1', '2']
    """

    def __init__(self, sequence, deepcopy: bool = True):
        self.sequence = sequence
        if deepcopy:
            try:
                self.sequence = copy.deepcopy(sequence)
            except TypeError:
                warnings.warn(
                    "The input sequence can not be deepcopied, please be aware of in-place "
                    "modification would affect source data",
                    stacklevel=users_stacklevel(),
                )

    def __getitem__(self, index):
        return self.sequence[index]

    def __len__(self):
        return len(self.sequence)


@functional_datapipe("map")
class MapperMapDataPipe(MapDataPipe):
    """The results of a function of each sample: `pipe.map(fn)`."""

    def __init__(self, datapipe, fn=lambda sample: sample):
        self.datapipe, self.fn = datapipe, checked(fn)

    def __getitem__(self, index):
        return self.fn(self.datapipe[index])

    def __len__(self):
        return len(self.datapipe)


@functional_datapipe("batch")
class BatcherMapDataPipe(MapDataPipe):
    """Lists of consecutive samples: `pipe.batch(batch_size)`; drop_last: without a shorter one."""

    def __init__(self, datapipe, batch_size: int, drop_last: bool = False, wrapper_class=DataChunk):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __getitem__(self, index):
        first, count = index * self.batch_size, len(self.datapipe)
        if not 0 <= index < len(self):
            raise IndexError(f"Index {index} is out of bound.")
        last = min(first + self.batch_size, count)
        return self.wrapper_class([self.datapipe[place] for place in range(first, last)])

    def __len__(self):
        count = len(self.datapipe)
        return (count if self.drop_last else count + self.batch_size - 1) // self.batch_size


def _check_pipes(pipes):
    if not pipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, MapDataPipe) for pipe in pipes):
        raise TypeError("Expected all inputs to be `MapDataPipe`")


@functional_datapipe("concat")
class ConcaterMapDataPipe(MapDataPipe):
    """The samples of one pipe behind those of another: `pipe.concat(other)`."""

    def __init__(self, *datapipes):
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index):
        offset = 0
        for pipe in self.datapipes:
            if index - offset < len(pipe):
                return pipe[index - offset]
            offset += len(pipe)
        raise IndexError(f"Index {index} is out of range.")

    def __len__(self):
        return sum(map(len, self.datapipes))


@functional_datapipe("zip")
class ZipperMapDataPipe(MapDataPipe):
    """Tuples of the samples of several pipes at an index: `pipe.zip(other)`."""

    def __init__(self, *datapipes):
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __getitem__(self, index):
        if index >= len(self):
            raise IndexError(f"Index {index} is out of range for one of the input MapDataPipes")
        return tuple(pipe[index] for pipe in self.datapipes)

    def __len__(self):
        return min(map(len, self.datapipes))


class ShufflerIterDataPipe(RandomOrder, IterDataPipe):
    """The samples in a random order, as a pipe that is iterated over: `pipe.shuffle()`.

    indices: those of the samples, by default 0 to n - 1. The order follows from `set_seed`, or else
    from the default generator.
    """

    def __init__(self, datapipe, *, indices: list | None = None):
        self.datapipe, self._enabled, self._seed = datapipe, True, None
        self.indices = list(range(len(datapipe))) if indices is None else indices

    def __iter__(self):
        places = list(self.indices)
        if self._enabled:
            rng = random.Random(new_seed(None) if self._seed is None else self._seed)
            self._seed = None
            places = rng.sample(places, len(places))[::-1]
        for place in places:
            yield self.datapipe[place]

    def __len__(self):
        return len(self.datapipe)


Batcher, Concater, Mapper = BatcherMapDataPipe, ConcaterMapDataPipe, MapperMapDataPipe
SequenceWrapper, Zipper = SequenceWrapperMapDataPipe, ZipperMapDataPipe
Shuffler = ShufflerIterDataPipe
MapDataPipe.register_datapipe_as_function("shuffle", ShufflerIterDataPipe)

__getattr__ = missing_in(__name__)
