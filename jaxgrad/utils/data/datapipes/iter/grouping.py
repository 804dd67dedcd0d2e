"""Pipes of batches."""

from __future__ import annotations

from collections import defaultdict

from .....names.missing import missing_in
from ..datapipe import DataChunk, IterDataPipe, functional_datapipe, length_of
from ..functions import checked


@functional_datapipe("batch")
class BatcherIterDataPipe(IterDataPipe):
    """Lists of consecutive elements: `pipe.batch(batch_size)`.

    drop_last: without a last one that is shorter. wrapper_class: the class of the lists.

    >>> pipes = jaxgrad.utils.data.datapipes.iter
    >>> list(pipes.IterableWrapper(range(3)).batch(2))
    [[0, 1], [2]]
    """

    def __init__(self, datapipe, batch_size: int, drop_last: bool = False, wrapper_class=DataChunk):
        if batch_size <= 0:
            raise AssertionError("Batch size is required to be larger than 0!")
        self.datapipe, self.batch_size = datapipe, batch_size
        self.drop_last, self.wrapper_class = drop_last, wrapper_class

    def __iter__(self):
        batch = []
        for element in self.datapipe:
            batch.append(element)
            if len(batch) == self.batch_size:
                yield self.wrapper_class(batch)
                batch = []
        if batch and not self.drop_last:
            yield self.wrapper_class(batch)

    def __len__(self):
        length = length_of(self, self.datapipe)
        return (length if self.drop_last else length + self.batch_size - 1) // self.batch_size


@functional_datapipe("unbatch")
class UnBatcherIterDataPipe(IterDataPipe):
    """The elements of batches: `pipe.unbatch()`.

    unbatch_level: how many levels of lists are opened, -1 for all of them.
    """

    def __init__(self, datapipe, unbatch_level: int = 1):
        self.datapipe, self.unbatch_level = datapipe, unbatch_level

    def __iter__(self):
        if self.unbatch_level < -1:
            raise ValueError("unbatch_level must be -1 or >= 0")
        for element in self.datapipe:
            yield from self._opened(element, self.unbatch_level)

    def _opened(self, element, level):
        is_list = isinstance(element, list)
        if level == 0 or (level < 0 and not is_list):
            yield element
            return
        if not is_list:
            raise IndexError(f"unbatch_level {self.unbatch_level} exceeds the depth of the pipe")
        for part in element:
            yield from self._opened(part, level - 1 if level > 0 else level)


@functional_datapipe("groupby")
class GrouperIterDataPipe(IterDataPipe):
    """Lists of elements with the same key: `pipe.groupby(group_key_fn)`.

    keep_key: pairs of key and list. buffer_size: how many elements wait at most; the largest group
    goes first, if it has guaranteed_group_size. group_size: of complete groups.
    drop_remaining: without incomplete groups. Raises RuntimeError where the buffer is full of small
    groups.
    """

    def __init__(
        self,
        datapipe,
        group_key_fn,
        *,
        keep_key: bool = False,
        buffer_size: int = 10000,
        group_size: int | None = None,
        guaranteed_group_size: int | None = None,
        drop_remaining: bool = False,
    ):
        self.datapipe, self.group_key_fn = datapipe, checked(group_key_fn)
        self.keep_key, self.max_buffer_size = keep_key, buffer_size
        self.group_size, self.drop_remaining = group_size, drop_remaining
        if group_size is not None and not 0 < group_size <= buffer_size:
            raise AssertionError("group_size must be > 0 and <= buffer_size")
        least = group_size if guaranteed_group_size is None else guaranteed_group_size
        if guaranteed_group_size is not None and (
            group_size is None or not 0 < guaranteed_group_size <= group_size
        ):
            raise AssertionError("guaranteed_group_size is positive and at most group_size")
        self.guaranteed_group_size = (
            least if group_size is None or least is None else min(least, buffer_size)
        )

    def __iter__(self):
        groups, waiting = defaultdict(list), 0
        for element in self.datapipe:
            key = self.group_key_fn(element)
            groups[key].append(element)
            waiting += 1
            if len(groups[key]) == self.group_size:
                waiting -= self.group_size
                yield self._group(key, groups.pop(key))
            if waiting == self.max_buffer_size:
                largest = max(groups, key=lambda name: len(groups[name]))
                elements = groups.pop(largest)
                waiting -= len(elements)
                if self._is_enough(largest, elements, groups):
                    yield self._group(largest, elements)
        for key, elements in groups.items():
            yield self._group(key, elements)

    def _is_enough(self, key, elements, groups) -> bool:
        """Whether a group that has to go may go, though it is incomplete."""
        least = self.guaranteed_group_size
        if least is None or len(elements) >= least:
            return True
        if not self.drop_remaining:
            raise RuntimeError(f"Failed to group items {[*groups.values(), elements]}")
        return False

    def _group(self, key, elements):
        chunk = DataChunk(elements)
        return (key, chunk) if self.keep_key else chunk


__getattr__ = missing_in(__name__)
