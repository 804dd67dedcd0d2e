"""The batches of a module on the devices of one process."""

from __future__ import annotations

from jax.sharding import PartitionSpec

from ...tape import pytree
from ...tape.tensor import Tensor
from ..device_mesh import DeviceMesh
from ._dtensor import is_distributed, noted
from ._redistribute import redistributed
from .placement_types import sharding_of


def sharded_inputs(name: str, mesh: DeviceMesh, inputs, dim: int = 0):
    """A pytree whose tensors are sharded along a dimension over all devices of a mesh.

    DTensors stay as they are, and so do tensors that cannot be cut into equal parts: each device
    has them whole. Raises ValueError if that is so of all of them, unless they have no dimensions.
    """
    leaves, structure = pytree.flatten(inputs)
    count, axes = mesh.size(), mesh.axes[0] if mesh.ndim == 1 else mesh.axes
    spec = PartitionSpec(*[None] * dim, axes)
    target, uneven, even = sharding_of(mesh, spec), [], 0
    for place, leaf in enumerate(leaves):
        if not isinstance(leaf, Tensor) or leaf.ndim <= dim:
            continue
        if is_distributed(leaf):
            even += 1
        elif leaf.shape[dim] % count:
            uneven.append(leaf)
        else:
            leaves[place] = noted(redistributed(leaf, target, None), target)
            even += 1
    if uneven and not even:
        raise ValueError(
            f"{name}: a batch of shape {list(uneven[0].shape)} cannot be sharded along dimension "
            f"{dim} over the {count} devices of {mesh}: make its length a multiple of {count}, "
            "such as by drop_last=True of the DataLoader"
        )
    return structure.unflatten(leaves)
