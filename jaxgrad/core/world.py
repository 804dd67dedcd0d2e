"""The processes that train together."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

AXIS = "rank"


class DistError(RuntimeError):
    """An error of processes that communicate.

    >>> issubclass(jaxgrad.distributed.DistBackendError, jaxgrad.distributed.DistError)
    True
    """


class DistBackendError(DistError):
    """Communication failed, for example because another process has ended.

    >>> issubclass(jaxgrad.distributed.DistBackendError, RuntimeError)
    True
    """


class DistNetworkError(DistError):
    """The network failed.

    >>> issubclass(jaxgrad.distributed.DistNetworkError, jaxgrad.distributed.DistError)
    True
    """


class DistStoreError(DistError):
    """The store of the processes failed.

    >>> issubclass(jaxgrad.distributed.DistStoreError, jaxgrad.distributed.DistError)
    True
    """


class World(NamedTuple):
    """rank: the number of this process; size: how many there are; mesh: the first device of each;
    device: that of this process.
    """

    rank: int
    size: int
    mesh: Mesh
    device: jax.Device


# the world of this process, None while it is alone
current: World | None = None


# the group of all processes (distributed/process_group.py), which is the default
group = None


def set_group(default):
    """Make this the group of all processes; None: there is none."""
    global group
    group = default


def begin() -> World:
    """Note the processes that JAX knows."""
    global current
    firsts: dict[int, jax.Device] = {}
    for device in sorted(jax.devices(), key=lambda device: device.id):
        firsts.setdefault(device.process_index, device)
    ranks = sorted(firsts)
    mesh = mesh_of_devices([firsts[rank] for rank in ranks])
    mine = jax.process_index()
    current = World(mine, len(ranks), mesh, firsts[mine])
    return current


def end():
    """Forget the other processes."""
    global current
    current = None


def mesh_of_devices(devices) -> Mesh:
    """A mesh with one axis, for processes that hold one device each."""
    return Mesh(np.array(devices), (AXIS,), axis_types=(AxisType.Auto,))


def is_several() -> bool:
    """Whether other processes take part."""
    return current is not None and current.size > 1


def spans(array) -> bool:
    """Whether an array has shards in several processes. Workers of a DataLoader have NumPy's."""
    return current is not None and not getattr(array, "is_fully_addressable", True)
