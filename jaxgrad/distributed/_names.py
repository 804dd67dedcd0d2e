"""The names of torch.distributed that are not provided."""

from __future__ import annotations

from ..core.not_provided import names_of


def names_in(own: str):
    """The `__getattr__` and the `__dir__` of a module of this package."""
    return names_of(
        own, "DeviceMesh, DTensor, fully_shard and collectives of jaxgrad.distributed are there"
    )
