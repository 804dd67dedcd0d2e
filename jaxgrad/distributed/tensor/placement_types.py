"""How a tensor lies on the devices of a mesh: `Shard`, `Replicate` and `Partial`."""

from __future__ import annotations

from dataclasses import dataclass

import jax
from jax.sharding import NamedSharding, PartitionSpec

from ...names.not_provided import names_of
from ..device_mesh import DeviceMesh


class Placement:
    """How a tensor lies along one dimension of a mesh.

    >>> from jaxgrad.distributed.tensor import Replicate, Shard
    >>> Shard(0).is_shard(), Shard(0).is_shard(1), Replicate().is_replicate()
    (True, False, True)
    """

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it shards the tensor, along a dimension if one is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each device has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether each device has a summand."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each device has an equal part of the tensor along dimension `dim`.

    >>> from jaxgrad.distributed.tensor import Shard
    >>> Shard(0)
    Shard(dim=0)
    """

    dim: int


@dataclass(frozen=True)
class Replicate(Placement):
    """Each device has the whole tensor.

    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> from jaxgrad.distributed.tensor import Replicate, distribute_tensor
    >>> distribute_tensor(jaxgrad.ones(2), mesh, [Replicate()]).placements
    (Replicate(),)
    """


@dataclass(frozen=True)
class Partial(Placement):
    """Each device has a summand of the tensor. Only `from_local` and the gradients of `to_local`
    take this placement, and they compute the sum at once. reduce_op: "sum" or "avg". They raise
    NotImplementedError for another operation, and if one process has all devices.

    >>> from jaxgrad.distributed.tensor import Partial
    >>> Partial().is_partial("sum"), Partial("avg").reduce_op
    (True, 'avg')

    In two processes:

        mesh = init_device_mesh("cpu", (2,))
        x = DTensor.from_local(torch.ones(3), mesh, [Partial()])  # tensor([2., 2., 2.])
    """

    reduce_op: str = "sum"


def checked(name: str, mesh: DeviceMesh, placements, ndim: int, takes_partial=False) -> tuple:
    """The placements for the dimensions of a mesh, with dimensions of tensors from 0.

    Raises ValueError for another number of them, or a dimension that the tensor does not have;
    NotImplementedError for Partial unless it is taken.
    """
    if placements is None:
        placements = [Replicate()] * mesh.ndim
    if len(placements) != mesh.ndim or not all(isinstance(p, Placement) for p in placements):
        raise ValueError(
            f"{name}: `placements` must have a Placement for each of the {mesh.ndim} dimensions "
            f"of {mesh}, not {tuple(placements)}"
        )
    chosen = []
    for placement in placements:
        if placement.is_partial() and not takes_partial:
            raise NotImplementedError(
                f"{name}: a DTensor is never {placement}: XLA adds the summands of its own "
                "computations where they arise. from_local takes Partial, and adds them at once"
            )
        if placement.is_partial() and placement.reduce_op not in ("sum", "avg"):
            raise NotImplementedError(f"{name}: Partial is of sum or avg, not {placement}")
        if placement.is_shard():
            if not -ndim <= placement.dim < ndim:
                raise ValueError(f"{name}: {placement} of a tensor of {ndim} dimensions")
            placement = Shard(placement.dim % ndim)
        chosen.append(placement)
    return tuple(chosen)


WHOLE = PartitionSpec()


def spec_of(mesh: DeviceMesh, placements, ndim: int, around=WHOLE) -> PartitionSpec:
    """The partition of placements on a mesh. around: that of the other axes of `mesh.jax_mesh`."""
    names: list[list[str]] = [[] for _ in range(ndim)]
    for dim, entry in enumerate(around):
        entries = (entry,) if isinstance(entry, str) else entry or ()
        names[dim] += [axis for axis in entries if axis not in mesh.axes]
    for axis, placement in zip(mesh.axes, placements, strict=True):
        if placement.is_shard():
            names[placement.dim].append(axis)
    while names and not names[-1]:
        names.pop()
    return PartitionSpec(*[_entry(axes) for axes in names])


def _entry(names):
    if len(names) == 1:
        return names[0]
    return tuple(names) or None


def placements_of(mesh: DeviceMesh, spec: PartitionSpec) -> tuple[Placement, ...]:
    """The placements on a mesh of a partition."""
    dims = {}
    for dim, entry in enumerate(spec):
        for axis in (entry,) if isinstance(entry, str) else entry or ():
            dims[axis] = dim
    return tuple([Shard(dims[axis]) if axis in dims else Replicate() for axis in mesh.axes])


def check_even(name: str, shape, mesh: DeviceMesh, spec: PartitionSpec):
    """Raise ValueError where a dimension cannot be cut into equal parts."""
    for dim, entry in enumerate(spec):
        axes = (entry,) if isinstance(entry, str) else entry or ()
        parts = 1
        for axis in axes:
            parts *= mesh.jax_mesh.shape[axis]
        if shape[dim] % parts:
            raise ValueError(
                f"{name}: dimension {dim} of a tensor of shape {list(shape)} cannot be sharded "
                f"into {parts} equal parts over {', '.join(axes)} of {mesh}: pad the tensor to a "
                "multiple, or shard another dimension"
            )


def sharding_of(mesh: DeviceMesh, spec: PartitionSpec) -> NamedSharding:
    """The sharding of JAX."""
    return NamedSharding(mesh.jax_mesh, spec)


def is_single_process(mesh: DeviceMesh) -> bool:
    """Whether this process has all devices of a mesh."""
    return all(device.process_index == jax.process_index() for device in mesh.jax_mesh.devices.flat)


__getattr__, __dir__ = names_of(__name__)
