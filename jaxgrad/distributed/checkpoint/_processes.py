"""The processes that save or load together, and how they agree before anything changes."""

from __future__ import annotations

import json
from typing import NamedTuple

import jax

from ..object_collectives import exchanged
from ..process_group import DEFAULT_TIMEOUT, ProcessGroup, default_group, is_initialized
from .api import CheckpointException


class Processes(NamedTuple):
    """group: None if this process is alone; members: their ranks in the world, in order; rank: that
    of this one; ranks: those that orbax needs to know, None if it is all.
    """

    group: ProcessGroup | None
    members: tuple[int, ...]
    rank: int
    ranks: tuple[int, ...] | None
    timeout: float

    @property
    def is_first(self) -> bool:
        """Whether this process writes what all have."""
        return self.rank == self.members[0]


def processes_of(process_group, no_dist: bool) -> Processes:
    """The processes that arguments name. Raises ValueError for a group that this one is not in."""
    if no_dist or not is_initialized():
        rank = jax.process_index()
        ranks = (rank,) if jax.process_count() > 1 else None
        return Processes(None, (rank,), rank, ranks, DEFAULT_TIMEOUT.total_seconds())
    group = default_group() if process_group is None else process_group
    if not isinstance(group, ProcessGroup) or group.rank() < 0:
        raise ValueError("process_group: this process does not belong to the group")
    members, rank = tuple(sorted(group.ranks)), group.ranks[group.rank()]
    ranks = None if group.is_world else members
    several = group if group.size() > 1 else None
    return Processes(several, members, rank, ranks, group.timeout.total_seconds())


# those of other processes that keep their type
_ERRORS = {error.__name__: error for error in (TypeError, ValueError, FileNotFoundError)}


def agree(what: str, processes: Processes, value, error: Exception | None) -> list:
    """The values of all processes, exchanged as JSON, in the order of their ranks. Raises
    CheckpointException if any has an error.
    """
    failures = {} if error is None else {processes.rank: (error, None)}
    every = [value]
    if processes.group is not None:
        mine = None if error is None else [type(error).__name__, str(error)]
        texts = exchanged(json.dumps([mine, value]), processes.group)
        gathered = [
            json.loads(text) for _, text in sorted(zip(processes.group.ranks, texts, strict=True))
        ]
        every = [answer for _, answer in gathered]
        failures = failures | {
            rank: (_ERRORS.get(failed[0], RuntimeError)(failed[1]), None)
            for rank, (failed, _) in zip(processes.members, gathered, strict=True)
            if failed is not None and rank != processes.rank
        }
    if failures:
        raise CheckpointException(what, failures) from error
    return every
