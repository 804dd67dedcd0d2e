"""`DistributedDataParallel`, which needs processes that train together."""

from __future__ import annotations

from ...core.missing_names import missing_in
from ..module import Module


class DistributedDataParallel(Module):
    """A module that averages gradients over processes, which jaxgrad does not provide: nothing is
    an instance of it, and a call raises ValueError, as without a process group.
    """

    def __init__(self, module: Module, *args, **kwargs):
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group, which jaxgrad does not provide: train the module itself; "
            "jax.device_put shards a batch over the devices of one process"
        )


__getattr__ = missing_in(__name__)
