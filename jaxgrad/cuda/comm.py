"""Copies between GPUs of one process, as torch.cuda.comm. Gradients flow through all of them."""

from __future__ import annotations

import functools

from .. import ops
from ..core.device import as_device, device
from ..names.missing import missing_in
from ..tape.tensor import Tensor


def broadcast(tensor: Tensor, devices=None, *, out=None) -> tuple[Tensor, ...]:
    """Copy a tensor to devices. out: tensors to write the copies to, in place of `devices`. Raises
    RuntimeError unless one of both is given.

    >>> jaxgrad.cuda.comm.broadcast(jaxgrad.ones(2), ["cpu", "cpu"])
    (tensor([1., 1.]), tensor([1., 1.]))
    """
    if (devices is None) == (out is None):
        raise RuntimeError(
            f"Exactly one of 'devices' and 'out' must be specified, but got devices={devices} and "
            f"out={out}"
        )
    if out is not None:
        return tuple([target.copy_(tensor) for target in out])
    return tuple([tensor.to(_place(place)) for place in devices])


def broadcast_coalesced(tensors, devices, buffer_size: int = 10485760) -> list[tuple[Tensor, ...]]:
    """Copy tensors to devices: for each device the copies of all. buffer_size: without effect.

    >>> jaxgrad.cuda.comm.broadcast_coalesced([jaxgrad.ones(1), jaxgrad.zeros(1)], ["cpu"])
    [(tensor([1.]), tensor([0.]))]
    """
    return [tuple([tensor.to(_place(place)) for tensor in tensors]) for place in devices]


def reduce_add(inputs, destination=None) -> Tensor:
    """Add tensors of one shape from several devices, on a device, by default the current GPU.
    Raises ValueError for other shapes.

    >>> jaxgrad.cuda.comm.reduce_add([jaxgrad.ones(2), jaxgrad.ones(2)], "cpu")
    tensor([2., 2.])
    """
    shapes = [tuple(tensor.shape) for tensor in inputs]
    for number, shape in enumerate(shapes):
        if shape != shapes[0]:
            raise ValueError(
                f"input {number} has invalid size: got {shape}, but expected {shapes[0]}"
            )
    return functools.reduce(ops.add, [tensor.to(_place(destination)) for tensor in inputs])


def reduce_add_coalesced(
    inputs, destination=None, buffer_size: int = 10485760
) -> tuple[Tensor, ...]:
    """Add the tensors of several devices: those of equal numbers in the lists. buffer_size: without
    effect.

    >>> jaxgrad.cuda.comm.reduce_add_coalesced([[jaxgrad.ones(2)], [jaxgrad.ones(2)]], "cpu")
    (tensor([2., 2.]),)
    """
    columns = zip(*inputs, strict=True)
    return tuple([reduce_add(column, destination) for column in columns])


def scatter(
    tensor: Tensor, devices=None, chunk_sizes=None, dim: int = 0, streams=None, *, out=None
) -> tuple[Tensor, ...]:
    """Split a tensor along `dim` and copy each part to a device.

    chunk_sizes: the extents of the parts, by default as equal as those of `chunk`. out: tensors to
    write the parts to, in place of `devices` and `chunk_sizes`. Raises RuntimeError for both.

    >>> jaxgrad.cuda.comm.scatter(jaxgrad.arange(4), ["cpu", "cpu"])
    (tensor([0, 1]), tensor([2, 3]))
    """
    if out is None:
        count = len(devices)
        parts = tensor.chunk(count, dim) if chunk_sizes is None else tensor.split(chunk_sizes, dim)
        return tuple([part.to(_place(place)) for part, place in zip(parts, devices, strict=True)])
    if devices is not None or chunk_sizes is not None:
        raise RuntimeError(
            "'devices' and 'chunk_sizes' must not be specified when 'out' is specified, but got "
            f"devices={devices} and chunk_sizes={chunk_sizes}"
        )
    parts = tensor.split([target.shape[dim] for target in out], dim)
    return tuple([target.copy_(part) for target, part in zip(out, parts, strict=True)])


def gather(tensors, dim: int = 0, destination=None, *, out=None) -> Tensor:
    """Join tensors of several devices along `dim`, on a device, by default the current GPU.

    out: a tensor to write the result to, in place of `destination`. Raises RuntimeError for both.

    >>> jaxgrad.cuda.comm.gather([jaxgrad.ones(1), jaxgrad.zeros(1)], destination="cpu")
    tensor([1., 0.])
    """
    if out is None:
        return ops.cat([tensor.to(_place(destination)) for tensor in tensors], dim)
    if destination is not None:
        raise RuntimeError(
            f"'destination' must not be specified when 'out' is specified, but got {destination}"
        )
    return out.copy_(ops.cat([tensor.to(out.device) for tensor in tensors], dim))


def _place(argument) -> device:
    if argument is None:
        return device("cuda")
    is_cpu = argument == -1 and isinstance(argument, int)
    return device("cpu") if is_cpu else as_device(argument)


__getattr__ = missing_in(__name__)
