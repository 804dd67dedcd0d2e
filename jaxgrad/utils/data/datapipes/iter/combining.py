"""Pipes that join others, and those that share one."""

from __future__ import annotations

import copy
import itertools
import warnings
from collections import deque

from .....core.tracebacks import users_stacklevel
from .....names.missing import missing_in
from ..datapipe import IterDataPipe, functional_datapipe, length_of
from ..functions import checked


def _check_pipes(pipes):
    if not pipes:
        raise ValueError("Expected at least one DataPipe, but got nothing")
    if not all(isinstance(pipe, IterDataPipe) for pipe in pipes):
        raise TypeError("Expected all inputs to be `IterDataPipe`")


@functional_datapipe("concat")
class ConcaterIterDataPipe(IterDataPipe):
    """The elements of one pipe after those of another: `pipe.concat(other)`."""

    def __init__(self, *datapipes):
        _check_pipes(datapipes)
        self.datapipes = datapipes

    def __iter__(self):
        return itertools.chain.from_iterable(self.datapipes)

    def __len__(self):
        return sum(length_of(self, pipe) for pipe in self.datapipes)


@functional_datapipe("zip")
class ZipperIterDataPipe(IterDataPipe):
    """Tuples of the elements of several pipes, as long as all have one: `pipe.zip(other)`."""

    def __init__(self, *datapipes):
        if not all(isinstance(pipe, IterDataPipe) for pipe in datapipes):
            raise TypeError("All inputs are required to be `IterDataPipe` for `ZipIterDataPipe`.")
        self.datapipes = datapipes

    def __iter__(self):
        return zip(*self.datapipes, strict=False)

    def __len__(self):
        return min(length_of(self, pipe) for pipe in self.datapipes)


@functional_datapipe("mux")
class MultiplexerIterDataPipe(IterDataPipe):
    """One element of each pipe in turn, as long as all have one: `pipe.mux(other)`."""

    def __init__(self, *datapipes):
        self.datapipes = datapipes

    def __iter__(self):
        return itertools.chain.from_iterable(zip(*self.datapipes, strict=False))

    def __len__(self):
        return len(self.datapipes) * min(length_of(self, pipe) for pipe in self.datapipes)


# ---- several pipes of one

INVALID = (
    "This iterator has been invalidated because another iterator has been created from one of the "
    "child DataPipes of {!r}."
)
NOT_EXHAUSTED = (
    "Some child DataPipes are not exhausted when __iter__ is called. We are resetting the buffer "
    "and each child DataPipe will read from the start again."
)


class _Shared:
    """The elements of a pipe for several others. count: of these; buffer_size: how many elements
    may wait, any number if negative; targets: gives the pipes that an element is for; load: how
    many elements wait while a pipe reads.
    """

    def __init__(self, datapipe, count: int, buffer_size: int, targets, load):
        self.main_datapipe, self.count, self.buffer_size = datapipe, count, buffer_size
        self.targets, self.load = targets, load
        self.generation, self.begun = 0, set()
        self.source, self.waiting = None, [deque() for _ in range(count)]
        self.is_at_end = False

    @property
    def is_exhausted(self) -> bool:
        """Whether all pipes have had all elements."""
        return self.is_at_end and not any(self.waiting)

    def begin(self, number: int) -> int:
        """Begin an iteration of a pipe; gives the number of the pass over the elements."""
        if self.source is None or number in self.begun:
            if self.source is not None and not self.is_exhausted:
                warnings.warn(NOT_EXHAUSTED, UserWarning, stacklevel=users_stacklevel())
            self.source = iter(self.main_datapipe)
            self.waiting = [deque() for _ in range(self.count)]
            self.generation, self.begun = self.generation + 1, set()
            self.is_at_end = False
        self.begun.add(number)
        return self.generation

    def elements(self, number: int, generation: int):
        """The elements for a pipe."""
        while True:
            if generation != self.generation:
                raise RuntimeError(INVALID.format(self.main_datapipe))
            if self.waiting[number]:
                yield self.waiting[number].popleft()
                continue
            try:
                element = next(self.source)
            except StopIteration:
                self.is_at_end = True
                return
            for target in self.targets(element):
                self.waiting[target[0]].append(target[1])
            if 0 <= self.buffer_size < self.load(self.waiting, number):
                raise BufferError(
                    f"{type(self.main_datapipe).__name__} buffer overflow, buffer size "
                    f"{self.buffer_size} is insufficient."
                )

    def __getstate__(self):
        return {**vars(self), "source": None, "waiting": [deque() for _ in range(self.count)]}


class _ChildDataPipe(IterDataPipe):
    """One of several pipes that share the elements of another."""

    def __init__(self, shared: _Shared, instance_id: int):
        self.shared, self.instance_id = shared, instance_id

    @property
    def main_datapipe(self):
        """The pipe that has the elements."""
        return self.shared.main_datapipe

    def __iter__(self):
        generation = self.shared.begin(self.instance_id)
        return self.shared.elements(self.instance_id, generation)


class _ForkedDataPipe(_ChildDataPipe):
    def __len__(self):
        return length_of(self, self.main_datapipe)


def _check_count(count):
    if count < 1:
        raise ValueError(f"Expected `num_instances` larger than 0, but {count} is found")


def _warn_of_size(buffer_size):
    if buffer_size < 0:
        warnings.warn(
            "Unlimited buffer size is set, please be aware of OOM risks",
            UserWarning,
            stacklevel=users_stacklevel(),
        )


@functional_datapipe("fork")
class ForkerIterDataPipe(IterDataPipe):
    """Several pipes with the elements of one: `first, second = pipe.fork(2)`.

    num_instances: how many pipes. buffer_size: how many elements one of them may be ahead, any
    number if negative; BufferError beyond. copy: None, "shallow" or "deep" for copies of elements.
    """

    def __new__(cls, datapipe, num_instances: int, buffer_size: int = 1000, copy=None):
        _check_count(num_instances)
        _warn_of_size(buffer_size)
        if copy not in _COPIES:
            raise ValueError(
                f"Unknown copy method `{copy}`, choose from None, 'shallow' and 'deep'"
            )
        if num_instances == 1:
            return datapipe
        copied = _COPIES[copy]
        targets = lambda element: [(n, copied(element)) for n in range(num_instances)]  # noqa: E731
        shared = _Shared(datapipe, num_instances, buffer_size, targets, _lead)
        return [_ForkedDataPipe(shared, number) for number in range(num_instances)]


def _lead(waiting, _number) -> int:
    """How many elements the first pipe is ahead of the last one."""
    return max(map(len, waiting))


def _of_others(waiting, number) -> int:
    """How many elements wait for other pipes."""
    return sum(map(len, waiting)) - bool(waiting[number])


_COPIES = {None: lambda element: element, "shallow": copy.copy, "deep": copy.deepcopy}


@functional_datapipe("demux")
class DemultiplexerIterDataPipe(IterDataPipe):
    """Several pipes that have each element in one of them: `pipe.demux(2, classifier_fn)`.

    num_instances: how many pipes. classifier_fn: gives the number of the pipe of an element, or
    None. drop_none: leave out the elements with None, which is an error otherwise. buffer_size: how
    many elements may wait, any number if negative. Raises ValueError for a number out of range,
    BufferError where too many elements wait.

    >>> pipe = jaxgrad.utils.data.datapipes.iter.IterableWrapper(range(4))
    >>> def is_odd(number):
    ...     return number % 2
    >>> [list(part) for part in pipe.demux(2, is_odd)]
    [[0, 2], [1, 3]]
    """

    def __new__(
        cls,
        datapipe,
        num_instances: int,
        classifier_fn,
        drop_none: bool = False,
        buffer_size: int = 1000,
    ):
        _check_count(num_instances)
        _warn_of_size(buffer_size)
        checked(classifier_fn)

        def targets(element):
            number = classifier_fn(element)
            if number is None and drop_none:
                return []
            if number is None or not 0 <= number < num_instances:
                raise ValueError(
                    "Output of the classification fn should be between 0 and "
                    f"{num_instances - 1}. {number} is returned."
                )
            return [(number, element)]

        shared = _Shared(datapipe, num_instances, buffer_size, targets, _of_others)
        return [_ChildDataPipe(shared, number) for number in range(num_instances)]


__getattr__ = missing_in(__name__)
