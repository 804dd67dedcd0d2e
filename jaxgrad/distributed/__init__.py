"""Processes that train together, which jaxgrad does not provide, as torch.distributed.

`is_available()` is False, so that programs run in one process. One process computes on several
devices: `jax.device_put` shards tensors over a mesh.
"""

from __future__ import annotations

from ..core.not_provided import names_of

__getattr__, __dir__ = names_of(
    __name__, "one process computes on several devices, on tensors that jax.device_put shards"
)


def is_available() -> bool:
    """Return False.

    >>> jaxgrad.distributed.is_available()
    False
    """
    return False


def is_initialized() -> bool:
    """Return False: there is no process group."""
    return False


is_gloo_available = is_mpi_available = is_nccl_available = is_available
is_ucc_available = is_xccl_available = is_torchelastic_launched = is_available


def is_backend_available(backend: str) -> bool:
    """Return False."""
    return False


def get_rank(group=None) -> int:
    """Raise ValueError: there is no process group."""
    raise ValueError(
        "Default process group has not been initialized, please make sure to call "
        "init_process_group, which jaxgrad does not provide: ask is_initialized() first"
    )


get_world_size = get_backend = get_rank
