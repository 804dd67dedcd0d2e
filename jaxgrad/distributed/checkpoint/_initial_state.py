"""The state that the first step of an optimizer makes, for a checkpoint to fill."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from ...autograd.grad_mode import no_grad
from ...optim.optimizer import Optimizer
from ...tape.tensor import Tensor, current, held, wrap


class InitialState(dict):
    """The state of an optimizer that has not stepped. `save` takes it as empty; `load` drops what
    the checkpoint does not have, and gives a plain dict; `set_optimizer_state_dict` takes it as
    empty too.
    """


@no_grad()
def initial_state(optimizer: Optimizer) -> dict:
    """The state that a step would make, by the numbers of parameters: tensors of these shapes,
    dtypes and placements. Another optimizer of the class steps, with copies of the parameters.
    """
    twin = type(optimizer).__new__(type(optimizer))
    fresh = {*twin.__dict__, "state", "param_groups"}
    twin.__dict__.update({k: v for k, v in optimizer.__dict__.items() if k not in fresh})
    twin.state = type(optimizer.state)(dict)
    twin.param_groups = [
        group | {"params": [_copy(param) for param in group["params"]]}
        for group in map(dict, optimizer.param_groups)
    ]
    twin.step()
    return twin.state_dict()["state"]


def _copy(param: Tensor) -> Tensor:
    """A tensor like a parameter, with a gradient of zeros if it needs one."""
    array = held(current(param))
    with jax.enable_x64(True):
        zeros = jnp.zeros(array.shape, array.dtype, device=array.sharding)
    tensor = wrap(zeros, requires_grad=param.requires_grad)
    if param.requires_grad:
        tensor.grad = wrap(zeros.copy())
    return tensor
