"""Meshes of devices, as torch.distributed.device_mesh, on `jax.sharding.Mesh`.

A device is named by its number among all devices of all processes. Where each process has one
device, as with `python -m jaxgrad launch`, that is the rank of the process.
"""

from __future__ import annotations

import contextlib
import os

import jax
import numpy as np
from jax.sharding import AxisType, Mesh

from ..core import device as devices
from ..core import spread, world
from ..frontend.tensor_data import tensor as tensor_of
from ..names.not_provided import names_of
from ..tape.tensor import Tensor
from .process_group import ProcessGroup, init_process_group, is_initialized


class DeviceMesh:
    """Devices in a grid with named dimensions, over which tensors are sharded.

    device_type: "cpu", "cuda" or "tpu". mesh: the numbers of the devices, as nested lists, an array
    or a tensor of ints. mesh_dim_names: a name for each dimension. Raises ValueError for a device
    that does not exist or comes twice, for names that are not one for each dimension or not
    distinct.

    `mesh["name"]` is the part along a dimension that this process belongs to; a tensor on it is
    replicated over the other dimensions. `jax_mesh` is the mesh as JAX has it.

    >>> from jaxgrad.distributed.device_mesh import DeviceMesh
    >>> mesh = DeviceMesh("cpu", [0], mesh_dim_names=("dp",))
    >>> mesh, mesh.size(), mesh["dp"].ndim
    (DeviceMesh('cpu', [0], mesh_dim_names=('dp',)), 1, 1)
    """

    def __init__(
        self,
        device_type: str,
        mesh,
        *,
        mesh_dim_names: tuple[str, ...] | None = None,
        _init_backend: bool = True,
    ):
        numbers = np.asarray(mesh.tolist() if isinstance(mesh, Tensor) else mesh, dtype=int)
        names = _checked_names(numbers.ndim, mesh_dim_names)
        mesh_devices = _devices(device_type, numbers)
        self.device_type, self.mesh_dim_names = device_type, mesh_dim_names and tuple(names)
        self._numbers, self._axes = numbers, names
        self.jax_mesh = Mesh(mesh_devices, names, axis_types=(AxisType.Auto,) * numbers.ndim)
        spread.note_mesh(self.jax_mesh)

    @classmethod
    def of(cls, mesh: Mesh, axes: tuple[str, ...] | None = None) -> DeviceMesh:
        """The DeviceMesh of a mesh of JAX, or its part along some of the axes."""
        spread.note_mesh(mesh)
        wrapper = object.__new__(cls)
        wrapper.jax_mesh, wrapper._axes = mesh, tuple(mesh.axis_names) if axes is None else axes
        wrapper.device_type = devices.type_of(mesh.devices.flat[0])
        wrapper.mesh_dim_names = wrapper._axes
        order = {device: number for number, device in enumerate(_all_devices(mesh))}
        wrapper._numbers = np.vectorize(order.__getitem__, otypes=[int])(mesh.devices)
        if wrapper._axes != tuple(mesh.axis_names):
            wrapper._numbers = _along(wrapper._numbers, mesh, wrapper._axes)
        return wrapper

    @property
    def mesh(self) -> Tensor:
        """The numbers of the devices, a tensor of ints."""
        return tensor_of(self._numbers)

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of `jax_mesh` that are dimensions of this mesh."""
        return self._axes

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return self._numbers.ndim

    @property
    def shape(self) -> tuple[int, ...]:
        """How many devices it has along each dimension."""
        return tuple(self._numbers.shape)

    def size(self, mesh_dim: int | str | None = None) -> int:
        """How many devices it has, in all or along a dimension. Raises KeyError for a name that it
        does not have.
        """
        return self._numbers.size if mesh_dim is None else self.shape[self._dim(mesh_dim)]

    def _dim(self, dim: int | str) -> int:
        if isinstance(dim, int):
            return range(self.ndim)[dim]
        if dim not in self._axes:
            raise KeyError(
                f"Invalid mesh_dim_name {dim!r} specified: the dimensions are {self._axes}"
            )
        return self._axes.index(dim)

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        """The part of the mesh along some dimensions. Raises KeyError for other names."""
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        chosen = (names,) if isinstance(names, str) else tuple(names)
        for name in chosen:
            self._dim(name)
        return DeviceMesh.of(self.jax_mesh, chosen)

    def get_coordinate(self) -> list[int] | None:
        """Where in the mesh the first device of this process is; None if it is in none."""
        mine = {device.id for device in jax.local_devices()}
        places = np.argwhere(np.vectorize(lambda device: device.id in mine)(self.jax_mesh.devices))
        if not len(places):
            return None
        names = self.jax_mesh.axis_names
        return [int(places[0][names.index(axis)]) for axis in self._axes]

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The coordinate of this process along a dimension, which a mesh of one need not name.

        Raises RuntimeError if the mesh has several, or no device of this process.
        """
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions: the optional kwarg `mesh_dim` "
                "needs to be specified when device_mesh.ndim > 1."
            )
        place = self.get_coordinate()
        if place is None:
            raise RuntimeError(f"this process has no device in {self}")
        return place[self._dim(mesh_dim or 0)]

    def get_rank(self) -> int:
        """The rank of this process in the world."""
        return jax.process_index()

    def get_group(self, mesh_dim: int | str | None = None) -> ProcessGroup:
        """The processes along a dimension, those of this process among them.

        Raises RuntimeError for a mesh of several dimensions without `mesh_dim`, and where processes
        have several devices of the mesh: they communicate by DTensors.
        """
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(f"get_group: give mesh_dim=, for {self} has several dimensions")
        axis = self._axes[self._dim(mesh_dim or 0)]
        if not is_initialized():
            raise ValueError("get_group: call init_process_group, or init_device_mesh, first")
        ranks = np.vectorize(lambda device: device.process_index, otypes=[int])(
            self.jax_mesh.devices
        )
        if len(set(ranks.flat)) < ranks.size:
            raise RuntimeError(
                f"get_group: the processes have several devices each in {self}, and a process "
                "group has one of each: communicate by DTensors, or start a process for each device"
            )
        rows = np.moveaxis(ranks, self.jax_mesh.axis_names.index(axis), -1)
        partition = tuple(map(tuple, rows.reshape(-1, rows.shape[-1]).tolist()))
        mine = next((row for row in partition if jax.process_index() in row), partition[0])
        is_all = ranks.size == world.current.size
        return ProcessGroup(mine, partition if is_all else None, f"mesh_{axis}")

    def get_all_groups(self) -> list[ProcessGroup]:
        """The group along each dimension."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def __eq__(self, other):
        if not isinstance(other, DeviceMesh):
            return NotImplemented
        return (self.jax_mesh, self._axes) == (other.jax_mesh, other._axes)

    def __hash__(self):
        return hash((self.jax_mesh, self._axes))

    def __repr__(self):
        names = f", mesh_dim_names={self.mesh_dim_names}" if self.mesh_dim_names else ""
        return f"DeviceMesh({self.device_type!r}, {self._numbers.tolist()}{names})"

    def __enter__(self):
        _entered.append(self)
        return self

    def __exit__(self, *raised):
        _entered.pop()


# the meshes whose `with` blocks are open
_entered: list[DeviceMesh] = []


def current_mesh(mesh: DeviceMesh | None) -> DeviceMesh:
    """The mesh that an argument names: by default that of the block, or one of all devices.

    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> with mesh:
    ...     jaxgrad.distributed.device_mesh.current_mesh(None) is mesh
    True
    """
    if mesh is not None:
        return mesh
    if _entered:
        return _entered[-1]
    return init_device_mesh(jax.default_backend().replace("gpu", "cuda"), (jax.device_count(),))


def _checked_names(ndim, names) -> tuple[str, ...]:
    if names is None:
        return tuple([f"dim_{i}" for i in range(ndim)])
    if len(names) != ndim or len(set(names)) < ndim:
        raise ValueError(
            f"Each mesh_dim_name must be unique, and there must be one for each of the {ndim} "
            f"dimensions: {tuple(names)}"
        )
    return tuple(names)


def _all_devices(mesh: Mesh) -> list:
    all_devices = [*mesh.devices.flat]
    # a topology that programs are compiled for has devices that are not there
    with contextlib.suppress(RuntimeError):
        there = jax.devices(all_devices[0].platform)
        all_devices = there if set(all_devices) <= set(there) else all_devices
    return sorted(all_devices, key=lambda device: device.id)


def _devices(device_type, numbers):
    """The devices of these numbers. Raises ValueError where one does not exist or comes twice."""
    known = []
    for platform in devices.PLATFORMS.get(device_type, ()):
        try:
            known = sorted(jax.devices(platform), key=lambda device: device.id)
            break
        except RuntimeError:  # JAX's, for a platform that is not there
            continue
    unknown = sorted({*numbers.flat} - {*range(len(known))})
    if unknown or len({*numbers.flat}) < numbers.size:
        raise ValueError(
            f"DeviceMesh: {list(numbers.shape)} devices {numbers.tolist()} of type "
            f"{device_type!r} are wanted, each once, and there are {len(known)}, numbered from 0. "
            "With a CPU, XLA_FLAGS=--xla_force_host_platform_device_count=N makes N devices of "
            "it, and `python -m jaxgrad launch --nproc N` starts N processes"
        )
    return np.vectorize(known.__getitem__, otypes=[object])(numbers)


def _along(numbers, mesh, axes):
    """The numbers of the devices along some axes, where this process is along the others."""
    places = np.argwhere(
        np.vectorize(lambda device: device.process_index == jax.process_index())(mesh.devices)
    )
    place = places[0] if len(places) else np.zeros(numbers.ndim, int)
    names = mesh.axis_names
    index = tuple([slice(None) if name in axes else place[i] for i, name in enumerate(names)])
    kept = [name for name in names if name in axes]
    return np.transpose(numbers[index], [kept.index(axis) for axis in axes])


def init_device_mesh(
    device_type: str,
    mesh_shape: tuple[int, ...],
    *,
    mesh_dim_names: tuple[str, ...] | None = None,
    backend_override=None,
) -> DeviceMesh:
    """A mesh of the first devices, as many as the shape has.

    device_type: "cpu", "cuda" or "tpu". mesh_shape: how many devices along each dimension. In a
    process that `python -m jaxgrad launch` started, it calls `init_process_group` first, unless
    that was done. Raises ValueError where there are fewer devices, RuntimeError for a bad device
    type or names.

    >>> from jaxgrad.distributed.device_mesh import init_device_mesh
    >>> init_device_mesh("cpu", (1, 1), mesh_dim_names=("dp", "tp")).shape
    (1, 1)
    """
    if device_type not in devices.PLATFORMS:
        raise RuntimeError(
            f"init_device_mesh: device_type is one of cpu, cuda and tpu, not {device_type!r}"
        )
    if not is_initialized() and int(os.environ.get("WORLD_SIZE", "1")) > 1:
        init_process_group()
    shape = (mesh_shape,) if isinstance(mesh_shape, int) else tuple(mesh_shape)
    numbers = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
    return DeviceMesh(device_type, numbers, mesh_dim_names=mesh_dim_names)


__all__ = ["DeviceMesh", "init_device_mesh"]


__getattr__, __dir__ = names_of(__name__)
