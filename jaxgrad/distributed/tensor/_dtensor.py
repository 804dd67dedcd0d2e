"""`DTensor`: a tensor whose array is sharded over the devices of a mesh.

It is a `Tensor` like any other: operators, views, writes in place, backward passes, optimizers and
compiled functions work on it, and XLA inserts the communication.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
from jax.sharding import NamedSharding, PartitionSpec

from ... import ops
from ...core import communication as kinds
from ...core import spread
from ...core.meta_array import MetaArray
from ...tape import mode
from ...tape.communicate import communicated
from ...tape.noted_reads import noted_read
from ...tape.tensor import Tensor, current, held
from ..device_mesh import DeviceMesh, current_mesh
from ._redistribute import redistributed, replicated
from .placement_types import (
    WHOLE,
    Placement,
    Replicate,
    check_even,
    checked,
    is_single_process,
    placements_of,
    sharding_of,
    spec_of,
)


def sharding_held(tensor: Tensor) -> NamedSharding | None:
    """How the array of a tensor lies on a mesh; None if it does not, or is not known in a trace."""
    array = held(current(tensor))
    scope = mode.scope.get()
    if isinstance(array, jax.core.Tracer) and scope is not None:
        noted_read(tensor, sharding)
        array = _before_trace(scope, tensor, array)
    layout = getattr(array, "sharding", None)
    is_known = isinstance(layout, NamedSharding) and not isinstance(array, jax.core.Tracer)
    return layout if is_known else None


def sharding(tensor: Tensor) -> NamedSharding | None:
    """How the array of a tensor lies on a mesh."""
    layout = getattr(held(current(tensor)), "sharding", None)
    return layout if isinstance(layout, NamedSharding) else None


def _before_trace(scope, tensor, tracer):
    """The array that a tensor had before it was captured; writes in place leave its sharding. For
    a result of `redistribute` and the like, what is noted of it.
    """
    while scope is not None:
        noted = scope.memo.get(("sharding", id(tracer)))
        if noted is not None:
            return noted
        captured = scope.captured.get(id(tensor))
        if captured is not None:
            return captured.snapshot.array
        scope = scope.parent
    return tracer


class _Noted:
    """The known sharding of a tracer. tracer: the tracer itself, so that no other object gets its
    id.
    """

    def __init__(self, tracer, sharding):
        self.tracer, self.sharding = tracer, sharding


def noted(tensor: Tensor, sharding) -> Tensor:
    """The tensor, of which a trace remembers how it lies."""
    scope, array = mode.scope.get(), held(tensor)
    if scope is not None and isinstance(array, jax.core.Tracer):
        scope.memo["sharding", id(array)] = _Noted(array, sharding)
    return tensor


def is_distributed(tensor) -> bool:
    """Whether a value is a tensor that lies on a mesh."""
    if not isinstance(tensor, Tensor):
        return False
    array = held(current(tensor))
    if isinstance(array, jax.core.Tracer):
        noted_read(tensor, sharding)
        return kinds.is_global(array)
    return isinstance(getattr(array, "sharding", None), NamedSharding)


class _DTensorMeta(type(Tensor)):
    def __instancecheck__(cls, instance):
        return is_distributed(instance)


class DTensor(Tensor, metaclass=_DTensorMeta):
    """A tensor that is sharded over a mesh: `isinstance(x, DTensor)` tells. `distribute_tensor`,
    `from_local` and the factories of torch.distributed.tensor make them.

    The local tensor is the part of this process. Where one process has all devices, that is the
    whole tensor, still sharded.

    >>> from jaxgrad.distributed.tensor import DTensor, Shard, distribute_tensor
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> x = distribute_tensor(jaxgrad.ones(2), mesh, [Shard(0)])
    >>> isinstance(x, DTensor), x.placements
    (True, (Shard(dim=0),))
    """

    def __new__(cls, *args, **kwargs):
        raise RuntimeError(
            "DTensor(): use distribute_tensor or DTensor.from_local, which take a mesh and "
            "placements"
        )

    @staticmethod
    def from_local(
        local_tensor: Tensor,
        device_mesh: DeviceMesh | None = None,
        placements: Sequence[Placement] | None = None,
        *,
        run_check: bool = False,
        shape=None,
        stride=None,
        grad_placements=None,
    ) -> Tensor:
        """The DTensor of which each process has a part.

        local_tensor: the part of this process, of one shape in all of them. placements: one for
        each dimension of the mesh, Replicate by default; where it is Partial the parts are summed
        at once, and the result is replicated. The gradient comes back in the placements.

        Raises ValueError for placements that do not fit, NotImplementedError for Partial where one
        process has all devices, RuntimeError where a process has several devices of several
        processes.

        >>> from jaxgrad.distributed.tensor import DTensor, Replicate
        >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
        >>> DTensor.from_local(jaxgrad.ones(2), mesh, [Replicate()]).placements
        (Replicate(),)
        """
        mesh = current_mesh(device_mesh)
        if is_single_process(mesh):
            chosen = checked("from_local", mesh, placements, local_tensor.ndim)
            return _placed("from_local", local_tensor, mesh, chosen)
        chosen = checked("from_local", mesh, placements, local_tensor.ndim, takes_partial=True)
        _check_whole_mesh("from_local", mesh)
        partial = [i for i, placement in enumerate(chosen) if placement.is_partial()]
        target = spec_of(mesh, chosen, local_tensor.ndim)
        communication = kinds.FromLocal(
            mesh.jax_mesh,
            axes=mesh.axes,
            target=target,
            sums=tuple([mesh.axes[i] for i in partial]),
            scale=_mean_factor(mesh, chosen),
        )
        dtensor = communicated(local_tensor, communication)
        return noted(dtensor, sharding_of(mesh, target))


def _mean_factor(mesh, placements) -> float:
    """1 over the number of summands of which the mean is wanted."""
    counts = [mesh.size(i) for i, placement in enumerate(placements) if placement.is_partial("avg")]
    factor = 1.0
    for count in counts:
        factor /= count
    return factor


def _check_whole_mesh(name, mesh: DeviceMesh):
    """Raise RuntimeError where a process has no part of its own in a mesh."""
    devices = list(mesh.jax_mesh.devices.flat)
    if len({device.process_index for device in devices}) < len(devices):
        raise RuntimeError(
            f"{name}: processes have several devices each in {mesh}, and so no single part: use "
            "distribute_tensor, full_tensor, or a process for each device"
        )
    if mesh.axes != tuple(mesh.jax_mesh.axis_names):
        raise RuntimeError(
            f"{name}: {mesh} is a part of a mesh with the dimensions "
            f"{tuple(mesh.jax_mesh.axis_names)}, along which the parts of processes differ: give "
            "the whole mesh and a placement for each of its dimensions, such as "
            "DTensor.from_local(x, mesh, [Shard(0), Replicate()])"
        )


def mesh_and_spec(name: str, tensor: Tensor) -> tuple[DeviceMesh, PartitionSpec]:
    """The mesh and the partition of a DTensor. Raises RuntimeError where they are not known."""
    layout = sharding_held(tensor)
    if layout is not None:
        return DeviceMesh.of(layout.mesh), layout.spec
    if is_distributed(tensor):
        raise RuntimeError(
            f"{name}: XLA chooses how a tensor of shape {list(tensor.shape)} that a compiled "
            "function computes lies on the mesh: redistribute(device_mesh, placements) chooses it, "
            "and says it from then on"
        )
    raise AttributeError(f"'Tensor' object has no attribute '{name}': it is no DTensor")


def _placed(name, tensor: Tensor, mesh: DeviceMesh, placements, around=WHOLE) -> Tensor:
    spec = spec_of(mesh, placements, tensor.ndim, around)
    check_even(name, tensor.shape, mesh, spec)
    target = sharding_of(mesh, spec)
    back = sharding_held(tensor)
    return noted(redistributed(tensor, target, back), target)


def to_local(self: Tensor, *, grad_placements=None) -> Tensor:
    """The part of this process, a tensor of its own. Where one process has all devices, that is the
    whole tensor, still sharded.

    grad_placements: how the gradients of the parts make up that of the DTensor: as its own
    placements by default; where one is Partial, they are summed. Raises AttributeError for a tensor
    that is no DTensor, RuntimeError where its placements are not known or a process has several
    devices of several processes.
    """
    mesh, spec = mesh_and_spec("to_local", self)
    if is_single_process(mesh):
        return ops.alias(self)
    _check_whole_mesh("to_local", mesh)
    back, sums, scale = spec, (), 1.0
    if grad_placements is not None:
        chosen = checked("to_local", mesh, grad_placements, self.ndim, takes_partial=True)
        back, scale = spec_of(mesh, chosen, self.ndim), _mean_factor(mesh, chosen)
        sums = tuple([mesh.axes[i] for i, placement in enumerate(chosen) if placement.is_partial()])
    communication = kinds.ToLocal(
        mesh.jax_mesh, axes=mesh.axes, source=spec, back=back, sums=sums, back_scale=scale
    )
    return communicated(self, communication)


def redistribute(
    self: Tensor,
    device_mesh: DeviceMesh | None = None,
    placements: Sequence[Placement] | None = None,
    *,
    async_op: bool = False,
    forward_dtype=None,
    backward_dtype=None,
) -> Tensor:
    """The DTensor in other placements; its gradient comes back in the present ones.

    device_mesh: by default its own; a part of that leaves the placements on the other dimensions.
    placements: one for each dimension of the mesh, Replicate by default. forward_dtype: the dtype
    of the result. Raises ValueError for placements that do not fit the mesh or the shape,
    NotImplementedError for Partial.
    """
    sharding = sharding_held(self)
    mesh = device_mesh if device_mesh is not None else mesh_and_spec("redistribute", self)[0]
    source = self if forward_dtype is None else self.to(forward_dtype)
    chosen = checked("redistribute", mesh, placements, self.ndim)
    is_part = sharding is not None and sharding.mesh == mesh.jax_mesh
    return _placed("redistribute", source, mesh, chosen, sharding.spec if is_part else WHOLE)


def full_tensor(self: Tensor, *, grad_placements=None) -> Tensor:
    """The whole tensor in each process, on one of its devices. Raises as `to_local`."""
    mesh = _device_mesh(self) if is_distributed(self) else mesh_and_spec("full_tensor", self)[0]
    whole = _placed("full_tensor", self, mesh, [Replicate()] * mesh.ndim)
    if not is_single_process(mesh):
        return to_local(whole, grad_placements=grad_placements)
    device = mesh.jax_mesh.devices.flat[0]
    return redistributed(
        whole, jax.sharding.SingleDeviceSharding(device), replicated(mesh.jax_mesh)
    )


def _placements(self: Tensor) -> tuple[Placement, ...]:
    """How a DTensor lies along each dimension of its mesh. Raises AttributeError for a tensor that
    is none.
    """
    mesh, spec = mesh_and_spec("placements", self)
    return placements_of(mesh, spec)


def _device_mesh(self: Tensor) -> DeviceMesh:
    """The mesh of a DTensor. Raises AttributeError for a tensor that is none."""
    if sharding_held(self) is None and is_distributed(self):
        return DeviceMesh.of(_mesh_of_trace(self))
    return mesh_and_spec("device_mesh", self)[0]


def _mesh_of_trace(tensor):
    """The mesh of a tracer."""
    mesh = spread.meshes.get(held(tensor).aval.sharding.mesh)
    if mesh is None:
        raise RuntimeError("device_mesh: the mesh of a tensor that is traced is not known here")
    return mesh


class _MemberOfDTensors:
    """A method or property that other tensors, and their class, do not have: programs ask by
    `hasattr`.
    """

    def __init__(self, name, member):
        self.name, self.member = name, member

    def __get__(self, tensor, owner=None):
        if tensor is None:
            raise AttributeError(f"type object '{owner.__name__}' has no attribute '{self.name}'")
        if not is_distributed(tensor):
            mesh_and_spec(self.name, tensor)  # raises AttributeError
        return self.member.__get__(tensor, owner)


def install():
    """Give tensors what DTensors have, and all others refuse."""
    members = {"to_local": to_local, "full_tensor": full_tensor, "redistribute": redistribute}
    members |= {"placements": property(_placements), "device_mesh": property(_device_mesh)}
    for name, member in members.items():
        setattr(DTensor, name, member)
        setattr(Tensor, name, _MemberOfDTensors(name, member))


def is_abstract(tensor: Tensor) -> bool:
    """Whether a tensor has no data."""
    return type(held(tensor)) is MetaArray
