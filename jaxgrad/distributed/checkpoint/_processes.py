"""The processes that save or load together, and how they agree before anything changes."""

from __future__ import annotations

import json
from typing import NamedTuple

import jax

from ..object_collectives import exchanged
from ..process_group import DEFAULT_TIMEOUT, ProcessGroup, default_group, is_initialized
from .api import CheckpointException


class Processes(NamedTuple):
    """group: None if this process is alone; rank: this one's in the world; ranks: those of orbax,
    None for all.
    """

    group: ProcessGroup | None
    rank: int
    ranks: tuple[int, ...] | None
    timeout: float

    @property
    def is_first(self) -> bool:
        """Whether this process writes what all have."""
        return self.group is None or self.group.rank() == 0


def processes_of(given, no_dist: bool) -> Processes:
    """The processes that arguments name. Raises ValueError for a group that this one is not in."""
    if no_dist or not is_initialized():
        rank = jax.process_index()
        ranks = (rank,) if jax.process_count() > 1 else None
        return Processes(None, rank, ranks, DEFAULT_TIMEOUT.total_seconds())
    group = default_group() if given is None else given
    if not isinstance(group, ProcessGroup) or group.rank() < 0:
        raise ValueError("process_group: this process does not belong to the group")
    ranks = None if group.is_world else group.ranks
    alone = group.size() == 1
    mine = group.ranks[group.rank()]
    return Processes(None if alone else group, mine, ranks, group.timeout.total_seconds())


# those of other processes that keep their type
_ERRORS = {each.__name__: each for each in (TypeError, ValueError, FileNotFoundError)}


def agree(what: str, processes: Processes, told, error: Exception | None) -> list:
    """What each process tells, in JSON. Raises CheckpointException if any has an error."""
    failures = {} if error is None else {processes.rank: (error, None)}
    every = [told]
    if processes.group is not None:
        mine = None if error is None else [type(error).__name__, str(error)]
        gathered = list(map(json.loads, exchanged(json.dumps([mine, told]), processes.group)))
        every = [each for _, each in gathered]
        failures = failures | {
            rank: (_ERRORS.get(failed[0], RuntimeError)(failed[1]), None)
            for rank, (failed, _) in zip(processes.group.ranks, gathered, strict=True)
            if failed is not None and rank != processes.rank
        }
    if failures:
        raise CheckpointException(what, failures) from error
    return every
