"""How a tensor lies on the devices of a mesh, as text."""

from __future__ import annotations

from jax.sharding import NamedSharding


def placements_text(sharding) -> str:
    """The mesh and the placements of a sharding; "" if it is that of one device.

    >>> import jax
    >>> placements_text(jax.numpy.ones(2).sharding)
    ''
    """
    if not isinstance(sharding, NamedSharding) or sharding.mesh.size == 1:
        return ""
    dims = {}
    for dim, entry in enumerate(sharding.spec):
        for axis in (entry,) if isinstance(entry, str) else entry or ():
            dims[axis] = dim
    shape = dict(sharding.mesh.shape)
    placed = [f"Shard(dim={dims[axis]})" if axis in dims else "Replicate()" for axis in shape]
    comma = "," if len(placed) == 1 else ""
    return f"device_mesh={shape}, placements=({', '.join(placed)}{comma})"
