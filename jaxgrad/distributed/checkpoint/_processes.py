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


def agree(what: str, processes: Processes, told, error: Exception | None) -> list:
    """What each process tells, in JSON. Raises the error of this process, or CheckpointException if
    another has one.
    """
    if processes.group is None:
        if error is not None:
            raise error
        return [told]
    text = None if error is None else f"{type(error).__name__}: {error}"
    every = list(map(json.loads, exchanged(json.dumps([text, told]), processes.group)))
    if error is not None:
        raise error
    failures = {
        rank: (RuntimeError(text), None)
        for rank, (text, _) in zip(processes.group.ranks, every, strict=True)
        if text is not None
    }
    if failures:
        raise CheckpointException(what, failures)
    return [told for _, told in every]
