"""A pipe that gives each worker a part of the elements."""

from __future__ import annotations

import enum

from .....names.missing import missing_in
from ..datapipe import IterDataPipe, functional_datapipe, length_of


class SHARDING_PRIORITIES(enum.IntEnum):
    """What the elements are divided among: processes of a group first, their workers then."""

    DEFAULT = 1
    DISTRIBUTED = 2
    MULTIPROCESSING = 3


@functional_datapipe("sharding_filter")
class ShardingFilterIterDataPipe(IterDataPipe):
    """Every n-th element; each worker of a DataLoader has another part.

    >>> pipes = jaxgrad.utils.data.datapipes.iter
    >>> pipe = pipes.IterableWrapper(range(5)).sharding_filter()
    >>> pipe.apply_sharding(2, 1)
    >>> list(pipe), len(pipe)
    ([1, 3], 2)
    """

    def __init__(self, source_datapipe, sharding_group_filter=None):
        self.source_datapipe = source_datapipe
        self.sharding_group_filter = sharding_group_filter
        self.groups: dict[SHARDING_PRIORITIES, tuple[int, int]] = {}

    def is_shardable(self) -> bool:
        """Whether workers have parts: yes."""
        return True

    def apply_sharding(
        self, num_of_instances: int, instance_id: int, sharding_group=SHARDING_PRIORITIES.DEFAULT
    ):
        """Have one part of several. Raises ValueError for a number out of range, RuntimeError for
        the default group beside others.
        """
        if instance_id >= num_of_instances:
            raise ValueError(
                f"instance_id({instance_id}) should be smaller than num_of_instances"
                f"({num_of_instances})"
            )
        default = SHARDING_PRIORITIES.DEFAULT
        others = [group for group in self.groups if group != sharding_group]
        if others and default in (sharding_group, *others):
            raise RuntimeError("ShardingFilter cannot mix DEFAULT and non DEFAULT groups")
        self.groups[sharding_group] = num_of_instances, instance_id

    @property
    def _part(self) -> tuple[int, int]:
        """The number of parts, and that of this one."""
        count, place = 1, 0
        for group in sorted(self.groups):
            wanted = self.sharding_group_filter
            if wanted is None or group == wanted:
                parts, number = self.groups[group]
                count, place = count * parts, place + count * number
        return count, place

    def __iter__(self):
        count, place = self._part
        for number, element in enumerate(self.source_datapipe):
            if number % count == place:
                yield element

    def __len__(self):
        count, place = self._part
        length = length_of(self, self.source_datapipe)
        return length // count + (place < length % count)


__getattr__ = missing_in(__name__)
