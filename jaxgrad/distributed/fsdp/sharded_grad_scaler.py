"""`ShardedGradScaler`: loss scaling where gradients are sharded."""

from __future__ import annotations

from ...amp.grad_scaler import GradScaler
from ...names.not_provided import names_of


class ShardedGradScaler(GradScaler):
    """A GradScaler for sharded gradients: processes skip a step if the gradients of one of them are
    not finite. The gradients are DTensors, so a GradScaler does the same.

    process_group: taken and not used.

    >>> from jaxgrad.distributed.fsdp.sharded_grad_scaler import ShardedGradScaler
    >>> ShardedGradScaler("cpu", init_scale=4.0).get_scale()
    4.0
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        backoff_factor: float = 0.5,
        growth_factor: float = 2.0,
        growth_interval: int = 2000,
        enabled: bool = True,
        process_group=None,
    ):
        options = growth_factor, backoff_factor, growth_interval, enabled
        super().__init__(device, init_scale, *options)


__getattr__, __dir__ = names_of(__name__)
