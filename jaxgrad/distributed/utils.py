"""The states of modules in several processes, as torch.distributed.utils."""

from __future__ import annotations

from ..autograd.grad_mode import no_grad
from ..names.not_provided import names_of
from .collectives import broadcast

__getattr__, __dir__ = names_of(__name__)


@no_grad()
def _sync_module_states(
    module,
    process_group,
    broadcast_bucket_size: int,
    src: int,
    params_and_buffers_to_ignore,
    broadcast_buffers: bool = True,
) -> None:
    """Give the parameters and buffers of a module the values of the process `src`.

    params_and_buffers_to_ignore: the names of those that keep theirs; broadcast_bucket_size: not
    used, XLA sends each array.
    """
    members = [*module.named_parameters(), *(module.named_buffers() if broadcast_buffers else ())]
    for name, tensor in members:
        if name not in params_and_buffers_to_ignore:
            broadcast(tensor.detach(), src, process_group)
