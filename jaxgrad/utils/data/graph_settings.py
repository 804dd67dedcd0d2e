"""Settings of all pipes in a graph: parts for workers, orders and seeds."""

from __future__ import annotations

import warnings

from ...core.tracebacks import users_stacklevel
from ...names.missing import missing_in
from .datapipes.datapipe import pipes_of
from .datapipes.iter.combinatorics import ShufflerIterDataPipe
from .datapipes.iter.sharding import SHARDING_PRIORITIES
from .datapipes.map import ShufflerIterDataPipe as MapShuffler
from .graph import traverse_dps
from .sampler import seeded

NO_SHUFFLER = (
    "`shuffle=True` was set, but the datapipe does not contain a `Shuffler`. Adding one at the "
    "end. Be aware that the default buffer size might not be sufficient for your task."
)


def get_all_graph_pipes(graph: dict) -> list:
    """The pipes of a graph of `traverse_dps`, each once."""
    return pipes_of(graph)


def apply_sharding(
    datapipe,
    num_of_instances: int,
    instance_id: int,
    sharding_group=SHARDING_PRIORITIES.DEFAULT,
):
    """Give the pipes that can be divided one of several parts, and return the pipe."""
    datapipe._divide(num_of_instances, instance_id, sharding_group)
    return datapipe


def apply_shuffle_settings(datapipe, shuffle: bool | None = None):
    """Choose whether the pipes that shuffle do so, and return the pipe. One that should be in a
    random order and has no such pipe gets one.
    """
    if shuffle is None:
        return datapipe
    pipes = get_all_graph_pipes(traverse_dps(datapipe))
    shufflers = [pipe for pipe in pipes if isinstance(pipe, ShufflerIterDataPipe | MapShuffler)]
    if not shufflers and shuffle:
        warnings.warn(NO_SHUFFLER, UserWarning, stacklevel=users_stacklevel())
        datapipe = datapipe.shuffle()
        shufflers = [datapipe]
    for pipe in shufflers:
        pipe.set_shuffle(shuffle)
    return datapipe


def apply_random_seed(datapipe, rng):
    """Give the pipes that draw random numbers seeds of a generator, and return the pipe.

    rng: an int, or a generator of jaxgrad.
    """
    datapipe._set_seeds(seeded(rng) if isinstance(rng, int) else rng)
    return datapipe


apply_shuffle_seed = apply_random_seed

__getattr__ = missing_in(__name__)
