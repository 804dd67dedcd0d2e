"""`DataParallel`, which here calls its module on the device that it is on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from ...core.device import (
    DeviceLike,
    accelerator,
    as_device,
    chosen_place,
    devices_of,
    is_cpu,
    may_differ,
)
from ...names.missing import missing_in
from ...tape.pytree import map_leaves
from ...tape.tensor import Tensor
from ..module import Module


class DataParallel(Module):
    """A module that calls another one: PyTorch splits a batch over GPUs, and jaxgrad leaves it
    whole, on the device of the module. To use several devices, shard the batch by `jax.device_put`.

    module: the other one, an attribute and the prefix of all keys of the state dict. Tensors of the
    CPU go to its device, as in PyTorch, and results to output_device. device_ids, by default those
    of all accelerators, and dim are attributes and have no other effect.

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
        self.module, self.output_device, self.dim = module, output_device, dim
        place = accelerator()
        if device_ids is None or place is None:
            device_ids = range(0 if place is None else len(devices_of(place.type)))
        self.device_ids = [as_device(device).index for device in device_ids]

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return data_parallel(self.module, inputs, None, self.output_device, self.dim, kwargs)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[DeviceLike] | None = None,
    output_device: DeviceLike | None = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """Call a module, on the device that it is on.

    inputs: its arguments, in a tuple, or one of them. module_kwargs: those by keyword. Tensors of
    the CPU go to the device of the module, and results to output_device. The others have no effect.

    >>> jaxgrad.nn.parallel.data_parallel(jaxgrad.nn.Identity(), jaxgrad.ones(2))
    tensor([1., 1.])
    """
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    args, kwargs = beside(module, (inputs, module_kwargs or {}))
    output = module(*args, **kwargs)
    return output if output_device is None else _moved(output, output_device)


def beside(module: Any, arguments: Any) -> Any:
    """Arguments, with copies of their tensors of the CPU on the accelerator of a module."""
    if not may_differ():
        return arguments
    tensors = itertools.chain(module.parameters(), module.buffers())
    first = next((tensor for tensor in tensors if _is_on_accelerator(tensor)), None)
    return arguments if first is None else _moved(arguments, first.device, lambda x: x.is_cpu)


def _is_on_accelerator(tensor) -> bool:
    """Whether a tensor was moved to one accelerator."""
    place = chosen_place(tensor._value)
    return place is not None and len(place) == 1 and not is_cpu(place)


def _moved(values, device, moves=lambda tensor: True):
    def move(value):
        return value.to(device) if isinstance(value, Tensor) and moves(value) else value

    return map_leaves(move, values)


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
