"""Whole tensors in state dicts, and tensors like the parameters that they belong to."""

from __future__ import annotations

import contextvars
import json

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from ...autograd.grad_mode import no_grad
from ...core import world
from ...tape.tensor import Tensor, current, held, wrap
from ..collectives import broadcast
from ..object_collectives import broadcast_object_list
from ..process_group import get_rank, is_initialized
from ..tensor._distribute import sharded
from ..tensor._dtensor import full_tensor, is_distributed, sharding_held
from . import _tree

# whether the state dict of a FullyShardedDataParallel has DTensors, whatever it is set to
as_they_lie = contextvars.ContextVar("as_they_lie", default=False)


@no_grad()
def whole(value, is_full: bool, on_cpu: bool):
    """A state dict with whole tensors in place of DTensors, or with tensors on the CPU."""
    if isinstance(value, dict):
        return type(value)((key, whole(item, is_full, on_cpu)) for key, item in value.items())
    if isinstance(value, list | tuple):
        return type(value)([whole(item, is_full, on_cpu) for item in value])
    if not isinstance(value, Tensor):
        return value
    if is_full and is_distributed(value):
        value = full_tensor(value.detach())
    return value.cpu() if on_cpu and not is_distributed(value) else value


@no_grad()
def like_parameter(value, param: Tensor | None):
    """A tensor, or those in the state of a parameter, as a parameter lies: with its placements if
    it has its shape, replicated otherwise; whole if the parameter is no DTensor.
    """
    if isinstance(value, dict):
        return {key: like_parameter(item, param) for key, item in value.items()}
    if not isinstance(value, Tensor):
        return value
    if param is None or not is_distributed(param):
        return full_tensor(value.detach()) if is_distributed(value) else value
    sharding = sharding_held(param)
    if value.shape != param.shape:
        sharding = NamedSharding(sharding.mesh, PartitionSpec())
    if is_distributed(value) and sharding_held(value) == sharding:
        return value
    if is_distributed(value):
        return wrap(jax.device_put(held(current(value)), sharding))
    with jax.enable_x64(True):
        return wrap(sharded(value.detach(), sharding))


@no_grad()
def broadcast_state(state: dict) -> dict:
    """The state dict of the process of rank 0, in each process."""
    if not is_initialized() or not world.is_several():
        return state
    tensors: dict[tuple, Tensor] = {}
    is_first = get_rank() == 0
    structure = [json.dumps(_tree.encoded(state, (), tensors)) if is_first else None]
    broadcast_object_list(structure)
    return _received(json.loads(structure[0]), (), tensors, is_first)


def _received(node, path, tensors, is_first):
    kind = _tree.kind_of(node)
    if kind == "tensor":
        with jax.enable_x64(True):
            zeros = jnp.zeros(node["shape"], np.dtype(node["dtype"]))
        tensor = tensors[path].detach().clone() if is_first else wrap(zeros)
        broadcast(tensor, 0)
        return tensor
    if kind == "number":
        return _tree.number_of(node)
    pairs = [
        (key, _received(child, (*path, key), tensors, is_first))
        for key, child in _tree.children(node)
    ]
    if kind == "dict":
        return dict(pairs)
    return (list if kind == "list" else tuple)([value for _, value in pairs])
