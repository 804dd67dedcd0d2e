"""Samplers: in which order a DataLoader takes the samples."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Generic, TypeVar

import numpy as np

from ... import ops
from ...core import dtypes
from ...core.pytorch_tensors import type_name
from ...frontend import draw
from ...frontend.generator import Generator, default_generator
from ...frontend.random import randint, randperm
from ...frontend.request import NumbersRequest
from ...frontend.tensor_data import as_tensor
from ...names.missing import missing_in

_T_co = TypeVar("_T_co", covariant=True)


_SEED = NumbersRequest(draw.all_integers, (), np.dtype(np.int64), None, (2**63,))


def new_seed(generator: Generator | None) -> int:
    """A seed of 63 bits, drawn from a generator; None: the default one."""
    generator = default_generator if generator is None else generator
    if not isinstance(generator, Generator):
        raise TypeError(f"generator must be a torch.Generator, not {type_name(generator)}")
    if generator.stream == "torch":  # without JAX, which a forked worker cannot use
        (drawn,) = generator.numbers(_SEED)
        return int(drawn.array())
    # a good hash of seed and count of draws: both are small numbers as a rule
    mixed = np.random.SeedSequence([int(word) for word in generator.next_key()])
    return int(mixed.generate_state(1, np.uint64)[0] >> np.uint64(1))


class Sampler(Generic[_T_co]):
    """An order of samples: subclasses define `__iter__`, which yields indices, and `__len__`.

    >>> class Backwards(jaxgrad.utils.data.Sampler):
    ...     def __iter__(self):
    ...         return iter([2, 1, 0])
    >>> list(jaxgrad.utils.data.DataLoader([5, 6, 7], sampler=Backwards()))
    [tensor([7]), tensor([6]), tensor([5])]
    """

    def __iter__(self) -> Iterator[_T_co]:
        raise NotImplementedError(f"{type(self).__name__} must define __iter__")


class SequentialSampler(Sampler[int]):
    """The indices in their order.

    >>> list(jaxgrad.utils.data.SequentialSampler("abc"))
    [0, 1, 2]
    """

    def __init__(self, data_source: Sized):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """The indices in a random order, another one at each iteration.

    replacement: whether an index may come again; num_samples: how many are drawn, the length of
    `data_source` by default; generator: the default one if it is None. Raises TypeError and
    ValueError for others.

    >>> sorted(jaxgrad.utils.data.RandomSampler("abc"))
    [0, 1, 2]
    """

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: Generator | None = None,
    ):
        self.data_source, self.replacement = data_source, replacement
        self._num_samples, self.generator = num_samples, generator
        if not isinstance(replacement, bool):
            raise TypeError(f"replacement should be a boolean value, but got {replacement=}")
        _check_count(self.num_samples)

    @property
    def num_samples(self) -> int:
        """How many indices an iteration has."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self):
        size = len(self.data_source)
        # all orders of one iteration come from one seed, so that an iteration that is left early
        # takes as much from the generator as a whole one
        generator = self.generator or seeded(new_seed(None))
        whole, rest = divmod(self.num_samples, _CHUNK if self.replacement else size)
        # the rest is drawn where it is empty too, as in PyTorch
        for count in (*[None] * whole, rest):
            if self.replacement:
                shape = (_CHUNK if count is None else count,)
                yield from randint(size, shape, generator=generator).tolist()
            else:
                yield from randperm(size, generator=generator).tolist()[:count]

    def __len__(self):
        return self.num_samples


_CHUNK = 32


def seeded(seed: int) -> Generator:
    """A generator of the stream of the default one."""
    return Generator(stream=default_generator.stream).manual_seed(seed)


class SubsetRandomSampler(Sampler[int]):
    """Some indices in a random order, another one at each iteration.

    >>> sorted(jaxgrad.utils.data.SubsetRandomSampler([5, 7]))
    [5, 7]
    """

    def __init__(self, indices: Sequence[int], generator: Generator | None = None):
        self.indices, self.generator = indices, generator

    def __iter__(self):
        for place in randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[place]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """Indices drawn with given weights, which need not add up to one.

    weights: a sequence of numbers; num_samples: how many are drawn; replacement: whether an index
    may come again. Raises ValueError for others.

    >>> list(jaxgrad.utils.data.WeightedRandomSampler([0.0, 2.0], 3))
    [1, 1, 1]
    """

    def __init__(
        self,
        weights: Sequence[float],
        num_samples: int,
        replacement: bool = True,
        generator: Generator | None = None,
    ):
        _check_count(num_samples)
        if not isinstance(replacement, bool):
            raise ValueError(f"replacement should be a boolean value, but got {replacement=}")
        weights = as_tensor(weights, dtype=dtypes.float64)
        if weights.ndim != 1:
            raise ValueError(
                "weights should be a 1d sequence but given weights have shape "
                f"{tuple(weights.shape)}"
            )
        self.weights, self.num_samples = weights, num_samples
        self.replacement, self.generator = replacement, generator

    def __iter__(self):
        drawn = ops.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from drawn.tolist()

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler[list]):
    """The indices of another sampler as lists of `batch_size`.

    drop_last: whether a last list that is shorter is left out. Raises ValueError for a batch size
    that is no positive int.

    >>> list(jaxgrad.utils.data.BatchSampler(range(5), 2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, sampler: Iterable, batch_size: int, drop_last: bool):
        if not isinstance(batch_size, int) or isinstance(batch_size, bool) or batch_size <= 0:
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size!r}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got {drop_last=}")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self):
        indices = iter(self.sampler)
        while batch := list(itertools.islice(indices, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self):
        size, rest = divmod(len(self.sampler), self.batch_size)
        return size + (rest > 0 and not self.drop_last)


def _check_count(count):
    if not isinstance(count, int) or isinstance(count, bool) or count <= 0:
        raise ValueError(
            f"num_samples should be a positive integer value, but got num_samples={count!r}"
        )


__getattr__ = missing_in(__name__)
