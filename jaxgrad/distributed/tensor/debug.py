"""Shows how DTensors lie on devices."""

from __future__ import annotations

from ...names.not_provided import names_of
from ...tape.tensor import Tensor, current, held
from ._dtensor import mesh_and_spec


def visualize_sharding(dtensor: Tensor, header: str = "", use_rich: bool = False) -> None:
    """Print which part of a tensor each device has.

    dtensor: a DTensor. header: a line to print first. use_rich: taken, and not used. Raises
    AttributeError for a tensor that is no DTensor, RuntimeError in a trace.

    >>> from jaxgrad.distributed.tensor import Shard, debug, distribute_tensor
    >>> mesh = jaxgrad.distributed.init_device_mesh("cpu", (1,))
    >>> debug.visualize_sharding(distribute_tensor(jaxgrad.ones(4, 2), mesh, [Shard(0)]))
    device        part
    cpu:0         [0:4, 0:2]
    """
    mesh_and_spec("visualize_sharding", dtensor)
    array = held(current(dtensor))
    if header:
        print(header)
    print(f"{'device':14}part")
    parts = array.sharding.devices_indices_map(tuple(dtensor.shape))
    for device, part in sorted(parts.items(), key=lambda pair: pair[0].id):
        bounds = [span.indices(n) for span, n in zip(part, dtensor.shape, strict=True)]
        shown = ", ".join(f"{first}:{end}" for first, end, _ in bounds)
        print(f"{f'{device.platform}:{device.id}':14}[{shown}]")


__getattr__, __dir__ = names_of(__name__)
