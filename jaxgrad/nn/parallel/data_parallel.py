"""`DataParallel`, which here calls its module on the device that it is on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.device import DeviceLike
from ...names.missing import missing_in
from ..module import Module


class DataParallel(Module):
    """A module that calls another one: PyTorch splits a batch over GPUs, and jaxgrad leaves it
    whole, on the device of the module. To use several devices, shard the batch by `jax.device_put`.

    module: the other one, an attribute and the prefix of all keys of the state dict. device_ids,
    output_device and dim are accepted and have no effect.

    >>> net = jaxgrad.nn.DataParallel(jaxgrad.nn.Linear(2, 1))
    >>> list(net.state_dict()), net(jaxgrad.ones(3, 2)).shape
    (['module.weight', 'module.bias'], torch.Size([3, 1]))
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[DeviceLike] | None = None,
        output_device: DeviceLike | None = None,
        dim: int = 0,
    ):
        super().__init__()
        self.module, self.device_ids, self.dim = module, [], dim

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[DeviceLike] | None = None,
    output_device: DeviceLike | None = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call a module, on the device that it is on.

    inputs: its arguments, in a tuple, or one of them. module_kwargs: those by keyword. The others
    have no effect.

    >>> jaxgrad.nn.parallel.data_parallel(jaxgrad.nn.Identity(), jaxgrad.ones(2))
    tensor([1., 1.])
    """
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))


def replicate(network: Module, devices: Sequence, detach: bool = False) -> list[Module]:
    """Return the module, once for each device. Raises NotImplementedError for more than one.

    >>> model = jaxgrad.nn.Identity()
    >>> jaxgrad.nn.parallel.replicate(model, ["cpu"])[0] is model
    True
    """
    if len(devices) > 1:
        raise NotImplementedError(
            "torch.nn.parallel.replicate is not provided by jaxgrad for several devices: jax."
            "device_put shards the parameters and the batch over them"
        )
    return [network] * len(devices)


def parallel_apply(
    modules: Sequence,
    inputs: Sequence,
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[DeviceLike] | None = None,
) -> list:
    """Call modules, each with its arguments, and return the results.

    inputs: for each module its arguments, in a tuple, or one of them. kwargs_tup: those by keyword.
    Raises ValueError unless there are as many as modules.

    >>> double = lambda x: x * 2
    >>> jaxgrad.nn.parallel.parallel_apply([double, double], [jaxgrad.ones(1), jaxgrad.zeros(1)])
    [tensor([2.]), tensor([0.])]
    """
    keywords = [{}] * len(modules) if kwargs_tup is None else kwargs_tup
    calls = zip(modules, inputs, keywords, strict=True)
    return [data_parallel(module, args, module_kwargs=named) for module, args, named in calls]


__getattr__ = missing_in(__name__)
